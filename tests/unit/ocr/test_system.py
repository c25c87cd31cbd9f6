"""The configuration of a text system: its options, its dictionary, and what the programs of its stages compute."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import load, plain
from framework.core.errors import ConfigError
from framework.engine.experiment import bind_experiment
from framework.vision.normalize import Normalize
from framework.workflow.domain import find_config
from framework.workflow.export import export_config
from ocr.pipeline import PipelineOptions
from ocr.stages import RecognizeOptions
from ocr.system import RecognizerConfig, TextSystem
from ocr.tasks import _normalize_valid

HALF = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), bgr=True)


def test_pixels_become_the_networks_numbers():
    image = jnp.asarray([[[[0, 51, 255], [255, 255, 255]]]], jnp.uint8)  # R, G, B
    valid = jnp.asarray([[[[True], [False]]]])
    out = np.asarray(_normalize_valid(image, HALF, valid))
    np.testing.assert_allclose(out, [[[[1, -0.6, -1], [0, 0, 0]]]], atol=1e-6)  # B, G, R; 0 in the padding
    how = Normalize((0.0, 0.5, 1.0), (1.0, 0.5, 0.25))
    out = np.asarray(_normalize_valid(image, how, jnp.asarray(True)))[0, 0, 0]
    np.testing.assert_allclose(out, [0, (0.2 - 0.5) / 0.5, (1 - 1) / 0.25], atol=1e-6)


def test_weights_alone_are_ambiguous():
    with pytest.raises(
        ConfigError,
        match=r"pp_ocrv6_small\.yml: a pipeline has several models\n(.*\n)+.*pipeline\.orientation\.weights=…\n"
        r".*write the whole key",
    ):
        export_config(
            find_config("pp_ocrv6_small", "ocr"), ("pipeline.options.orient=false", "weights=x.onnx")
        )


def test_a_text_system_of_a_config():
    tree = load(find_config("pp_ocrv6_small", "ocr"), ("pipeline.options.drop_score=0.25",))
    system = bind_experiment(tree).pipeline
    assert isinstance(system, TextSystem) and system.options == PipelineOptions(drop_score=0.25)
    assert system.describe()["options"]["drop_score"] == 0.25
    assert system.recognizer.weights == "pp_ocrv6_small_rec"
    assert system.recognizer.options.normalize == system.orientation.options.normalize == HALF
    assert system.stage_names == ("detector", "recognizer", "orientation")


def test_bound_options_become_plain_data():
    data = plain(RecognizeOptions(HALF, widths=(160, 320)))
    assert data["widths"] == [160, 320] and data["normalize"]["mean"] == [0.5, 0.5, 0.5]
    assert type(data) is dict and data["height"] == 48


def test_a_recogniser_needs_a_dictionary(tmp_path: Path):
    path = tmp_path / "own.safetensors"
    path.write_bytes(b"")
    config = RecognizerConfig(None, str(path), RecognizeOptions(HALF))
    with pytest.raises(
        ConfigError,
        match=r"own\.safetensors: these weights carry no dictionary",
    ):
        config.stage()
