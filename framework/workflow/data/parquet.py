"""Parquet files of images, as the data sets of Hugging Face are offered, as folders that the other formats have.

Sources: https://huggingface.co/docs/datasets/about_dataset_features,
https://huggingface.co/docs/datasets/repository_structure
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from framework.core.disk import write_file
from framework.core.errors import FormatError, InputError
from framework.core.types import JSON
from framework.io.parquet_file import open_parquet, report_damage
from framework.vision.annotations.image_folder import METADATA, order_names
from framework.vision.annotations.objects import find_split
from framework.vision.dataset_files import abbreviate
from framework.vision.image import read_bytes
from framework.vision.image_formats import SUFFIXES as IMAGE_SUFFIXES
from framework.vision.image_formats import find_format
from framework.workflow.data.commands import check_new, write_whole
from framework.workflow.domain.outputs import fit_name

SUFFIX = ".parquet"
EXTRA = "parquet"
"""What brings pyarrow."""
LABELS_FILE = "labels.txt"
Kind = Literal["objects", "masks", "classes"]
_IMAGES = ("image", "img", "pixel_values", "png", "jpg")
_OBJECTS = ("objects", "object", "annotations", "faces", "litter")
_MASKS = (
    "mask",
    "masks",
    "label",
    "labels",
    "annotation",
    "label_map",
    "gt",
)
_CLASSES = ("label", "labels", "fine_label", "class", "category", "target", "coarse_label")
_BOXES = ("bbox", "bboxes", "boxes", "box")
_OBJECT_CLASSES = ("category", "categories", "category_id", "label", "labels", "class", "classes")
_ROWS = 32  # whose images are in memory at once


@dataclass(frozen=True)
class ParquetReport:
    """What `unpack_parquet` wrote: the number of images of each split, and what was left out."""

    output: Path
    kind: Kind
    counts: Mapping[str, int]
    class_names: tuple[str, ...]
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        is_read = {
            "objects": "AnnotatedDetection reads it",
            "masks": "MaskFolder reads it, with `images: images, masks: masks`",
            "classes": f"ImageFolder reads it, with `labels_file: {self.output / LABELS_FILE}`",
        }[self.kind]
        counts = ", ".join(
            f"{count} images of {split or 'one split'}" for split, count in self.counts.items()
        )
        lines = [f"{self.output}: {counts} with {self.kind}: {is_read}"]
        if self.class_names:
            lines.append(f"{len(self.class_names)} classes: {abbreviate(self.class_names)}")
        lines += [f"{count} rows are left out: {reason}" for reason, count in self.left_out.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Columns:
    """Which columns of a table are read, and the names of its classes by number."""

    kind: Kind
    image: str
    label: str
    names: tuple[str, ...]


@dataclass
class _Writer:
    """Writes rows into the folder of one split."""

    folder: Path
    columns: _Columns
    source: Path
    left_out: Counter[str]
    lines: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    rows: int = 0
    written: int = 0

    def add(self, row: Mapping[str, object], table: Path) -> None:
        """Raises: InputError, where an image is not there, FormatError, where a row is of another kind."""
        self.rows += 1
        where = f"{table}, row {self.rows}"
        content = _content(row[self.columns.image], table, where)
        if content is None:
            self.left_out["no image"] += 1
            return
        name = self._name(row[self.columns.image], content)
        label = row[self.columns.label]
        if self.columns.kind == "classes":
            if (one := _class_name(label, self.columns.names)) is None:
                self.left_out["no class"] += 1
                return
            self.labels.add(one)
            name = f"{plain_name(one)}/{name}"
        elif self.columns.kind == "masks":
            if (mask := _content(label, table, where)) is None:
                self.left_out["no mask"] += 1
                return
            write_file(self.folder / "masks" / f"{PurePosixPath(name).stem}{_suffix(mask)}", mask)
            name = f"images/{name}"
        else:
            boxes, classes = _objects(label, self.columns.names, where)
            self.labels.update(classes)
            entry = {"file_name": name, "objects": {"bbox": boxes, "categories": classes}}
            self.lines.append(json.dumps(entry, ensure_ascii=False))
        write_file(self.folder / name, content)
        self.written += 1

    def _name(self, image: object, content: bytes) -> str:
        """The last name of the image's path, which is the number of its row where that is none or taken."""
        path = image.get("path") if isinstance(image, dict) else image if isinstance(image, str) else None
        name = PurePosixPath(str(path).replace("\\", "/")).name if path else ""
        suffix = _suffix(content)
        stem = name.rpartition(".")[0] or name
        stem = plain_name(stem) if stem else ""
        if not stem or stem.casefold() in self.files:
            stem = plain_name(f"{self.rows:08d}" + (f"_{stem}" if stem else ""))
        self.files.add(stem.casefold())
        return f"{stem}{suffix}"

    def close(self) -> None:
        if self.columns.kind == "objects":
            write_file(self.folder / METADATA, "".join(f"{line}\n" for line in self.lines).encode("utf-8"))


