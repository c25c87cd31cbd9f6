"""Metadata of `.tflite` files, and what is said where the packages of the extra are missing: without these packages."""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path

import pytest

from framework.core.errors import ConfigError, FormatError, InputError, MissingExtraError
from framework.export import TensorSpec
from framework.export.formats.tflite import packages
from framework.export.formats.tflite.convert import make_signatures
from framework.export.formats.tflite.metadata import (
    ModelMetadata,
    TensorMetadata,
    append_files,
    encode_metadata,
    read_files,
    read_summary,
)
from framework.workflow.export.tflite import TfliteOptions, sizes_of_inputs

IMAGE = TensorMetadata("image", "RGB", "image", (320, 416), value_range=(0.0, 255.0))
BOXES = TensorMetadata("boxes", "xyxy", "boxes")
LABELS = TensorMetadata("labels", "class", labels="labels.txt", labels_of="values")


def test_names_come_back_from_the_metadata() -> None:
    data = encode_metadata(ModelMetadata("cells", "a detector", subgraphs=[([IMAGE], [BOXES, LABELS])]))
    assert data[4:8] == b"M001"
    assert read_summary(data) == {"name": ["cells"], "inputs": ["image"], "outputs": ["boxes", "labels"]}
    assert b"labels.txt" in data and b"a detector" in data


def test_every_signature_has_its_tensors() -> None:
    pages = ModelMetadata("page", subgraphs=[([IMAGE], [BOXES]), ([IMAGE], [LABELS]), ([], [])])
    assert read_summary(encode_metadata(pages))["outputs"] == ["boxes", "labels"]


def test_other_bytes_are_no_metadata() -> None:
    with pytest.raises(FormatError, match="no metadata of TensorFlow Lite"):
        read_summary(b"\0" * 32)


def test_labels_stand_in_a_zip_archive_behind_the_model(tmp_path: Path) -> None:
    model = b"TFL3" * 10
    path = tmp_path / "model.tflite"
    path.write_bytes(append_files(model, {"labels.txt": "Zellen\nä\n".encode()}))
    with zipfile.ZipFile(path) as archive:
        assert archive.read("labels.txt").decode() == "Zellen\nä\n"
    assert path.read_bytes().startswith(model)
    assert read_files(path.read_bytes()) == {"labels.txt": "Zellen\nä\n".encode()}
    assert read_files(model) == {} and append_files(model, {}) == model


def test_equal_models_have_equal_bytes() -> None:
    files = {"labels.txt": b"a\n"}
    assert append_files(b"x" * 40, files) == append_files(b"x" * 40, files)


# -- sizes ------------------------------------------------------------------------------------------------------------

FREE = {"image": TensorSpec(("n", "32*h", "32*w", 3), "uint8"), "size": TensorSpec(("n", 2), "int32")}


def test_signatures_have_numbers_for_sizes() -> None:
    (one,) = make_signatures(FREE, [{"n": 1, "h": 3, "w": 2}])
    assert one.name == "serving_default" and one.shapes == {"image": (1, 96, 64, 3), "size": (1, 2)}
    names = [
        signature.name for signature in make_signatures(FREE, [{"n": 1, "h": 3, "w": w} for w in (2, 5)])
    ]
    assert names == ["h3_w2", "h3_w5"]


def test_a_size_without_a_number_is_told() -> None:
    with pytest.raises(FormatError, match="one is free") as error:
        make_signatures(FREE, [{"n": 1, "h": 3}])
    assert "--input_size" in str(error.value)


def test_sizes_follow_from_the_inputs_the_buckets_or_an_example() -> None:
    import numpy as np

    fixed = {"image": TensorSpec(("n", 28, 28, 1), "uint8")}
    assert sizes_of_inputs(fixed, None, lambda: None, "a") == ({"n": 1},)
    text = {"input_ids": TensorSpec(("n", "t"), "int32")}
    assert sizes_of_inputs(text, (16, 64), lambda: None, "a") == ({"n": 1, "t": 16}, {"n": 1, "t": 64})
    feed = {"image": np.zeros((4, 96, 64, 3), np.uint8), "size": np.zeros((4, 2), np.int32)}
    assert sizes_of_inputs(FREE, None, lambda: feed, "a") == ({"n": 1, "h": 3, "w": 2},)
    with pytest.raises(ConfigError, match="nothing says how large") as error:
        sizes_of_inputs(FREE, None, lambda: None, "a config")
    assert "--input_size H W" in str(error.value) and "a config" in str(error.value)


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"dtype": "int4"}, {"examples": 0}, {"input_size": (0, 320)}, {"input_size": (320, -1)}]
)
def test_options_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        TfliteOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_without_the_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    def refuse(name: str, package: str | None = None) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=r"oar-toolkit\[mobile\]"):
        TfliteOptions(dtype).check_packages()  # type: ignore[arg-type]
    for load in (packages.import_interpreter, packages.import_quantizer, packages.import_schema):
        with pytest.raises(MissingExtraError, match=r"oar-toolkit\[mobile\]"):
            load()
