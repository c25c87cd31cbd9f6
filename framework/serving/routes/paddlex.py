"""The routes of PaddleX's basic serving, so that clients of `paddlex --serve` keep working.

Source: PaddleX 3.x, inference/serving: `POST <path>` takes JSON with a file in base64 and answers `{"logId",
"errorCode", "errorMsg", "result"}`; an error has its HTTP status as `errorCode` and no `result`. Which paths there are,
domains say by the capability PaddleXRoutes. The first of the server's models that can answer does; `?model=NAME` names
another. Differs: a field of a request that has no meaning here is named in `result.warnings`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from framework.core.errors import OarError
from framework.core.types import JSON
from framework.serving.errors import (
    BadRequestError,
    ForbiddenError,
    RetryError,
    UnknownModelError,
    error_body,
    error_headers,
    status_of,
)
from framework.serving.fetch import fetch
from framework.serving.formats import ResultResponse
from framework.serving.images import PageFailure, PageReader, Upload, open_upload, predict_pages
from framework.serving.models import ModelStore, ServedModel
from framework.serving.request_body import decode_base64, read_flag, read_object
from framework.vision import image as vision_image
from framework.workflow.domain.domain import all_domains, find_capabilities
from framework.workflow.domain.paddlex import PaddleXRoute, PaddleXRoutes
from framework.workflow.domain.request_options import request_fields, request_options
from framework.workflow.domain.result import ImageResult, Result

router = APIRouter()
OPEN_PATHS = frozenset({"/health"})
_OWN_FIELDS = ("image", "file", "fileType", "visualize", "logId")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_LONGEST_ID = 128


@dataclass(frozen=True)
class _Answerer:
    """A model and the route on which it answers."""

    model: ServedModel
    route: PaddleXRoute


def paths() -> tuple[str, ...]:
    """Those of all domains."""
    return tuple(sorted({one.path for kind in find_capabilities(PaddleXRoutes) for one in kind.routes}))


def _status(error: Exception) -> int:
    """PaddleX's servers answer 422 to every body that they cannot use."""
    status = status_of(error)
    return 422 if status == BadRequestError.status else status


def write_error(error: Exception, request_id: str) -> Mapping[str, JSON]:
    """`{"logId", "errorCode", "errorMsg"}`, as PaddleX's servers have it."""
    facts = error_body(error, request_id)["error"]
    assert isinstance(facts, dict)
    texts = [str(facts["problem"])]
    texts += [f"{name}: {facts[name]}" for name in ("where", "received", "allowed", "fix") if name in facts]
    return {"logId": request_id, "errorCode": _status(error), "errorMsg": "; ".join(texts)}


def write_both_errors(error: Exception, request_id: str) -> Mapping[str, JSON]:
    """As `error_body` and as `write_error`: of a path that is none of ours it cannot be told who asks."""
    return {**error_body(error, request_id), **write_error(error, request_id)}


@router.head("/health", include_in_schema=False)
@router.get("/health")
async def health(request: Request) -> JSONResponse:
    """200 where all models are ready, else 503: servers of these protocols take no request before."""
    store: ModelStore = request.app.state.store
    if not store.ready:
        raise RetryError("the server is stopping" if store.draining else "a model is not ready yet")
    return JSONResponse({"logId": request.state.request_id, "errorCode": 0, "errorMsg": "Healthy"})


async def answer(request: Request) -> Response:
    """Run the pipeline of the path on `{"image": base64}` or `{"file": base64, "fileType": 0 | 1}`."""
    store: ModelStore = request.app.state.store
    log_id: str = request.state.request_id
    try:
        selection = _choose(store, request.url.path, request.query_params.get("model"))
        with selection.model.batcher.admit():
            body = await request.body()
            fields = await selection.model.in_thread(lambda: read_object(body))
            requested_id = fields.get("logId")
            log_id = (
                requested_id
                if isinstance(requested_id, str) and 0 < len(requested_id) <= _LONGEST_ID
                else log_id
            )
            result = await _predict(store, selection, fields)
            content = {"logId": log_id, "result": result, "errorCode": 0, "errorMsg": "Success"}
            return await selection.model.in_thread(lambda: ResultResponse(content))
    except OarError as error:
        if status_of(error) == 500:
            raise  # the log has its reason
        return JSONResponse(write_error(error, log_id), _status(error), error_headers(error))


for _path in paths():
    router.add_api_route(_path, answer, methods=["POST"], response_class=JSONResponse)


def _choose(store: ModelStore, path: str, name: str | None) -> _Answerer:
    """Raises: UnknownModelError, where no model can answer. RetryError, where the one that is named is not ready."""
    models = store.models.values() if name is None else (store.get(name),)
    for model in models:
        if name is not None or model.ready:
            route = _route_of(model, path)
            if route is not None:
                return _Answerer(model, route)
    for model in models:
        model.version  # noqa: B018  it says that the model is not ready yet
    raise UnknownModelError(
        "no model of this server answers on this route",
        where=path,
        received=", ".join(model.name for model in models) or "no models",
        allowed=", ".join(_domains_of(path)),
        fix="start the server with a model of this kind",
    )