def unpack_parquet(source: str | Path, output: str | Path) -> ParquetReport:
    """Write the images of a Parquet file, or of the files of a folder, as files, with what is known of them.

    * A column `objects` with boxes and classes: `<output>/<split>/metadata.jsonl` beside the images.
    * A second column of images: `<output>/<split>/images` and `<output>/<split>/masks`.
    * A column `label`: `<output>/<split>/<class>/`, and `<output>/labels.txt` with the names of the classes in order.

    An image is a struct of `bytes` and `path`, of which either may be missing, bytes, or a path seen from the file's
    folder. The split is told by the name of the file or of its folder (train-00000-of-00002.parquet,
    validation/0000.parquet); all are in `<output>` itself where none is told. Names of classes are those that the file
    declares. Boxes are left, top, width and height in pixels, as `datasets` documents them.

    Raises:
        InputError: there is no such file, its columns are none of these, an image that it names is not there, two
            classes would share a folder, or the output is there already. FormatError: it is no Parquet file.
            MissingExtraError: pyarrow is not installed. DiskError: the disk takes no more; nothing stays.
    """
    source, output = Path(source), Path(output)
    tables = _list_tables(source)
    columns = {path: _find_columns(path) for path in tables}
    first = columns[tables[0]]
    if others := [path.name for path in tables if columns[path].kind != first.kind]:
        raise InputError(
            "the files hold different kinds of data",
            where=source,
            received=f"{tables[0].name} has {first.kind}, {abbreviate(others)} another",
            fix="name the files of one kind, or put them into folders of their own",
        )
    splits: dict[str, list[Path]] = defaultdict(list)
    for path in tables:
        splits[_split(path, source)].append(path)
    if "" in splits and len(splits) > 1:
        raise InputError(
            "some files tell no split",
            where=source,
            received=abbreviate([path.name for path in splits[""]]),
            allowed="a name with train, validation or test, or a folder of such a name",
        )
    check_new([output])
    left_out, labels, counts = Counter[str](), set[str](), dict[str, int]()
    with write_whole(output, [LABELS_FILE]) as new:  # the output is new, and appears in one step
        for split, paths in splits.items():
            writer = _Writer(new / split, first, source, left_out)
            for path in paths:
                writer.columns = columns[path]
                for row in _read_rows(path, (columns[path].image, columns[path].label)):
                    writer.add(row, path)
            writer.close()
            labels |= writer.labels
            counts[split] = writer.written
        names = first.names or order_names(labels)
        if first.kind == "classes":
            _check_folders(names, source)
            write_file(new / LABELS_FILE, "".join(f"{plain_name(name)}\n" for name in names).encode("utf-8"))
    return ParquetReport(output, first.kind, counts, names, left_out)


def _check_folders(names: Sequence[str], source: Path) -> None:
    """Raises: InputError, where two classes would have one folder."""
    counts = Counter(map(plain_name, names))
    if shared := [name for name in names if counts[plain_name(name)] > 1]:
        raise InputError(
            "classes would share a folder, whose name takes no separators",
            where=source,
            received=abbreviate(shared),
            fix="rename these classes, as `datasets.Dataset.cast_column(…, ClassLabel(names=…))` does",
        )


def plain_name(name: str) -> str:
    """What the folder of a class, or the file of an image before its suffix, is called: a name that file systems take,
    without separators, and not hidden."""
    plain = "".join("_" if one in '/\\:*?"<>|' or ord(one) < 32 else one for one in name).strip()
    plain = f"_{plain[1:]}" if plain.startswith(".") else plain or "_"
    return fit_name(plain, IMAGE_SUFFIXES)


def _list_tables(source: Path) -> list[Path]:
    files = [source] if source.is_file() else sorted(source.rglob(f"*{SUFFIX}")) if source.is_dir() else []
    if not files:
        raise InputError(
            "there is no Parquet file",
            where=source,
            allowed=f"a file or a folder of files that end in {SUFFIX}",
            fix=f"the current folder is {Path.cwd()}",
        )
    return files


def _split(path: Path, source: Path) -> str:
    """The split that the name of a file tells, or that of a folder between it and the source."""
    between = () if path == source else path.relative_to(source).parts[-2::-1]
    return next((split for name in (path.stem, *between) if (split := find_split(name))), "")


def _read_rows(path: Path, names: Sequence[str]) -> Iterator[dict[str, object]]:
    batches = open_parquet(path, EXTRA).iter_batches(batch_size=_ROWS, columns=list(dict.fromkeys(names)))
    while True:
        with report_damage(path):
            if (batch := next(batches, None)) is None:
                return
            rows = batch.to_pylist()
        yield from rows


