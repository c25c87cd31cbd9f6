"""SER and RE: what of a page goes to the device, losses, what is said of settings that do not fit."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import build
from framework.core.errors import ConfigError, InputError, ShapeError
from framework.vision.sample import Sample
from ocr.data.forms import FormSample, tag_names
from ocr.layers.layoutxlm import LayoutXLMConfig
from ocr.models.layoutxlm_re import LayoutXLMForReConfig, candidate_pairs
from ocr.models.layoutxlm_ser import LayoutXLMForSerConfig
from ocr.tasks.forms import RelationExtraction, SemanticEntityRecognition, relation_loss

SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 32,
}
TAGS = tag_names(("question", "answer", "header"))


def page(**values: Any) -> FormSample:
    """A question of two tokens, a header of one, an answer of two, and other text; 200 x 100 pixels."""
    kept: dict[str, Any] = {
        "boxes": np.array([[0, 0, 50.9, 10], [60, 0, 90, 10], [60, 20, 99, 30], [0, 40, 9, 50]], np.float32),
        "labels": np.array([1, 5, 3, 0]),
        "text": ("Name is", "Form", "Ann B", "x"),
        "valid": np.ones(4, bool),
        "links": np.array([[2, 0], [0, 1]], np.int32),
        "token_ids": np.array([5, 6, 7, 8, 9, 10], np.int32),
        "token_segments": np.array([0, 0, 1, 2, 2, 3], np.int32),
        "id": "page",
    }
    return FormSample(np.full((200, 100, 3), 255, np.uint8), **{**kept, **values})


def test_tokens_have_the_box_of_their_line_and_its_tags() -> None:
    packed = SemanticEntityRecognition(max_seq_len=8).pack(page())
    assert packed["input_ids"].tolist() == [5, 6, 7, 8, 9, 10, 1, 1]
    assert packed["mask"].tolist() == [True] * 6 + [False] * 2
    assert packed["tags"].tolist() == [1, 2, 5, 3, 4, 0, -1, -1]
    # Whole pixels, then thousandths of 100 and 200 pixels, both cut off.
    assert packed["bbox"][0].tolist() == [0, 0, 500, 50] and packed["bbox"][3].tolist() == [
        600,
        100,
        990,
        150,
    ]
    assert packed["bbox"][6].tolist() == [0, 0, 0, 0] and "image" not in packed
    cut = SemanticEntityRecognition(max_seq_len=4, use_image=True).pack(page())
    assert cut["tags"].tolist() == [1, 2, 5, 3] and cut["image"].shape == (224, 224, 3)


def test_relations_lead_from_questions_to_answers() -> None:
    packed = RelationExtraction(max_seq_len=8, max_entities=5).pack(page())
    assert packed["starts"].tolist() == [0, 2, 3, -1, -1] and packed["kinds"].tolist() == [1, 0, 2, -1, -1]
    # The link [2, 0] is turned; that of a question and a header is none.
    assert np.argwhere(packed["related"]).tolist() == [[0, 2]]
    assert np.argwhere(np.asarray(candidate_pairs(jnp.asarray(packed["kinds"][None]))[0])).tolist() == [
        [0, 2]
    ]
    cut = RelationExtraction(max_seq_len=3, max_entities=5).pack(page())
    assert cut["starts"].tolist() == [0, 2, -1, -1, -1] and not cut["related"].any()


def test_the_loss_of_relations() -> None:
    kinds = np.array([[1, 2, 2], [0, 2, -1]], np.int32)
    related = np.zeros((2, 3, 3), np.int32)
    related[0, 0, 1] = 1
    logits = np.zeros((2, 3, 3, 2), np.float32)
    logits[0, 0, 1] = [0, np.log(3)]  # 3/4 for yes; the other pair of the first page 1/2 for no
    want = (-np.log(0.75) - np.log(0.5)) / 2  # the second page has no pair
    assert float(relation_loss(*map(jnp.asarray, (logits, related, kinds)))) == pytest.approx(want, abs=1e-6)


def test_samples_without_tokens_or_of_other_classes() -> None:
    for bad in (page(token_ids=None), Sample(np.zeros((4, 4, 3), np.uint8))):
        with pytest.raises(InputError, match="not divided into tokens"):
            SemanticEntityRecognition().pack(bad)
    with pytest.raises(InputError, match="relations are of questions and answers"):
        RelationExtraction().pack(page(labels=np.array([1, 7, 3, 0])))


def test_settings_that_do_not_fit() -> None:
    ser = build(LayoutXLMForSerConfig(**SMALL, num_classes=5))
    with pytest.raises(ConfigError, match="different numbers of classes"):
        SemanticEntityRecognition().check(ser, TAGS)
    with pytest.raises(ConfigError, match="whether images are read"):
        SemanticEntityRecognition(use_image=True).check(ser, tag_names(("a", "b")))
    re = build(LayoutXLMForReConfig(**SMALL))
    RelationExtraction().check(re, TAGS)
    with pytest.raises(ConfigError, match="relations are of questions"):
        RelationExtraction().check(re, tag_names(("question", "header", "answer")))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"variant": "layoutxlm-base"}, "did you mean 'layoutxlm-base-uncased'"),
        ({"hidden_size": 20, "num_heads": 2}, "no encoder of LayoutXLM"),
        ({"num_heads": 5}, "no encoder of LayoutXLM"),
        ({"num_layers": 0}, "no encoder of LayoutXLM"),
    ],
)
def test_sizes_that_do_not_fit(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        LayoutXLMConfig(**wrong).size()
    assert said in str(caught.value)


def test_what_is_said_of_too_many_tokens_and_of_no_image() -> None:
    model = build(LayoutXLMForSerConfig(**SMALL)).eval()
    with pytest.raises(ShapeError, match="not as many positions"):
        model(jnp.ones((1, 515), jnp.int32), jnp.zeros((1, 515, 4), jnp.int32), jnp.ones((1, 515), bool))
    visual = build(
        LayoutXLMForSerConfig(
            variant="layoutxlm-base-uncased", **SMALL, visual_depths=(1, 1, 1, 1), visual_width=32
        )
    ).eval()
    with pytest.raises(ShapeError, match="reads the page's image too"):
        visual(jnp.ones((1, 4), jnp.int32), jnp.zeros((1, 4, 4), jnp.int32), jnp.ones((1, 4), bool))


def test_what_upstream_never_trains_is_frozen() -> None:
    """368,231,687 of 369,062,599 values are trained there, as tools/golden/layoutxlm.py --count says."""
    model = build(LayoutXLMForSerConfig(variant="layoutxlm-base-uncased"))
    trained = sum(parameter.size for parameter in model.parameters() if parameter.attr.trainable)
    assert trained == 368_231_687
    assert (
        dataclasses.replace(model.config, variant="vi-layoutxlm-base-uncased").size().use_visual_backbone
        is False
    )
