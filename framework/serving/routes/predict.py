"""`POST /v1/models/{name}:predict`: files or texts in, the JSON of `oar infer`, a drawing or a file of a format out."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from framework.core.errors import InputError, OarError
from framework.core.types import JSON
from framework.serving.errors import UnsupportedError, error_body
from framework.serving.formats import (
    JSON_TYPE,
    LINES_TYPE,
    STREAM_HEADERS,
    OutputFormat,
    ResultResponse,
    choose_format,
    find_formats,
    takes_any,
    to_line,
    write,
)
from framework.serving.images import PageFailure, PageReader, Upload, open_upload, predict_pages
from framework.serving.models import ModelStore, ServedModel
from framework.serving.request_body import PredictRequest, read_request
from framework.serving.request_tables import TensorTable, read_tensors, wrap_entries, write_tensors
from framework.serving.routes.direct import DirectRoute
from framework.serving.tensor_models import VERSION, check_version, find_tensor_model
from framework.vision import image as vision_image
from framework.workflow.domain.predictor import LanguagePredictor
from framework.workflow.domain.result import ImageResult, Result

router = APIRouter(route_class=DirectRoute)
WARNINGS = "X-Oar-Warnings"
"""A header with a JSON list: what of the file is not in the result."""


class _Lines(StreamingResponse):
    """Lines of JSON, and what is let go behind the last one, or where the client goes away before."""

    def __init__(self, lines: AsyncIterator[bytes], resources: AsyncExitStack) -> None:
        super().__init__(lines, media_type=LINES_TYPE, headers=STREAM_HEADERS)
        self._resources = resources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._resources:
            await super().__call__(scope, receive, send)


@router.post("/v1/models/{name}:predict", response_class=Response)
@router.post("/v1/models/{name}/versions/{version}:predict", response_class=Response, include_in_schema=False)
async def predict(request: Request, name: str, version: str = VERSION) -> Response:
    """Run a model.

    The body is a file as it is, multipart/form-data, or JSON: {"image": base64}, {"url": address}, {"text": text} or
    {"inputs": [...]} of several, with {"options": {...}}; {"instances": [...]} is answered with {"predictions": [...]},
    {"inputs": {name: [...]}} with {"outputs": {...}}, as TensorFlow Serving has it: numbers there are tensors of the
    program. `?format=` or `Accept` choose what comes back.
    """
    store: ModelStore = request.app.state.store
    model = store.get(name)
    check_version(name, version)
    resources = AsyncExitStack()
    try:
        opened = model.version
        resources.enter_context(model.batcher.admit())
        work = await read_request(request, model, store)
        if work.tensors is not None:
            answer = await _run_tensors(store, model, work.tensors, work.timeout)
            await resources.aclose()
            return answer
        predictor = await model.predictor_of(work.options)
        accept, output = request.headers.get("accept"), None
        if not takes_any(work.format, accept):
            output = choose_format(find_formats(opened, predictor), work.format, accept)
        answer = await _answer(model, work, output, resources)
    except BaseException:
        await resources.aclose()
        raise
    if not isinstance(answer, _Lines):
        await resources.aclose()
    return answer


async def _run_tensors(
    store: ModelStore, model: ServedModel, table: TensorTable, timeout: float | None
) -> Response:
    """The outputs of the model's program for inputs of numbers."""
    program = await model.in_thread(lambda: find_tensor_model(store, model.name))
    inputs = await model.in_thread(lambda: read_tensors(table, program.engine.inputs))
    outputs = await program.infer(inputs, model.deadline(timeout))
    content = await model.in_thread(lambda: to_line(write_tensors(table, outputs)))
    return Response(content, media_type=JSON_TYPE)