def _find_columns(path: Path) -> _Columns:
    """Raises: InputError, where there is no column of images, or nothing is said of them."""
    schema = open_parquet(path, EXTRA).schema_arrow
    features = _features(schema.metadata or {})
    types = {str(one.name): str(one.type) for one in schema}
    images = [name for name, type_ in types.items() if _is_image(name, features.get(name), type_)]
    image = next((name for name in _IMAGES if name in images), None) or next(
        (name for name in images if name not in _MASKS), None
    )
    if image is not None:
        for name in (
            name for name in _OBJECTS if "bbox" in types.get(name, "") or "box" in types.get(name, "")
        ):
            return _Columns("objects", image, name, _object_names(features.get(name)))
        for name in (name for name in images if name != image and (name in _MASKS or "mask" in name)):
            return _Columns("masks", image, name, ())
        for name in (
            name for name in _CLASSES if types.get(name, "").startswith(("int", "string", "large_str"))
        ):
            return _Columns("classes", image, name, _declared_names(features.get(name)))
    raise InputError(
        "the table has no image with a class, objects or a mask",
        where=path,
        received=", ".join(f"{name} ({type_[:40]})" for name, type_ in types.items()),
        allowed="columns image and label, objects with bbox, or a second image called mask, label or annotation",
        fix="rename the columns, as `datasets.Dataset.rename_column` does",
    )


def _features(metadata: Mapping[bytes, bytes]) -> Mapping[str, JSON]:
    """What `datasets` declares of the columns, by name; nothing where another tool wrote the file."""
    try:
        declared = json.loads(metadata.get(b"huggingface", b"{}"))
    except ValueError:
        return {}
    info = declared.get("info") if isinstance(declared, dict) else None
    features = info.get("features") if isinstance(info, dict) else None
    return features if isinstance(features, dict) else {}


def _is_image(name: str, feature: JSON, type_: str) -> bool:
    if isinstance(feature, dict) and "_type" in feature:
        return feature["_type"] == "Image"
    if name in _IMAGES and type_ in ("string", "large_string"):  # paths
        return True
    return type_ in ("binary", "large_binary") or (type_.startswith("struct<") and "bytes: " in type_)


def _declared_names(feature: JSON) -> tuple[str, ...]:
    names = feature.get("names") if isinstance(feature, dict) else None
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _object_names(feature: JSON) -> tuple[str, ...]:
    """The names of the classes of objects, which stand below lists and structs."""
    if isinstance(feature, list):
        return next((names for one in feature if (names := _object_names(one))), ())
    if not isinstance(feature, dict):
        return ()
    if isinstance(feature.get("feature"), dict) and (names := _object_names(feature["feature"])):
        return names
    below = (_unwrap(feature[name]) for name in _OBJECT_CLASSES if name in feature)
    return next((names for one in below if (names := _declared_names(one))), ())


def _unwrap(feature: JSON) -> JSON:
    while isinstance(feature, list) or (isinstance(feature, dict) and "names" not in feature):
        inner = feature[0] if isinstance(feature, list) and feature else None
        feature = feature.get("feature") if isinstance(feature, dict) else inner
    return feature


def _content(value: object, table: Path, where: str) -> bytes | None:
    """The bytes of an image; None where there is none. Raises: InputError, where its file is not there."""
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return value or None
    if not isinstance(value, str) or not value:
        return None
    path = table.parent / value
    if not path.is_file():
        raise InputError(
            "an image of the table is not there",
            where=where,
            received=value,
            allowed="bytes in the table, or a path seen from its folder",
            fix="write the table with the images in it: `Dataset.cast_column(…, Image())`, then `to_parquet`",
        )
    return read_bytes(path, "image")[0]


def _suffix(content: bytes) -> str:
    """Of the format of an image, which its bytes tell; what none reads is found when it is read."""
    image_format = find_format(content)
    return image_format.suffixes[0] if image_format is not None else ".png"


def _class_name(label: object, names: Sequence[str]) -> str | None:
    """None where a row has no class: datasets write -1."""
    if isinstance(label, str):
        return label if label.strip() else None
    if not isinstance(label, int) or label < 0:
        return None
    if not names:
        return str(label)
    return names[label] if label < len(names) else None


def _objects(value: object, names: Sequence[str], where: str) -> tuple[list[list[float]], list[str]]:
    """Boxes and classes of a row: lists in a struct, or a list of structs. Raises: FormatError."""
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        keys = list(dict.fromkeys(key for one in value for key in one))
        value = {key: [one.get(key) for one in value] for key in keys}
    fields: Mapping[str, object] = value if isinstance(value, dict) else {}
    boxes = next((fields[name] for name in _BOXES if fields.get(name) is not None), [])
    classes = next((fields[name] for name in _OBJECT_CLASSES if fields.get(name) is not None), None)
    if not isinstance(boxes, list) or not all(isinstance(box, list) and len(box) == 4 for box in boxes):
        raise FormatError("the row has no boxes of four numbers", where=where, received=str(boxes)[:120])
    if classes is None:
        classes = ["object"] * len(boxes)
    named = [_class_name(one, names) for one in classes] if isinstance(classes, list) else []
    if len(named) != len(boxes) or None in named:
        raise FormatError(
            "the row has not as many classes as boxes",
            where=where,
            received=f"{len(boxes)}, {str(classes)[:120]}",
        )
    return [[float(side) for side in box] for box in boxes], [str(one) for one in named]
