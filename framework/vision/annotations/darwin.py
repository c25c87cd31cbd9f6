"""V7's Darwin JSON, 2.0 and 1.0: a file an image, as an export has it or as darwin-py downloads it.

Source: https://docs.v7labs.com/reference/darwin-json, https://docs.v7labs.com/reference/legacy-darwin-json-10 and
https://github.com/v7labs/darwin-py (`darwin/utils/utils.py`)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision import polygons
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import holds
from framework.vision.annotations.objects import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    bounds,
    from_full_mask,
)
from framework.vision.annotations.shapes import (
    box_object,
    ellipse_outline,
    outline_object,
    read_image_size,
    read_xy_points,
)
from framework.vision.dataset_files import read_annotations
from framework.vision.image import read_size

_FOLDERS = (
    "releases/latest/annotations",
    "annotations",
    "",
)  # where files lie, of darwin-py, of people, of V7's zip
_NUMBERS = "mask_annotation_ids_mapping"
_FACTS = (  # of an annotation, which say no shape
    "id",
    "name",
    "slot_names",
    "annotators",
    "reviewers",
    "attributes",
    "instance_id",
    "properties",
    "inference",
    "text",
    "ranges",
    "updated_at",
    "created_at",
)


def is_darwin(data: object) -> bool:
    """Whether what a JSON file holds is of this format, 2.0 or 1.0."""
    return (
        isinstance(data, dict)
        and isinstance(data.get("annotations"), list)
        and (_is_item(data.get("item")) or ("dataset" in data and _is_item(data.get("image"))))
    )


def _is_item(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("name", "filename"))


def find_darwin(folder: Path) -> Sequence[Path]:
    """The files of a folder: of its newest release, of `annotations`, or of the folder and those in it."""
    for name in _FOLDERS:
        files = sorted((folder / name).rglob("*.json")) if (folder / name).is_dir() else []
        if files and holds(files[0], is_darwin):
            return files
    return ()


def read_darwin(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The images of a file, or of the files of a folder, which are found as `find_darwin` says.

    Boxes, polygons, ellipses and masks are read; paths of a polygon that lie in one another are its holes. What has no
    area, such as keypoints, the annotations of further slots of an item, and videos are counted in `problems`, tags,
    which are of no object, in `notes`. Attributes and properties are attributes. Classes are sorted.

    Args:
        images: The folder of the images, which are searched in the folders of it too; without it `images` beside the
            files or above them, or the folder itself.

    Raises:
        InputError: there is no such file, an image is not there, or there are but videos. FormatError: a file is not
            of this format.
    """
    files = [source] if source.is_file() else find_darwin(source)
    if not files:
        raise InputError(
            "there are no annotations of V7",
            where=source,
            allowed='files of Darwin JSON: {"version": "2.0", "item": {...}, "annotations": [...]}',
        )
    folder = source if source.is_dir() else source.parent
    above = (one / "images" for one in (folder, *folder.absolute().parents[:3]))
    index = ImageIndex(images or next((one for one in above if one.is_dir()), folder))
    problems, left_out, tags, read = list[str](), Counter[str](), Counter[str](), list[AnnotatedImage]()
    for file in files:
        entry = read_annotations(file)
        if not isinstance(entry, dict) or not is_darwin(entry):
            raise FormatError(
                "the file is not V7's",
                where=file,
                allowed='{"version": "2.0", "item": {"name": "a.jpg", …}, "annotations": […]}',
                fix="move other .json files out of the folder",
            )
        slot, names = _read_item(entry)
        if slot.get("type") in ("video", "dicom", "pdf") or slot.get("frame_count"):
            left_out["video, whose frames are no images"] += 1
            continue
        path = _find_image(index, names, file)
        size_hw = read_image_size(slot) or read_size(path)
        objects = tuple(_read_objects(entry, slot, size_hw, str(file), problems, left_out, tags))
        read.append(AnnotatedImage(path, index.name(path), size_hw, objects))
    if not read:
        raise InputError(
            "the annotations are of videos, which are not read",
            where=source,
            received=f"{len(files)} files",
            allowed="annotations of images",
            fix="export the frames of the videos as images",
        )
    problems += [f"{count} x {what}" for what, count in left_out.items()]
    names_read = tuple(sorted({one.label for image in read for one in image.objects}))
    notes = (f"{count} x tag {name}, which is of no object" for name, count in tags.items())
    return AnnotatedSet(tuple(read), names_read, tuple(problems), tuple(notes))


