"""Parity of LayoutXLM and VI-LayoutXLM, of SER and of RE with PaddleNLP: names, states, logits, pairs and the loss.

The references are written by tools/golden/layoutxlm.py. Weights are drawn from their names, so none are stored.
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.workflow.domain.weights import load_state_into
from ocr.models.layoutxlm_re import VARIANTS as RE_VARIANTS
from ocr.models.layoutxlm_re import LayoutXLMForReConfig, candidate_pairs
from ocr.models.layoutxlm_ser import VARIANTS as SER_VARIANTS
from ocr.models.layoutxlm_ser import LayoutXLMForSerConfig
from ocr.tasks.forms import relation_loss
from tools.golden.layoutxlm_cases import CASES, DEPTHS, drawn, inputs, thin

DATA = Path(__file__).parent / "data" / "layoutxlm"
SLOW = pytest.mark.slow
NAMES = [pytest.param(name, marks=[SLOW] if name.endswith("base") else []) for name in CASES]
_OURS = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}


@functools.cache
def load(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{name}.npz") as data:
        return dict(data)


def shapes(name: str, head: str) -> dict[str, tuple[int, ...]]:
    lines = zlib.decompress(load(name)[f"keys.{head}"].item()).decode().splitlines()
    return {key: tuple(map(int, shape.split("x"))) for key, shape in (line.split(" ") for line in lines)}


def filled(name: str, head: str) -> Any:
    """The model with the reference's weights, loaded as a file of them would be."""
    case = CASES[name]
    settings: dict[str, Any] = {_OURS.get(key, key): value for key, value in case.settings.items()}
    if case.visual is not None:
        settings |= {"visual_depths": DEPTHS[case.visual[0]], "visual_width": case.visual[1]}
    config = LayoutXLMForSerConfig if head == "ForTokenClassification" else LayoutXLMForReConfig
    variant = f"{'' if case.visual else 'vi-'}layoutxlm-base-uncased"
    model = build(config(variant=variant, **settings))
    given = shapes(name, head)
    kept = {key for key in given if not key.endswith("position_ids")}
    assert kept == set(model.state_shapes())
    state = drawn({key: given[key] for key in kept if not key.endswith(("pixel_mean", "pixel_std"))})
    own = {key: np.asarray(value) for key, value in model.state_dict().items() if "pixel_" in key}
    constant = {"layoutxlm.embeddings.position_ids": np.arange(514)[None]}
    return load_state_into(model, {**state, **own, **constant}).eval()


def run(model: nn.Layer, *args: Any) -> np.ndarray:
    graphdef, params, buffers = nn.split(model)
    call = jax.jit(lambda params, *given: nn.apply(graphdef, params, buffers, None, *given)[0])
    return np.asarray(call(params, *args))


def close(ours: np.ndarray, want: np.ndarray) -> None:
    assert ours.shape == want.shape and want.std() > 0.01
    np.testing.assert_allclose(ours, want, rtol=0, atol=1e-4 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("name", NAMES)
def test_states_and_tags_are_upstreams(name: str) -> None:
    x = inputs(CASES[name])
    image = (x.image,) if CASES[name].visual else ()
    model = filled(name, "ForTokenClassification")
    hidden = run(model.layoutxlm, x.ids.astype(np.int32), x.boxes.astype(np.int32), x.mask, *image)
    close(thin(hidden), load(name)["hidden"])
    close(thin(np.asarray(model.classifier(hidden))), load(name)["logits"])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "vi_small" else [SLOW]) for name in CASES]
)
def test_pairs_and_their_loss_are_upstreams(name: str) -> None:
    x = inputs(CASES[name])
    image = (x.image,) if CASES[name].visual else ()
    model = filled(name, "ForRelationExtraction")
    given = (x.ids, x.boxes, x.starts, x.kinds)
    ids, boxes, starts, kinds = (array.astype(np.int32) for array in given)
    logits = run(model, ids, boxes, x.mask, starts, kinds, *image)
    pairs = np.asarray(candidate_pairs(jnp.asarray(kinds)))
    close(logits[pairs], load(name)["pairs"])
    related = np.zeros(pairs.shape, np.int32)
    for page in range(len(pairs)):
        related[page][tuple(np.argwhere(pairs[page])[0])] = 1
    close_to = float(load(name)["loss"])
    assert float(relation_loss(*map(jnp.asarray, (logits, related, kinds)))) == pytest.approx(
        close_to, abs=1e-3
    )


@pytest.mark.parametrize("name", ["vi_small", pytest.param("xlm_small", marks=SLOW)])
def test_padding_changes_nothing(name: str) -> None:
    x = inputs(CASES[name])
    image = (x.image[1:],) if CASES[name].visual else ()
    model = filled(name, "ForTokenClassification")
    ids, boxes = x.ids[1:].astype(np.int32), x.boxes[1:].astype(np.int32)
    count = int(x.mask[1].sum())
    whole = run(model, ids, boxes, x.mask[1:], *image)
    cut = run(model, ids[:, :count], boxes[:, :count], x.mask[1:, :count], *image)
    np.testing.assert_allclose(whole[:, :count], cut, rtol=0, atol=1e-5)


def test_counts_are_upstreams() -> None:
    for table, config in ((SER_VARIANTS, LayoutXLMForSerConfig), (RE_VARIANTS, LayoutXLMForReConfig)):
        for variant, row in table.items():
            model = build(config(variant=variant))
            assert sum(parameter.size for parameter in model.parameters()) == row.params, variant
