"""The routes of Hugging Face's Text Embeddings Inference, so that its clients keep working.

Source: text-embeddings-inference 1.7, docs/openapi.json: POST /embed, /similarity, /rerank and /predict take JSON with
texts, and / takes that of each of them; they answer with lists; an error is `{"error": text, "error_type": kind}`. The
first of the server's models that can answer does; `?model=NAME` names another. Differs: tokens in the place of texts
are refused; a model that ends with a normalization gives vectors of length 1 whatever `normalize` says; a server with
too much to do answers 503, not 429.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from framework.core.errors import OarError
from framework.core.types import JSON
from framework.serving.errors import (
    BadRequestError,
    RetryError,
    TooLargeError,
    UnknownModelError,
    UnsupportedError,
    error_body,
    error_headers,
    status_of,
)
from framework.serving.formats import ResultResponse
from framework.serving.models import ModelStore, ServedModel
from framework.serving.openai_fields import Fields, check_names, field_error, get_int, get_value
from framework.serving.request_body import read_object
from framework.workflow.domain.capabilities import TextEmbedding, TextReranking
from framework.workflow.domain.predictor import AnyPredictor, LanguagePredictor, Text
from framework.workflow.domain.request_options import request_fields
from framework.workflow.domain.result import Result

router = APIRouter()
_SHARED = ("inputs", "truncate", "truncation_direction")
MOST_TEXTS = 2048
_NO_MODEL = 424  # as its servers answer where the model is of another kind
_ALL = 1 << 30
Answer = Callable[[ServedModel, Fields], Awaitable[JSON]]


def write_error(error: Exception, request_id: str) -> Mapping[str, JSON]:
    """`{"error": text, "error_type": kind}`, as its servers have it."""
    facts = error_body(error, request_id)["error"]
    assert isinstance(facts, dict)
    texts = [str(facts["problem"])]
    texts += [f"{name}: {facts[name]}" for name in ("where", "received", "allowed", "fix") if name in facts]
    kind = "Validation"
    if isinstance(error, RetryError):
        kind = "Overloaded"
    elif isinstance(error, UnsupportedError | UnknownModelError) or status_of(error) >= 500:
        kind = "Backend"
    return {"error": "; ".join(texts), "error_type": kind}


ERROR_BODIES = dict.fromkeys(("/embed", "/similarity", "/predict"), write_error)


def _embeds(predictor: AnyPredictor) -> bool:
    return isinstance(predictor, TextEmbedding) and predictor.embedding_size is not None


def _ranks(predictor: AnyPredictor) -> bool:
    return isinstance(predictor, TextReranking) and predictor.reranks


def _classifies(predictor: AnyPredictor) -> bool:
    return isinstance(predictor, LanguagePredictor) and not _embeds(predictor) and not _ranks(predictor)


@router.post("/embed", response_class=Response)
async def embed(request: Request) -> Response:
    """Vectors of texts, `{"inputs": text | [text, ...]}`."""
    return await answer_texts(request, read_object(await request.body()), _embeds, _embed)


@router.post("/similarity", response_class=Response)
async def similarity(request: Request) -> Response:
    """Cosines of a sentence and others, `{"inputs": {"source_sentence": text, "sentences": [text, ...]}}`."""
    return await answer_texts(request, read_object(await request.body()), _embeds, _compare)


@router.post("/predict", response_class=Response)
async def predict(request: Request) -> Response:
    """Classes of a text, of a pair of texts in a list, or of a list of lists of either."""
    return await answer_texts(request, read_object(await request.body()), _classifies, _classify)


async def rank_texts(request: Request, fields: Fields) -> Response:
    """Texts by how well they answer a query, the best first: `{"query": text, "texts": [text, ...]}`."""
    return await answer_texts(request, fields, _ranks, _rank)


@router.post("/", response_class=Response)
async def answer(request: Request) -> Response:
    """As the route whose fields these are: clients send texts to the address that they know, without a route."""
    fields = read_object(await request.body())
    if "query" in fields:
        return await rank_texts(request, fields)
    if isinstance(fields.get("inputs"), dict):
        return await answer_texts(request, fields, _embeds, _compare)

    store: ModelStore = request.app.state.store
    name = request.query_params.get("model")
    named = [store.get(name)] if name in store.models else list(store.models.values())
    embeds = any(model.ready and _embeds(model.predictor) for model in named)
    if embeds and "parameters" not in fields:
        return await answer_texts(request, fields, _embeds, _embed)
    return await answer_texts(request, fields, _classifies, _classify)


async def answer_texts(
    request: Request, fields: Fields, accepts: Callable[[AnyPredictor], bool], answer: Answer
) -> Response:
    """What a model of this kind answers, or the error as these servers write it."""
    try:
        model = _choose(request, accepts)
        request.state.model = model.name
        with model.batcher.admit():
            content = await answer(model, fields)
            return await model.in_thread(lambda: ResultResponse(cast("Sequence[JSON]", content)))
    except OarError as error:
        status = status_of(error)
        if status == 500:
            raise  # the log has its reason
        status = {400: 422, UnsupportedError.status: _NO_MODEL}.get(status, status)
        return JSONResponse(write_error(error, request.state.request_id), status, error_headers(error))


def _choose(request: Request, accepts: Callable[[AnyPredictor], bool]) -> ServedModel:
    store: ModelStore = request.app.state.store
    name = request.query_params.get("model")
    if name is not None:
        model = store.get(name)
        if accepts(model.predictor):
            return model
        raise UnsupportedError("this model does not answer on this route", received=name)
    for model in store.models.values():
        if model.ready and accepts(model.predictor):
            return model
    for model in store.models.values():
        model.version  # noqa: B018  it says that the model is not ready yet
    raise UnsupportedError(
        "no model of this server answers on this route",
        where=request.url.path,
        received=", ".join(store.models) or "no models",
    )


async def _embed(model: ServedModel, fields: Fields) -> JSON:
    check_names(fields, (*_SHARED, "normalize", "prompt_name", "dimensions"))
    content = fields.get("inputs")
    texts = read_texts([content] if isinstance(content, str) else content, "inputs")
    vectors = await _vectors(model, fields, texts)
    if (dimensions := get_int(fields, "dimensions", 1)) is not None:
        if dimensions > vectors.shape[1]:
            raise field_error("dimensions", dimensions, f"at most {vectors.shape[1]}")
        vectors = vectors[:, :dimensions]
    if get_value(fields, "normalize", bool, True):
        vectors = _normalize(vectors)
    return [[float(f"{value:.8g}") for value in vector] for vector in vectors]


async def _compare(model: ServedModel, fields: Fields) -> JSON:
    check_names(fields, ("inputs", "parameters"))
    inputs = get_value(fields, "inputs", dict, {})
    parameters = get_value(fields, "parameters", dict, {})
    check_names(parameters, ("truncate", "truncation_direction", "prompt_name"))
    source = read_texts([inputs.get("source_sentence")], "inputs.source_sentence")
    sentences = read_texts(inputs.get("sentences"), "inputs.sentences")
    vectors = _normalize(await _vectors(model, parameters, [*source, *sentences]))
    return [float(f"{value:.8g}") for value in vectors[1:] @ vectors[0]]


async def _vectors(model: ServedModel, fields: Fields, texts: Sequence[str]) -> np.ndarray:
    """[N, D] float32."""
    predictor, prompt = model.predictor, get_value(fields, "prompt_name", str, "")
    assert isinstance(predictor, TextEmbedding)
    if prompt:
        predictor.embed((), prompt_name=prompt)  # which refuses a name that is none
    results = await _run(model, texts, {"prompt": prompt} if prompt else {}, fields)
    return np.stack([np.asarray(result.vector) for result in results])  # type: ignore[attr-defined]


async def _rank(model: ServedModel, fields: Fields) -> JSON:
    check_names(fields, ("query", "texts", "raw_scores", "return_text", *_SHARED[1:]))
    (query,), texts = read_texts([fields.get("query")], "query"), read_texts(fields.get("texts"), "texts")
    predictor, is_raw = model.predictor, get_value(fields, "raw_scores", bool, False)
    assert isinstance(predictor, TextReranking)
    are_probabilities = predictor.rerank(query, ()).are_probabilities
    if is_raw and are_probabilities:
        raise field_error("raw_scores", "true", "false: the model gives probabilities alone")
    results = await _run(model, [(query, text) for text in texts], {}, fields)
    scores = np.array([result.score for result in results], np.float64)  # type: ignore[attr-defined]
    if not is_raw and not are_probabilities:
        scores = 1 / (1 + np.exp(-scores))
    rows: list[JSON] = []
    for index in np.argsort(-scores, kind="stable").tolist():
        text: dict[str, JSON] = (
            {"text": texts[index]} if get_value(fields, "return_text", bool, False) else {}
        )
        rows.append({"index": index, **text, "score": float(f"{scores[index]:.8g}")})
    return rows


async def _classify(model: ServedModel, fields: Fields) -> JSON:
    check_names(fields, (*_SHARED, "raw_scores", "parameters"))
    parameters = get_value(fields, "parameters", dict, {})  # that huggingface_hub sends
    check_names(parameters, ("top_k",))
    most = get_int(parameters, "top_k", 1) or _ALL
    if get_value(fields, "raw_scores", bool, False):
        raise field_error("raw_scores", "true", "false: the model gives probabilities alone")
    content = fields.get("inputs")
    batched = isinstance(content, list) and any(isinstance(one, list) for one in content)
    texts = [_read_text_or_pair(one) for one in content] if batched else [_read_text_or_pair(content)]  # type: ignore[union-attr]
    options: dict[str, JSON] = {"top": most} if "top" in request_fields(model.version.domain.options) else {}
    rows: list[JSON] = []
    for result in await _run(model, texts, options, fields):
        classes = result.to_dict().get("classes")
        if not isinstance(classes, list):
            raise UnsupportedError("this model gives no classes", received=model.name, fix="add ?model=NAME")
        rows.append(
            [{"score": one["score"], "label": one["label"]} for one in classes if isinstance(one, dict)]
        )
    return rows if batched else rows[0]


def read_texts(texts: JSON, where: str, can_be_empty: bool = False) -> list[str]:
    """A list of texts. Raises: BadRequestError: they are none, or empty. TooLargeError: they are too many."""
    if not (
        isinstance(texts, list)
        and texts
        and all(isinstance(one, str) and (one or can_be_empty) for one in texts)
    ):
        form = "a text, or a list of texts"
        raise field_error(where, texts, form if can_be_empty else f"{form}, none of them empty")
    if len(texts) > MOST_TEXTS:
        raise TooLargeError(
            "the request has too many texts",
            where=where,
            received=len(texts),
            allowed=f"at most {MOST_TEXTS}",
        )
    return [str(one) for one in texts]


def _read_text_or_pair(content: JSON) -> Text:
    texts = read_texts([content] if isinstance(content, str) else content, "inputs")
    if len(texts) > 2:
        raise field_error(
            "inputs", f"{len(texts)} texts", "a text, a pair of texts, or a list of lists of either"
        )
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


async def _run(
    model: ServedModel, texts: Sequence[Text], options: Mapping[str, JSON], fields: Fields
) -> list[Result]:
    """The results of texts, in batches with those of others. Raises: TooLargeError: one is too long for the model, and
    `truncate` is not set; BadRequestError."""
    predictor = model.predictor
    assert isinstance(predictor, LanguagePredictor)
    if predictor.pairs and not all(isinstance(text, tuple) for text in texts):
        raise BadRequestError(
            "this model takes two texts", where="inputs", received="one", allowed="[text, text]"
        )
    results = list(await asyncio.gather(*(model.predict(text, options) for text in texts)))
    longest = max(getattr(result, "left_out_tokens", 0) for result in results)
    if longest and not get_value(fields, "truncate", bool, False):
        raise TooLargeError(
            "a text is too long for the model",
            where="inputs",
            received=f"{longest} tokens above its limit",
            fix='shorten it, or send "truncate": true',
        )
    if longest and get_value(fields, "truncation_direction", str, "right").lower() != "right":
        raise field_error("truncation_direction", "left", "right: texts are cut at their end")
    return results


def _normalize(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
