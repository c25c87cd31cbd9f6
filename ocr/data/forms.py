"""Pages whose lines or words have labels and links: what key information extraction is trained on.

Formats: PaddleOCR's label files of KIE (`image<tab>[{"transcription", "points", "label", "id", "linking"}]`), XFUND and
FUNSD. `receipts.py` has that of SROIE.
Source: PaddleOCR doc/doc_en/dataset/kie_datasets_en.md; https://github.com/doc-analysis/XFUND;
https://guillaumejaume.github.io/FUNSD
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from framework.config.registry import register
from framework.core import bounded
from framework.core.errors import ConfigError, FormatError, InputError, did_you_mean
from framework.io.dataset import LazyDataset
from framework.text.lines import read_lines
from framework.vision.dataset_files import read_annotations, read_image
from framework.vision.image import read_size
from ocr.fields.forms import XFUND_CLASSES, FormSample, blank_page, tag_names
from ocr.results.geometry import bounds_of

OTHER = ("other", "others", "ignore", "none", "o")
"""Labels of what is no key information"""
LABEL_KEYS = ("label", "key_cls")
"""Under which a line has its label: in upstream's and published data, and as PPOCRLabel writes it"""
LONGEST_SIDE = 1_000_000  # pixels of a page


class Segment(NamedTuple):
    """A line, or a part of one: what it says, its box (xyxy), its label in lower case, its number and the pairs of
    numbers that are linked by it."""

    text: str
    box: tuple[float, float, float, float]
    label: str
    number: int
    links: tuple[tuple[int, int], ...] = ()


class FormPage(NamedTuple):
    """A page's image, its (height, width) where the labels say it, its segments, and where they stand."""

    image: Path
    size_hw: tuple[int, int] | None
    segments: tuple[Segment, ...]
    place: str


@dataclass(frozen=True, kw_only=True)
class FormPages(LazyDataset):
    """What data sets of labelled pages share.

    Attributes:
        classes: The labels of what is looked for; those of `OTHER` are the rest.
        read_images: Whether images are read; models of texts and boxes need only their size, and get a blank page that
            cannot be written to.

    Raises:
        ConfigError: there are no classes, or one twice. At the first use FormatError, InputError: a file cannot be
        read, or is not of its form, has a label that is no class, a box outside of its page, or a link to nothing.
    """

    classes: tuple[str, ...] = XFUND_CLASSES
    read_images: bool = False

    def __post_init__(self) -> None:
        labels = self._labels
        if not labels or len(set(labels)) != len(labels) or set(labels) & set(OTHER):
            raise ConfigError(
                "these are no classes",
                where=f"{type(self).__name__}.classes",
                received=list(self.classes),
                allowed=f"labels, each once, without {', '.join(OTHER)}",
            )

    @property
    def _labels(self) -> tuple[str, ...]:
        """The labels in lower case, without that of what is no key information."""
        return tuple(label.lower() for label in self.classes)

    @abstractmethod
    def _read_pages(self) -> list[FormPage]:
        """All pages."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The tags, in upper case as upstream has them: O, B-QUESTION, I-QUESTION, …"""
        return tag_names(self._labels)

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> FormSample:
        page = self._index[index]
        if self.read_images:
            image = read_image(page.image, page.image)
        else:
            image = blank_page(page.size_hw or _size_of(page.image))
        return make_sample(page, image, self._labels)

    @cached_property
    def _index(self) -> list[FormPage]:
        return self._read_pages()


def make_sample(page: FormPage, image: np.ndarray, labels: Sequence[str]) -> FormSample:
    """The sample of a page and its image [H, W, 3].

    Raises:
        FormatError: a label is no class, a box lies outside of the page, or a link leads to no line or to several.
    """
    height, width = image.shape[:2]
    classes, boxes = [], []
    for segment in page.segments:
        classes.append(_class_of(segment, labels, page.place))
        boxes.append(_clip(segment, width, height, page.place))
    places = {segment.number: place for place, segment in enumerate(page.segments)}
    numbers = Counter(segment.number for segment in page.segments)
    links = []
    for segment in page.segments:
        for pair in segment.links:
            for number in pair:
                if numbers[number] != 1:
                    raise FormatError(
                        "a link leads to several lines" if numbers[number] else "a link leads to nothing",
                        where=f"{page.place}, id {segment.number}",
                        received=list(pair),
                        allowed="numbers that are the `id` of one line of the page",
                    )
            found = (places[pair[0]], places[pair[1]])
            if found not in links and found[::-1] not in links:
                links.append(found)
    return FormSample(
        image,
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        labels=np.array(classes, np.int32),
        text=tuple(segment.text for segment in page.segments),
        source_size=(height, width),
        id=str(page.image.name),
        valid=np.ones(len(boxes), bool),
        links=np.array(links, np.int32).reshape(-1, 2),
    )


