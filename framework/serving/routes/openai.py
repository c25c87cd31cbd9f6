"""OpenAI's API: chat, completions and embeddings, with streaming; their models are in GET /v1/models. And rankings."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from framework.core.errors import ConfigError, FormatError, InputError, MissingExtraError, OarError
from framework.core.types import JSON
from framework.serving.errors import BadRequestError, UnsupportedError, status_of
from framework.serving.formats import STREAM_HEADERS, ResultResponse
from framework.serving.metrics import Metrics
from framework.serving.models import ModelStore
from framework.serving.openai_answers import (
    AnswerReader,
    ChatChoice,
    ChoicesAnswer,
    CompletionChoice,
    Envelope,
    TextAnswer,
    Usage,
    forced_schema,
    write_error,
)
from framework.serving.openai_requests import (
    ChatWork,
    CompletionWork,
    TextWork,
    read_chat,
    read_completion,
    read_embedding,
    read_ranking,
)
from framework.serving.request_body import read_object
from framework.serving.responses_answers import ResponseAnswer, ResponseStore
from framework.serving.responses_requests import read_response
from framework.serving.routes.text_embeddings import rank_texts
from framework.serving.text_models import ServedGenerator
from framework.workflow.domain.capabilities import TextReranking
from framework.workflow.domain.predictor import LanguagePredictor
from framework.workflow.domain.text_generation import (
    ChatPrompt,
    TextDelta,
    TextGenerator,
    TextRequest,
    TokenScore,
)

router = APIRouter()
T = TypeVar("T")
W = TypeVar("W", bound=TextWork)
_RANKINGS = ("/v1/rerank", "/v2/rerank", "/rerank")  # of Jina, of Cohere, of clients of vLLM and of TEI
ERROR_BODIES = dict.fromkeys(
    ("/v1/chat/", "/v1/responses", "/v1/completions", "/v1/embeddings", *_RANKINGS), write_error
)
_CLOSED = 499  # the client went away: nobody reads this status


@router.post("/v1/chat/completions", response_class=Response)
async def chat(request: Request) -> Response:
    """The next message of a chat."""
    model, work = await _read(request, read_chat)

    def begin(generator: TextGenerator) -> _Texts:
        prompt, texts = _start_chat(generator, work)
        readers = [
            AnswerReader(generator.make_parser(prompt, work.tools), work.tool_choice) for _ in range(work.n)
        ]
        choices = [
            ChatChoice(number, reader, work.logprobs is not None) for number, reader in enumerate(readers)
        ]
        return _choices(texts, envelope, choices, work, Usage(len(prompt.ids)))

    kind = "chat.completion.chunk" if work.stream else "chat.completion"
    envelope = Envelope.make(kind, "chatcmpl", work.model)
    return await _answer(request, model, work, work.n, begin)


@router.post("/v1/responses", response_class=Response)
async def responses(request: Request) -> Response:
    """The next message of a chat, as items; later requests can go on from it."""
    stored: ResponseStore = request.app.state.responses
    model, work = await _read(request, lambda fields: read_response(fields, stored.conversation))
    settings = request.app.state.store.settings
    is_stored = (
        work.stored and settings.workers == 1 and settings.ray is None
    )  # other processes do not see it

    def begin(generator: TextGenerator) -> _Texts:
        prompt, texts = _start_chat(generator, work)
        reader = AnswerReader(generator.make_parser(prompt, work.tools), work.tool_choice)
        answer = ResponseAnswer(
            work.model, reader, work.repeated, work.logprobs is not None, store if is_stored else None
        )
        return _Texts(texts, answer, Usage(len(prompt.ids)))

    def store(response: Mapping[str, JSON], messages: Sequence[Mapping[str, JSON]]) -> None:
        stored.add(response, [*work.conversation, *messages])

    return await _answer(request, model, work, 1, begin)


@router.get("/v1/responses/{number}", response_class=Response)
async def find_response(request: Request, number: str) -> Response:
    """A stored response."""
    stored: ResponseStore = request.app.state.responses
    return JSONResponse(stored.response(number))


@router.delete("/v1/responses/{number}", response_class=Response)
async def delete_response(request: Request, number: str) -> Response:
    """Forgets a response."""
    stored: ResponseStore = request.app.state.responses
    stored.remove(number)
    return JSONResponse({"id": number, "object": "response", "deleted": True})


@router.post("/v1/completions", response_class=Response)
async def completions(request: Request) -> Response:
    """What follows a text."""
    model, work = await _read(request, read_completion)

    def begin(generator: TextGenerator) -> _Texts:
        prompts = [
            _in_form(lambda one=one: generator.encode(one)) if isinstance(one, str) else tuple(one)
            for one in work.prompts
        ]
        starts: list[tuple[str, Sequence[TokenScore]]] = [("", ())] * len(prompts)
        if work.echo:
            starts = [_echo(generator, *both, work) for both in zip(work.prompts, prompts, strict=True)]
        choices = [
            CompletionChoice(number, starts[number // work.n], work.logprobs)
            for number in range(work.n * len(prompts))
        ]
        if work.max_tokens == 0:
            texts = []
            for choice in choices:
                choice.begin()
                choice.finish_reason = "length"
        else:
            texts = _start(generator, prompts, work, work.constraint)
        return _choices(texts, envelope, choices, work, Usage(sum(map(len, prompts))))

    envelope = Envelope.make("text_completion", "cmpl", work.model)
    return await _answer(request, model, work, work.n * len(work.prompts), begin)


@router.post("/v1/embeddings", response_class=Response)
async def embeddings(request: Request) -> Response:
    """Vectors of texts."""
    store: ModelStore = request.app.state.store
    work = read_embedding(read_object(await request.body()))
    model = store.get(work.model)
    request.state.model = model.name
    predictor = model.predictor
    if not isinstance(predictor, LanguagePredictor) or predictor.pairs:
        raise UnsupportedError("this model gives no embeddings", received=model.name)
    with model.batcher.admit():
        results = await asyncio.gather(*(model.predict(text) for text in work.texts))
    rows: list[JSON] = []
    for number, result in enumerate(results):
        vector = getattr(result, "vector", None)
        if not isinstance(vector, np.ndarray):
            raise UnsupportedError("this model gives no embeddings", received=model.name)
        vector = vector.astype("<f4")
        if work.dimensions is not None:
            if work.dimensions > len(vector):
                raise BadRequestError(
                    "the model has fewer dimensions",
                    where="dimensions",
                    received=work.dimensions,
                    allowed=f"at most {len(vector)}",
                )
            vector = vector[: work.dimensions] / max(float(np.linalg.norm(vector[: work.dimensions])), 1e-12)
        encoded = base64.b64encode(vector.tobytes()).decode("ascii")
        embedding: JSON = encoded if work.base64 else [float(f"{value:.8g}") for value in vector]
        rows.append({"object": "embedding", "index": number, "embedding": embedding})
    tokens = await model.in_thread(lambda: sum(map(predictor.count_tokens, work.texts)))
    usage: dict[str, JSON] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return ResultResponse({"object": "list", "data": rows, "model": work.model, "usage": usage})


@router.post(_RANKINGS[0], response_class=Response)
@router.post(_RANKINGS[1], response_class=Response, include_in_schema=False)
@router.post(_RANKINGS[2], response_class=Response, include_in_schema=False)
async def rerank(request: Request) -> Response:
    """Documents by how well they answer a query, the best first."""
    store: ModelStore = request.app.state.store
    fields = read_object(await request.body())
    if request.url.path == _RANKINGS[2] and "texts" in fields:
        return await rank_texts(request, fields)
    work = read_ranking(fields)
    model = store.get(work.model)
    request.state.model = model.name
    predictor = model.predictor
    if not isinstance(predictor, TextReranking) or not predictor.reranks:
        raise UnsupportedError("this model ranks no documents", received=model.name)
    with model.batcher.admit():
        ranked = await model.in_thread(lambda: predictor.rerank(work.query, work.documents))
    results: list[JSON] = []
    for index in np.argsort(-ranked.scores, kind="stable")[: work.top].tolist():
        row: dict[str, JSON] = {"index": index, "relevance_score": float(f"{ranked.scores[index]:.8g}")}
        results.append({**row, "document": {"text": work.documents[index]}} if work.returned else row)
    tokens = int(ranked.token_counts.sum())
    number = f"rerank-{secrets.token_hex(12)}"
    return ResultResponse(
        {"id": number, "model": work.model, "results": results, "usage": {"total_tokens": tokens}}
    )


# -- what chats and completions share ----------------------------------------------------------------------------------


@dataclass
class _Texts:
    """Texts under way and what becomes of them."""

    requests: Sequence[TextRequest]
    answer: TextAnswer
    usage: Usage

    def count(self, n: int) -> Usage:
        """The tokens, once all texts are written; `n` texts have one prompt."""
        self.usage.cached = sum(one.cached_tokens for one in self.requests[::n])
        self.usage.reasoning = self.answer.reasoning_tokens
        return self.usage


def _choices(
    requests: Sequence[TextRequest],
    envelope: Envelope,
    choices: Sequence[ChatChoice] | Sequence[CompletionChoice],
    work: TextWork,
    usage: Usage,
) -> _Texts:
    counted = usage if work.continuous_usage else None
    return _Texts(requests, ChoicesAnswer(envelope, choices, work.usage, counted), usage)


async def _read(request: Request, read: Callable[[Mapping[str, JSON]], W]) -> tuple[ServedGenerator, W]:
    store: ModelStore = request.app.state.store
    work = read(read_object(await request.body()))
    model = store.get_generator(work.model)
    request.state.model = model.name
    return model, work


def _in_form(function: Callable[[], T]) -> T:
    """What a function gives; errors of what a request holds are answered with 400, as OpenAI does."""
    try:
        return function()
    except MissingExtraError:
        raise
    except (InputError, FormatError, ConfigError) as error:
        raise BadRequestError(
            error.problem, where=error.where, received=error.received, allowed=error.allowed, fix=error.fix
        ) from error


def _echo(
    generator: TextGenerator, prompt: str | Sequence[int], ids: Sequence[int], work: CompletionWork
) -> tuple[str, Sequence[TokenScore]]:
    text = prompt if isinstance(prompt, str) else _in_form(lambda: generator.decode(ids))
    if work.logprobs is None:
        return text, ()
    return text, _in_form(lambda: generator.score_prompt(ids, work.logprobs or 0))


def _start_chat(generator: TextGenerator, work: ChatWork) -> tuple[ChatPrompt, list[TextRequest]]:
    prompt = _in_form(lambda: generator.encode_chat(work.messages, work.tools or None, work.template))
    constraint = work.constraint
    if work.tool_choice is not None:
        constraint = ("json_schema", forced_schema(work.tools, work.tool_choice))
    ending = replace(work, options=prompt.with_stop(work.options))
    return prompt, _start(generator, [prompt.ids], ending, constraint)


def _start(
    generator: TextGenerator,
    prompts: Sequence[Sequence[int]],
    work: TextWork,
    constraint: tuple[str, JSON] | None,
) -> list[TextRequest]:
    """The texts of all prompts. Raises: BadRequestError; then none is under way."""
    started: list[TextRequest] = []
    options: dict[str, object] = {**work.options, "n": work.n}
    if work.logprobs is not None:
        options["logprobs"] = work.logprobs
    try:
        for ids in prompts:
            room = generator.room(len(ids))
            if work.max_tokens is not None and work.max_tokens > room:
                raise BadRequestError(
                    "the text does not fit into the model's context",
                    where="max_tokens",
                    received=f"{len(ids):,} tokens of the prompt and max_tokens {work.max_tokens:,}",
                    allowed=f"max_tokens up to {room:,}"
                    if len(ids) < generator.max_length
                    else f"at most {generator.max_length - 1:,} tokens of the prompt",
                )
            options["max_tokens"] = work.max_tokens or min(room, work.default_tokens or room)
            started += _in_form(lambda ids=ids: generator.start(ids, options, constraint))
    except BaseException:
        for one in started:
            one.cancel()
        raise
    return started


async def _answer(
    request: Request,
    model: ServedGenerator,
    work: TextWork,
    count: int,
    begin: Callable[[TextGenerator], _Texts],
) -> Response:
    began = time.monotonic()
    resources = contextlib.AsyncExitStack()
    metrics: Metrics = request.app.state.metrics
    try:
        generator = resources.enter_context(model.admit(count))
        texts = await model.in_thread(lambda: begin(generator))
    except BaseException:
        await resources.aclose()
        raise
    deadline = began + model.limits.text_deadline
    resources.callback(lambda: metrics.count_tokens(model.name, texts.usage.prompt, texts.usage.completion))
    deltas = _counted(model, texts, began, deadline, metrics)
    if work.stream:
        return _Stream(_events(texts, work, deltas, request.state.request_id), resources)
    async with resources:
        if not await _until_closed(request.receive, _drain(texts, deltas)):
            return Response(status_code=_CLOSED)
    content = texts.answer.whole(texts.count(work.n))
    warnings: list[JSON] = [*sorted({text for one in texts.requests for text in one.warnings})]
    return JSONResponse({**content, "warnings": warnings} if warnings else content)


async def _counted(
    model: ServedGenerator, texts: _Texts, began: float, deadline: float, metrics: Metrics
) -> AsyncIterator[tuple[int, TextDelta]]:
    """The deltas; tokens and the time to the first one are counted."""
    async with contextlib.aclosing(model.read(texts.requests, deadline)) as deltas:
        async for number, delta in deltas:
            if delta.tokens and not texts.usage.completion:
                metrics.first_token_seconds.labels(model.name).observe(time.monotonic() - began)
            texts.usage.completion += delta.tokens
            yield number, delta


async def _drain(texts: _Texts, deltas: AsyncIterator[tuple[int, TextDelta]]) -> None:
    async for number, delta in deltas:
        texts.answer.add(number, delta)


async def _until_closed(receive: Receive, work: object) -> bool:
    """Whether the work was done before the client went away; then it is stopped."""
    task = asyncio.ensure_future(work)  # type: ignore[arg-type]
    closed = asyncio.ensure_future(_closed(receive))
    try:
        await asyncio.wait((task, closed), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        for one in (task, closed):
            one.cancel()
            with contextlib.suppress(asyncio.CancelledError, OarError):
                await one


async def _closed(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _events(
    texts: _Texts, work: TextWork, deltas: AsyncIterator[tuple[int, TextDelta]], request_id: str
) -> AsyncIterator[bytes]:
    answer = texts.answer
    try:
        for content in answer.begin():
            yield answer.write(content)
        async for number, delta in deltas:
            for content in answer.add(number, delta):
                yield answer.write(content)
        for one in answer.end(texts.count(work.n)):
            yield one
    except OarError as error:
        if status_of(error) == 500:
            raise
        yield answer.fail(error, request_id)


class _Stream(Response):
    """Server-sent events as they come; where the client goes away, its texts are cancelled."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], resources: contextlib.AsyncExitStack) -> None:
        super().__init__(headers=STREAM_HEADERS)
        self._events, self._resources = events, resources
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write() -> None:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            async for one in self._events:
                await send({"type": "http.response.body", "body": one, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        async with self._resources:
            await _until_closed(receive, write())
