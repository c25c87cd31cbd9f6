"""Parity of SLANet with PaddleOCR's code: the features, what is said after given tokens, and what it says itself.

The references are written by tools/golden/slanet.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from ocr.models.slanet import VARIANTS, SLANet, SLANetConfig
from tests.golden.parity import spelled
from tests.golden.thinning import amplify, images, thin

DATA = Path(__file__).parent / "data" / "slanet"
# As in tools/golden/slanet.py
BIAS = {"SLANet": 1.2, "SLANet_plus": 0.5}
GAINS = {"score.weight": 6.0, "rnn.weight_ih": 2.0, "rnn.weight_hh": 2.0}
CASE = {"size_hw": (488, 488), "images": 3}
NAMES = ("SLANet", "SLANet_plus")


def reference(variant: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{variant}.npz") as data:
        return {name: data[name] for name in data.files}


@functools.cache
def model(variant: str) -> SLANet:
    built = SLANet(SLANetConfig(variant))
    built.eval()
    weights = named_weights(built.state_shapes())
    weights["head.structure_generator.1.bias"][-1] += BIAS[variant]
    for name, gain in GAINS.items():
        weights[f"head.structure_attention_cell.{name}"] *= gain
    built.set_state_dict(amplify(weights, {"gain": 1.3}))
    return built


def noise() -> np.ndarray:
    features = np.random.RandomState(5).standard_normal((3, 96, 16, 16)).astype(np.float32)
    return features.reshape(3, 96, 256).transpose(0, 2, 1)


@pytest.mark.parametrize("variant", NAMES)
def test_names_and_counts_are_upstreams(variant: str) -> None:
    shapes = SLANet(SLANetConfig(variant)).state_shapes()
    assert spelled(shapes) == bytes(reference(variant)["keys"]).decode()
    # Of the exported networks that PaddleX ships, and the last bias, which these leave out.
    values = {"SLANet": 1_892_606 + 4, "SLANet_plus": 1_914_130 + 8}[variant]
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == values


@pytest.mark.parametrize("variant", NAMES)
def test_features_and_teaching_match_the_reference(variant: str) -> None:
    stored, built = reference(variant), model(variant)
    graphdef, params, buffers = nn.split(built)

    def run(params, buffers, x, given):
        one = nn.apply(graphdef, params, buffers, None, x, given)[0]
        return one, nn.apply(graphdef, params, buffers, None, x, method="encode")[0]

    said, features = jax.jit(run)(
        params, buffers, images(CASE).transpose(0, 2, 3, 1), stored["given"].astype(np.int32)
    )
    for found, name in ((features, "features"), (said.logits, "after"), (said.boxes, "after_boxes")):
        assert stored[name].std() > 0.01
        np.testing.assert_allclose(thin(np.asarray(found)), stored[name], rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("variant", NAMES)
def test_decoding_matches_the_reference(variant: str) -> None:
    """Token for token, until all tables have ended."""
    stored, head = reference(variant), model(variant).head
    graphdef, params, buffers = nn.split(head)
    decode = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x, method="decode")[0])
    said, steps = decode(params, buffers, noise())
    tokens = stored["tokens"]
    count = tokens.shape[1]
    assert int(steps) == count and len({tuple(row) for row in tokens.tolist()}) == 3
    logits = np.asarray(said.logits)
    assert logits.shape == (3, 501, VARIANTS[variant].tokens)
    np.testing.assert_array_equal(logits[:, :count].argmax(-1), tokens)
    peaks = np.asarray(jax.nn.softmax(logits, axis=-1).max(-1))[:, :count:4]
    np.testing.assert_allclose(peaks, stored["peaks"], rtol=0, atol=1e-4)
    boxes = np.asarray(said.boxes)
    np.testing.assert_allclose(thin(boxes[:, :count]), stored["boxes"], rtol=0, atol=1e-4)
    assert not boxes[:, count:].any()