def _class_of(segment: Segment, labels: Sequence[str], place: str) -> int:
    if segment.label in OTHER:
        return 0
    if segment.label not in labels:
        raise FormatError(
            "this label is none of the classes",
            where=f"{place}, id {segment.number}",
            received=segment.label,
            allowed=", ".join(("other", *labels)),
            fix=did_you_mean(segment.label, labels) or "name it in the data set's `classes`",
        )
    return 2 * labels.index(segment.label) + 1


def _clip(segment: Segment, width: int, height: int, place: str) -> list[float]:
    left, top, right, bottom = segment.box
    inside = [min(max(left, 0), width), min(max(top, 0), height), min(right, width), min(bottom, height)]
    if inside[2] <= inside[0] or inside[3] <= inside[1]:
        raise FormatError(
            "a box is empty or lies outside of its page",
            where=f"{place}, id {segment.number}",
            received=[round(value, 1) for value in segment.box],
            allowed=f"a box with an area within {width} x {height} pixels",
        )
    return inside


def _size_of(path: Path) -> tuple[int, int]:
    try:
        return read_size(path)
    except InputError as error:
        raise InputError(
            f"an image of the data set cannot be read: {error.problem}", where=path, received=error.received
        ) from error


def make_segments(listed: object, place: str, keys: tuple[str, str] = ("text", "box")) -> tuple[Segment, ...]:
    """The segments of a page from what JSON said of it. Those without text are left out, as are links to them.

    Args:
        keys: Of the text and of the box or polygon. The label stands under "label", or "key_cls" as PPOCRLabel
            writes it, whose "None" is the rest.

    Raises:
        FormatError: it is no list of objects, or one of them lacks a key or has a value of another kind.
    """
    said, box = keys
    shown = f'a list of {{"{said}", "{box}", "label"}}, with "id" and "linking" where there are links'
    if not isinstance(listed, list):
        raise FormatError("this is no page", where=place, received=type(listed).__name__, allowed=shown)
    found: list[Segment] = []
    empty: set[int] = set()
    for number, one in enumerate(listed):
        where = f"{place}, line {number + 1} of the page"
        if not isinstance(one, dict):
            raise FormatError("this is no line", where=where, received=repr(one)[:100], allowed=shown)
        label = next((key for key in LABEL_KEYS if key in one), LABEL_KEYS[0])
        for key in (said, box, label):
            if key not in one:
                raise FormatError(
                    f"a line lacks {key!r}",
                    where=where,
                    received=", ".join(map(repr, one)) or "no keys",
                    allowed=shown,
                    fix=did_you_mean(key, list(one)),
                )
        try:
            own = int(one.get("id", number))
            links = tuple((int(first), int(second)) for first, second in one.get("linking", ()))
            bounds = _bounds_of(one[box])
            text, name = one[said], one[label]
            if not isinstance(text, str) or not isinstance(name, str):
                raise ValueError(f"{said} and {label} are texts")
        except (TypeError, ValueError, OverflowError) as error:
            raise FormatError(
                "this is no line", where=where, received=str(error)[:200], allowed=shown
            ) from None
        if text.strip():
            found.append(Segment(text, bounds, name.strip().lower(), own, links))
        else:
            empty.add(own)
    return tuple(
        segment._replace(links=tuple(pair for pair in segment.links if not empty & set(pair)))
        for segment in found
    )


def _bounds_of(points: ArrayLike) -> tuple[float, float, float, float]:
    """The box (xyxy) of [x1, y1, x2, y2], or around a polygon. Raises: ValueError, where it is neither."""
    array = np.asarray(points, np.float64)
    if array.shape == (4,):
        array = array.reshape(2, 2)
    if array.ndim != 2 or array.shape[1:] != (2,) or len(array) < 2 or not np.isfinite(array).all():
        raise ValueError(f"{str(points)[:80]} is no box [x1, y1, x2, y2] and no polygon [[x, y], …]")
    return bounds_of(array)


