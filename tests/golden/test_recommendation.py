"""Parity of the ranking models with PaddleRec's networks under Paddle 2.6.2, with weights drawn from their names.

The reference is written by `tools.golden recommendation`. Names, shapes and numbers of values are exact.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.config.registry import find
from framework.workflow.domain.weights import load_state_into
from tools.golden.recommendation import CASES, FILE, drawn, first_name, inputs
from zoo.recommendation.contracts import Features
from zoo.recommendation.models.dssm import DSSM

PACKAGES = ("zoo.recommendation", "zoo", "framework")


def model_of(name: str) -> nn.Layer:
    case = CASES[name]
    config = find("model", case.model, PACKAGES).config
    form = {"paddlerec": True} if "paddlerec" in config.__dataclass_fields__ else {}
    return build(config(**case.settings, **form)).eval()


@pytest.mark.parametrize("name", CASES)
def test_a_network_of_paddlerec(name: str) -> None:
    with np.load(FILE) as data:
        rows, outputs = bytes(data[f"{name}.keys"]).decode(), data[f"{name}.outputs"]
    shapes = {}
    for row in rows.splitlines():
        key, _, shape = row.partition(" ")
        shapes[key] = tuple(map(int, shape.split("x")))
    model = model_of(name)
    assert model.state_shapes() == {key: shape for key, shape in shapes.items() if first_name(key) == key}
    weights = drawn({first_name(key): shape for key, shape in shapes.items()})
    load_state_into(model, {key: weights[first_name(key)] for key in shapes})
    arrays = inputs(CASES[name].inputs)
    if isinstance(model, DSSM):
        ours = np.asarray(model.similarity(jnp.asarray(arrays["query"]), jnp.asarray(arrays["answer"])))[None]
        assert ours.std() > 1e-3
        np.testing.assert_allclose(ours, outputs, rtol=0, atol=1e-5)
        return
    features = Features(arrays["sparse"].astype(np.int32), arrays["dense"], arrays.get("weight"))
    graphdef, params, buffers = nn.split(model)
    found = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0])(params, buffers, features)
    logits = np.stack([np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))])
    ours = 1 / (1 + np.exp(-logits)) if CASES[name].probability else logits
    assert ours.shape == outputs.shape and outputs.std() > 1e-3
    np.testing.assert_allclose(ours, outputs, rtol=0, atol=1e-5 * max(1.0, float(np.abs(outputs).max())))


def test_what_differs_from_paddlerec_is_an_option() -> None:
    """In the papers' forms each crossing layer has its own weights, and the bias is added."""
    own = {}
    for form in (False, True):
        config = find("model", "DCN", PACKAGES).config(**CASES["dcn"].settings, paddlerec=form)
        own[form] = build(config).state_shapes()["layer_w"]
    assert own == {False: (2, 143), True: (143,)}
    config = find("model", "DeepFM", PACKAGES).config
    logits = {}
    for form in (False, True):
        model = build(config(**CASES["deepfm"].settings, paddlerec=form)).eval()
        shapes = model.state_shapes()
        load_state_into(model, {**drawn(shapes), "bias": np.ones(1, np.float32)})
        arrays = inputs("clicks")
        logits[form] = np.asarray(model(Features(arrays["sparse"].astype(np.int32), arrays["dense"])))
    np.testing.assert_allclose(logits[False], logits[True] + 1, rtol=1e-5)
