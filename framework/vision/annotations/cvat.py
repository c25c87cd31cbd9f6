"""CVAT's formats "CVAT for images 1.1" and "CVAT for video 1.1": one XML file with the labels of a task and the shapes
of each image, or of each track of a video.

Source: https://docs.cvat.ai/docs/manual/advanced/xml_format/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.vision.annotations.cvat_shapes import read_shapes
from framework.vision.annotations.cvat_tracks import read_tracks
from framework.vision.annotations.objects import SUBSETS, AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.xml_files import read_xml


def read_cvat(file: Path, images: Path | None = None) -> AnnotatedSet:
    """The images of a file, with boxes, turned ones, polygons, ellipses and masks, and their attributes.

    Polygons of one label and one group are parts of one object, as CVAT exports them to COCO; a note counts them. A
    box around one of them is none of its own (`join_groups`).
    Polylines, points, cuboids, skeletons and tags have no area: they are counted in `problems`, as are shapes that
    cannot be read. Labels are numbered as the file's <meta> lists them, others by name behind those.

    A file of "CVAT for video 1.1" has tracks in the place of images: see `framework.vision.annotations.cvat_tracks`.

    Args:
        images: The folder of the images; without it `images` or, as FiftyOne has it, `data` beside the file, or the
            file's folder.

    Raises:
        FormatError: the file is not of this format. InputError: it holds neither an image nor a track, or there are no
            images of the frames of a video.
    """
    file = Path(file)
    root = read_xml(file)
    if root.tag != "annotations":
        raise FormatError(
            "the file is not CVAT's",
            where=file,
            received=f"<{root.tag}>",
            allowed="<annotations> with <image> or <track>",
        )
    problems: list[str] = []
    no_area: Counter[str] = Counter()
    names = [name.text.strip() for name in root.findall("meta//labels/label/name") if name.text]
    if entries := root.findall("image"):
        read = list(_read_images(entries, file, images, no_area, problems))
        if tracks := len(root.findall("track")):
            problems.append(f"{file}: {tracks} tracks, as there are images too")
    elif root.find("track") is not None:
        read = read_tracks(root, file, images, no_area, problems)
    else:
        raise InputError(
            "the file has no images", where=file, received="no <image>", allowed="<image> or <track> elements"
        )
    others = sorted({one.label for image in read for one in image.objects} - set(names))
    listed = tuple(dict.fromkeys([*names, *others]))
    if not listed:
        raise InputError(
            "the file has no label", where=file, allowed="<label> in <meta>, or shapes with labels"
        )
    problems += [f"{file}: {count} x {kind}, which has no area" for kind, count in no_area.items()]
    objects = [one for image in read for one in image.objects if len(one.outlines) > 1]
    outline_count = sum(len(one.outlines) for one in objects)
    notes = (f"{outline_count} grouped polygons are {len(objects)} objects",) if objects else ()
    return AnnotatedSet(tuple(read), listed, tuple(problems), notes)


def find_cvat(file: Path, split: str) -> tuple[Path, str]:
    """The file of a split, and what of it is the split: of a folder with a file a subset (train.xml, val.xml), as
    Datumaro writes it in the place of one annotations.xml, the subset's file, all of it."""
    if split and not file.is_file() and file.parent.is_dir():
        for path in sorted(file.parent.glob("*.xml")):
            if SUBSETS.get(path.stem.lower()) == split:
                return path, ""
    return file, split


def _read_images(
    entries: Sequence[Element],
    file: Path,
    images: Path | None,
    no_area: Counter[str],
    problems: list[str],
) -> Iterator[AnnotatedImage]:
    for number, entry in enumerate(entries, start=1):
        name = (entry.get("name") or "").replace("\\", "/")
        if not name:
            raise FormatError("an image has no name", where=f"{file}, image {number}", allowed='name="a.jpg"')
        objects = tuple(read_shapes(entry, f"{file}, image {name}", no_area, problems))
        path = _find_image(name, entry.get("subset") or "", file, images)
        split = SUBSETS.get((entry.get("subset") or "").lower(), "")
        yield AnnotatedImage(path, name, _size(entry), objects, split)


def _size(entry: Element) -> tuple[int, int] | None:
    try:
        height, width = int(entry.get("height") or 0), int(entry.get("width") or 0)
    except ValueError:
        return None
    return (height, width) if height > 0 and width > 0 else None


def _find_image(name: str, subset: str, file: Path, images: Path | None) -> Path:
    """By its name in the folder, in the folder of its subset, as CVAT exports projects, or without its own folders."""
    folders = [images] if images is not None else [file.parent / one for one in ("images", "", "data")]
    spellings = [*([f"{subset}/{name}"] if subset else []), name, Path(name).name]
    candidates = [folder / one for one in spellings for folder in folders]
    return next((path for path in candidates if path.is_file()), folders[0] / name)


