"""Tracks of CVAT's format "CVAT for video 1.1": the shapes of an object over the frames of a video.

Source: https://docs.cvat.ai/docs/manual/advanced/xml_format/
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from framework.core.errors import FormatError, InputError
from framework.vision.annotations.cvat_shapes import read_shapes
from framework.vision.annotations.objects import AnnotatedImage
from framework.vision.dataset_files import abbreviate
from framework.vision.image import list_images

_NUMBERS = {
    "box": ("xtl", "ytl", "xbr", "ybr"),
    "ellipse": ("cx", "cy", "rx", "ry"),
}  # attributes of a shape that move evenly between two frames
_DIGITS = re.compile(r"(\d+)\D*$")


def read_tracks(
    root: Element, file: Path, images: Path | None, no_area: Counter[str], problems: list[str]
) -> list[AnnotatedImage]:
    """The frames of a video that are there as images, each with the shapes of the tracks; `track_id` is an attribute.

    A shape is there from its frame on until the next one of its track, or until one with outside="1"; between two
    frames boxes, ellipses and polygons of as many points move evenly, others stay as they are.

    An image is frame n by the number at the end of its name (frame_000012.png), or, where names have no such numbers
    and there are as many images as frames, by its place among them.

    Raises:
        InputError: there are no images of frames, or they cannot be told apart. FormatError: a shape has no frame.
    """
    count, size_hw = _size_of(root)
    folder = _find_folder(file, images)
    frames = _number_images(list_images(folder, recursive=True), count, folder)
    numbers = sorted(frames)
    shapes: dict[int, list[Element]] = {number: [] for number in numbers}
    absent: set[int] = set()
    for number, track in enumerate(root.findall("track"), start=1):
        where = f"{file}, track {track.get('id', f'number {number}')}"
        keyframes = _keyframes(track, where)
        absent |= {at for at, shape in keyframes if shape.get("outside") != "1"} - set(numbers)
        for at, shape in _follow(keyframes, numbers, count):
            shape.set("label", track.get("label") or "")
            shapes[at].append(_with_attribute(shape, "track_id", track.get("id") or str(number - 1)))
    if absent:
        problems.append(
            f"{file}: {len(absent)} frames with shapes have no image in {folder}: "
            f"{abbreviate([str(number) for number in sorted(absent)])}"
        )
    return [
        AnnotatedImage(
            frames[number],
            frames[number].relative_to(folder).as_posix(),
            size_hw,
            tuple(read_shapes(shapes[number], f"{file}, frame {number}", no_area, problems)),
        )
        for number in numbers
    ]


def _size_of(root: Element) -> tuple[int | None, tuple[int, int] | None]:
    """How many frames the task has, and their size; None where the file does not say it."""

    def read(path: str) -> int:
        text = (root.findtext(path) or "").strip()
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    count = read("meta/task/size") or read("meta/job/size")
    sizes = [f"meta/{one}original_size" for one in ("task/", "job/", "")]
    height, width = (
        next(filter(None, (read(f"{size}/{side}") for size in sizes)), 0) for side in ("height", "width")
    )
    return count or None, (height, width) if height and width else None


def _find_folder(file: Path, images: Path | None) -> Path:
    if images is not None:
        return images
    beside = file.parent / "images"
    return beside if beside.is_dir() else file.parent


def _number_images(paths: Sequence[Path], count: int | None, folder: Path) -> Mapping[int, Path]:
    if not paths:
        raise InputError(
            "the file has the tracks of a video, and there are no images of its frames",
            where=folder,
            allowed="frame_000000.png and so on, as CVAT saves them with the annotations",
            fix="name their folder, or give the video to oar data convert with --images",
        )
    matches = [_DIGITS.search(path.stem) for path in paths]
    numbers = [int(match[1]) for match in matches if match is not None and len(match[1]) < 10]
    if len(set(numbers)) == len(paths):
        return dict(zip(numbers, paths))
    if len(paths) == count:
        return dict(enumerate(paths))
    raise InputError(
        "it is not plain which image is which frame of the video",
        where=folder,
        received=abbreviate([path.name for path in paths]),
        allowed="a number at the end of each name, each once"
        + (f", or as many images as frames: {count}" if count else ""),
    )


def _keyframes(track: Element, where: str) -> list[tuple[int, Element]]:
    """The shapes of a track by frame."""
    shapes: dict[int, Element] = {}
    for shape in track:
        text = shape.get("frame") or ""
        if not text.isdecimal() or len(text) > 9:
            raise FormatError(
                "a shape of a track has no frame",
                where=where,
                received=f"<{shape.tag} frame={text!r}>",
                allowed='frame="12"',
            )
        shapes[int(text)] = shape
    return sorted(shapes.items())


def _follow(
    keyframes: Sequence[tuple[int, Element]], numbers: Sequence[int], count: int | None
) -> Iterator[tuple[int, Element]]:
    """The frame and the shape of each of the frames `numbers` on which the object is there."""
    for index, (first, shape) in enumerate(keyframes):
        if shape.get("outside") == "1":
            continue
        is_last = index + 1 == len(keyframes)
        end = (first + 1 if count is None else max(first + 1, count)) if is_last else keyframes[index + 1][0]
        for number in numbers[bisect.bisect_left(numbers, first) : bisect.bisect_left(numbers, end)]:
            following = None if is_last else keyframes[index + 1][1]
            yield (
                number,
                _copy(shape)
                if following is None
                else _between(shape, following, (number - first) / (end - first)),
            )


def _between(shape: Element, following: Element, share: float) -> Element:
    """The shape that has gone this share of the way to the following one."""
    moved = _copy(shape)
    if not share or following.tag != shape.tag:
        return moved
    try:
        for name in _NUMBERS.get(shape.tag, ()):
            start, end = (float(one.get(name) or "") for one in (shape, following))
            moved.set(name, repr(start + (end - start) * share))
        if shape.tag in _NUMBERS:
            start, end = (float(one.get("rotation") or 0) for one in (shape, following))
            moved.set("rotation", repr((start + ((end - start + 180) % 360 - 180) * share) % 360))
        if shape.tag == "polygon":
            ends = [_points(one.get("points") or "") for one in (shape, following)]
            if len(ends[0]) == len(ends[1]):
                pairs = zip(*ends)
                points = [[here + (there - here) * share for here, there in zip(*pair)] for pair in pairs]
                moved.set("points", ";".join(f"{x!r},{y!r}" for x, y in points))
    except ValueError:  # whoever reads the shape says what is wrong with its numbers
        return _copy(shape)
    return moved


def _copy(shape: Element) -> Element:
    twin = Element(shape.tag, dict(shape.attrib))
    twin.extend(shape)
    return twin


def _points(text: str) -> list[tuple[float, float]]:
    points = []
    for pair in filter(None, text.split(";")):
        x, y = pair.split(",")
        points.append((float(x), float(y)))
    return points


def _with_attribute(shape: Element, name: str, text: str) -> Element:
    attribute = Element("attribute", {"name": name})
    attribute.text = text
    shape.append(attribute)
    return shape