async def _answer(
    model: ServedModel, work: PredictRequest, output: OutputFormat | None, resources: AsyncExitStack
) -> Response:
    if work.several:
        if output is not None and output.file is not None:
            raise UnsupportedError(
                "several inputs are answered with JSON", received=output.name, allowed="json, ndjson"
            )
        if work.envelope is not None:
            entries = [entry async for entry in _predict_all(model, work)]
            return ResultResponse(wrap_entries(work.envelope, entries, work.batched))
        return await _deliver(_predict_all(model, work), output, resources)
    (only,) = work.inputs
    if not isinstance(only, Upload):
        result = await _predict_text(model, only, work)
        return ResultResponse(result.to_dict())
    reader = await resources.enter_async_context(open_upload(model, only, can_be_refused=True))
    if output is not None and output.file is not None:
        return await _answer_file(model, reader, work, output)
    pages = predict_pages(model, reader, work.options, work.timeout)
    if reader.is_document or (output is not None and output.in_pieces):
        return await _deliver(_page_lines(pages, model, work), output, resources)
    first, second = await anext(pages, None), await anext(pages, None)
    if first is None or isinstance(first, PageFailure):
        raise UnsupportedError("the file has no page")
    if second is not None:
        return await _deliver(_page_lines(_chain((first, second), pages), model, work), output, resources)
    item, result = first
    headers = {WARNINGS: json.dumps(item.warnings)} if item.warnings else {}
    return ResultResponse(await _describe(result, model, work), headers=headers)


Pages = AsyncIterator[tuple[object, Result] | PageFailure]


async def _chain(first: Sequence[tuple[object, Result] | PageFailure], rest: Pages) -> Pages:
    for page in first:
        yield page
    async for page in rest:
        yield page


async def _deliver(
    entries: AsyncIterator[Mapping[str, JSON]], output: OutputFormat | None, resources: AsyncExitStack
) -> Response:
    """A line an entry as they come, or one list of them where JSON is work for by name."""
    if output is not None and not output.in_pieces:
        return ResultResponse([entry async for entry in entries])
    first = await anext(entries, None)  # where the first page fails, the status says so

    def write_entry(entry: Mapping[str, JSON]) -> bytes:
        try:
            return to_line(entry)
        except InputError as error:
            return to_line(
                {**{key: entry[key] for key in ("source", "page") if key in entry}, **error_body(error)}
            )

    async def lines() -> AsyncIterator[bytes]:
        if first is not None:
            yield write_entry(first)
        try:
            async for entry in entries:
                yield write_entry(entry)
        except OarError as error:
            yield to_line(error_body(error))

    return _Lines(lines(), resources)


async def _describe(result: Result, model: ServedModel, work: PredictRequest) -> Mapping[str, JSON]:
    """The JSON of a result, with its drawing as a data URL where that is asked for."""
    if not (work.drawing and isinstance(result, ImageResult)):
        return result.to_dict()
    data = await model.in_thread(lambda: base64.b64encode(vision_image.encode(result.draw(), ".png")))
    return {**result.to_dict(), "drawing": f"data:image/png;base64,{data.decode('ascii')}"}


async def _page_lines(
    pages: Pages, model: ServedModel, work: PredictRequest
) -> AsyncIterator[Mapping[str, JSON]]:
    async for page in pages:
        if isinstance(page, PageFailure):
            yield {"page": page.number, **error_body(page.error)}
        else:
            yield await _describe(page[1], model, work)


async def _predict_all(model: ServedModel, work: PredictRequest) -> AsyncIterator[Mapping[str, JSON]]:
    """A result an input, in order; for one that cannot be read its error stands. Pages of one file are apart."""
    for number, one in enumerate(work.inputs):
        try:
            if not isinstance(one, Upload):
                yield (await _predict_text(model, one, work)).to_dict()
                continue
            async with open_upload(model, one) as reader:
                pages = predict_pages(model, reader, work.options, work.timeout, is_request=False)
                async for entry in _page_lines(pages, model, work):
                    yield entry
        except OarError as error:
            if work.envelope is not None:
                raise
            yield {"input": number, **error_body(error)}


async def _predict_text(model: ServedModel, text: str | tuple[str, str], work: PredictRequest) -> Result:
    predictor = model.predictor
    if not isinstance(predictor, LanguagePredictor):
        raise UnsupportedError(
            "this model takes images", received="a text", allowed="a file, or base64 as image"
        )
    if predictor.pairs and isinstance(text, str):
        raise UnsupportedError("this model takes two texts", received="one", allowed='{"text": …, "pair": …}')
    return await model.predict(
        text, work.options, model.deadline(work.timeout), can_be_refused=not work.several
    )


async def _answer_file(
    model: ServedModel, reader: PageReader, work: PredictRequest, output: OutputFormat
) -> Response:
    results = []
    async for page in predict_pages(model, reader, work.options, work.timeout):
        if isinstance(page, PageFailure):
            raise page.error
        results.append(page[1])
    file, name = output.file, reader.upload.name
    assert file is not None
    content = await model.in_thread(lambda: write(results, name, file))
    return Response(content, headers={"content-type": output.media_type})