def cvat_xml(images: Sequence[AnnotatedImage], names: Sequence[str]) -> bytes:
    """The file of images, whose sizes are known: boxes, a polygon for each outline, and masks.

    Images without splits are a task. Splits are the subsets of a project with a task each, as CVAT exports one: there
    the name of an image is seen from the folder of its subset, `images/Train` and the like, so a split in front of the
    name is left out (see `cvat_file`).
    """
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    tasks = _write_meta(root, images, names)
    for number, image in enumerate(images):
        height, width = image.size_hw or (0, 0)
        facts = {"id": str(number), "name": image.name}
        if image.split:
            facts["name"] = image.name.removeprefix(f"{image.split}/")
            facts |= {"subset": _subset(image.split), "task_id": str(tasks.index(image.split))}
        entry = ElementTree.SubElement(root, "image", {**facts, "width": str(width), "height": str(height)})
        for group, one in enumerate(image.objects, start=1):
            _write_object(entry, one, group)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def cvat_file(image: AnnotatedImage) -> str:
    """Where an image lies in the folder `images` of an export."""
    if not image.split:
        return image.name
    return f"{_subset(image.split)}/{image.name.removeprefix(f'{image.split}/')}"


def _subset(split: str) -> str:
    return {"train": "Train", "val": "Validation", "test": "Test"}.get(split, split)


def _write_meta(root: Element, images: Sequence[AnnotatedImage], names: Sequence[str]) -> list[str]:
    """Returns: the splits, in the order of their tasks; CVAT and Datumaro take images with a subset of projects only,
    and the subsets from both their tasks and their list."""
    sizes = Counter(image.split for image in images)
    meta = ElementTree.SubElement(root, "meta")
    if set(sizes) <= {""}:
        parent = ElementTree.SubElement(meta, "task")
        ElementTree.SubElement(parent, "size").text = str(len(images))
    else:
        parent = ElementTree.SubElement(meta, "project")
        tasks = ElementTree.SubElement(parent, "tasks")
        for number, (split, size) in enumerate(sizes.items()):
            task = ElementTree.SubElement(tasks, "task")
            texts = {"id": str(number), "size": str(size), "mode": "annotation", "subset": _subset(split)}
            for tag, text in texts.items():
                ElementTree.SubElement(task, tag).text = text
    labels = ElementTree.SubElement(parent, "labels")
    for name in names:
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = name
        attribute_names = sorted(
            {key for image in images for one in image.objects if one.label == name for key in one.attributes}
            - {"occluded"}
        )
        attributes = ElementTree.SubElement(label, "attributes")
        for key in attribute_names:
            attribute = ElementTree.SubElement(attributes, "attribute")
            for tag, text in (("name", key), ("mutable", "False"), ("input_type", "text")):
                ElementTree.SubElement(attribute, tag).text = text
            for tag in ("default_value", "values"):
                ElementTree.SubElement(attribute, tag).text = ""
    if parent.tag == "project":
        ElementTree.SubElement(parent, "subsets").text = "\n".join(map(_subset, sizes))
    return list(sizes)


def _write_object(entry: Element, one: AnnotatedObject, group: int) -> None:
    shared = {
        "label": one.label,
        "source": "manual",
        "occluded": str(int(one.has_flag("occluded"))),
        "z_order": "0",
    }
    x0, y0, x1, y1 = one.box
    shapes: list[tuple[str, dict[str, str]]]
    if one.mask is not None:
        height, width = one.mask.shape
        position = {"left": round(x0), "top": round(y0), "width": width, "height": height}
        runs = {"rle": ", ".join(map(str, _row_runs(one.mask)))}
        shapes = [("mask", {**runs, **{key: str(value) for key, value in position.items()}})]
    elif one.outlines:
        several = {"group_id": str(group)} if len(one.outlines) > 1 else {}
        shapes = [
            ("polygon", {**several, "points": ";".join(f"{x:.2f},{y:.2f}" for x, y in line.tolist())})
            for line in one.outlines
        ]
    else:
        sides = {"xtl": x0, "ytl": y0, "xbr": x1, "ybr": y1}
        shapes = [("box", {key: f"{value:.2f}" for key, value in sides.items()})]
    for tag, more in shapes:
        shape = ElementTree.SubElement(entry, tag, {**shared, **more})
        for key, value in one.attributes.items():
            if key != "occluded":
                ElementTree.SubElement(shape, "attribute", {"name": key}).text = value


def _row_runs(mask: np.ndarray) -> list[int]:
    """Lengths of alternating runs along the rows, the first outside."""
    flat = mask.ravel()
    ends = np.concatenate([np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    runs: list[int] = np.diff(ends, prepend=0).tolist()
    return [0, *runs] if flat[0] else runs
