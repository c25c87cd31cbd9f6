"""A folder of transformers or PaddleNLP with a fine-tuned model as an artifact, which answers without a config.

from nlp.pretrained_artifact import export_folder

export_folder("my_classifier").save("inference_model/my_classifier")
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

from framework import hub
from framework.config import plain
from framework.core.errors import ConfigError
from framework.export import Artifact, TensorSpec
from framework.interop.weights.model_folder import CONFIG, find_weights, is_paddles, read_settings
from framework.text.question_windows import QuestionWindows
from framework.text.tokenizer import Tokenizer
from framework.text.tokenizer_files import folder_settings
from framework.text.transforms import Tokenize
from framework.workflow.export.export import model_artifact
from framework.workflow.open.cache import keep_artifact
from nlp.embedder_artifact import buckets, export_embedder, is_embedder
from nlp.pretrained import Pretrained, read_pretrained
from nlp.sentence_folder import is_sentence_folder, read_sentence_folder, reranker_activation
from nlp.tasks import SequenceClassification, TokenClassification
from nlp.tasks.masked_lm import MaskedLanguageModelling
from nlp.tasks.matching import CrossEncoding
from nlp.tasks.span_extraction import SpanExtraction

_BATCH = 8
_DESCRIPTIONS = (".json", ".txt", ".model")
_INPUTS = {
    "input_ids": TensorSpec(("n", "t"), "int32"),
    "mask": TensorSpec(("n", "t"), "bool"),
    "type_ids": TensorSpec(("n", "t"), "int32"),
}


def import_folder(folder: Path) -> Artifact:
    """`export_folder`, from OAR_HOME if it was made before of the same files, else made now and kept there."""
    folder = folder.expanduser()
    inner = read_sentence_folder(folder).transformer if is_sentence_folder(folder) else folder
    weights = find_weights(inner)
    ending = next(end for end in (".safetensors", ".bin", ".pdparams") if end in weights.name)
    below = folder.rglob("*") if is_sentence_folder(folder) else folder.iterdir()
    files = sorted(file for file in below if file.is_file() and file.suffix in (*_DESCRIPTIONS, ending))
    text = "\n".join(file.relative_to(folder).as_posix() for file in files)
    return keep_artifact(folder.resolve().name, text, files, ("nlp",), lambda: export_folder(folder))


def export_folder(folder: str | Path, head: str | None = None) -> Artifact:
    """The artifact of a folder with a fine-tuned model, its weights, its tokenizer and the names of its classes.

    Args:
        head: As in `from_pretrained`.

    Raises:
        ConfigError: no task answers with the folder's model, or the tokenizer has tokens that the model lacks.
        InputError: there is no tokenizer. Else as `from_pretrained`.
    """
    folder = Path(folder).expanduser()
    if head in (None, "encoder") and is_embedder(folder):
        return export_embedder(folder)
    pretrained = read_pretrained(folder, head)
    if pretrained.kind not in _TASKS:
        raise ConfigError(
            "no task answers with this model yet",
            where=str(folder / CONFIG),
            received=pretrained.kind,
            allowed=", ".join(_TASKS),
            fix="nlp.pretrained.from_pretrained gives the model itself",
        )
    model, weights = pretrained.model, find_weights(folder)
    most = _max_length(folder, cast(Any, model).max_tokens)
    task, tokenize, extra_inputs = _TASKS[pretrained.kind](pretrained, _tokenizer(folder).to_json(), most)
    max_length = tokenize.max_length
    about = {
        "domain": "nlp",
        "name": folder.resolve().name,
        "model": plain(pretrained.config),
        "batch_size": _BATCH,
        "buckets": buckets(max_length),
        "labels": list(pretrained.labels),
        "bf16_verified": False,
        "provenance": {"weights": weights.name, "sha256": hub.digest(weights)},
    }
    return model_artifact(
        model, task, {**_INPUTS, **extra_inputs}, (tokenize,), about, ("float32", "bfloat16")
    )


class _Answered(NamedTuple):
    """How a kind of model answers: its task, what makes its tokens, and inputs of the program besides these."""

    task: Any
    tokenize: Tokenize | QuestionWindows
    extra_inputs: dict[str, TensorSpec]


def _classification(pretrained: Pretrained, tokenizer: str, most: int) -> _Answered:
    """As the pipelines of transformers: one class alone is a probability, and so is each of a text with several."""
    activation = reranker_activation(read_settings(pretrained.folder))
    if activation is not None and len(pretrained.labels) == 1:
        return _Answered(CrossEncoding(activation), Tokenize(tokenizer, most), {})
    if pretrained.problem == "regression":
        raise ConfigError(
            "a text classifier gives classes and no numbers",
            where=str(pretrained.folder / CONFIG),
            received="problem_type: regression",
            allowed="single_label_classification, multi_label_classification",
            fix="nlp.pretrained.from_pretrained gives the model itself",
        )
    several = pretrained.problem == "multi_label_classification" or len(pretrained.labels) == 1
    return _Answered(SequenceClassification(independent=several), Tokenize(tokenizer, most), {})


def _tagging(pretrained: Pretrained, tokenizer: str, most: int) -> _Answered:
    return _Answered(TokenClassification(), Tokenize(tokenizer, most, "subwords"), {})


def _gaps(pretrained: Pretrained, tokenizer: str, most: int) -> _Answered:
    positions = {"positions": TensorSpec(("n", "k"), "int32")}
    return _Answered(MaskedLanguageModelling(), Tokenize(tokenizer, most), positions)


def _answers(pretrained: Pretrained, tokenizer: str, most: int) -> _Answered:
    """With the lengths of run_squad.py, or as much of them as the model has positions for."""
    usual = QuestionWindows(tokenizer)
    windows = QuestionWindows(
        tokenizer,
        min(usual.max_length, most),
        min(usual.doc_stride, max(1, most // 4)),
        min(usual.question_length, max(1, most // 4)),
    )
    return _Answered(SpanExtraction(), windows, {"context": TensorSpec(("n", "t"), "bool")})


_TASKS: dict[str, Callable[[Pretrained, str, int], _Answered]] = {
    "sequence_classification": _classification,
    "token_classification": _tagging,
    "masked_lm": _gaps,
    "question_answering": _answers,
}
"""By kind of model, for the JSON of its tokenizer and the most tokens of a text."""


def _tokenizer(folder: Path) -> Tokenizer:
    """The folder's tokenizer; PaddleNLP's ERNIE divides texts by rules of its own, also where nothing says so."""
    settings = read_settings(folder)
    named = "tokenizer_class" in folder_settings(folder)
    is_ernie = settings.get("model_type") == "ernie" and is_paddles(find_weights(folder))
    return Tokenizer.from_file(
        folder, {"tokenizer_class": "ErnieTokenizer"} if is_ernie and not named else {}
    )


def _max_length(folder: Path, positions: int) -> int:
    """Tokens of the longest text: what tokenizer_config.json says, at most as many as the model has positions for."""
    stated = folder_settings(folder).get("model_max_length")
    if not isinstance(stated, int | float) or isinstance(stated, bool) or stated < 1:
        return positions
    return int(min(stated, positions))
