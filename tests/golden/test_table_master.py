"""Parity of TableMaster with PaddleOCR's code at its published size: the map, what is said after given tokens, the
loss, and what it says itself.

The references are written by `tools.golden table_master`. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from framework.vision.normalize import Normalize
from ocr.models.table_master import VARIANTS, TableMaster, TableMasterConfig
from ocr.tasks.table_master import TableMasterStructure
from tests.golden.parity import spelled
from tests.golden.thinning import images, thin

DATA = Path(__file__).parent / "data" / "table_master" / "table_master.npz"
# As in `tools.golden table_master`
LONGEST = 60
BIAS = {-2: 1.6, -1: -30.0}
GAINS = {"src_attn.linears.3.weight": 3.0, "embedding.lut.weight": 0.1}
CASE = {"size_hw": (64, 96), "images": 3}
END = 41


@functools.cache
def reference() -> dict[str, np.ndarray]:
    with np.load(DATA) as data:
        return {name: data[name] for name in data.files}


@functools.cache
def model() -> TableMaster:
    built = TableMaster(TableMasterConfig(max_text_length=LONGEST))
    built.eval()
    table = built.state_dict()["head.positional_encoding.pe"]
    weights = named_weights(built.state_shapes())
    for place, bias in BIAS.items():
        weights["head.cls_fc.bias"][place] += bias
    for name in weights:
        weights[name] *= next((gain for end, gain in GAINS.items() if name.endswith(end)), 1.0)
    built.set_state_dict({**weights, "head.positional_encoding.pe": np.asarray(table)})
    return built


def close(found: jax.Array, name: str) -> None:
    """Within 1e-4 of the largest value, where that is above 1."""
    stored = reference()[name]
    assert stored.std() > 0.01
    limit = 1e-4 * max(1.0, float(np.abs(stored).max()))
    np.testing.assert_allclose(thin(np.asarray(found)), stored, rtol=0, atol=limit, err_msg=name)


def test_names_counts_and_positions_are_upstreams() -> None:
    built = model()
    assert spelled(built.state_shapes()) == bytes(reference()["keys"]).decode()
    count = sum(int(np.prod(parameter.shape)) for _, parameter in built.named_parameters())
    assert count == int(reference()["count"]) == VARIANTS["table_master"].params
    close(built.state_dict()["head.positional_encoding.pe"], "positions")


def test_map_teaching_and_loss_match_the_reference() -> None:
    stored, built = reference(), model()
    given = stored["given"].astype(np.int32)
    graphdef, params, buffers = nn.split(built)

    def run(params, buffers, x, given):
        said = nn.apply(graphdef, params, buffers, None, x, given)[0]
        return said, nn.apply(graphdef, params, buffers, None, x, method="encode")[0]

    said, features = jax.jit(run)(params, buffers, images(CASE).transpose(0, 2, 3, 1), given[:, :-1])
    close(features, "features")
    close(said.logits, "after")
    close(said.boxes, "after_boxes")
    task = TableMasterStructure(Normalize((0.5,) * 3, (0.5,) * 3))
    batch = {
        "image": jnp.zeros((3, 8, 8, 3), jnp.uint8),
        "size": jnp.full((3, 2), 8, jnp.int32),
        "tokens": jnp.asarray(given),
        "boxes": jnp.asarray(stored["given_boxes"]),
        "known": jnp.asarray(stored["given_known"][..., 0]),
        "counts": jnp.ones(3),
    }
    losses = task.loss(lambda *_: said, batch)  # type: ignore[arg-type]
    found = [float(losses.parts["structure"]), float(losses.total)]
    np.testing.assert_allclose(found, stored["losses"], rtol=1e-5)


def test_decoding_matches_the_reference() -> None:
    """Token for token to the end of each table; no step is done after the last one's."""
    stored, head = reference(), model().head
    graphdef, params, buffers = nn.split(head)
    decode = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x, method="decode")[0])
    noise = 2 * np.random.RandomState(5).standard_normal((3, 512, 8, 8)).astype(np.float32)
    said, steps = decode(params, buffers, noise.reshape(3, 512, 64).transpose(0, 2, 1))
    tokens, count = stored["tokens"], int(steps)
    logits, boxes = np.asarray(said.logits), np.asarray(said.boxes)
    np.testing.assert_array_equal(logits[:, :count].argmax(-1), tokens[:, :count])
    ends = [row.index(END) for row in tokens.tolist()]
    assert count == max(ends) + 1 < LONGEST and len(set(ends)) == 3
    peaks = np.asarray(jax.nn.softmax(logits, axis=-1).max(-1))[:, :count:4]
    np.testing.assert_allclose(peaks, stored["peaks"][:, : peaks.shape[1]], rtol=0, atol=1e-4)
    np.testing.assert_allclose(boxes[:, :count:4], stored["boxes"][:, : peaks.shape[1]], rtol=0, atol=1e-4)
    assert not logits[:, count:].any() and not boxes[:, count:].any()


def test_more_places_than_positions_are_refused() -> None:
    image = jax.ShapeDtypeStruct((1, 800, 808, 3), np.float32)  # there are 5000 positions
    small = TableMaster(TableMasterConfig(**TableMaster.contract.small))
    small.eval()
    with pytest.raises(ShapeError, match=r"more places of the image than positions(.|\n)*10100"):
        jax.eval_shape(small, image)
