"""Tokens of texts, and facts of a model of texts, as Hugging Face's Text Embeddings Inference gives them.

Source: text-embeddings-inference 1.9, docs/openapi.json: POST /tokenize and /decode, GET /info. As there, offsets of
tokens are bytes of the text in UTF-8, of which a prompt of the model is a part.
"""

from __future__ import annotations

import itertools
from importlib import metadata

from fastapi import APIRouter, Request
from starlette.responses import Response

from framework.core.process import cpu_count
from framework.core.types import JSON
from framework.inference import choose_precision
from framework.serving.errors import UnsupportedError
from framework.serving.models import ServedModel
from framework.serving.openai_fields import Fields, check_names, field_error, get_value
from framework.serving.request_body import read_object
from framework.serving.routes.text_embeddings import MOST_TEXTS, answer_texts, read_texts, write_error
from framework.text.tokenizer import Tokenizer
from framework.workflow.domain.capabilities import TextEmbedding, TextReranking, TextTokenization
from framework.workflow.domain.predictor import AnyPredictor

router = APIRouter()
_POOLING = {"lasttoken": "last-token"}  # as these servers spell it
ERROR_BODIES = dict.fromkeys(("/tokenize", "/decode", "/info"), write_error)


@router.post("/tokenize", response_class=Response)
async def tokenize(request: Request) -> Response:
    """Tokens of texts, `{"inputs": text | [text, ...]}`."""
    return await answer_texts(request, read_object(await request.body()), _has_tokens, _tokenize)


@router.post("/decode", response_class=Response)
async def decode(request: Request) -> Response:
    """Texts of tokens, `{"ids": [number, ...] | [[number, ...], ...]}`."""
    return await answer_texts(request, read_object(await request.body()), _has_tokens, _decode)


@router.get("/info", response_class=Response)
async def info(request: Request) -> Response:
    """What a client has to know of a model of texts before it sends some."""
    return await answer_texts(request, {}, _has_tokens, _describe)


def _has_tokens(predictor: AnyPredictor) -> bool:
    return isinstance(predictor, TextTokenization) and predictor.tokenizer is not None


def _tokenizer_of(model: ServedModel) -> tuple[TextTokenization, Tokenizer]:
    predictor = model.predictor
    assert isinstance(predictor, TextTokenization) and predictor.tokenizer is not None
    return predictor, predictor.tokenizer


async def _tokenize(model: ServedModel, fields: Fields) -> JSON:
    check_names(fields, ("inputs", "add_special_tokens", "prompt_name"))
    content = fields.get("inputs")
    texts = read_texts([content] if isinstance(content, str) else content, "inputs", can_be_empty=True)
    with_special = get_value(fields, "add_special_tokens", bool, True)
    prompt_name = get_value(fields, "prompt_name", str, "") or None
    predictor, tokenizer = _tokenizer_of(model)
    texts = [predictor.add_prompt(text, prompt_name) for text in texts]
    return await model.in_thread(lambda: [_list_tokens(tokenizer, text, with_special) for text in texts])


def _list_tokens(tokenizer: Tokenizer, text: str, with_special: bool) -> list[JSON]:
    encoding = tokenizer.encode(text, add_special=with_special)
    sizes = (len(character.encode("utf-8", "surrogatepass")) for character in text)
    offsets = list(itertools.accumulate(sizes, initial=0))  # in bytes, of each character
    tokens: list[JSON] = []
    rows = zip(encoding.ids.tolist(), encoding.offsets.tolist(), encoding.special.tolist())
    for number, (start, stop), is_special in rows:
        token: dict[str, JSON] = {"id": number, "special": is_special, "start": None, "stop": None}
        if is_special:
            tokens.append({**token, "text": tokenizer.token_of(number) or ""})
        else:
            tokens.append({**token, "text": text[start:stop], "start": offsets[start], "stop": offsets[stop]})
    return tokens


async def _decode(model: ServedModel, fields: Fields) -> JSON:
    check_names(fields, ("ids", "skip_special_tokens"))
    content = fields.get("ids")
    rows = (
        content if isinstance(content, list) and any(isinstance(one, list) for one in content) else [content]
    )
    if not all(isinstance(row, list) and all(_is_token(one) for one in row) for row in rows):
        raise field_error("ids", content, "numbers of tokens from 0, or lists of them")
    if len(rows) > MOST_TEXTS:
        raise field_error("ids", f"{len(rows)} lists", f"at most {MOST_TEXTS}")
    without_special = get_value(fields, "skip_special_tokens", bool, True)
    _, tokenizer = _tokenizer_of(model)
    return await model.in_thread(lambda: [tokenizer.decode(row, without_special) for row in rows])  # type: ignore[arg-type]


def _is_token(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


async def _describe(model: ServedModel, fields: Fields) -> JSON:
    version, (predictor, _) = model.version, _tokenizer_of(model)
    artifact, limits = version.artifact, model.limits
    labels: list[str] = list(artifact.setting("labels", tuple[str, ...], ()))
    classes: JSON = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if isinstance(predictor, TextEmbedding) and predictor.embedding_size is not None:
        kind: JSON = {"embedding": {"pooling": _POOLING.get(predictor.pooling, predictor.pooling)}}
    elif isinstance(predictor, TextReranking) and predictor.reranks:
        kind = {"reranker": classes}
    elif labels:
        kind = {"classifier": classes}
    else:
        raise UnsupportedError("this model does not answer on this route", received=model.name)
    is_verified = bool(artifact.config.get("bf16_verified"))
    runtime = version.runtime
    return {
        "model_id": str(artifact.config.get("name", model.name)),
        "model_sha": None,
        "model_dtype": choose_precision(
            runtime.precision, runtime.find_device(), artifact.programs, is_verified
        ),
        "served_model_name": model.name,
        "model_type": kind,
        "max_concurrent_requests": limits.queue,
        "max_input_length": predictor.max_tokens,
        "max_batch_tokens": version.batch_size * predictor.max_tokens,
        "max_batch_requests": version.batch_size,
        "max_client_batch_size": MOST_TEXTS,
        "auto_truncate": False,
        "tokenization_workers": cpu_count() + 1,
        "version": metadata.version("oar-toolkit"),
        "sha": None,
        "docker_label": None,
    }
