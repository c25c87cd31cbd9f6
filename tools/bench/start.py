"""Time from the start of a process to its first result, against RapidOCR's process in the same run.

python tools/bench/start.py [--image docs/images/receipt.png] [--rounds 5] [--first] [--engine xla]

Each round starts one process of both, which imports, opens the default model and reads one image; the home folder is a
new one, and a start before the rounds fills it. `--first` prints that start too, which is the first one after an
installation. The last line has the ratios of the medians. On a machine that does other work, too, only the CPU time
tells something, and it says nothing about what runs side by side; ONNX Runtime's threads spin while they wait.
Python writes compiled modules as it does for users, whatever PYTHONDONTWRITEBYTECODE says here.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
OURS = """
import sys
from ocr import predictor
print(len(predictor(engine=sys.argv[2])(sys.argv[1]).text))
"""
THEIRS = """
import logging, sys
logging.disable(logging.WARNING)
from rapidocr import RapidOCR
print(sum(map(len, RapidOCR()(sys.argv[1]).txts)))
"""


def start(code: str, *args: str, home: str) -> tuple[float, float]:
    """(seconds, CPU seconds) of a process that runs this."""
    before, started = os.times(), time.perf_counter()
    env = {**os.environ, "OAR_HOME": home, "PYTHONPATH": str(REPO)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", code, *args], check=True, env=env, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - started, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--image", default=str(REPO / "docs" / "images" / "receipt.png"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first", action="store_true", help="print the first start of all as well")
    parser.add_argument("--engine", default="xla")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        first = start(OURS, args.image, args.engine, home=home)
        if args.first:
            print(f"first start of all  {first[0]:6.2f} s  {first[1]:6.2f} s of CPU")
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(start(OURS, args.image, args.engine, home=home))
            theirs.append(start(THEIRS, args.image, home=home))
    for name, times in (("oar", ours), ("rapidocr", theirs)):
        wall, cpu = (statistics.median(column) for column in zip(*times))
        print(f"{name:<20}{wall:6.2f} s  {cpu:6.2f} s of CPU")
    wall, cpu = (
        statistics.median(mine) / statistics.median(peer) for mine, peer in zip(zip(*ours), zip(*theirs))
    )
    print(f"ratio {wall:.2f}, of CPU time {cpu:.2f}")


if __name__ == "__main__":
    main()
