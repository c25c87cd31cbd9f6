"""`oar data parquet`: tables of images as folders. The first tests give it tables without pyarrow."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from detection.data.annotated import AnnotatedDetection
from framework.core.errors import FormatError, InputError, MissingExtraError
from framework.vision.annotations.formats import detect_format
from framework.workflow.data.parquet import unpack_parquet
from zoo.classification.data import ImageFolder

IMAGE = "struct<bytes: binary, path: string>"


def encode(value: int, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((6, 8, 3), value, np.uint8)).save(file, kind)
    return file.getvalue()


@dataclass
class Tables:
    """Tables by the name of their files, in the place of pyarrow's."""

    rows: dict[str, list[dict]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    features: dict[str, object] = field(default_factory=dict)

    def open(self, path: Path) -> SimpleNamespace:
        if path.name not in self.rows:
            raise ValueError("Parquet magic bytes not found in footer")

        def iter_batches(batch_size: int, columns: list[str]):
            chosen = [{name: row[name] for name in columns} for row in self.rows[path.name]]
            for first in range(0, len(chosen), batch_size):
                yield SimpleNamespace(to_pylist=lambda first=first: chosen[first : first + batch_size])

        class Schema(list):
            metadata: ClassVar = {b"huggingface": json.dumps({"info": {"features": self.features}}).encode()}

        columns = [SimpleNamespace(name=name, type=type_) for name, type_ in self.types.items()]
        return SimpleNamespace(schema_arrow=Schema(columns), iter_batches=iter_batches)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tables:
    made = Tables()
    module = ModuleType("pyarrow.parquet")
    setattr(module, "ParquetFile", made.open)  # noqa: B010
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", module)
    return made


def place(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def told(read: ImageFolder) -> list[tuple[str, int, int]]:
    """The name of the file of each sample, its class and the value of its pixels."""
    labels = [int(label[0]) for label in read.read_labels()]
    samples = [read[index] for index in range(len(read))]
    return [
        (Path(str(one.id)).name, label, int(one.image[0, 0, 0]))
        for one, label in zip(samples, labels, strict=True)
    ]


def test_classes(tmp_path: Path, tables: Tables) -> None:
    """Names that no folder can have, a row without a class, the same name twice, a path beside the table."""
    place(
        tmp_path / "set",
        "train-00000-of-00002.parquet",
        "train-00001-of-00002.parquet",
        "validation/0000.parquet",
    )
    (tmp_path / "set/more").mkdir()
    (tmp_path / "set/more/c.png").write_bytes(encode(7))
    tables.types = {"image": IMAGE, "id": "int64", "label": "int64"}
    tables.features = {"image": {"_type": "Image"}, "label": {"names": ["T-shirt/top", "zebra", ".dot"]}}
    tables.rows = {
        "train-00000-of-00002.parquet": [
            {"image": {"bytes": encode(1), "path": "x/a.png"}, "label": 1},
            {"image": {"bytes": encode(2), "path": "y/A.jpg"}, "label": 1},
            {"image": {"bytes": encode(3, "JPEG"), "path": None}, "label": 0},
            {"image": {"bytes": encode(4), "path": None}, "label": -1},
            {"image": None, "label": 0},
        ],
        "train-00001-of-00002.parquet": [{"image": {"bytes": None, "path": "more/c.png"}, "label": 2}],
        "0000.parquet": [{"image": {"bytes": encode(5), "path": "a.png"}, "label": 0}],
    }
    report = unpack_parquet(tmp_path / "set", out := tmp_path / "out")
    assert report.kind == "classes" and report.counts == {"train": 4, "val": 1}
    assert report.left_out == {"no class": 1, "no image": 1}
    train = ImageFolder(root=out, split="train", labels_file=out / "labels.txt")
    assert train.class_names == ("T-shirt_top", "zebra", "_dot")
    assert sorted(told(train)) == [
        ("00000002_A.png", 1, 2),
        ("00000003.jpg", 0, 3),
        ("a.png", 1, 1),
        ("c.png", 2, 7),
    ]
    with pytest.raises(InputError, match="already"):
        unpack_parquet(tmp_path / "set", out)


def test_classes_that_would_share_a_folder(tmp_path: Path, tables: Tables) -> None:
    tables.types = {"image": IMAGE, "label": "string"}
    tables.rows["train.parquet"] = [
        {"image": {"bytes": encode(value), "path": None}, "label": label}
        for value, label in ((1, "a/b"), (2, "a_b"))
    ]
    with pytest.raises(InputError, match="classes would share a folder"):
        unpack_parquet(place(tmp_path / "in", "train.parquet"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("is_listed", [False, True])
def test_objects(tmp_path: Path, tables: Tables, is_listed: bool) -> None:
    """A struct of lists, and a list of structs as newer versions of `datasets` write it."""
    place(tmp_path, "all.parquet")
    inner = {"bbox": {"_type": "List"}, "category": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    lists = {"bbox": {"_type": "List"}, "category": {"feature": inner["category"], "_type": "List"}}
    boxes, classes = [[1.0, 2.0, 3.0, 3.5], [0.0, 0.0, 2.0, 2.0]], [1, 0]
    objects = [{"bbox": box, "category": one} for box, one in zip(boxes, classes)]
    tables.features = {
        "image": {"_type": "Image"},
        "objects": {"feature": inner, "_type": "List"} if is_listed else lists,
    }
    tables.types = {"image": IMAGE, "objects": "struct<bbox: list<list<float>>, category: list<int64>>"}
    tables.rows["all.parquet"] = [
        {
            "image": {"bytes": encode(9), "path": "a.png"},
            "objects": objects if is_listed else {"bbox": boxes, "category": classes},
        },
        {
            "image": {"bytes": encode(8), "path": "b.png"},
            "objects": [] if is_listed else {"bbox": [], "category": []},
        },
    ]
    unpack_parquet(tmp_path / "all.parquet", tmp_path / "out")
    read = AnnotatedDetection(root=tmp_path / "out")
    assert read.class_names == ("cat", "dog") and len(read) == 2
    assert read[0].boxes is not None and read[0].labels is not None
    assert read[0].boxes.tolist() == [[1, 2, 4, 5.5], [0, 0, 2, 2]] and read[0].labels.tolist() == [1, 0]
    tables.rows["all.parquet"][0]["objects"] = {"bbox": boxes, "category": [1]}
    with pytest.raises(FormatError, match="row 1: the row has not as many classes as boxes"):
        unpack_parquet(tmp_path / "all.parquet", tmp_path / "other")


def test_masks(tmp_path: Path, tables: Tables) -> None:
    place(tmp_path, "train.parquet")
    tables.types = {"pixel_values": IMAGE, "label": IMAGE}
    image, mask = encode(9, "JPEG"), encode(1)
    tables.rows["train.parquet"] = [
        {"pixel_values": {"bytes": image, "path": "a.jpg"}, "label": {"bytes": mask}}
    ]
    assert unpack_parquet(tmp_path, tmp_path / "out").counts == {"train": 1}
    assert (tmp_path / "out/train/images/a.jpg").read_bytes() == image
    assert (tmp_path / "out/train/masks/a.png").read_bytes() == mask


def test_what_is_refused(tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, "a.parquet", "train.parquet")
    with pytest.raises(FormatError, match=r"the table cannot be read(?s:.*)magic bytes"):
        unpack_parquet(tmp_path / "a.parquet", tmp_path / "out")
    tables.rows |= {"a.parquet": [], "train.parquet": []}
    tables.types = {"text": "string", "label": "int64"}
    with pytest.raises(InputError, match=r"no image with a class(?s:.*)text \(string\), label \(int64\)"):
        unpack_parquet(tmp_path / "a.parquet", tmp_path / "out")
    tables.types = {"image": "string", "label": "string"}
    with pytest.raises(InputError, match=r"some files tell no split\n  received: a\.parquet"):
        unpack_parquet(tmp_path, tmp_path / "out")
    tables.rows["a.parquet"] = [{"image": "b.png", "label": "cat"}]
    with pytest.raises(InputError, match=r"row 1: an image of the table is not there\n  received: b\.png"):
        unpack_parquet(tmp_path / "a.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="there is no Parquet file"):
        unpack_parquet(tmp_path / "none", tmp_path / "out")
    with pytest.raises(InputError, match="oar data parquet SOURCE OUTPUT"):
        detect_format(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"oar-toolkit\[parquet\]"):
        unpack_parquet(tmp_path / "a.parquet", tmp_path / "out")


def test_a_file_of_pyarrow(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    images = [{"bytes": encode(value), "path": None} for value in range(40)]
    table = pyarrow.table({"image": images, "label": [value % 3 for value in range(40)], "more": [0] * 40})
    parquet.write_table(table, tmp_path / "train.parquet")
    assert unpack_parquet(tmp_path, tmp_path / "out").counts == {"train": 40}
    read = ImageFolder(root=tmp_path / "out", split="train", labels_file=tmp_path / "out/labels.txt")
    assert sorted((value, label) for _, label, value in told(read)) == [(n, n % 3) for n in range(40)]


def test_images_and_classes_have_names_that_file_systems_take(tables: Tables, tmp_path: Path) -> None:
    tables.types = {"image": IMAGE, "label": "string"}
    tables.rows["a.parquet"] = [
        {"image": {"bytes": encode(0), "path": path}, "label": label}
        for path, label in (("a\0b?.png", "x\x01y"), ("猫" * 200 + ".png", "b" * 300), (".hidden.png", "b"))
    ]
    unpack_parquet(place(tmp_path, "a.parquet"), out := tmp_path / "out")
    names = [path.relative_to(out).parts for path in sorted(out.rglob("*.png"))]
    assert ("x_y", "a_b_.png") in names and ("b", "_hidden.png") in names and len(names) == 3
    assert all(len(os.fsencode(part)) <= 255 for parts in names for part in parts)
    assert len(ImageFolder(out, labels_file=out / "labels.txt")) == 3
