"""Models from folders as transformers and PaddleNLP write them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framework
from framework.config import build
from framework.core.errors import ConfigError, FormatError, WeightError
from framework.io.interop import write_safetensors
from nlp.contracts import Tokens
from nlp.models.masked_lm import MaskedLM, MaskedLMConfig
from nlp.models.sequence_classification import SequenceClassifier, SequenceClassifierConfig
from nlp.models.token_classification import TokenClassifier
from nlp.pretrained import encoder_config, from_pretrained
from zoo.text.albert import Albert, AlbertConfig
from zoo.text.bert import BertConfig
from zoo.text.ernie import Ernie, ErnieConfig
from zoo.text.roberta import RobertaConfig

SETTINGS: dict[str, Any] = {
    "model_type": "ernie",
    "architectures": ["ErnieForSequenceClassification"],
    "vocab_size": 30,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
    "type_vocab_size": 4,
    "use_task_id": True,
    "task_type_vocab_size": 3,
    "id2label": {"0": "a", "1": "b", "2": "c"},
}
ENCODER = encoder_config(SETTINGS)
IDS = np.array([[3, 4, 5, 0]])


def folder(path: Path, state: dict[str, Any] | None, name: str = "model.safetensors", **changes: Any) -> Path:
    settings = {key: value for key, value in {**SETTINGS, **changes}.items() if value is not None}
    (path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    if state is None:
        return path
    arrays = {key: np.asarray(value) for key, value in state.items()}
    if name.endswith(".safetensors"):
        write_safetensors(path / name, arrays)
    else:
        (path / name).write_bytes(pickle.dumps({**arrays, "StructuredToParameterName@@": {}}, protocol=2))
    return path


def saved() -> Any:
    framework.seed(3)
    return build(SequenceClassifierConfig(ENCODER, 3)).eval()


def torch_layout(state: dict[str, Any]) -> dict[str, np.ndarray]:
    """Ours by transformers' names, as far as these tests need them."""
    theirs = {}
    for name, value in state.items():
        value = np.asarray(value)
        linear = value.ndim == 2 and "embeddings" not in name
        for a, b in (
            ("encoder.layers.", "encoder.layer."),
            ("self_attn.out_proj", "attention.output.dense"),
            ("self_attn.q_proj", "attention.self.query"),
            ("self_attn.k_proj", "attention.self.key"),
            ("self_attn.v_proj", "attention.self.value"),
            ("linear1", "intermediate.dense"),
            ("linear2", "output.dense"),
            ("norm1", "attention.output.LayerNorm"),
            ("norm2", "output.LayerNorm"),
            ("layer_norm", "LayerNorm"),
        ):
            name = name.replace(a, b)
        theirs[name] = np.ascontiguousarray(value.T) if linear else value
    return theirs


@pytest.mark.parametrize("paddle", [True, False])
def test_a_classifier(tmp_path: Path, paddle: bool) -> None:
    model = saved()
    state = model.state_dict() if paddle else torch_layout(model.state_dict())
    loaded = from_pretrained(
        folder(tmp_path, state, "model_state.pdparams" if paddle else "model.safetensors")
    )
    assert isinstance(loaded, SequenceClassifier) and loaded.config.num_classes == 3 and not loaded.training
    tokens = Tokens(IDS, IDS > 0)
    assert (loaded(tokens) == model(tokens)).all()
    encoder = from_pretrained(tmp_path, head="encoder")
    assert isinstance(encoder, Ernie)
    assert (encoder(IDS).hidden == model.text_encoder(IDS).hidden).all()


def test_a_bare_encoder_without_a_pooler(tmp_path: Path) -> None:
    state = {k: v for k, v in saved().text_encoder.state_dict().items() if not k.startswith("pooler.")}
    encoder: Any = from_pretrained(folder(tmp_path, state, architectures=["ErnieModel"]))
    assert isinstance(encoder, Ernie) and encoder(IDS).pooled is None


