"""Parity of PP-FormulaNet-S with PaddleOCR's code: names at the published size; with a small decoder the map of the
backbone, logits after given tokens, and what is said of noise, token for token.

The references are written by `tools.golden pp_formulanet`. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from ocr.models.pp_formulanet import PPFormulaNet, PPFormulaNetConfig
from tests.golden.formula_weights import sharpen
from tests.golden.parity import spelled
from tests.golden.thinning import images, thin

DATA = Path(__file__).parent / "data" / "pp_formulanet"
# As in `tools.golden pp_formulanet`
CASE = {"size_hw": (128, 128), "images": 3}
SIZE = PPFormulaNetConfig(width=64, feed_forward=96, vocab_size=80, max_tokens=60)


def reference(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{name}.npz") as data:
        return {name: data[name] for name in data.files}


@functools.cache
def model() -> PPFormulaNet:
    built = PPFormulaNet(SIZE)
    built.eval()
    built.set_state_dict(sharpen(named_weights(built.state_shapes())))
    return built


@pytest.mark.parametrize("variant", ["PP-FormulaNet-S", "PP-FormulaNet_plus-S"])
def test_names_are_upstreams_but_for_what_is_unused(variant: str) -> None:
    shapes = PPFormulaNet(PPFormulaNetConfig(variant)).state_shapes()
    lines = bytes(reference("full")["keys"]).decode().splitlines()
    used = [line for line in lines if not line.startswith(PPFormulaNet.training_only)]
    assert spelled(shapes) == "\n".join(used) and len(lines) == len(used) + 3
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 64_208_224 - 6_292_480


def test_backbone_and_teaching_match_the_reference() -> None:
    stored = reference("small")
    given = np.concatenate([np.zeros((3, 2)), stored["given"]], axis=1).astype(np.int32)
    # Upstream's targets are the same tokens, later by one step; -100 in place of padding.
    np.testing.assert_array_equal(np.where(given == 1, -100, given), stored["labels"])
    graphdef, params, buffers = nn.split(model())

    def run(params, buffers, x, tokens):
        features = nn.apply(graphdef, params, buffers, None, x, method="encode")[0]
        return features, nn.apply(graphdef, params, buffers, None, x, tokens)[0]

    x = images(CASE).transpose(0, 2, 3, 1)
    features, logits = jax.jit(run)(params, buffers, x, given[:, :-3])
    for found, name in ((features, "features"), (logits, "logits")):
        want = stored[name]
        assert want.std() > 0.01
        limit = 1e-4 * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(thin(np.asarray(found)), want, rtol=0, atol=limit, err_msg=name)


def test_decoding_matches_the_reference() -> None:
    """Token for token, with padding at places that have ended, until all formulas have."""
    stored, head = reference("small")["tokens"][:, 3:], model().head
    graphdef, params, buffers = nn.split(head)
    decode = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x, method="decode")[0])
    noise = np.random.RandomState(5).standard_normal((3, 16, 2048)).astype(np.float32)
    tokens, probabilities, steps = decode(params, buffers, noise)
    count = stored.shape[1]
    assert int(steps) * 3 == count < 60 and tokens.shape == (3, 60)
    np.testing.assert_array_equal(np.asarray(tokens)[:, :count], stored)
    assert (np.asarray(tokens)[:, count:] == 1).all() and not np.asarray(probabilities)[:, count:].any()
    assert (stored == 1).any() and (stored == 2).any(axis=1).all()
    # What is decoded step by step is what teaching says after the same tokens, of formulas without padding.
    whole = (stored[:, :9] != 1).all(axis=1)
    given = np.concatenate([np.zeros((3, 3)), stored[:, :6]], axis=1).astype(np.int32)
    logits = jax.jit(lambda p, b, x, t: nn.apply(graphdef, p, b, None, x, t)[0])(
        params, buffers, noise, given
    )
    assert whole.any()
    np.testing.assert_array_equal(np.asarray(logits).argmax(-1)[whole], stored[:, :9][whole])
    peaks = np.asarray(jax.nn.softmax(logits, axis=-1).max(-1))
    np.testing.assert_allclose(np.asarray(probabilities)[whole, :9], peaks[whole], rtol=0, atol=1e-4)


def test_too_many_tokens() -> None:
    given = jax.ShapeDtypeStruct((1, 16), np.int32)
    with pytest.raises(ShapeError, match="more tokens than positions"):
        jax.eval_shape(
            PPFormulaNet(PPFormulaNetConfig(**PPFormulaNet.contract.small)).eval(),
            jax.ShapeDtypeStruct((1, 32, 32, 3), np.float32),
            given,
        )
