"""Labelbox's exports: NDJSON with a data row a line, the same rows as a JSON list, and the JSON of before 2023.

Source: https://docs.labelbox.com/reference/export-image-annotations and https://github.com/Labelbox/labelbox-python
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_json_files
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object, outline_object, read_image_size, read_xy_points
from framework.vision.dataset_files import abbreviate, read_annotations
from framework.vision.image import read_size

_BOXES = ("bounding_box", "bbox")  # the second before 2023
_MASKS = ("mask", "composite_mask", "instanceURI")
_NO_AREA = ("point", "line")


def is_labelbox(data: object) -> bool:
    """Whether what a file holds are data rows."""
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, dict) and (
        (isinstance(first.get("data_row"), dict) and isinstance(first.get("projects"), dict))
        or ("DataRow ID" in first and "Label" in first)
    )


def read_labelbox(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the files of a folder, each of which is a split by its name.

    Boxes and polygons are read. Masks are links that only the account opens: they are told in `problems`, as points,
    lines, videos, rows that nobody has labelled and images that are not there are. Classifications of images are
    counted in `notes`. Of several labels of a row the first is read. Answers about an object are its attributes.
    Classes are sorted.

    Args:
        images: The folder of the images, which are searched by `external_id`, `global_key`, or the name in their
            address; without it the file's folder.

    Raises:
        InputError: none of the images is there. FormatError: the file is not of this format.
    """
    return read_json_files(source, images, is_labelbox, _read_file, "Labelbox")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    rows = read_annotations(file)
    if not isinstance(rows, list) or not is_labelbox(rows):
        raise FormatError(
            "the file is not Labelbox's",
            where=file,
            allowed='a line {"data_row": {…}, "media_attributes": {…}, "projects": {…}} for each image',
        )
    index, problems, left_out, notes = ImageIndex(folder), list[str](), Counter[str](), Counter[str]()
    missing: list[str] = []
    read: dict[Path, AnnotatedImage] = {}
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            problems.append(f"{file}, row {number}: no data row, but {str(row)[:40]}")
            continue
        annotations = _select_label(row, left_out)
        if annotations is None:
            left_out["row that is not labelled"] += 1
            continue
        if "frames" in annotations:
            left_out["video, whose frames are no images"] += 1
            continue
        names = _image_names(row)
        path = index.look_up_inside(names)
        if path is None:
            missing.append(names[0] if names else f"row {number}")
            continue
        if path in read:
            left_out["further row of an image"] += 1
            continue
        size_hw = read_image_size(row.get("media_attributes")) or read_size(path)
        for one in _listed(annotations.get("classifications")):
            name = str(one.get("name", one.get("title")))[:40]
            notes[f"answer about an image ({name}), which is of no object"] += 1
        objects = tuple(_read_objects(annotations, f"{file}, row {number}", problems, left_out))
        read[path] = AnnotatedImage(path, index.name(path), size_hw, objects)
    if not read:
        raise InputError(
            "none of the images is there",
            where=file,
            received="; ".join(
                [f"{len(rows)} rows", abbreviate(missing), *(f"{n} x {what}" for what, n in left_out.items())]
            ),
            allowed=f"labelled images in {index.folder}",
            fix="name the folder of the images with --images",
        )
    if missing:
        problems.append(f"{file}: {len(missing)} rows have no image in {index.folder}: {abbreviate(missing)}")
    problems += [f"{file}: {count} x {what}" for what, count in left_out.items()]
    labels = sorted({one.label for image in read.values() for one in image.objects})
    lines = tuple(f"{file}: {count} x {what}" for what, count in notes.items())
    return AnnotatedSet(tuple(read.values()), tuple(labels), tuple(problems), lines)


def _image_names(row: Mapping[str, JSON]) -> Sequence[str]:
    entry = row.get("data_row")
    listed = (
        [entry.get(key) for key in ("external_id", "global_key", "row_data")]
        if isinstance(entry, dict)
        else [row.get("External ID"), row.get("Labeled Data")]
    )
    texts = [one for one in listed if isinstance(one, str) and one]
    return tuple(unquote(urlsplit(one).path).lstrip("/") if "://" in one else one for one in texts)


def _select_label(row: Mapping[str, JSON], left_out: Counter[str]) -> Mapping[str, JSON] | None:
    """The annotations of a row, which are those of the first label of its projects; None where there is none."""
    if "data_row" not in row:
        label = row.get("Label")
        return label if isinstance(label, dict) and label and not row.get("Skipped") else None
    projects = row.get("projects")
    labels = [
        annotations
        for project in (projects.values() if isinstance(projects, dict) else ())
        if isinstance(project, dict) and isinstance(listed := project.get("labels"), list)
        for label in listed
        if isinstance(label, dict) and isinstance(annotations := label.get("annotations"), dict)
    ]
    if len(labels) > 1:
        left_out["further label of a row"] += len(labels) - 1
    return labels[0] if labels else None


def _read_objects(
    annotations: Mapping[str, JSON], where: str, problems: list[str], left_out: Counter[str]
) -> Iterator[AnnotatedObject]:
    for number, one in enumerate(_listed(annotations.get("objects")), start=1):
        name = one.get("name", one.get("title"))
        label = name.strip() if isinstance(name, str) else ""
        shape = next((key for key in (*_BOXES, "polygon", *_MASKS, *_NO_AREA) if one.get(key)), None)
        if shape in _MASKS:
            left_out[f"mask {label}, which is a link: download it, or export polygons"] += 1
        elif shape is None or shape in _NO_AREA:
            left_out[f"{shape or one.get('annotation_kind', 'object')} {label}, which has no area"] += 1
        else:
            try:
                if not label:
                    raise ValueError(f"its class is {ascii(name)[:40]}")
                yield _read_object(shape, one[shape], label, _read_answers(one.get("classifications")))
            except ValueError as error:
                problems.append(f"{where}, object {number} ({shape}): {error}")


def _read_object(shape: str, value: JSON, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    """Raises: ValueError."""
    if shape == "polygon":
        return outline_object(label, read_xy_points(value), attributes)
    sides = (
        [value.get(side) for side in ("left", "top", "width", "height")] if isinstance(value, dict) else []
    )
    numbers = [float(side) for side in sides if is_number(side)]
    if len(numbers) != 4:
        raise ValueError(f"{label}: left, top, width and height are {str(value)[:60]}")
    x, y, width, height = numbers
    return box_object(label, (x, y, x + width, y + height), attributes)


def _read_answers(classifications: JSON) -> Mapping[str, str]:
    """What was asked of an object and answered: one choice, some, or a text."""
    answers = {}
    for one in _listed(classifications):
        answer = next(
            (one[key] for key in ("radio_answer", "answer", "text_answer") if one.get(key)),
            one.get("checklist_answers", one.get("answers")),
        )
        listed = answer if isinstance(answer, list) else [answer]
        texts = [
            next((str(part[key]) for key in ("name", "title", "content", "value") if part.get(key)), "")
            if isinstance(part, dict)
            else str(part or "")
            for part in listed
        ]
        name = one.get("name", one.get("title"))
        if isinstance(name, str) and any(texts):
            answers[name] = ", ".join(filter(None, texts))
    return answers


def _listed(value: JSON) -> list[dict[str, JSON]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
