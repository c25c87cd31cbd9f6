"""Makes tests/golden/data/paddle_programs.json: what the programs of tests/e2e/paddle_programs report on Paddle.

Run it from the root of the repository with the interpreter of an environment with paddlepaddle 2.6.2, Pillow and OpenCV
(none of our code is used), with OAR_SHARED set:

    python tools/golden/paddle_programs.py [program ...]

Of each program: `values`, {name: numbers}, and `spread`: how far Paddle's own numbers move when all first weights
are changed by 1e-6 of themselves. A program with a large spread is chaotic, and another order of sums shows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "e2e" / "paddle_programs"
OUTPUT = ROOT / "tests" / "golden" / "data" / "paddle_programs.json"
NOISE = "1e-6"


def run(names: list[str], noise: str) -> dict[str, dict[str, list[float]]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [sys.executable, str(PROGRAMS / "run.py"), "paddle", str(out), *names]
        subprocess.run(command, check=True, env={**os.environ, "PROGRAM_NOISE": noise})
        return json.loads(out.read_text(encoding="utf-8"))


def main(names: list[str]) -> None:
    every = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem not in ("run", "exchange"))
    names = names or every
    plain, moved = run(names, "0"), run(names, NOISE)
    known = json.loads(OUTPUT.read_text(encoding="utf-8")) if OUTPUT.exists() else {}
    for name in names:
        spread = max(
            float(np.abs(np.subtract(moved[name][key], plain[name][key])).max()) for key in plain[name]
        )
        values = {key: [float(f"{x:.8g}") for x in numbers] for key, numbers in plain[name].items()}
        known[name] = {"spread": float(f"{spread:.2g}"), "values": values}
    lines = [f'"{name}": {json.dumps(known[name])}' for name in sorted(known)]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
