"""Whether the server lives, whether it takes requests, what it counts, and which models it has."""

from __future__ import annotations

import dataclasses

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from framework.core.types import JSON
from framework.serving.errors import MethodError
from framework.serving.formats import find_formats
from framework.serving.metrics import Metrics
from framework.serving.models import ModelStore, ServedModel
from framework.serving.text_models import ServedGenerator
from framework.workflow.domain.predictor import LanguagePredictor
from framework.workflow.domain.request_options import request_fields

router = APIRouter()
_PREDICT = ":predict"


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(request: Request) -> JSONResponse:
    """200 where all models have run once; 503 before, and while the server stops."""
    store: ModelStore = request.app.state.store
    models: dict[str, JSON] = {model.name: model.ready for model in store.sources}
    status = "draining" if store.draining else "ready" if store.ready else "starting"
    return JSONResponse({"status": status, "models": models}, 200 if store.ready else 503)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """For Prometheus, and others that read OpenMetrics."""
    counted: Metrics = request.app.state.metrics
    content, media_type = counted.text(request.app.state.store, request.headers.get("accept"))
    return Response(content, headers={"content-type": media_type, "vary": "Accept"})


@router.get("/v1/models")
async def models(request: Request) -> JSONResponse:
    """`models`, their names, as KServe's first protocol has it; and `data`, as OpenAI's clients read it, with what each
    takes and the options that a request may give."""
    store: ModelStore = request.app.state.store
    described = [describe(model) for model in store.sources]
    names: list[JSON] = [one["name"] for one in described]
    return JSONResponse({"models": names, "object": "list", "data": described})


@router.get("/v1/models/{name}")
async def model(request: Request, name: str) -> JSONResponse:
    """One model; 503 before it is ready, so that a probe can ask here, as of KServe's first protocol."""
    store: ModelStore = request.app.state.store
    if name.endswith(_PREDICT):
        raise MethodError("a file is sent to this address", received=request.method, allowed="POST")
    one = store.generators.get(name) or store.get(name)
    return JSONResponse(describe(one), 200 if one.ready else 503, None if one.ready else {"Retry-After": "1"})


def describe(model: ServedModel | ServedGenerator) -> dict[str, JSON]:
    """What a client has to know of a model: our names, and those of OpenAI's API."""
    facts: dict[str, JSON] = {"name": model.name, "ready": model.ready}
    facts |= {"id": model.name, "object": "model", "created": model.created, "owned_by": "oar"}
    if not model.ready:
        return facts
    if isinstance(model, ServedGenerator):
        generator = model.version.generator
        takes = "chat" if generator.has_template else "prompt"
        return {**facts, "takes": takes, "max_model_len": generator.max_length, "slots": generator.slots}
    version = model.version
    takes = "image"
    if isinstance(version.default, LanguagePredictor):
        takes = "text pair" if version.default.pairs else "text"
    fields = {field.name: field for field in request_fields(version.domain.options).values()}
    options: dict[str, JSON] = {
        name: {"type": str(field.type), "default": _plain(field), "help": str(field.metadata.get("help", ""))}
        for name, field in fields.items()
    }
    formats = list(find_formats(version, version.default))
    return {
        **facts,
        "domain": version.domain.name,
        "takes": takes,
        "formats": formats,
        "options": options,
    }


def _plain(field: dataclasses.Field[object]) -> JSON:
    value = field.default
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
