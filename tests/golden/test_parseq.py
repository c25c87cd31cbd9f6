"""Parity of PARSeq with PaddleOCR's code: the encoder, both readings, and training under permutations.

The references are written by tools/golden/parseq.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from ocr.models.parseq import VARIANTS, PARSeq, PARSeqConfig
from tests.golden.parity import spelled
from tests.golden.thinning import images, thin

DATA = Path(__file__).parent / "data" / "parseq"
# As in tools/golden/parseq.py
BIAS = 3.0
CASE = {"size_hw": (32, 128), "images": 3}
TOKENS = [[95, 5, 6, 7, 0, 96, 96], [95, 1, 94, 1, 2, 3, 0]]
PERMUTATIONS = [[0, 1, 2, 3, 4, 5, 6], [0, 6, 5, 4, 3, 2, 1], [0, 3, 1, 5, 4, 2, 6]]
UNUSED = "backbone.cls_token "


def reference(variant: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{variant}.npz") as data:
        return {name: data[name] for name in data.files}


@functools.cache
def model(refine: int) -> PARSeq:
    built = PARSeq(PARSeqConfig("parseq_tiny", refine=refine)).eval()
    weights = named_weights(built.state_shapes())
    weights["head.head.bias"][0] += BIAS
    built.set_state_dict(weights)
    return built


def image() -> np.ndarray:
    return images(CASE).transpose(0, 2, 3, 1)


@functools.cache
def read(refine: int) -> np.ndarray:
    graphdef, params, buffers = nn.split(model(refine))
    run = jax.jit(lambda p, b, x: jax.nn.softmax(nn.apply(graphdef, p, b, None, x)[0]))
    return np.asarray(run(params, buffers, image()))


@pytest.mark.parametrize("variant", VARIANTS)
def test_names_are_upstreams(variant: str) -> None:
    lines = bytes(reference(variant)["keys"]).decode().splitlines()
    assert sum(line.startswith(UNUSED) for line in lines) == 1
    shapes = PARSeq(PARSeqConfig(variant)).state_shapes()
    assert spelled(shapes) == "\n".join(line for line in lines if not line.startswith(UNUSED))


def test_the_encoder_matches_the_reference() -> None:
    found = np.asarray(model(0).backbone(image()))
    np.testing.assert_allclose(thin(found), reference("parseq_tiny")["backbone"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("refine", [0, 1])
def test_readings_match_the_reference(refine: int) -> None:
    """Upstream's first reading stops where the last text ends, ours goes on."""
    stored, found = reference("parseq_tiny"), read(refine)
    best, peak = stored[f"best.read.{refine}"], stored[f"read.{refine}"][..., 0]
    steps = best.shape[1]
    assert found.shape == (3, 26, 95) and (steps < 26) == (refine == 0)
    assert (best == 0).any() and len(np.unique(best)) > 5
    np.testing.assert_array_equal(found.argmax(-1)[:, :steps], best)
    np.testing.assert_allclose(found.max(-1)[:, :steps], peak, rtol=0, atol=1e-4)


def test_logits_under_permutations_match_the_reference() -> None:
    tokens, orders = np.array(TOKENS, np.int32), np.array(PERMUTATIONS, np.int32)
    found = np.asarray(model(0).forward_permuted(image()[:2], tokens, orders))
    assert found.shape == (3, 2, 6, 95)
    want = reference("parseq_tiny")["permuted"]
    assert want.std() > 0.5
    np.testing.assert_allclose(thin(found), want, rtol=0, atol=1e-4)
