"""Parity of the Transformer with PaddleNLP's TransformerModel: names, positions, the encoder's output and logits.

The references are written by tools/golden/transformer.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.config import build
from framework.workflow.domain.weights import load_state_into
from nlp.contracts import Tokens
from nlp.models.transformer import TransformerConfig, sinusoids
from tools.golden.transformer_cases import CASES, drawn, inputs, thin

DATA = Path(__file__).parent / "data" / "transformer"


def config(case: dict[str, Any]) -> TransformerConfig:
    return TransformerConfig(
        case["src_vocab_size"],
        case["trg_vocab_size"],
        "base",
        case["d_model"],
        case["n_head"],
        case["num_encoder_layers"],
        case["d_inner_hid"],
        max_length=case["max_length"],
        weight_sharing=case["weight_sharing"],
        normalize_before=case["normalize_before"],
        bos_id=0,
        eos_id=1,
    )


@pytest.mark.parametrize(
    "name",
    [name if name.startswith("small") else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_outputs(name: str) -> None:
    case = CASES[name]
    with np.load(DATA / f"{name}.npz") as data:
        reference = dict(data)
    lines = [line.split(" ") for line in bytes(reference["keys"]).decode().splitlines()]
    shapes = {key: tuple(int(n) for n in shape.split("x")) for key, shape in lines}
    model: Any = build(config(case))
    own = model.state_shapes()
    # The target's names of shared tables are second ones.
    second = {key for key in shapes if key.startswith("trg_")} if case["weight_sharing"] else set()
    assert own == {key: shape for key, shape in shapes.items() if key not in second}
    waves = sinusoids(case["max_length"], case["d_model"])
    state = {**drawn(shapes), **{key: waves for key in shapes if "pos_encoder" in key}}
    model = load_state_into(model, state).eval()
    x = inputs(case)
    source = Tokens(x.source.astype(np.int32), x.source != 0)
    memory = np.asarray(model.encode(source)) * source.mask[..., None]
    logits = model(source, Tokens(x.target.astype(np.int32), x.target >= 0))
    for ours, want in ((memory, reference["memory"]), (logits, reference["logits"])):
        assert want.std() > 0.1
        limit = 1e-4 * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(thin(np.asarray(ours)), want, rtol=0, atol=limit)


def test_the_base_variant_is_the_full_size() -> None:
    case = CASES["base"]
    assert TransformerConfig(37000).size == config(case).size
