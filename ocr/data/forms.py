"""Pages whose lines or words have labels and links: what key information extraction is trained on.

Formats: PaddleOCR's label files of KIE (`image<tab>[{"transcription", "points", "label", "id", "linking"}]`), XFUND,
FUNSD, and the receipts of SROIE, which say what a page's fields are but not where.
Source: PaddleOCR doc/doc_en/dataset/kie_datasets_en.md; https://github.com/doc-analysis/XFUND;
https://guillaumejaume.github.io/FUNSD
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core import bounded
from framework.core.errors import ConfigError, FormatError, InputError, did_you_mean
from framework.io.dataset import LazyDataset
from framework.text.lines import read_lines
from framework.vision.dataset_files import read_annotations, read_image
from framework.vision.image import read_size
from framework.vision.sample import Sample
from ocr.data.labels import read_regions

OTHER = ("other", "others", "ignore", "o")
"""Labels of what is no key information"""
XFUND_CLASSES = ("question", "answer", "header")
"""Those of XFUND and FUNSD, in the order of upstream's class_list_xfun.txt"""
SROIE_CLASSES = ("company", "date", "address", "total")


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


@dataclass(frozen=True, eq=False)
class FormSample(Sample):
    """A page with K segments: `boxes`, `text` (one a segment) and `labels`, the class of a segment's first word.

    A class is a tag: 0 is O, 2k + 1 is B- of label k and 2k + 2 is I- of it.
    """

    links: np.ndarray | None = None
    """[L, 2] int32: pairs of segments, by their places, key and value in the order of the labels."""
    token_ids: np.ndarray | None = None
    """[T] int32: the tokens of the segments, one segment after the other, that a transform made."""
    token_segments: np.ndarray | None = None
    """[T] int32: the segment of each token, by its place."""


@dataclass(frozen=True)
class FormPages(LazyDataset):
    """What data sets of labelled pages share.

    Attributes:
        read_images: Whether images are read; models of texts and boxes need only their size, and get a blank page that
            cannot be written to.

    Raises:
        ConfigError: there are no classes, or one twice. At the first use FormatError, InputError: a file cannot be
        read, or is not of its form, has a label that is no class, a box outside of its page, or a link to nothing.
    """

    @property
    @abstractmethod
    def _labels(self) -> tuple[str, ...]:
        """The labels in lower case, without that of what is no key information."""

    @property
    @abstractmethod
    def _images(self) -> bool:
        """Whether images are read."""

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
        if self._images:
            image = read_image(page.image, page.image)
        else:
            image = _blank(page.size_hw or _size_of(page.image))
        return make_sample(page, image, self._labels)

    @cached_property
    def _index(self) -> list[FormPage]:
        return self._read_pages()


def tag_names(labels: Sequence[str]) -> tuple[str, ...]:
    """O, and B- and I- of each label, in upper case. Source: PaddleOCR ppocr/utils/utility.py
    load_vqa_bio_label_maps"""
    return ("O", *(f"{letter}-{label.upper()}" for label in labels for letter in "BI"))