def _read_item(entry: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], Sequence[str]]:
    """The first slot of a file, which has size and type, and the names that its image may have."""
    item = entry.get("item")
    if not isinstance(item, dict):
        item = entry["image"]
        assert isinstance(item, dict)
        listed = [item.get(key) for key in ("original_filename", "filename")]
        return item, _in_folder(item.get("path"), [one for one in listed if isinstance(one, str)])
    slots = item.get("slots")
    slot = slots[0] if isinstance(slots, list) and slots else None
    slot = slot if isinstance(slot, dict) else {}
    name = str(item["name"])
    sources = slot.get("source_files")
    listed = [
        one["file_name"]
        for one in (sources if isinstance(sources, list) else [])
        if isinstance(one, dict) and isinstance(one.get("file_name"), str)
    ]
    # darwin-py stores an image by the item's name with the suffix of the file that was uploaded.
    stored = [f"{Path(name).stem}{Path(str(one)).suffix}" for one in listed]
    return slot, _in_folder(item.get("path"), [*stored, name, *map(str, listed)])


def _in_folder(folder: JSON, names: Sequence[str]) -> Sequence[str]:
    inside = folder.strip("/\\") if isinstance(folder, str) else ""
    return tuple(dict.fromkeys([*(f"{inside}/{name}" for name in names if inside), *names]))


def _find_image(index: ImageIndex, names: Sequence[str], file: Path) -> Path:
    """Raises: InputError, where no image has one of the names."""
    return index.look_up_inside(names) or index.find(names[0] if names else "", str(file))


def _read_objects(
    entry: Mapping[str, JSON],
    slot: Mapping[str, JSON],
    size_hw: tuple[int, int],
    where: str,
    problems: list[str],
    left_out: Counter[str],
    tags: Counter[str],
) -> Iterator[AnnotatedObject]:
    listed = entry["annotations"]
    assert isinstance(listed, list)
    layers = _Layers([one for one in listed if isinstance(one, dict)], size_hw)
    for number, one in enumerate(listed, start=1):
        slots = one.get("slot_names") if isinstance(one, dict) else None
        if isinstance(slots, list) and slots and slot.get("slot_name") not in (None, *slots):
            left_out["annotation of a further slot of an item"] += 1
            continue
        if isinstance(one, dict) and "raster_layer" in one:
            continue  # the pixels of the masks
        kind = _kind(one) if isinstance(one, dict) else "annotation"
        if kind not in ("bounding_box", "polygon", "complex_polygon", "ellipse", "mask"):
            name = str(one.get("name") if isinstance(one, dict) else None)[:40]
            if kind == "tag":
                tags[name] += 1
            else:
                left_out[f"{kind} {name}, which has no area"] += 1
            continue
        try:
            assert isinstance(one, dict)
            yield _read_object(kind, one, layers, size_hw)
        except (ValueError, InputError) as error:
            reason = error.problem if isinstance(error, InputError) else error
            problems.append(f"{where}, annotation {number} ({kind}): {reason}")


def _kind(one: Mapping[str, JSON]) -> str:
    """What an annotation is; polygons have their box beside them."""
    kinds = [key for key in one if key not in _FACTS]
    return next((key for key in kinds if key != "bounding_box"), kinds[0] if kinds else "annotation")


