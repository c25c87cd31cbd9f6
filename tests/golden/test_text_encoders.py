"""Parity of the text encoders and of the models on them with transformers and PaddleNLP, layer by layer.

The references are written by `tools.golden text_encoders`. Weights are drawn from the reference's names and loaded as
a file of it would be, so that names and layouts are compared, too.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.workflow.domain.weights import load_state_into
from nlp.contracts import Tokens
from nlp.models.masked_lm import MaskedLMConfig
from nlp.models.question_answering import QuestionAnsweringConfig
from nlp.models.sequence_classification import SequenceClassifierConfig
from nlp.models.token_classification import TokenClassifierConfig
from nlp.pretrained import encoder_config
from tests.golden.thinning import thin
from tools.golden.texts import CASES, CLASSES, KEPT, Case, drawn, inputs
from zoo.layers.text_encoder import encoder_family

DATA = Path(__file__).parent / "data" / "text_encoders"
SLOW = pytest.mark.slow
SMALL = [name for name, case in CASES.items() if case.variant is None]
FULL = [name for name, case in CASES.items() if case.variant is not None]


@functools.cache
def load(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{name}.npz") as data:
        return dict(data)


def shapes(name: str, head: str) -> dict[str, tuple[int, ...]]:
    lines = bytes(load(name)[f"keys.{head}"]).decode().splitlines()
    return {
        key: tuple(int(n) for n in shape.split("x")) for key, shape in (line.split(" ") for line in lines)
    }


def settings(case: Case) -> dict[str, Any]:
    return {"model_type": case.model_type, **case.settings}


def encoder(case: Case, pooler: bool = True) -> Any:
    return dataclasses.replace(encoder_config(settings(case)), pooler=pooler)


def filled(name: str, head: str, config: Any) -> Any:
    """The model of `config` with the weights of the reference's `head`."""
    return load_state_into(build(config), drawn(CASES[name], shapes(name, head))).eval()


def check(ours: Any, want: np.ndarray, what: str) -> None:
    assert want.std() > 0.01, what
    limit = 1e-4 * max(1.0, float(np.abs(want).max()))
    np.testing.assert_allclose(thin(np.asarray(ours), KEPT), want, rtol=0, atol=limit, err_msg=what)


def check_encoder(name: str) -> None:
    case, reference = CASES[name], load(name)
    x = inputs(case)
    model = filled(name, "Model", encoder(case))
    extra = {"task_type_ids": x.tasks} if case.settings.get("use_task_id") else {}
    hidden: list[Any] = []
    blocks = [layer for _, layer in model.named_sublayers() if type(layer).__name__ == "Block"]

    def keep_first(layer: Any, args: Any) -> None:
        if not hidden:
            hidden.append(args[0])

    blocks[0].register_forward_pre_hook(keep_first)
    for block in blocks:
        block.register_forward_post_hook(lambda layer, args, out: hidden.append(out))
    # Only ALBERT of PaddleNLP takes all tokens for real when it gets no mask.
    mask = x.real if name == "paddle_albert_small" else None
    out = model(x.ids, x.types, mask, **extra)
    hidden[-1] = out.hidden  # behind a last norm, where there is one
    assert len(hidden) == sum(key.startswith("hidden.") for key in reference)
    for place, value in enumerate(hidden):
        check(value, reference[f"hidden.{place}"], f"hidden {place}")
    assert (out.pooled is None) == ("pooled" not in reference)
    if out.pooled is not None:
        check(out.pooled, reference["pooled"], "pooled")
    out = model(x.ids, x.types, x.holes, **extra)
    check(out.hidden, reference["holes.hidden"], "hidden, with holes")
    if out.pooled is not None:
        check(out.pooled, reference["holes.pooled"], "pooled, with holes")


def check_heads(name: str) -> None:
    case, reference = CASES[name], load(name)
    x = inputs(case)
    # In Hugging Face's models the pooler is there where the head reads it.
    pooler = case.library == "paddlenlp"
    tokens = Tokens(x.ids, x.real, x.types)
    for head, config in {
        "ForSequenceClassification": SequenceClassifierConfig(encoder(case), CLASSES),
        "ForTokenClassification": TokenClassifierConfig(encoder(case, pooler), CLASSES),
        "ForMaskedLM": MaskedLMConfig(encoder(case, pooler)),
    }.items():
        check(filled(name, head, config)(tokens), reference[head], head)
    model = filled(name, "ForQuestionAnswering", QuestionAnsweringConfig(encoder(case, pooler)))
    answers = np.stack([np.asarray(part) for part in model(tokens)], -1)
    # Ours are never at padding; the reference's are.
    real = np.repeat(x.real[..., None], 2, -1)
    places = thin(real, KEPT) > 0
    want = reference["ForQuestionAnswering"]
    assert (thin(answers, KEPT)[~places] < -1e8).all() and places.sum() > 30
    if (
        name == "paddle_albert_small"
    ):  # PaddleNLP's ALBERT gives the logits of the start as those of the end, too
        real[..., 1] = False
        places = thin(real, KEPT) > 0
    limit = 1e-4 * max(1.0, float(np.abs(want).max()))
    np.testing.assert_allclose(thin(answers, KEPT)[places], want[places], rtol=0, atol=limit)


@pytest.mark.parametrize("name", SMALL)
def test_small_encoders(name: str) -> None:
    check_encoder(name)


@pytest.mark.parametrize("name", SMALL)
def test_heads_on_small_encoders(name: str) -> None:
    check_heads(name)


@pytest.mark.parametrize("name", [n if n == "ernie_3_nano" else pytest.param(n, marks=SLOW) for n in FULL])
def test_full_size(name: str) -> None:
    check_encoder(name)
    check_heads(name)


@pytest.mark.parametrize("name", FULL)
def test_variants_are_the_sizes_of_the_references(name: str) -> None:
    case = CASES[name]
    said = encoder_config(settings(case))
    # What a config.json would say of dropout is not part of the cases.
    own = build(type(said)(variant=case.variant)).size  # type: ignore[arg-type]
    assert build(said).size._replace(dropout=own.dropout, attention_dropout=own.attention_dropout) == own


PADDLE = [name for name, case in CASES.items() if case.library == "paddlenlp"]


@pytest.mark.parametrize("name", PADDLE)
def test_names_are_paddlenlps(name: str) -> None:
    """0 missing, 0 extra; ours lack only second names and ALBERT's count of positions."""
    case = CASES[name]
    head = encoder_family(settings(case)).encoder.heads.masked_lm
    second = {f"{head}.decoder.weight", f"{head}.decoder.bias"}
    for head, model in {
        "Model": build(encoder(case)),
        "ForSequenceClassification": build(SequenceClassifierConfig(encoder(case), CLASSES)),
        "ForTokenClassification": build(TokenClassifierConfig(encoder(case), CLASSES)),
        "ForQuestionAnswering": build(QuestionAnsweringConfig(encoder(case))),
        "ForMaskedLM": build(MaskedLMConfig(encoder(case))),
    }.items():
        theirs = shapes(name, head)
        left = {key for key in theirs if key.endswith("position_ids")} | (second & theirs.keys())
        assert isinstance(model, nn.Layer)
        assert model.state_shapes() == {k: v for k, v in theirs.items() if k not in left}
