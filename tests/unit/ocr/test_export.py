from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from ocr.export import RecognizerConfig, _own_characters, load_pipeline, normalized, plain

from framework.core.errors import ConfigError
from ocr.domain import CONFIGS
from ocr.pipeline import ReadOptions
from ocr.preprocess import Normalize
from ocr.stages import RecognizeOptions

HALF = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def test_pixels_become_the_networks_numbers():
    image = jnp.asarray([[[[0, 51, 255], [255, 255, 255]]]], jnp.uint8)  # R, G, B
    valid = jnp.asarray([[[[True], [False]]]])
    out = np.asarray(normalized(image, HALF, valid))
    np.testing.assert_allclose(out, [[[[1, -0.6, -1], [0, 0, 0]]]], atol=1e-6)  # B, G, R; 0 in the padding
    how = Normalize((0.0, 0.5, 1.0), (1.0, 0.5, 0.25), bgr=False)
    out = np.asarray(normalized(image, how, jnp.asarray(True)))[0, 0, 0]
    np.testing.assert_allclose(out, [0, (0.2 - 0.5) / 0.5, (1 - 1) / 0.25], atol=1e-6)


def test_weights_alone_are_ambiguous():
    with pytest.raises(
        ConfigError,
        match=r"-o weights=x\.onnx: a reading pipeline has several networks\n(.*\n)+.*write the whole key",
    ):
        load_pipeline(CONFIGS / "pp_ocrv6_small.yml", ("pipeline.options.orient=false", "weights=x.onnx"))


def test_a_pipeline_and_its_resolved_text():
    pipeline, text = load_pipeline(CONFIGS / "pp_ocrv6_small.yml", ("pipeline.options.drop_score=0.25",))
    assert pipeline.options == ReadOptions(drop_score=0.25) and "drop_score: 0.25" in text
    assert pipeline.recognizer.weights == "pp_ocrv6_small_rec" and "_base_" not in text


def test_bound_options_become_plain_data():
    data = plain(RecognizeOptions(HALF, widths=(160, 320)))
    assert data["widths"] == [160, 320] and data["normalize"]["mean"] == [0.5, 0.5, 0.5]
    assert type(data) is dict and data["height"] == 48


def test_a_recogniser_needs_a_dictionary(tmp_path: Path):
    path = tmp_path / "own.safetensors"
    config = RecognizerConfig(None, str(path), RecognizeOptions(HALF))
    with pytest.raises(
        ConfigError,
        match=r"own\.safetensors: the recogniser has no dictionary\n(.*\n)+.*-o pipeline\.recognizer\.characters=FILE",
    ):
        _own_characters(config, path)