def test_albert_is_called_transformer_by_paddlenlp_only(tmp_path: Path) -> None:
    config = AlbertConfig(vocab_size=30, hidden_size=8, num_layers=2, num_heads=2, intermediate_size=16)
    framework.seed(3)
    model: Any = build(MaskedLMConfig(config))
    state = {
        name.replace("transformer.", "albert.", 1)
        .replace("layer_norm", "LayerNorm")
        .replace("layer_LayerNorm", "layer_layer_norm"): np.asarray(value)
        for name, value in model.state_dict().items()
    }
    linear = {
        n: np.ascontiguousarray(v.T) if v.ndim == 2 and "_embeddings" not in n else v
        for n, v in state.items()
    }
    linear["sop_classifier.classifier.weight"] = np.zeros((2, 8), np.float32)
    changes = {
        "type_vocab_size": 2,
        "max_position_embeddings": 512,
        "num_hidden_layers": 2,
        "hidden_act": "gelu_new",
    }
    folder(tmp_path, linear, model_type="albert", architectures=["AlbertForPreTraining"], **changes)
    loaded = from_pretrained(tmp_path)
    assert isinstance(loaded, MaskedLM)
    assert all(
        (np.asarray(v) == np.asarray(model.state_dict()[k])).all() for k, v in loaded.state_dict().items()
    )
    encoder = from_pretrained(tmp_path, head="encoder")
    assert isinstance(encoder, Albert)


def test_what_config_json_says() -> None:
    assert (
        ErnieConfig(
            vocab_size=30,
            hidden_size=8,
            num_layers=1,
            num_heads=2,
            intermediate_size=16,
            max_positions=12,
            type_vocab_size=4,
            activation="gelu",
            epsilon=1e-12,
            pad_id=0,
            dropout=0.1,
            attention_dropout=0.1,
            task_types=3,
        )
        == ENCODER
    )
    # PaddleNLP's file of ERNIE 1.0 has neither an intermediate size nor task types.
    first = encoder_config(
        {"model_type": "ernie", "hidden_act": "relu", "vocab_size": 18000, "type_vocab_size": 2}
    )
    assert isinstance(first, ErnieConfig)
    assert (first.intermediate_size, first.activation, first.task_types) == (3072, "relu", 0)
    assert encoder_config({**SETTINGS, "layer_norm_eps": 1e-5}).epsilon == 1e-5
    assert encoder_config({**SETTINGS, "layer_norm_eps": 1e-5}, paddle=True).epsilon == 1e-12
    roberta = encoder_config({"model_type": "roberta", "pad_token_id": 1, "layer_norm_eps": 1e-5})
    assert isinstance(roberta, RobertaConfig) and (roberta.pad_id, roberta.epsilon) == (1, 1e-5)
    assert isinstance(encoder_config({"model_type": "bert"}), BertConfig)


def test_pre_training_and_other_heads(tmp_path: Path) -> None:
    state = {k: v for k, v in saved().state_dict().items() if "pooler" not in k}
    folder(tmp_path, state, architectures=["ErnieForTokenClassification"], id2label=None, num_labels=3)
    loaded = from_pretrained(tmp_path)
    assert isinstance(loaded, TokenClassifier) and loaded.config.num_classes == 3


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="the folder has no config"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match="this is no JSON"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(FormatError, match="this is no config"):
        from_pretrained(tmp_path)
    with pytest.raises(FormatError, match=r"no weights in the folder(.|\n)*model_state.pdparams"):
        from_pretrained(folder(tmp_path, None))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "albort"}, "'albort'(.|\n)*did you mean 'albert'"),
        ({"model_type": None}, "received: None"),
        ({"architectures": ["ErnieForMultipleChoice"]}, "say `head`, which may be 'encoder'"),
        ({"position_embedding_type": "relative_key"}, "received: 'relative_key'\n.*'absolute'"),
        ({"is_decoder": True}, "is_decoder"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
        ({"pool_act": "relu"}, "pool_act"),
        ({"hidden_act": "quick"}, "activation"),
    ],
)
def test_configs_that_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_pretrained(folder(tmp_path, saved().state_dict(), **changes))


def test_wrong_heads_and_weights(tmp_path: Path) -> None:
    model = saved()
    folder(tmp_path, model.state_dict())
    with pytest.raises(ConfigError, match="did you mean 'masked_lm'"):
        from_pretrained(tmp_path, head="masked_llm")
    with pytest.raises(WeightError, match=r"5 missing(.|\n)*2 unexpected"):
        from_pretrained(tmp_path, head="masked_lm")
    with pytest.raises(WeightError, match="the file has no encoder"):
        from_pretrained(folder(tmp_path, {"classifier.weight": np.zeros((8, 3))}), head="encoder")
