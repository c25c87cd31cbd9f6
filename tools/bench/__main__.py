"""Measurements, each against a peer that is measured in the same run; no test asserts a time.

    python -m tools.bench                what there is; docs/benchmarks.md has it as a table
    python -m tools.bench NAME --help    its options

Run it at the root of the repository. A measurement is a row of benches.yml, and a function of the module there.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import yaml

BENCHES: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("benches.yml").read_text(encoding="utf-8")
)


def main() -> int:
    name, *argv = sys.argv[1:] or ("",)
    if name not in BENCHES:
        for each, (_, what, peer, needs) in BENCHES.items():
            print(f"{each:22} {what}: {peer}  {needs}")
        return int(bool(name) and name != "--help")
    module = importlib.import_module(f"tools.bench.{BENCHES[name][0]}")
    sys.argv[0] = f"python -m tools.bench {name}"
    return getattr(module, name)(argv) or 0


if __name__ == "__main__":
    sys.exit(main())
