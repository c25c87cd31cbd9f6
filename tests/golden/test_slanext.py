"""Parity of SLANeXt with PaddleOCR's code: names at the published size; of a small encoder the blocks and the map, what
is said after given tokens; and what the head says itself.

The references are written by `tools.golden slanext`. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.interop.named_weights import named_weights
from ocr.models.slanext import SLANeXt, SLANeXtConfig
from tests.golden.parity import check_stages, spelled
from tests.golden.thinning import images, thin

DATA = Path(__file__).parent / "data" / "slanext"
# As in `tools.golden slanext`
BIAS, TOKEN_GAIN = (
    1.0,
    6.0,
)  # of the end; of the GRU's columns for the token before, behind the 512 of the features
GAINS = {"score.weight": 6.0, "rnn.weight_ih": 3.0, "rnn.weight_hh": 2.0, "h2h.weight": 3.0}
CASE = {"size_hw": (256, 256), "images": 3}
SIZE = SLANeXtConfig(image_size=256, width=64, depth=3, attention_heads=4, global_layers=(2,))


def reference(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{name}.npz") as data:
        return {name: data[name] for name in data.files}


@functools.cache
def model() -> SLANeXt:
    built = SLANeXt(SIZE)
    built.eval()
    weights = named_weights(built.state_shapes())
    weights["head.structure_generator.1.bias"][-1] += BIAS
    for name, gain in GAINS.items():
        weights[f"head.structure_attention_cell.{name}"] *= gain
    weights["head.structure_attention_cell.rnn.weight_ih"][:, 512:] *= TOKEN_GAIN
    built.set_state_dict(weights)
    return built


@pytest.mark.parametrize("variant", ["SLANeXt_wired", "SLANeXt_wireless"])
def test_names_are_upstreams(variant: str) -> None:
    shapes = SLANeXt(SLANeXtConfig(variant)).state_shapes()
    assert spelled(shapes) == bytes(reference("full")["keys"]).decode()


def test_the_encoder_matches_the_reference() -> None:
    stored = reference("small")
    names = {f"blocks.{number}": f"block{number}" for number in range(3)} | {"net_2": "net_2"}
    wanted = {f"backbone.vision_tower_high.{ours}": stored[theirs] for ours, theirs in names.items()}
    check_stages(model(), wanted, images(CASE).transpose(0, 2, 3, 1))


def test_teaching_matches_the_reference() -> None:
    stored = reference("small")
    graphdef, params, buffers = nn.split(model())
    run = jax.jit(lambda p, b, x, given: nn.apply(graphdef, p, b, None, x, given)[0])
    said = run(params, buffers, images(CASE).transpose(0, 2, 3, 1), stored["given"].astype(np.int32))
    for found, name in ((said.logits, "after"), (said.boxes, "after_boxes")):
        assert stored[name].std() > 0.01
        limit = 1e-4 * max(1.0, float(np.abs(stored[name]).max()))
        np.testing.assert_allclose(thin(np.asarray(found)), stored[name], rtol=0, atol=limit, err_msg=name)


def test_decoding_matches_the_reference() -> None:
    """Token for token, until all tables have ended."""
    stored, head = reference("small"), model().head
    graphdef, params, buffers = nn.split(head)
    decode = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x, method="decode")[0])
    noise = np.random.RandomState(5).standard_normal((3, 64, 512)).astype(np.float32)
    said, steps = decode(params, buffers, noise)
    tokens = stored["tokens"]
    count = tokens.shape[1]
    assert int(steps) == count < 501 and len({tuple(row) for row in tokens.tolist()}) == 3
    logits = np.asarray(said.logits)
    assert logits.shape == (3, 501, 50)
    np.testing.assert_array_equal(logits[:, :count].argmax(-1), tokens)
    peaks = np.asarray(jax.nn.softmax(logits, axis=-1).max(-1))[:, :count:4]
    np.testing.assert_allclose(peaks, stored["peaks"], rtol=0, atol=1e-4)
    boxes = np.asarray(said.boxes)
    np.testing.assert_allclose(thin(boxes[:, :count]), stored["boxes"], rtol=0, atol=1e-4)
    assert not boxes[:, count:].any()


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"pairs of patches(.|\n)*multiple of 32"):
        SLANeXt(SLANeXtConfig(image_size=100))
    with pytest.raises(ShapeError, match="images of one size"):
        jax.eval_shape(
            SLANeXt(SLANeXtConfig(**SLANeXt.contract.small)).encode,
            jax.ShapeDtypeStruct((1, 64, 96, 3), np.float32),
        )