def _read_object(
    kind: str, one: Mapping[str, JSON], layers: _Layers, size_hw: tuple[int, int]
) -> AnnotatedObject:
    """Raises: ValueError, InputError."""
    name, facts = one.get("name"), one.get(kind)
    label = name.strip() if isinstance(name, str) else ""
    attributes = _read_attributes(one)
    if not label:
        raise ValueError(f"its class is {ascii(name)[:40]}")
    if kind == "mask":
        return from_full_mask(label, layers.read_mask(one), attributes)
    if not isinstance(facts, dict):
        raise ValueError(f"{label}: {kind} is {str(facts)[:40]}")
    if kind == "bounding_box":
        x, y, width, height = (_number(facts, side) for side in ("x", "y", "w", "h"))
        return box_object(label, (x, y, x + width, y + height), attributes)
    if kind == "ellipse":
        (x, y), (across, down) = read_xy_points([facts.get("center"), facts.get("radius")]).tolist()
        outline = ellipse_outline(x, y, across, down, math.degrees(_number(facts, "angle")))
        return outline_object(label, outline, attributes)
    outlines = [outline_object(label, path, attributes).outlines[0] for path in _read_paths(facts)]
    if not outlines:
        raise ValueError(f"{label}: no path")
    whole = AnnotatedObject(label, bounds(outlines), tuple(outlines), attributes=attributes)
    if len(outlines) == 1:
        return whole
    covered = np.zeros(size_hw, bool)
    for (
        outline
    ) in outlines:  # even and odd, as darwin-py draws them: what lies inside of another path is a hole
        covered ^= polygons.fill([outline], size_hw)
    if not covered.any():
        raise ValueError(f"{label}: no pixel of it is on the image")
    return whole if (covered == whole.fill(size_hw)).all() else from_full_mask(label, covered, attributes)


def _read_paths(facts: Mapping[str, JSON]) -> Iterator[np.ndarray]:
    """[N, 2] each: `paths` of 2.0, `path` and `additional_paths` of 1.0; `path` of a complex one is a list of them.

    Raises: ValueError."""
    first, more = facts.get("paths", facts.get("path")), facts.get("additional_paths")
    listed = first if isinstance(first, list) else []
    if listed and isinstance(listed[0], dict):
        listed = [listed]
    for path in (*listed, *(more if isinstance(more, list) else [])):
        yield read_xy_points(path)


def _read_attributes(one: Mapping[str, JSON]) -> Mapping[str, str]:
    attributes, properties = one.get("attributes"), one.get("properties")
    marks = {str(name): "1" for name in (attributes if isinstance(attributes, list) else [])}
    values = {
        str(pair["name"]): str(pair.get("value"))
        for pair in (properties if isinstance(properties, list) else [])
        if isinstance(pair, dict) and pair.get("name")
    }
    return marks | values


def _number(facts: Mapping[str, JSON], name: str) -> float:
    """Raises: ValueError."""
    value = facts.get(name)
    if not is_number(value):
        raise ValueError(f"{name} is {str(value)[:40]}")
    return float(value)


class _Layers:
    """The pixels of masks: an annotation of a file has those of all, as runs of numbers, row by row."""

    def __init__(self, listed: Sequence[Mapping[str, JSON]], size_hw: tuple[int, int]) -> None:
        self._size_hw = size_hw
        self._numbers: dict[str, tuple[int, Mapping[str, JSON]]] = {}
        for one in listed:
            layer = one.get("raster_layer")
            if not isinstance(layer, dict) or not isinstance(numbers := layer.get(_NUMBERS), dict):
                continue
            for key, number in numbers.items():
                if isinstance(number, int):
                    self._numbers[key] = (number, layer)
        self._pixels: dict[int, np.ndarray] = {}

    def read_mask(self, one: Mapping[str, JSON]) -> np.ndarray:
        """[H, W] bool. Raises: ValueError."""
        number, layer = self._numbers.get(str(one.get("id")), (0, {}))
        if not layer:
            raise ValueError("no raster_layer has its pixels")
        if id(layer) not in self._pixels:
            self._pixels[id(layer)] = self._decode(layer.get("dense_rle"))
        mask = self._pixels[id(layer)] == number
        if not mask.any():
            raise ValueError("the mask has no pixel")
        return mask

    def _decode(self, runs: JSON) -> np.ndarray:
        """[H, W] int64. Raises: ValueError."""
        height, width = self._size_hw
        listed = runs if isinstance(runs, list) else []
        if any(not isinstance(run, int) or not 0 <= run < 2**31 for run in listed) or len(listed) % 2:
            raise ValueError("dense_rle are no pairs of a number and a count")
        values, counts = np.array(listed, np.int64).reshape(-1, 2).T
        if counts.sum() != height * width:
            raise ValueError(f"dense_rle has {counts.sum()} pixels, and the image {height * width}")
        return np.repeat(values, counts).reshape(height, width)