def _route_of(model: ServedModel, path: str) -> PaddleXRoute | None:
    version = model.version
    routes = version.domain.capability(PaddleXRoutes)
    announced = () if routes is None else routes.routes
    return next((one for one in announced if one.path == path and one.accepts(version.artifact)), None)


def _domains_of(path: str) -> list[str]:
    """What models that may answer are of."""
    owners = ((domain.name, domain.capability(PaddleXRoutes)) for domain in all_domains())
    return [
        f"a model of the domain {name}"
        for name, kind in owners
        if kind is not None and any(one.path == path for one in kind.routes)
    ]


async def _predict(store: ModelStore, selection: _Answerer, fields: Mapping[str, JSON]) -> Mapping[str, JSON]:
    model, route = selection.model, selection.route
    upload = Upload(await _read_source(store, model, fields, route.source))
    options, unused = _split_fields(route, model, fields)
    visualize = fields.get("visualize")
    draws = visualize is None or read_flag(visualize, "visualize")
    results, warnings = await _run(model, route, upload, options)
    result = await model.in_thread(lambda: route.write(results, fields, _encode_image if draws else None))
    info = {"dataInfo": _data_info(results, upload)} if route.source == "file" else {}
    warnings += [f"{name} has no meaning here and was not used" for name in unused]
    return {**result, **info, **({"warnings": warnings} if warnings else {})}


async def _run(
    model: ServedModel, route: PaddleXRoute, upload: Upload, options: Mapping[str, JSON]
) -> tuple[list[Result], list[str]]:
    """The results of the pages, and what is not in them."""
    if route.read is not None:
        kind = route.options or model.version.domain.options
        values = request_options(kind, options, model.name)
        predictor, read = model.predictor, route.read

        def read_file() -> list[Result]:
            PageReader(upload, predictor, model.limits).close()  # which checks sizes
            return list(read(predictor, upload.data, values))

        results = await model.within(model.in_thread(read_file), model.deadline())
        return results, [text for one in results for text in getattr(one, "warnings", ())]
    results, warnings = [], []
    async with open_upload(model, upload) as reader:
        async for page in predict_pages(model, reader, options):
            if isinstance(page, PageFailure):
                raise page.error
            item, result = page
            results.append(result)
            warnings += getattr(item, "warnings", ())
            if route.source == "image":
                break  # one image has one result
    return results, warnings


async def _read_source(store: ModelStore, model: ServedModel, fields: Mapping[str, JSON], name: str) -> bytes:
    """The bytes of the file. Raises: BadRequestError, ForbiddenError, where it is an address and none is fetched."""
    source = fields.get(
        name, fields.get("image" if name == "file" else "file")
    )  # earlier PaddleX had the other one
    if not isinstance(source, str) or not source:
        raise BadRequestError(
            "the request has no file",
            where=name,
            received=type(source).__name__ if name in fields else ", ".join(fields)[:200] or "{}",
            allowed=f'{{"{name}": base64 of a file\'s bytes, or an address where the server fetches some}}',
        )
    if _ADDRESS.match(source):
        if not store.settings.allow_url:
            raise ForbiddenError(
                "this server fetches no addresses",
                received=source[:200],
                fix="send the file in base64, or start the server with --allow_url",
            )
        limit, private = store.settings.limits.body_bytes, store.settings.allow_private_url
        return await model.in_thread(lambda: fetch(source, limit, private))
    data = await model.in_thread(lambda: decode_base64(source))
    if not data:
        raise BadRequestError("the file is empty", where=name, received="0 bytes")
    if fields.get("fileType") not in (None, 0, 1):
        raise BadRequestError(
            "there is no such type of a file",
            where="fileType",
            received=repr(fields["fileType"])[:50],
            allowed="0 (PDF), 1 (image)",
        )
    return data


def _split_fields(
    route: PaddleXRoute, model: ServedModel, fields: Mapping[str, JSON]
) -> tuple[dict[str, JSON], list[str]]:
    """Options of the predictor, and fields that are none."""
    options_by_name = request_fields(route.options or model.version.domain.options)
    options, unused = {}, []
    for name, value in fields.items():
        if value is None or name in _OWN_FIELDS or name in route.other_fields:
            continue
        option = route.fields.get(name) or re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
        if name in route.convert:
            value = route.convert[name](value)
        if option in options_by_name and not isinstance(value, dict):
            options[option] = value
        elif value is not False:  # what is not there is off
            unused.append(name[:100])
    return options, unused


def _data_info(results: Sequence[Result], upload: Upload) -> Mapping[str, JSON]:
    sizes: list[Mapping[str, JSON]] = [
        {"width": one.width, "height": one.height} for one in results if isinstance(one, ImageResult)
    ]
    if not upload.is_pdf and len(sizes) == 1:
        return {**sizes[0], "type": "image"}
    return {"numPages": len(sizes), "pages": sizes, "type": "pdf" if upload.is_pdf else "tiff"}


def _encode_image(image: np.ndarray) -> str:
    return base64.b64encode(vision_image.encode(image, ".jpg")).decode("ascii")


ERROR_BODIES = dict.fromkeys(paths(), write_error)
