"""Line crops and pages a second that the DataLoader draws, with threads and with processes.

python tools/bench/synthetic_text.py [--lines 1500] [--pages 60] [--workers 2] [--fonts PATH ...] [--corpus FILE ...]

Each way draws a third of the samples and then all of them; the difference gives the rate, so that starting processes
does not count. On a shared machine the CPU time a sample, of all processes together, says more than the rate.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from framework.io import DataLoader
from ocr.data.synthetic.lines import SyntheticTextLines
from ocr.data.synthetic.pages import SyntheticPages


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def draw(kind: type, count: int, args: argparse.Namespace, how: dict[str, Any]) -> tuple[float, float]:
    """Wall and CPU seconds of `count` samples."""
    dataset = kind(count=count, fonts=args.fonts, corpus=args.corpus, skip_missing=True, receipts=0.2)
    started, used = time.perf_counter(), cpu_seconds()
    for _ in DataLoader(dataset, batch_size=16, collate_fn=list, **how):
        pass
    return time.perf_counter() - started, cpu_seconds() - used


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1500)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fonts", type=Path, nargs="*", default=())
    parser.add_argument("--corpus", type=Path, nargs="*", default=())
    args = parser.parse_args()
    args.fonts, args.corpus = tuple(args.fonts), tuple(args.corpus)
    ways = {
        "no workers": {"num_workers": 0},
        f"{args.workers} threads": {"num_workers": args.workers},
        f"{args.workers} processes": {"num_workers": args.workers, "worker_mode": "process"},
    }
    print(f"{'':<28}{'samples/s':>10}{'CPU ms/sample':>15}")
    for kind, count in ((SyntheticTextLines, args.lines), (SyntheticPages, args.pages)):
        for name, how in ways.items():
            few = max(1, count // 3)
            wall_few, cpu_few = draw(kind, few, args, how)
            wall, cpu = draw(kind, count, args, how)
            rate, cost = (count - few) / (wall - wall_few), (cpu - cpu_few) / (count - few) * 1e3
            print(f"{kind.__name__[9:] + ', ' + name:<28}{rate:>10.0f}{cost:>15.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
