"""Samples a second of the DataLoader: images against a plain loop and torch's loader, and synthetic text.

Each way makes a part of the samples and then all of them; the difference gives the rate, so that starting processes
does not count: the column `first` has the seconds to the first batch. On a shared machine the CPU time a sample, of
all processes together, says more than the rate.

loader          a 512x384 JPEG is read, cropped to 224x224 at random, half of them mirrored, normalised to float32:
                threads and processes, a plain loop, and torch's loader where it is installed, all with the same
                functions
synthetic_text  line crops and pages that are drawn, with threads and with processes (--fonts PATH …, --corpus FILE …)
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from framework.io import DataLoader, Dataset, default_collate
from framework.vision import image as vision_image
from tools.bench.peers import arguments, cpu_seconds

SIZE_HW, CROP, FILES = (384, 512), 224, 256
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
SCALE = 1 / np.array([58.395, 57.12, 57.375], np.float32)


def write_photos(folder: Path) -> list[Path]:
    """Smooth coloured images with some grain: JPEGs of about 60 kB, as photos of this size are."""
    rng = np.random.default_rng(0)
    paths = []
    for number in range(FILES):
        smooth = vision_image.resize(rng.integers(0, 256, (24, 32, 3), np.uint8), SIZE_HW, "cubic")
        grainy = smooth.astype(np.int16) + rng.integers(-8, 9, smooth.shape, np.int16)
        paths.append(folder / f"{number}.jpg")
        vision_image.write(paths[-1], grainy.clip(0, 255).astype(np.uint8), quality=90)
    return paths


class Photos(Dataset):
    """The photos over and over, `count` in all."""

    def __init__(self, paths: list[Path], count: int) -> None:
        self.paths, self.count = paths, count

    def __getitem__(self, index: int) -> np.ndarray:
        return vision_image.read(self.paths[index % len(self.paths)])

    def __len__(self) -> int:
        return self.count


def augment(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random crop and mirroring."""
    y, x = rng.integers(image.shape[0] - CROP + 1), rng.integers(image.shape[1] - CROP + 1)
    crop = image[y : y + CROP, x : x + CROP]
    return crop[:, ::-1] if rng.random() < 0.5 else crop


def normalise(image: np.ndarray) -> dict[str, np.ndarray]:
    """What the loaders stack."""
    out = np.subtract(image, MEAN)
    out *= SCALE
    return {"image": out}


def one(photos: Photos, index: int) -> dict[str, np.ndarray]:
    """A sample without a loader."""
    return normalise(augment(photos[index], np.random.default_rng((0, 0, index))))


class TorchPhotos:
    """The same samples for torch's loader."""

    def __init__(self, photos: Photos) -> None:
        self.photos = photos

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        return one(self.photos, index)

    def __len__(self) -> int:
        return len(self.photos)


def ways(args: argparse.Namespace) -> dict[str, Callable[[Photos], Iterable[Any]]]:
    """Name to what makes batches of some photos."""
    size, workers = args.batch_size, args.workers

    def plain(photos: Photos) -> Iterator[Any]:
        for start in range(0, len(photos), size):
            yield default_collate([one(photos, index) for index in range(start, start + size)])

    def ours(mode: Any, num_workers: int) -> Callable[[Photos], Iterable[Any]]:
        return lambda photos: DataLoader(
            photos,
            batch_size=size,
            transforms=(augment,),
            pack=normalise,
            num_workers=num_workers,
            worker_mode=mode,
        )

    found: dict[str, Callable[[Photos], Iterable[Any]]] = {
        "plain loop": plain,
        "DataLoader, no workers": ours("thread", 0),
        f"DataLoader, {workers} threads": ours("thread", workers),
        f"DataLoader, {2 * workers} threads": ours("thread", 2 * workers),
        f"DataLoader, {workers} processes": ours("process", workers),
    }
    if importlib.util.find_spec("torch"):
        import torch

        def theirs(num_workers: int, context: str | None) -> Callable[[Photos], Iterable[Any]]:
            return lambda photos: torch.utils.data.DataLoader(
                TorchPhotos(photos),  # pyright: ignore[reportArgumentType]
                batch_size=size,
                num_workers=num_workers,
                multiprocessing_context=context,
            )

        found["torch, no workers"] = theirs(0, None)
        if hasattr(os, "fork"):
            found[f"torch, {workers} forked processes"] = theirs(workers, "fork")
        found[f"torch, {workers} spawned processes"] = theirs(workers, "spawn")
    return found


def run(batches: Iterable[Any]) -> tuple[float, float, float]:
    """Wall and CPU seconds of all batches, and seconds to the first."""
    started, used, first = time.perf_counter(), cpu_seconds(), 0.0
    for _ in batches:
        first = first or time.perf_counter() - started
    return time.perf_counter() - started, cpu_seconds() - used, first


def loader(argv: list[str]) -> None:
    args = arguments(__doc__, images=2048, workers=2, batch_size=32, rounds=3).parse_args(argv)
    many = args.images // args.batch_size * args.batch_size
    few = many // 4 // args.batch_size * args.batch_size
    with tempfile.TemporaryDirectory() as folder:
        paths = write_photos(Path(folder))
        kilobytes = statistics.mean(path.stat().st_size for path in paths) / 1e3
        print(f"{FILES} JPEGs of {kilobytes:.0f} kB, batches of {args.batch_size}, {args.rounds} rounds")
        print(f"{'':<34}{'images/s':>10}{'CPU ms/image':>14}{'first, s':>10}")
        rows: dict[str, list[tuple[float, float, float]]] = {}
        for _ in range(args.rounds):
            for name, make in ways(args).items():
                wall_few, cpu_few, first = run(make(Photos(paths, few)))
                wall, cpu, _ = run(make(Photos(paths, many)))
                row = ((many - few) / (wall - wall_few), (cpu - cpu_few) / (many - few) * 1e3, first)
                rows.setdefault(name, []).append(row)
        medians = {
            name: [statistics.median(column) for column in zip(*found)] for name, found in rows.items()
        }
        for name, (rate, cpu, first) in medians.items():
            print(f"{name:<34}{rate:>10.0f}{cpu:>14.2f}{first:>10.2f}")
    threads = medians[f"DataLoader, {args.workers} threads"][0]
    best = max((rate[0] for name, rate in medians.items() if name.startswith("torch")), default=0.0)
    print(f"threads / plain loop: {threads / medians['plain loop'][0]:.2f}", end="")
    print(f"; threads / best of torch: {threads / best:.2f}" if best else "")


def draw(kind: type, count: int, args: argparse.Namespace, how: dict[str, Any]) -> tuple[float, float]:
    """Wall and CPU seconds of `count` samples."""
    dataset = kind(count=count, fonts=args.fonts, corpus=args.corpus, skip_missing=True, receipts=0.2)
    started, used = time.perf_counter(), cpu_seconds()
    for _ in DataLoader(dataset, batch_size=16, collate_fn=list, **how):
        pass
    return time.perf_counter() - started, cpu_seconds() - used


def synthetic_text(argv: list[str]) -> None:
    from ocr.data.synthetic.lines import SyntheticTextLines
    from ocr.data.synthetic.pages import SyntheticPages

    parser = arguments(__doc__, lines=1500, pages=60, workers=2)
    parser.add_argument("--fonts", type=Path, nargs="*", default=())
    parser.add_argument("--corpus", type=Path, nargs="*", default=())
    args = parser.parse_args(argv)
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