@register("dataset")
@dataclass(frozen=True)
class FormFiles(FormPages):
    """Pages of PaddleOCR's label files of KIE, a line each: `image<tab>[{"transcription": "Total", "points": [[x, y],
    …], "label": "question", "id": 1, "linking": [[1, 2]]}, …]`.

    Attributes:
        root: The folder that images' names start from.
        labels: The label files, from `root` or absolute.
        classes, read_images: See FormPages.
    """

    root: Path
    labels: tuple[Path, ...]

    def _read_pages(self) -> list[FormPage]:
        found = []
        for name in self.labels:
            path = self.root / name
            for number, line in enumerate(_lines(path), 1):
                place = f"{path}:{number}"
                image, tab, text = line.partition("\t")
                if not line.strip():
                    continue
                if not tab or not image:
                    raise FormatError(
                        "this line is no label",
                        where=place,
                        received=repr(line[:100]),
                        allowed='image<tab>[{"transcription", "points", "label", "id", "linking"}, …]',
                    )
                listed = bounded.parse_json(text, place, "label")
                segments = make_segments(listed, place, ("transcription", "points"))
                found.append(FormPage(self.root / image, None, segments, place))
        return some_pages(found, ", ".join(map(str, self.labels)))


@register("dataset")
@dataclass(frozen=True)
class XFUND(FormPages):
    """Forms of XFUND: `<lang>.<split>.json` and their images.

    Attributes:
        root: The folder of the images, or that which holds them in `zh_train_images` or `zh.train`.
        labels: The JSON file, from `root` or absolute.
        classes, read_images: See FormPages.
    """

    root: Path
    labels: Path

    def _read_pages(self) -> list[FormPage]:
        path = self.root / self.labels
        data = read_annotations(path)
        documents = data.get("documents") if isinstance(data, dict) else None
        if not isinstance(documents, list):
            raise FormatError(
                "this is no file of XFUND",
                where=path,
                received=", ".join(data) if isinstance(data, dict) else type(data).__name__,
                allowed='{"documents": [{"img": {…}, "document": [{"text", "box", "label", …}]}]}',
            )
        folder = next(
            (
                one
                for one in (path.stem.replace(".", "_") + "_images", path.stem)
                if (self.root / one).is_dir()
            ),
            "",
        )
        found = []
        for number, one in enumerate(documents):
            place = f"{path}, document {number + 1}"
            try:
                about = one["img"]
                name, size = str(about["fname"]), (int(about["height"]), int(about["width"]))
                listed = one["document"]
                if not 1 <= min(size) <= max(size) <= LONGEST_SIDE:
                    raise ValueError(f"an image of {size[1]} x {size[0]} pixels")
            except (TypeError, KeyError, ValueError, OverflowError) as error:
                raise FormatError(
                    "this is no document of XFUND",
                    where=place,
                    received=f"{type(error).__name__}: {error}",
                    allowed='{"img": {"fname", "width", "height"}, "document": […]}',
                ) from None
            found.append(FormPage(self.root / folder / name, size, make_segments(listed, place), place))
        return some_pages(found, str(path))


@register("dataset")
@dataclass(frozen=True)
class FUNSD(FormPages):
    """Forms of FUNSD: `annotations/*.json` and `images/*.png` of a folder such as `training_data`.

    Attributes:
        root: That folder.
        classes, read_images: See FormPages.
    """

    root: Path

    def _read_pages(self) -> list[FormPage]:
        found = []
        for path in sorted((self.root / "annotations").glob("*.json")):
            data = read_annotations(path)
            if not isinstance(data, dict) or "form" not in data:
                raise FormatError(
                    "this is no page of FUNSD",
                    where=path,
                    received=", ".join(data) if isinstance(data, dict) else type(data).__name__,
                    allowed='{"form": [{"text", "box", "label", "id", "linking"}, …]}',
                )
            image = self.root / "images" / f"{path.stem}.png"
            found.append(FormPage(image, None, make_segments(data["form"], str(path)), str(path)))
        return some_pages(found, str(self.root / "annotations"))


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InputError("there is no such label file", where=path)
    return read_lines(path)


def some_pages(pages: list[FormPage], where: str) -> list[FormPage]:
    """The pages. Raises: InputError, where there are none."""
    if not pages:
        raise InputError("there are no pages", where=where, received="no labels")
    return pages
