"""Models from folders as transformers and PaddleNLP write them."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framework
from framework.config import build
from framework.core.errors import ConfigError, FormatError, InputError, WeightError
from framework.inference import Runtime
from framework.interop import write_safetensors
from framework.text.tokenizer import Tokenizer
from framework.workflow import open_predictor
from framework.workflow.files.predict_files import run_texts
from nlp import predictor
from nlp.contracts import Tokens
from nlp.models.masked_lm import MaskedLM, MaskedLMConfig
from nlp.models.question_answering import QuestionAnsweringConfig
from nlp.models.sequence_classification import SequenceClassifier, SequenceClassifierConfig
from nlp.models.token_classification import TokenClassifier
from nlp.pretrained import encoder_config, from_pretrained, labels_of
from nlp.pretrained_artifact import export_folder
from tests.transformers_names import transformers_name
from zoo.text.albert import Albert, AlbertConfig
from zoo.text.bert import BertConfig
from zoo.text.electra import Electra, ElectraConfig
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
        name = transformers_name(name)
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


def test_electra_of_hugging_face_is_a_generator_or_an_encoder(tmp_path: Path) -> None:
    """ForPreTraining is the discriminator, of which no task here has the head."""
    size = {"hidden_size": 8, "num_heads": 2, "intermediate_size": 16, "max_positions": 12}
    framework.seed(3)
    model: Any = build(
        MaskedLMConfig(ElectraConfig(vocab_size=30, num_layers=1, embedding_size=6, **size))
    ).eval()
    linear = {
        name: np.ascontiguousarray(np.asarray(value).T)
        if np.ndim(value) == 2 and "embeddings." not in name
        else np.asarray(value)
        for name, value in model.state_dict().items()
    }
    theirs = {
        name.replace("layer_norm", "LayerNorm").replace("lm_head_bias", "lm_head.bias"): value
        for name, value in linear.items()
    }
    theirs["generator_lm_head.weight"] = theirs["electra.embeddings.word_embeddings.weight"]
    changes = {"model_type": "electra", "embedding_size": 6, "type_vocab_size": 2}
    folder(tmp_path, theirs, architectures=["ElectraForMaskedLM"], **changes)
    loaded: Any = from_pretrained(tmp_path)
    tokens = Tokens(IDS, IDS > 0)
    assert isinstance(loaded, MaskedLM) and (loaded(tokens) == model(tokens)).all()
    head = {"discriminator_predictions.dense.weight": np.zeros((8, 8), np.float32)}
    found = {name: value for name, value in theirs.items() if not name.startswith("generator")} | head
    folder(tmp_path, found, architectures=["ElectraForPreTraining"], **changes)
    encoder: Any = from_pretrained(tmp_path)
    assert isinstance(encoder, Electra) and (encoder(IDS).hidden == model.text_encoder(IDS).hidden).all()


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
    # A token that nobody calls padding is a word, as in transformers (text-embeddings-inference, request 459).
    assert encoder_config({"model_type": "modernbert", "pad_token_id": None, "vocab_size": 40}).pad_id == -1


def test_pre_training_and_other_heads(tmp_path: Path) -> None:
    state = {k: v for k, v in saved().state_dict().items() if "pooler" not in k}
    folder(tmp_path, state, architectures=["ErnieForTokenClassification"], id2label=None, num_labels=3)
    loaded = from_pretrained(tmp_path)
    assert isinstance(loaded, TokenClassifier) and loaded.config.num_classes == 3


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="the folder has no config"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match="the config is not JSON"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(FormatError, match="the config holds no mapping"):
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
    with pytest.raises(
        WeightError, match=r"model.safetensors(.|\n)*5 missing(.|\n)*2 unexpected(.|\n)*id2label"
    ):
        from_pretrained(tmp_path, head="masked_lm")
    with pytest.raises(WeightError, match="the file has no encoder"):
        from_pretrained(folder(tmp_path, {"classifier.weight": np.zeros((8, 3))}), head="encoder")


def test_weights_of_another_size_or_vocabulary(tmp_path: Path) -> None:
    state = saved().state_dict()
    wrong: tuple[dict[str, Any], ...] = (
        {"vocab_size": 31},
        {"hidden_size": 16},
        {"id2label": {"0": "a", "1": "b"}},
    )
    for changes in wrong:
        with pytest.raises(WeightError, match=r"mismatched(.|\n)*must be that of these weights"):
            from_pretrained(folder(tmp_path, state, **changes))
    with pytest.raises(
        ConfigError, match=r"hidden_size: the number of an encoder has the wrong(.|\n)*received: '8'"
    ):
        from_pretrained(folder(tmp_path, state, hidden_size="8"))


def test_weights_in_several_files(tmp_path: Path) -> None:
    model = saved()
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    names, index = list(state), {}
    for part in range(3):
        file = f"model_state-0000{part + 1}-of-00003.pdparams"
        own = {name: state[name] for name in names[part::3]}
        (tmp_path / file).write_bytes(pickle.dumps(own, protocol=2))
        index |= dict.fromkeys(own, file)
    (tmp_path / "model_state.pdparams.index.json").write_text(
        json.dumps({"weight_map": index}), encoding="utf-8"
    )
    loaded: Any = from_pretrained(folder(tmp_path, None, layer_norm_eps=1e-5))
    assert loaded.size.epsilon == 1e-12  # as for one file of PaddleNLP's
    tokens = Tokens(IDS, IDS > 0)
    assert (loaded(tokens) == model(tokens)).all()


def test_the_names_of_classes() -> None:
    assert labels_of({"id2label": {"1": "b", "0": "a"}}) == ("a", "b")
    assert labels_of({"label2id": {"b": 1, "a": 0}}) == ("a", "b")
    assert labels_of({"num_labels": 3}) == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert labels_of({}) == ("LABEL_0", "LABEL_1")
    with pytest.raises(ConfigError, match=r"id2label: the numbers(.|\n)*received: 1, 2"):
        labels_of({"id2label": {"1": "a", "2": "b"}})
    with pytest.raises(ConfigError, match=r"given twice(.|\n)*received: 3, and 2 names"):
        labels_of({"id2label": {"0": "a", "1": "b"}, "num_labels": 3})
    with pytest.raises(ConfigError, match="label2id: the numbers"):
        labels_of({"label2id": {"a": 0, "b": 0}})


def vocabulary(path: Path, size: int = 30) -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(97 + n) for n in range(size - 5))]
    (path / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("said", "length"), [(None, 12), (8, 8), (1e30, 12), (512, 12), ("12", 12), (0, 12), (True, 12)]
)
def test_the_longest_text(tmp_path: Path, said: Any, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nlp.pretrained_artifact.model_artifact", lambda *args: args)
    vocabulary(tmp_path)
    text = json.dumps({} if said is None else {"model_max_length": said})
    (tmp_path / "tokenizer_config.json").write_text(text, encoding="utf-8")
    made: Any = export_folder(folder(tmp_path, saved().state_dict()))
    assert made[3][0].max_length == length and made[4]["buckets"] == [length]


def test_a_folder_answers_questions(tmp_path: Path) -> None:
    """What the network says of the row of tokens, in one window and in several; a question is asked for."""
    framework.seed(3)
    model: Any = build(QuestionAnsweringConfig(dataclasses.replace(ENCODER, pooler=False))).eval()
    state = {
        name: np.asarray(value) * (30 if name.startswith("classifier") else 1)
        for name, value in model.state_dict().items()
    }
    model.set_state_dict(state)
    vocabulary(tmp_path)
    folder(tmp_path, state, architectures=["ErnieForQuestionAnswering"])
    answer: Any = open_predictor(tmp_path, runtime=Runtime("cpu", "float32"))  # as tools/infer.py --model_dir
    text, question = "a b c d e", "f g"
    row = Tokenizer.from_file(tmp_path).encode(question, text)
    own = np.flatnonzero(row.texts == 1)
    start, end = (
        np.asarray(logits)[0]
        for logits in model(Tokens(row.ids[None], np.ones((1, len(row.ids)), bool), row.type_ids[None]))
    )
    spans = {(i, j): float(start[i] + end[j]) for i in own for j in own if i <= j}
    first, last = max(spans, key=lambda span: spans[span])
    best = answer((text, question)).answers[0]
    assert (best.start, best.end) == (int(row.offsets[first, 0]), int(row.offsets[last, 1]))
    assert best.text == text[best.start : best.end] and 0 < best.score <= 1
    long = answer((" ".join("abcdefghij"), question)).answers
    assert len(long) > 1 and all(one.text == " ".join("abcdefghij")[one.start : one.end] for one in long)
    with pytest.raises(InputError, match="the text has no question"):
        answer([(text, question), text])
    report = run_texts(answer, [text, (text, question)], tmp_path / "out")
    wrong, right = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert report.exit_code == 1 and "text 1: the text has no question" in report.summary()
    assert json.loads(wrong)["text"] == text and "no question" in json.loads(wrong)["error"]
    assert json.loads(right)["answers"][0]["text"] == best.text


def test_folders_that_cannot_answer(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"neither an artifact nor a model that can be imported(.|\n)*an empty folder"
    ):
        predictor(tmp_path)
    vocabulary(tmp_path, 31)
    folder(tmp_path, saved().state_dict())
    with pytest.raises(ConfigError, match=r"different vocabularies(.|\n)*31 tokens, a model with 30"):
        predictor(tmp_path)
    vocabulary(tmp_path)
    with pytest.raises(
        ConfigError, match=r"no task answers(.|\n)*received: encoder(.|\n)*sequence_classification"
    ):
        export_folder(tmp_path, head="encoder")
    folder(tmp_path, saved().state_dict(), problem_type="regression")
    with pytest.raises(ConfigError, match=r"gives classes and no numbers(.|\n)*regression"):
        predictor(tmp_path)
    folder(tmp_path, saved().state_dict())
    with pytest.raises(ConfigError, match="an artifact's programs and weights are made"):
        predictor(tmp_path, overrides=["a=1"])
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(InputError, match="no tokenizer in the folder"):
        predictor(tmp_path)


def test_a_folder_as_a_variant(tmp_path: Path) -> None:
    folder(tmp_path, saved().state_dict())
    encoder: Any = build(ErnieConfig(variant=str(tmp_path), dropout=0.0))
    assert encoder.size == saved().size._replace(dropout=0.0)
    with pytest.raises(ConfigError, match=r"encoder of another kind(.|\n)*'ernie'(.|\n)*type: Ernie"):
        build(BertConfig(variant=str(tmp_path)))
    with pytest.raises(ConfigError, match=r"unknown variant of Bert(.|\n)*a folder with a config.json"):
        build(BertConfig(variant="bert-bose-uncased"))