def make_sample(page: FormPage, image: np.ndarray, labels: Sequence[str]) -> FormSample:
    """The sample of a page and its image [H, W, 3].

    Raises:
        FormatError: a label is no class, a box lies outside of the page, or a link leads to nothing.
    """
    height, width = image.shape[:2]
    classes, boxes = [], []
    for segment in page.segments:
        classes.append(_class_of(segment, labels, page.place))
        boxes.append(_clip(segment, width, height, page.place))
    places = {segment.number: place for place, segment in enumerate(page.segments)}
    links = []
    for segment in page.segments:
        for pair in segment.links:
            for number in pair:
                if number not in places:
                    raise FormatError(
                        "a link leads to nothing",
                        where=f"{page.place}, id {segment.number}",
                        received=list(pair),
                        allowed="numbers that are the `id` of a line of the page",
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


def _blank(size_hw: tuple[int, int]) -> np.ndarray:
    """A white page that takes no memory."""
    return np.broadcast_to(np.full((1, 1, 3), 255, np.uint8), (*size_hw, 3))


def _size_of(path: Path) -> tuple[int, int]:
    try:
        return read_size(path)
    except InputError as error:
        raise InputError(
            f"an image of the data set cannot be read: {error.problem}", where=path, received=error.received
        ) from error


def _check_classes(classes: Sequence[str], where: str) -> tuple[str, ...]:
    labels = tuple(label.lower() for label in classes)
    if not labels or len(set(labels)) != len(labels) or set(labels) & set(OTHER):
        raise ConfigError(
            "these are no classes",
            where=f"{where}.classes",
            received=list(classes),
            allowed=f"labels, each once, without {', '.join(OTHER)}",
        )
    return labels


def read_form(
    text: str, place: str, keys: tuple[str, str, str] = ("transcription", "points", "label")
) -> Any:
    """The segments of a page from JSON text, a list of objects. `keys` name text, box or polygon, and label.

    Raises:
        FormatError: it is no JSON, or an object lacks a key or has a value of another kind.
    """
    return make_segments(bounded.parse_json(text, place, "label"), place, keys)


def make_segments(
    listed: object, place: str, keys: tuple[str, str, str] = ("text", "box", "label")
) -> tuple[Segment, ...]:
    """As `read_form`, of what was parsed already. Segments without text are left out, as are links to them."""
    said, box, label = keys
    shown = f'a list of {{"{said}", "{box}", "{label}"}}, with "id" and "linking" where there are links'
    if not isinstance(listed, list):
        raise FormatError("this is no page", where=place, received=type(listed).__name__, allowed=shown)
    found: list[Segment] = []
    empty: set[int] = set()
    for number, one in enumerate(listed):
        where = f"{place}, line {number + 1} of the page"
        if not isinstance(one, dict):
            raise FormatError("this is no line", where=where, received=repr(one)[:100], allowed=shown)
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
            bounds = _bounds(one[box])
            text, name = one[said], one[label]
            if not isinstance(text, str) or not isinstance(name, str):
                raise ValueError(f"{said} and {label} are texts")
        except (TypeError, ValueError) as error:
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


def _bounds(points: Any) -> tuple[float, float, float, float]:
    array = np.asarray(points, np.float64)
    if array.shape == (4,):
        array = array.reshape(2, 2)
    if array.ndim != 2 or array.shape[1:] != (2,) or len(array) < 2 or not np.isfinite(array).all():
        raise ValueError(f"{str(points)[:80]} is no box [x1, y1, x2, y2] and no polygon [[x, y], …]")
    low, high = array.min(axis=0), array.max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


@register("dataset")
@dataclass(frozen=True)
class FormFiles(FormPages):
    """Pages of PaddleOCR's label files of KIE, a line each: `image<tab>[{"transcription": "Total", "points": [[x, y],
    …], "label": "question", "id": 1, "linking": [[1, 2]]}, …]`.

    Attributes:
        root: The folder that images' names start from.
        labels: The label files, from `root` or absolute.
        classes: The labels of what is looked for; `other`, `others` and `ignore` are the rest.
        read_images: See FormPages.
    """

    root: Path
    labels: tuple[Path, ...]
    classes: tuple[str, ...] = XFUND_CLASSES
    read_images: bool = False

    def __post_init__(self) -> None:
        _check_classes(self.classes, "FormFiles")

    @property
    def _labels(self) -> tuple[str, ...]:
        return _check_classes(self.classes, "FormFiles")

    @property
    def _images(self) -> bool:
        return self.read_images

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
                found.append(FormPage(self.root / image, None, read_form(text, place), place))
        return _some(found, ", ".join(map(str, self.labels)))


@register("dataset")
@dataclass(frozen=True)
class XFUND(FormPages):
    """Forms of XFUND: `<lang>.<split>.json` and their images.

    Attributes:
        root: The folder of the images, or that which holds them in `zh_train_images` or `zh.train`.
        labels: The JSON file, from `root` or absolute.
        classes, read_images: As of FormFiles.
    """

    root: Path
    labels: Path
    classes: tuple[str, ...] = XFUND_CLASSES
    read_images: bool = False

    def __post_init__(self) -> None:
        _check_classes(self.classes, "XFUND")

    @property
    def _labels(self) -> tuple[str, ...]:
        return _check_classes(self.classes, "XFUND")

    @property
    def _images(self) -> bool:
        return self.read_images

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
            except (TypeError, KeyError, ValueError) as error:
                raise FormatError(
                    "this is no document of XFUND",
                    where=place,
                    received=f"{type(error).__name__}: {error}",
                    allowed='{"img": {"fname", "width", "height"}, "document": […]}',
                ) from None
            found.append(FormPage(self.root / folder / name, size, make_segments(listed, place), place))
        return _some(found, str(path))


@register("dataset")
@dataclass(frozen=True)
class FUNSD(FormPages):
    """Forms of FUNSD: `annotations/*.json` and `images/*.png` of a folder such as `training_data`.

    Attributes:
        root: That folder.
        classes, read_images: As of FormFiles.
    """

    root: Path
    classes: tuple[str, ...] = XFUND_CLASSES
    read_images: bool = False

    def __post_init__(self) -> None:
        _check_classes(self.classes, "FUNSD")

    @property
    def _labels(self) -> tuple[str, ...]:
        return _check_classes(self.classes, "FUNSD")

    @property
    def _images(self) -> bool:
        return self.read_images

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
        return _some(found, str(self.root / "annotations"))


@register("dataset")
@dataclass(frozen=True)
class SROIE(FormPages):
    """Receipts of SROIE, tasks 2 and 3: `img/*.jpg`, `box/*.csv` (the lines) and `key/*.json` (company, date, address,
    total). Where the fields stand is found by their texts; what of a line is no part of a field is a segment of its
    own.

    Attributes:
        root: The folder that holds the three.
        read_images: See FormPages.
    """

    root: Path
    read_images: bool = False

    @property
    def _labels(self) -> tuple[str, ...]:
        return SROIE_CLASSES

    @property
    def _images(self) -> bool:
        return self.read_images

    def _read_pages(self) -> list[FormPage]:
        found = []
        for path in sorted((self.root / "box").glob("*.csv")):
            lines = [
                Segment(region.text, _bounds(region.polygon), "other", 0)
                for region in read_regions(path)
                if region.text.strip()
            ]
            key = self.root / "key" / f"{path.stem}.json"
            fields = read_annotations(key)
            if not isinstance(fields, dict):
                raise FormatError(
                    "these are no fields",
                    where=key,
                    received=type(fields).__name__,
                    allowed='{"company", "date", "address", "total"}',
                )
            wanted = {
                name: str(fields[name]) for name in SROIE_CLASSES if str(fields.get(name) or "").strip()
            }
            segments = locate_fields(lines, wanted)
            found.append(FormPage(self.root / "img" / f"{path.stem}.jpg", None, segments, str(path)))
        return _some(found, str(self.root / "box"))


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InputError("there is no such label file", where=path)
    return read_lines(path)


def _some(pages: list[FormPage], where: str) -> list[FormPage]:
    if not pages:
        raise InputError("there are no pages", where=where, received="no labels")
    return pages


# -- where fields stand that are known by their texts ------------------------------------------------------------------

ALIKE = 0.85  # share of letters from which lines say a value, though not to the letter
_LEAST_WORDS, _MOST_LINES = 8, 7
_TOTAL = re.compile(r"t[o0]ta[l1]|amount|due|payable|nett?\b", re.IGNORECASE)


def locate_fields(lines: Sequence[Segment], wanted: dict[str, str]) -> tuple[Segment, ...]:
    """The lines with the labels of the fields whose values they say; a line with more than a value is cut.

    A value may go over several lines that follow each other. Letters and digits alone are compared. Of an amount that
    stands in several places all beside a word of sums count, else the last one; of other values the first one.
    """
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for name, value in wanted.items():
        places = [
            place
            for place in _find(lines, value) or _find_alike(lines, value)
            if not any(_overlaps(spans.get(line, []), start, end) for line, start, end in place)
        ]
        if not places:
            continue
        if name == "total":
            beside = [place for place in places if _TOTAL.search(_row_text(lines, place[0][0]))]
            chosen = beside or places[-1:]
        else:
            chosen = places[:1]
        for place in chosen:
            for line, start, end in place:
                spans.setdefault(line, []).append((start, end, name))
    found: list[Segment] = []
    for number, line in enumerate(lines):
        at = 0
        for start, end, name in [*sorted(spans.get(number, [])), (len(line.text), len(line.text), "")]:
            for first, last, label in ((at, start, "other"), (start, end, name)):
                if line.text[first:last].strip():
                    found.append(_cut(line, first, last, label)._replace(number=len(found)))
            at = end
    return tuple(found)


def _find(lines: Sequence[Segment], value: str) -> list[list[tuple[int, int, int]]]:
    """Where a value stands: for each place its (line, first character, the one after the last)."""
    joined = [
        (number, place, char.upper())
        for number, line in enumerate(lines)
        for place, char in enumerate(line.text)
        if char.isalnum()
    ]
    plain = "".join(char for *_, char in joined)
    sought = _letters(value)
    found = []
    for match in re.finditer(f"(?={re.escape(sought)})", plain) if sought else ():
        first, last = match.start(), match.start() + len(sought) - 1
        cuts_number = any(
            0 <= near < len(joined)
            and joined[near][0] == joined[edge][0]
            and abs(joined[near][1] - joined[edge][1]) == 1
            and joined[near][2].isdecimal()
            and joined[edge][2].isdecimal()
            for near, edge in ((first - 1, first), (last + 1, last))
        )
        if cuts_number:
            continue
        parts: dict[int, list[int]] = {}
        for number, place, _ in joined[first : last + 1]:
            parts.setdefault(number, []).append(place)
        found.append(
            [(number, *_to_spaces(lines[number].text, at[0], at[-1] + 1)) for number, at in parts.items()]
        )
    return found


def _find_alike(lines: Sequence[Segment], value: str) -> list[list[tuple[int, int, int]]]:
    """The lines that follow each other and say about the same as a value of words; none is as much alike: []."""
    sought = _letters(value)
    if len(sought) < _LEAST_WORDS or not any(char.isalpha() for char in sought):
        return []
    best, most = [], ALIKE
    for first in range(len(lines)):
        for last in range(first + 1, min(first + _MOST_LINES, len(lines)) + 1):
            plain = _letters("".join(line.text for line in lines[first:last]))
            matcher = SequenceMatcher(None, plain, sought, autojunk=False)
            if (
                matcher.real_quick_ratio() > most
                and matcher.quick_ratio() > most
                and (ratio := matcher.ratio()) > most
            ):
                best, most = [(place, 0, len(lines[place].text)) for place in range(first, last)], ratio
    return [best] if best else []


def _letters(text: str) -> str:
    return "".join(char.upper() for char in text if char.isalnum())


def _to_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """The span with the signs that are joined to it."""
    while (
        start > 0
        and not text[start - 1].isspace()
        and not text[start - 1].isalnum()
        and text[start - 1] not in ":;"
    ):
        start -= 1
    while end < len(text) and not text[end].isspace() and not text[end].isalnum():
        end += 1
    return start, end


def _overlaps(spans: Sequence[tuple[int, int, str]], start: int, end: int) -> bool:
    return any(start < other_end and other_start < end for other_start, other_end, _ in spans)


def _row_text(lines: Sequence[Segment], number: int) -> str:
    """What stands on the height of a line."""
    box = lines[number].box
    centre = (box[1] + box[3]) / 2
    return " ".join(line.text for line in lines if line.box[1] <= centre <= line.box[3])


def _cut(line: Segment, start: int, end: int, label: str) -> Segment:
    """A part of a line, its box by the share of the characters."""
    text = line.text[start:end]
    start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    left, top, right, bottom = line.box
    step = (right - left) / len(line.text)
    return Segment(line.text[start:end], (left + start * step, top, left + end * step, bottom), label, 0)
