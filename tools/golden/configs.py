"""The golden texts of configs: what each resolves to, with its `_base_` files merged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from framework.config import load, resolved

REPO = Path(__file__).resolve().parents[2]
GOLDEN = REPO / "tests" / "config" / "golden"


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, str]]:
    """Those there are in tests/config/golden; with the case `all` one for every file under configs/."""
    for path in sorted((REPO / "configs").rglob("*.y*ml")):
        golden = (GOLDEN / path.relative_to(REPO / "configs")).with_suffix(".yml")
        if "_base_" not in path.parts and ("all" in cases or golden.is_file()):
            yield golden, resolved(load(path))
