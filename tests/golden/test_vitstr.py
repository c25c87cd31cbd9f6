"""Parity of ViTSTR with PaddleOCR's code, stage by stage.

The references are written by `tools.golden vitstr --path` a checkout of PaddleOCR. Weights are drawn from their names,
so none are stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from ocr.models.vitstr import VARIANTS, ViTSTR, ViTSTRConfig
from tests.golden.parity import check_stages, spelled
from tests.golden.thinning import thin

DATA = Path(__file__).parent / "data" / "vitstr"
REFERENCES: dict[str, dict[str, Any]] = {
    "vitstr_tiny": {
        "parts": {
            "backbone": {"call": "ppocr.modeling.backbones.rec_vitstr.ViTSTR", "options": {"scale": "tiny"}},
            "neck": {"call": "ppocr.modeling.necks.rnn.SequenceEncoder", "args": [192, "reshape"]},
            "head": {"call": "ppocr.modeling.heads.rec_ctc_head.CTCHead", "args": [192, 96]},
        },
        "noise": [2, 1, 224, 224],
        "stages": [
            "backbone.patch_embed.proj",
            "backbone.blocks.0",
            "backbone.blocks.6",
            "backbone.norm",
            "head.fc",
        ],
    },
    "vitstr_small": {
        "parts": {
            "backbone": {"call": "ppocr.modeling.backbones.rec_vitstr.ViTSTR", "options": {"scale": "small"}},
            "neck": {"call": "ppocr.modeling.necks.rnn.SequenceEncoder", "args": [384, "reshape"]},
            "head": {"call": "ppocr.modeling.heads.rec_ctc_head.CTCHead", "args": [384, 96]},
        },
        "run": "names",
    },
    "vitstr_base": {
        "parts": {
            "backbone": {"call": "ppocr.modeling.backbones.rec_vitstr.ViTSTR", "options": {"scale": "base"}},
            "neck": {"call": "ppocr.modeling.necks.rnn.SequenceEncoder", "args": [768, "reshape"]},
            "head": {"call": "ppocr.modeling.heads.rec_ctc_head.CTCHead", "args": [768, 96]},
        },
        "run": "names",
    },
}


def reference(variant: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{variant}.npz") as data:
        return {name: data[name] for name in data.files}


@pytest.mark.parametrize("variant", VARIANTS)
def test_names_and_counts_are_upstreams(variant: str) -> None:
    model, stored = ViTSTR(ViTSTRConfig(variant)), reference(variant)
    assert spelled(model.state_shapes()) == bytes(stored["keys"]).decode()
    assert VARIANTS[variant].params == int(stored["count"]) == sum(p.size for p in model.parameters())


def test_stages_and_probabilities_match_the_reference() -> None:
    stored = reference("vitstr_tiny")
    model = ViTSTR(ViTSTRConfig()).eval()
    model.set_state_dict(named_weights(model.state_shapes()))
    grey = np.random.RandomState(7).standard_normal((2, 224, 224, 1)).astype(np.float32)
    x = np.repeat(grey, 3, axis=-1)  # grey of grey is itself
    wanted = {name: value for name, value in stored.items() if name in REFERENCES["vitstr_tiny"]["stages"]}
    assert len(wanted) == 5
    check_stages(model, wanted, x)
    logits = np.asarray(model(x), np.float64)
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(thin(shares), stored["eval.0"], rtol=0, atol=1e-4)
