"""The text encoders: sizes, padding, names, and what they refuse."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any

import jax
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import Kind, bind, build
from framework.core.errors import ConfigError, ShapeError
from framework.workflow.domain.weights import is_torch, load_state_into
from tests.transformers_names import transformers_name
from zoo.contracts import Contract
from zoo.layers.text_encoder import EncoderFamily, TextEncoderConfig, encoder_families
from zoo.text.albert import Albert, AlbertConfig
from zoo.text.bert import BertConfig
from zoo.text.electra import ElectraConfig
from zoo.text.ernie import ErnieConfig
from zoo.text.modernbert import ModernBertConfig
from zoo.text.mpnet import MPNetConfig
from zoo.text.roberta import RobertaConfig

TINY: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_layers": 2,
    "num_heads": 2,
    "intermediate_size": 32,
    "max_positions": 20,
}
FAMILIES = encoder_families()
# Some encoders have more to size, such as ALBERT.
TINY_TOO = {"embedding_size": 8, "num_groups": 2, "layers_per_group": 2, "window": 4}


def tiny(family: EncoderFamily) -> TextEncoderConfig:
    own = {field.name for field in dataclasses.fields(family.config)}
    small = getattr(family.encoder, "contract", Contract()).small
    return family.config(
        **{name: value for name, value in {**TINY, **TINY_TOO, **small}.items() if name in own}
    )


CONFIGS = [tiny(family) for family in FAMILIES.values()]
every = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
VARIANTS = [(family.config, variant) for family in FAMILIES.values() for variant in family.config.variants]


def test_every_encoder_is_found_by_the_name_of_its_type_upstream() -> None:
    assert {"albert", "bert", "electra", "ernie", "roberta"} <= set(FAMILIES)
    assert FAMILIES["albert"] == (Albert, AlbertConfig)


def made(config: Any) -> Any:
    framework.seed(1)
    return build(config).eval()


def has_pooler(model: Any) -> bool:
    """Whether there is one is a matter of the family, but for RoBERTa, whose heads alone have none."""
    assert (model.pooler is not None) == any("pooler" in name for name in model.state_shapes())
    assert model.pooler is not None or not model.heads.pooler
    return model.pooler is not None


def texts(length: int, count: int = 3) -> np.ndarray:
    return np.random.default_rng(length).integers(2, 50, (count, length))


@pytest.mark.parametrize(("config", "variant"), VARIANTS, ids=[variant for _, variant in VARIANTS])
def test_every_variant_at_full_size(config: Any, variant: str) -> None:
    model = build(config(variant)).eval()
    assert sum(math.prod(shape) for shape in model.state_shapes().values()) == config.variants[variant].params
    graphdef, params, buffers = nn.abstract(model)
    ids = jax.ShapeDtypeStruct((2, 9), np.int32)
    out, _ = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x), params, buffers, ids)
    width = model.size.hidden_size
    assert out.hidden.shape == (2, 9, width)
    assert [pooled.shape for pooled in jax.tree.leaves(out.pooled)] == [(2, width)] * has_pooler(model)


@every
def test_padding_changes_no_token(config: Any) -> None:
    model = made(config)
    pad = model.size.pad_id
    ids, lengths = texts(9), (9, 4, 1)
    padded = np.where(np.arange(14) < np.array(lengths)[:, None], np.pad(ids, ((0, 0), (0, 5))), pad)
    types = np.zeros_like(padded)
    together = model(padded, types)
    masked = model(np.where(padded == pad, 7, padded), types, padded != pad)
    for row, length in enumerate(lengths):
        alone = model(ids[row : row + 1, :length])
        for out in (together, masked):
            assert np.abs(out.hidden[row, :length] - alone.hidden[0]).max() < 1e-5
            if has_pooler(model):
                assert np.abs(out.pooled[row] - alone.pooled[0]).max() < 1e-5


@every
def test_the_mask_hides_a_token(config: Any) -> None:
    model = made(config)
    ids = texts(6, 1)
    other = ids.copy()
    other[0, 3] = (ids[0, 3] + 1 - 2) % 48 + 2
    mask = np.ones((1, 6), bool)
    seen = np.abs(model(ids, None, mask).hidden - model(other, None, mask).hidden)[0].max(-1)
    assert (seen > 1e-4).all()
    mask[0, 3] = False
    hidden = np.abs(model(ids, None, mask).hidden - model(other, None, mask).hidden)[0].max(-1)
    assert (hidden[[0, 1, 2, 4, 5]] < 1e-6).all() and hidden[3] > 1e-4


@every
def test_without_a_pooler(config: Any) -> None:
    model = made(dataclasses.replace(config, pooler=False))
    assert model(texts(3)).pooled is None
    assert not any(name.startswith("pooler") for name in model.state_shapes())


@every
def test_jit_gives_what_eager_gives(config: Any) -> None:
    model = made(config)
    graphdef, params, buffers = nn.split(model)
    ids = texts(5)
    out, _ = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x))(params, buffers, ids)
    assert np.abs(out.hidden - model(ids).hidden).max() < 1e-5


@every
def test_dropout_in_training_only(config: Any) -> None:
    model = made(dataclasses.replace(config, dropout=0.5, attention_dropout=0.5))
    ids = texts(5)
    assert (model(ids).hidden == model(ids).hidden).all()
    model.train()
    assert np.abs(model(ids).hidden - model(ids).hidden).max() > 0.1


@every
def test_too_long_and_empty_texts(config: Any) -> None:
    model = made(config)
    limit = model.max_tokens
    assert limit == {"roberta": 18, "xlm-roberta": 18, "mpnet": 18}.get(config.model_type, 20)
    assert model(texts(limit, 1)).hidden.shape == (1, limit, 16)
    for count in (0, limit + 1):
        with pytest.raises(ShapeError, match=f"received: {count} tokens\n  allowed: from 1 to {limit}"):
            model(np.full((1, count), 5))
    with pytest.raises(ShapeError, match="one id a token"):
        model(np.full((1, 3, 2), 5))


def test_one_token() -> None:
    for config in CONFIGS:
        out = made(config)(np.full((1, 1), 7))
        assert np.isfinite(out.hidden).all() and out.hidden.shape == (1, 1, 16)


def test_position_of_roberta_count_real_tokens_only() -> None:
    model = made(RobertaConfig(**TINY))
    assert model.positions(np.array([[5, 6, 1, 7, 1]])).tolist() == [[2, 3, 1, 4, 1]]
    assert made(BertConfig(**TINY)).positions(np.array([[5, 6, 0, 7, 0]])).tolist() == [0, 1, 2, 3, 4]


def test_padding_has_no_vector_but_in_bert() -> None:
    assert not np.asarray(made(ErnieConfig(**TINY)).embeddings.word_embeddings(np.array([0]))).any()
    assert np.asarray(made(BertConfig(**TINY)).embeddings.word_embeddings(np.array([0]))).all()


def test_task_types_of_ernie() -> None:
    model = made(ErnieConfig(**TINY))
    assert model.state_shapes()["embeddings.task_type_embeddings.weight"] == (3, 16)
    ids = texts(4)
    zeros, ones = (model(ids, task_type_ids=np.full_like(ids, n)).hidden for n in (0, 1))
    assert (zeros == model(ids).hidden).all() and np.abs(zeros - ones).max() > 1e-3
    bare = made(ErnieConfig("ernie-3.0-tiny-nano-v2-zh", **TINY))
    assert "embeddings.task_type_embeddings.weight" not in bare.state_shapes()
    assert (bare(ids, task_type_ids=np.ones_like(ids)).hidden == bare(ids).hidden).all()


def test_albert_shares_its_blocks() -> None:
    config = AlbertConfig(**{**TINY, "num_layers": 4}, embedding_size=8, num_groups=2)
    model = made(config)
    runs: list[str] = []
    for path, layer in model.named_sublayers():
        if path.endswith("albert_layers.0"):
            layer.register_forward_post_hook(lambda layer, args, out, path=path: runs.append(path))
    model(texts(3))
    first, second = (f"encoder.albert_layer_groups.{i}.albert_layers.0" for i in (0, 1))
    assert runs == [first, first, second, second]


def test_embeddings_of_electra_are_projected_where_they_are_of_another_width() -> None:
    names = made(ElectraConfig(**TINY, embedding_size=8)).state_shapes()
    assert names["embeddings_project.weight"] == (8, 16) and names["embeddings.layer_norm.bias"] == (8,)
    assert "embeddings_project.weight" not in made(ElectraConfig(**TINY, embedding_size=16)).state_shapes()


def test_electra_without_an_entry_is_of_another_size_in_paddlenlp() -> None:
    sizes = [ElectraConfig.from_pretrained_config({}, paddle=paddle).size() for paddle in (False, True)]
    assert [(size.vocab_size, size.embedding_size, size.hidden_size) for size in sizes] == [
        (30522, 128, 256),
        (22608, 768, 768),
    ]


def test_configs_from_yaml() -> None:
    tree = {"type": "Ernie", "variant": "ernie-3.0-nano-zh", "num_layers": 2, "dropout": 0.0}
    config = bind(tree, Annotated[TextEncoderConfig, Kind("backbone")], ("zoo",))
    assert config == ErnieConfig("ernie-3.0-nano-zh", num_layers=2, dropout=0.0)
    size = config.size()
    assert (size.num_layers, size.hidden_size, size.dropout, size.attention_dropout) == (2, 312, 0.0, 0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"activation": "swoosh"},
            r"BertConfig.activation.*\n.*'swoosh'\n.*silu, swish, gelu, .*relu, .*tanh",
        ),
        ({"num_heads": 3}, r"BertConfig.num_heads.*\n.*3\n.*a divisor of hidden_size"),
        ({"dropout": 1.0}, r"BertConfig.dropout.*\n.*1.0\n.*from 0, below 1"),
        ({"attention_dropout": -0.1}, r"BertConfig.attention_dropout"),
        ({"pad_id": 50}, r"BertConfig.pad_id.*\n.*50\n.*a token of the vocabulary"),
        ({"hidden_size": 0}, r"BertConfig.(num_heads|hidden_size)"),
        ({"num_layers": 0}, r"BertConfig.(num_groups|num_layers)"),
        ({"max_positions": 0}, r"BertConfig.max_positions.*\n.*0\n.*from 1"),
    ],
)
def test_wrong_sizes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(BertConfig(**{**TINY, **changes}))


@pytest.mark.parametrize("config", [BertConfig(**TINY, pad_id=-1), ModernBertConfig(**TINY, pad_id=-1)])
def test_encoders_without_a_padding_token(config: TextEncoderConfig) -> None:
    model = build(config)
    ids = jax.numpy.arange(TINY["vocab_size"])[None]
    assert (np.abs(model.embeddings.word_embeddings(ids)).sum(axis=2) > 0).all()
    with pytest.raises(ConfigError, match=r"RobertaConfig.pad_id(.|\n)*a token of the vocabulary$"):
        build(RobertaConfig(**TINY, pad_id=-1))


def test_wrong_groups() -> None:
    with pytest.raises(ConfigError, match=r"AlbertConfig.num_groups.*\n.*3\n.*a divisor of num_layers"):
        build(AlbertConfig(**{**TINY, "num_groups": 3}))


def test_unknown_variants() -> None:
    for config, near in ((BertConfig, "bert-base-uncased"), (ErnieConfig, "ernie-3.0-base-zh")):
        with pytest.raises(ConfigError, match=f"did you mean '{near}'"):
            build(config(near[:-1]))
    for config in (RobertaConfig, AlbertConfig):
        with pytest.raises(ConfigError, match="unknown variant"):
            build(config("xyz"))


def hugging_face(state: dict[str, Any], prefix: str, old: bool) -> dict[str, np.ndarray]:
    """The state of a Bert as transformers writes it; `old` as files before 2019 have it."""
    theirs = {}
    for name, value in state.items():
        value = np.asarray(value)
        if value.ndim == 2 and "embeddings" not in name:
            value = value.T
        name = transformers_name(name)
        if old and "LayerNorm" in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        theirs[prefix + name] = value
    return theirs


@pytest.mark.parametrize("prefix", ["", "bert."])
@pytest.mark.parametrize("old", [False, True])
def test_a_file_of_hugging_face_whose_matrices_are_all_square(prefix: str, old: bool) -> None:
    config = BertConfig(**{**TINY, "intermediate_size": 16})
    model = made(config)
    state = hugging_face(model.state_dict(), prefix, old)
    state[f"{prefix}embeddings.position_ids"] = np.arange(20)[None]
    framework.seed(9)
    other = build(config).eval()
    assert is_torch(state, other)
    load_state_into(other, state)
    ids = texts(5)
    assert (other(ids).hidden == model(ids).hidden).all()


def test_a_file_of_paddle_is_not_transposed() -> None:
    model = made(BertConfig(**{**TINY, "intermediate_size": 16}))
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    assert not is_torch(state, model)
    other = load_state_into(build(model.config), state)
    assert all((np.asarray(v) == state[k]).all() for k, v in other.state_dict().items())


def test_near_layers_of_modernbert_see_half_the_window_on_each_side() -> None:
    config = ModernBertConfig(**{**TINY, "num_layers": 3}, pad_id=3, window=4, global_every=3)
    model = made(config)
    seen: list[np.ndarray] = []
    for layer in model.encoder.layers:
        layer.register_forward_post_hook(
            lambda layer, args, out: seen.append(np.asarray(args[1:][layer.is_near].mask))
        )
    model(texts(9, 1))
    full, *near = seen
    distance = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    assert full.all() and all((mask[0, 0] == (distance <= 2)).all() for mask in near) and len(near) == 2


def test_both_spellings_of_the_layers_of_modernbert() -> None:
    kinds = ["full_attention", "sliding_attention"] * 2
    rope = {
        "full_attention": {"rope_theta": 7.0},
        "sliding_attention": {"rope_theta": 3.0, "rope_type": "default"},
    }
    new = {"num_hidden_layers": 4, "layer_types": kinds, "rope_parameters": rope}
    old = {
        "num_hidden_layers": 4,
        "global_attn_every_n_layers": 2,
        "global_rope_theta": 7.0,
        "local_rope_theta": 3.0,
    }
    sizes = [ModernBertConfig.from_pretrained_config(said).size() for said in (new, old)]
    assert sizes[0] == sizes[1] and (sizes[0].global_every, sizes[0].local_theta) == (2, 3.0)
    for change, message in (
        ({"layer_types": kinds[::-1]}, "do not follow the pattern"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "no such rotary positions"),
        ({"norm_bias": True}, "config.json: norm_bias"),
        ({"classifier_pooling": "last"}, "classifier_pooling"),
    ):
        with pytest.raises(ConfigError, match=message):
            ModernBertConfig.from_pretrained_config({**new, **change}).size()


def test_encoders_without_types() -> None:
    for config in (MPNetConfig(**TINY), ModernBertConfig(**TINY, pad_id=3)):
        assert not any("type" in name for name in made(config).state_shapes())
        with pytest.raises(ConfigError, match=r"type_vocab_size[\s\S]*tokens have no types"):
            dataclasses.replace(config, type_vocab_size=2).size()
    with pytest.raises(ConfigError, match="position_buckets"):
        MPNetConfig(**TINY, position_buckets=3).size()
