"""Results of segmentation from what a server writes of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.export import Artifact, TensorSpec, lower_program
from framework.serving import Client
from framework.serving.exchange import result_format
from segmentation.label_maps import FORMATS, from_full_dict, to_full_dict
from segmentation.results import Segmentation
from tests.unit.framework.serving.live_server import live
from tests.unit.framework.serving.tiny import png


def segmentation(labels: np.ndarray, left_out: int | None = None) -> Segmentation:
    height, width = labels.shape
    return Segmentation(
        source="a.png",
        width=width,
        height=height,
        labels=labels,
        names=("road", "Straße"),
        palette=np.array([[1, 2, 3], [4, 5, 6]], np.uint8),
        left_out=left_out,
    )


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros((1, 1), np.uint8),
        np.zeros((5, 7), np.uint8),
        np.random.default_rng(0).integers(0, 2, (31, 17)).astype(np.uint8),
        np.random.default_rng(1).integers(0, 700, (9, 4)).astype(np.uint16),
    ],
)
def test_all_of_a_result_comes_back(labels: np.ndarray, tmp_path: Path) -> None:
    result = segmentation(labels, left_out=1)
    FORMATS.formats["labels"].write([result], "a.png", tmp_path / "a.json")
    back = from_full_dict(json.loads((tmp_path / "a.json").read_text(encoding="utf-8")))
    assert back == result and back.names == result.names and back.left_out == 1
    assert back.labels.dtype == labels.dtype and (back.labels == labels).all()
    assert (back.palette == result.palette).all() and back.to_dict() == result.to_dict()


def test_maps_that_do_not_fit_are_refused() -> None:
    full = to_full_dict(segmentation(np.zeros((2, 3), np.uint8)))
    for runs in ([0, 5], [0, 7], [0, 6, 1], [-1, 6], [0, -6, 0, 12], [70_000, 6], [], "no"):
        wrong = {**full, "label_map": {**full["label_map"], "runs": runs}}  # type: ignore[dict-item]
        with pytest.raises(FormatError, match="no such result"):
            from_full_dict(wrong)
    with pytest.raises(FormatError, match="label_map"):
        from_full_dict({"source": "", "width": 1, "height": 1})


def test_a_client_gets_the_classes_of_pixels(tmp_path: Path) -> None:
    """Of a model that says 1 where the image is bright."""

    def fn(weights, inputs):  # type: ignore[no-untyped-def]
        bright = inputs["image"].astype("float32").mean(axis=3) / 255 + weights["zero"]
        return {"labels": (bright > 0.5).astype("uint8")}

    spec = {"image": TensorSpec(("n", 8, 8, 3), "uint8")}
    weights = {"zero": np.zeros((), np.float32)}
    config = {
        "domain": "segmentation",
        "name": "bright",
        "inputs": {"image": [["n", 8, 8, 3], "uint8"]},
        "inference": {},
        "batch_size": 2,
        "labels": ["dark", "bright"],
        "palette": [[0, 0, 0], [255, 255, 255]],
        "transforms": [{"type": "Resize", "size_hw": [8, 8]}],
    }
    program = lower_program(fn, weights, spec, platforms=("cpu",))
    folder = Artifact(config, {"float32": program}, weights).save(tmp_path / "bright")
    assert result_format("segmentation") == "labels" and result_format("classification") is None
    with live(folder) as address, Client(address) as client:
        for value in (10, 250):
            result = client.predict(png(value, 20, 10))
            assert isinstance(result, Segmentation)
            assert (result.labels == (value > 128)).all() and result.labels.shape == (10, 20)
            assert list(result.class_pixels) == [["dark", "bright"][value > 128]]
            facts = client.predict_json(png(value, 20, 10))
            assert {**facts, "source": ""} == result.to_dict()  # type: ignore[dict-item]
