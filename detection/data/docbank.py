"""DocBank's pages: a text file each, a token a line, whose neighbours of one label make the boxes of the layout.

Source: Li et al. 2020, "DocBank", https://arxiv.org/abs/2006.01038; DocBank_samples/README.md of
https://github.com/doc-analysis/DocBank
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from detection.data.records import (
    ImageRecord,
    Records,
    RecordsDataset,
    build_records,
    check_files,
    report_problems,
)
from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError, InputError, did_you_mean
from framework.vision.dataset_files import read_lines
from framework.vision.image import SUFFIXES, read_size

DOCBANK_CLASSES = (
    "abstract", "author", "caption", "date", "equation", "figure", "footer", "list", "paragraph", "reference",
    "section", "table", "title",
)  # fmt: skip
"""The labels of tokens."""

_SCALE = 1000  # of a page's sides in coordinates
_LINE = "##LTLine##"  # a ruling line in place of a token
_ORIGINAL = "_ori"  # behind the name of a page's image, where its colours do not tell the labels
# How far apart, in heights of the smaller one, two tokens of one block may stand: beside and below one another.
_REACH = (1.2, 1.1)
_WIDER = {"table": (6.0, 2.0), "equation": (3.0, 0.6), "author": (3.0, 1.2), "title": (1.5, 1.2)}
_LEAST_OVERLAP = 0.3  # of the smaller side: so much two tokens beside or below one another share


class Token(NamedTuple):
    """A line of a file: `box` is xyxy on a page of 1000 x 1000."""

    text: str
    box: tuple[int, int, int, int]
    label: str


@register("dataset")
@dataclass(frozen=True)
class DocBank(RecordsDataset):
    """Pages of DocBank for layout detection.

    Each file NAME.txt of the folder `annotations` is a page, whose image is NAME_ori or NAME, with a suffix of images,
    in the folder `images`; both are relative to `root`. Neighbouring tokens of one label make a box: those that stand
    beside or below one another no further apart than words and lines do, and boxes of one label that overlap are one.
    So paragraphs of one column without a gap between them are one box; the format does not tell where one ends. Ruling
    lines count within tables alone. A sample's id is the name of the page; pages come in the order of their names. The
    set of 500,000 pages also comes in COCO's format, for CocoDetection.

    Attributes:
        classes: Labels that have a class; tokens of DocBank's other labels are left out.

    Raises:
        ConfigError: `classes` is empty, names a label twice or one that is none.
        InputError: at the first use, there are no such files, or an image is missing or cannot be read.
        FormatError: a line is no token; file and line are named.
    """

    root: Path
    annotations: str = ""
    images: str = ""
    classes: tuple[str, ...] = DOCBANK_CLASSES

    def __post_init__(self) -> None:
        unknown = [name for name in self.classes if name not in DOCBANK_CLASSES]
        if unknown or not self.classes or len(set(self.classes)) < len(self.classes):
            raise ConfigError(
                "classes must be labels of DocBank",
                where="DocBank.classes",
                received=list(self.classes),
                allowed=f"one or more of {', '.join(DOCBANK_CLASSES)}, each once",
                fix=did_you_mean(unknown[0], DOCBANK_CLASSES) if unknown else None,
            )

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.classes

    @cached_property
    def _records(self) -> Records:  # pyright: ignore[reportIncompatibleMethodOverride]
        folder = Path(self.root) / self.annotations
        files = sorted(folder.glob("*.txt"))
        if not files:
            raise InputError(
                "there are no pages",
                where=folder,
                allowed="a folder of DocBank's text files, one a page",
                fix=f"check root and annotations; the current folder is {Path.cwd()}",
            )
        paths = _find_images(files, Path(self.root) / self.images)
        check_files([ImageRecord(path, path.stem, None) for path in paths], folder)
        images, boxes, problems = [], [], []
        for file, path in zip(files, paths, strict=True):
            height, width = read_size(path)
            images.append(ImageRecord(path, file.stem, (height, width)))
            tokens = [token for token in read_tokens(file) if token.label in self.classes]
            objects = []
            for label, box in merge_tokens(tokens, (height, width)):
                if box[2] > box[0] and box[3] > box[1]:
                    objects.append((box, self.classes.index(label), True))
                else:
                    problems.append(f"{file} ({label}): box {box} has no area")
            boxes.append(objects)
        return build_records(images, self.classes, boxes, problems=report_problems(folder, problems))


def read_tokens(file: Path) -> list[Token]:
    """The tokens of a page: token, x0, y0, x1, y1, R, G, B, font and label, apart by tabs.

    Raises:
        InputError: there is no such file. FormatError: a line is no token; file and line are named.
    """
    return [_parse(line, f"{file}, line {n}") for n, line in enumerate(read_lines(file, "page"), 1) if line]


def _parse(line: str, where: str) -> Token:
    columns = line.split("\t")
    if len(columns) != 10:
        raise FormatError(
            "a line is no token of DocBank",
            where=where,
            received=f"{len(columns)} columns: {line[:100]!r}",
            allowed="10 columns apart by tabs: token, x0, y0, x1, y1, R, G, B, font, label",
        )
    try:
        x0, y0, x1, y1 = (int(text) for text in columns[1:5])
    except ValueError:
        x0, y0, x1, y1 = -1, -1, -1, -1
    if not (0 <= x0 <= x1 <= _SCALE and 0 <= y0 <= y1 <= _SCALE):
        raise FormatError(
            "a token has no box",
            where=where,
            received=", ".join(columns[1:5]),
            allowed=f"x0, y0, x1, y1: whole numbers from 0 to {_SCALE}, x0 <= x1, y0 <= y1",
        )
    label = columns[9].strip()
    if label not in DOCBANK_CLASSES:
        raise FormatError(
            "a token has an unknown label",
            where=where,
            received=label,
            allowed=", ".join(DOCBANK_CLASSES),
            fix=did_you_mean(label, DOCBANK_CLASSES),
        )
    return Token(columns[0], (x0, y0, x1, y1), label)


def merge_tokens(
    tokens: Sequence[Token], size_hw: tuple[int, int]
) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """(label, box in pixels, xyxy) of each block, label by label in the order in which they first come.

    Args:
        size_hw: Of the page's image.
    """
    tokens_left = [token for token in tokens if token.text != _LINE or token.label == "table"]
    scale = np.array([size_hw[1], size_hw[0]] * 2) / _SCALE
    for label in dict.fromkeys(token.label for token in tokens_left):
        boxes = np.array([token.box for token in tokens_left if token.label == label]) * scale
        boxes = _unite(boxes, _are_near(boxes, *_WIDER.get(label, _REACH)))
        while True:
            united = _unite(boxes, _overlap(boxes))
            if len(united) == len(boxes):
                break
            boxes = united
        for box in boxes.tolist():
            yield label, (box[0], box[1], box[2], box[3])


def _are_near(boxes: np.ndarray, beside: float, below: float) -> np.ndarray:
    """[K, K] bool: the pairs of tokens [K, 4] that stand beside or below one another as those of one block do."""
    sizes = boxes[:, 2:] - boxes[:, :2]
    heights = sizes[:, 1]
    # A ruling line has no height and a figure has that of its block: they reach as far as most tokens do.
    usual = float(np.median(heights[heights > 0])) if (heights > 0).any() else 1.0
    reach = np.minimum(np.where(heights > 0, heights, usual), usual)
    reach = np.minimum(reach[:, None], reach[None])
    gaps = np.maximum(boxes[:, None, :2], boxes[None, :, :2]) - np.minimum(
        boxes[:, None, 2:], boxes[None, :, 2:]
    )
    shared = -gaps / np.maximum(np.minimum(sizes[:, None], sizes[None]), 1e-6)
    in_row = (shared[..., 1] >= _LEAST_OVERLAP) & (gaps[..., 0] <= beside * reach)
    in_column = (shared[..., 0] >= _LEAST_OVERLAP) & (gaps[..., 1] <= below * reach)
    return in_row | in_column


def _overlap(boxes: np.ndarray) -> np.ndarray:
    """[K, K] bool: the pairs of boxes [K, 4] that share an area."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    return np.all(low < high, axis=2)


def _unite(boxes: np.ndarray, together: np.ndarray) -> np.ndarray:
    """[G, 4]: the bounds of the boxes [K, 4] that pairs [K, K] lead to from one another."""
    united, left = [], np.ones(len(boxes), bool)
    while left.any():
        group = np.zeros(len(boxes), bool)
        fresh = np.flatnonzero(left)[:1]
        while len(fresh):
            group[fresh] = True
            fresh = np.flatnonzero(together[fresh].any(axis=0) & ~group)
        united.append([*boxes[group, :2].min(axis=0), *boxes[group, 2:].max(axis=0)])
        left &= ~group
    return np.array(united)


def _find_images(files: Sequence[Path], folder: Path) -> list[Path]:
    """The image of each page; where there is none, the one that should be there."""
    by_stem: dict[str, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix.lower() in SUFFIXES:
            by_stem.setdefault(path.stem, path)
    return [
        by_stem.get(file.stem + _ORIGINAL) or by_stem.get(file.stem) or folder / f"{file.stem}{_ORIGINAL}.jpg"
        for file in files
    ]
