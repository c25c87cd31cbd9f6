"""Writes the golden texts of configs: what each resolves to, with its `_base_` files merged.

    python tools/golden/configs.py [--all]

renews those there are in tests/config/golden; `--all` writes one for every file under configs/.
"""

from __future__ import annotations

import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))
from framework.config import load, resolved  # noqa: E402

GOLDEN = REPO / "tests" / "config" / "golden"


def main(every: bool) -> None:
    for path in sorted((REPO / "configs").rglob("*.y*ml")):
        golden = (GOLDEN / path.relative_to(REPO / "configs")).with_suffix(".yml")
        if "_base_" not in path.parts and (every or golden.is_file()):
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(resolved(load(path)), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main("--all" in sys.argv[1:])
