"""The Open Inference Protocol (KServe's v2) over REST: tensors of a model's program in and out.

Source: github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md, and Triton's extensions of
binary tensors, of the model's configuration and of the model repository, of which there is the index: models come and
go with the settings. Clients of KServe, Triton and Seldon work unchanged. A model has the version "1". A pipeline has
several programs: `<model>.<stage>` names one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from framework.core.types import JSON
from framework.serving.errors import BadRequestError, error_body
from framework.serving.models import ModelStore
from framework.serving.request_body import read_object
from framework.serving.tensor_models import (
    VERSION,
    TensorModel,
    check_version,
    find_programs,
    find_served,
    find_tensor_model,
    platform_of,
)
from framework.serving.tensors import (
    HEADER_LENGTH,
    InferResponse,
    describe_configured,
    describe_tensors,
    read_request,
    write_response,
)

router = APIRouter(prefix="/v2")
OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready"})
_EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository")


def write_error(error: Exception, request_id: str) -> Mapping[str, JSON]:
    """`{"error": text}`, as the protocol has it."""
    facts = error_body(error, request_id)["error"]
    assert isinstance(facts, dict)
    texts = [str(facts["problem"])]
    texts += [f"{name}: {facts[name]}" for name in ("where", "received", "allowed", "fix") if name in facts]
    return {"error": "; ".join(texts)}


@router.get("")
async def server() -> JSONResponse:
    """What the server is."""
    version = metadata.version("oar-toolkit")
    return JSONResponse({"name": "oar", "version": version, "extensions": list(_EXTENSIONS)})


@router.get("/health/live")
async def live() -> dict[str, bool]:
    """The process answers."""
    return {"live": True}


@router.get("/health/ready")
async def ready(request: Request) -> JSONResponse:
    """200 where all models are ready, else 503."""
    store: ModelStore = request.app.state.store
    return JSONResponse({"ready": store.ready}, 200 if store.ready else 503)


@router.post("/repository/index")
async def repository_index(request: Request) -> JSONResponse:
    """The names that the other routes take; with `{"ready": true}` of models that are ready alone."""
    store: ModelStore = request.app.state.store
    body = await request.body()
    only_ready = bool(body) and read_object(body).get("ready") is True
    entries: list[JSON] = []
    for model in store.models.values():
        if model.ready:
            entries += [
                {"name": name, "version": VERSION, "state": "READY", "reason": ""}
                for name in find_programs(model)
            ]
        elif not only_ready:
            entries.append(
                {"name": model.name, "version": VERSION, "state": "UNAVAILABLE", "reason": "not ready yet"}
            )
    return JSONResponse(entries)


@router.get("/models/{name}")
@router.get("/models/{name}/versions/{version}")
async def describe_model(request: Request, name: str, version: str = VERSION) -> JSONResponse:
    """Names, datatypes and shapes of a model's tensors; -1 is a size that varies."""
    model = await _find(request, name, version)
    facts: Mapping[str, JSON] = {
        "name": name,
        "versions": [VERSION],
        "platform": platform_of(model.engine),
        "inputs": describe_tensors(model.engine.inputs),
        "outputs": describe_tensors(model.engine.outputs),
    }
    return JSONResponse(facts)


@router.get("/models/{name}/config")
@router.get("/models/{name}/versions/{version}/config")
async def describe_configuration(request: Request, name: str, version: str = VERSION) -> JSONResponse:
    """What Triton's clients read before they send: the most rows of a request, and the tensors without their rows. 0:
    the first axis of some tensor is not that of rows."""
    model = await _find(request, name, version)
    size = find_served(request.app.state.store, name).version.batch_size
    tensors = [*model.engine.inputs.values(), *model.engine.outputs.values()]
    has_rows = all(tensor.shape and not isinstance(tensor.shape[0], int) for tensor in tensors)
    facts: Mapping[str, JSON] = {
        "name": name,
        "platform": platform_of(model.engine),
        "max_batch_size": size if has_rows else 0,
        "input": describe_configured(model.engine.inputs, has_rows),
        "output": describe_configured(model.engine.outputs, has_rows),
    }
    return JSONResponse(facts)


@router.get("/models/{name}/ready")
@router.get("/models/{name}/versions/{version}/ready")
async def model_ready(request: Request, name: str, version: str = VERSION) -> JSONResponse:
    """200 where the model is ready, else 503."""
    check_version(name, version)
    model = find_served(request.app.state.store, name)
    return JSONResponse({"name": name, "ready": model.ready}, 200 if model.ready else 503)


@router.post("/models/{name}/infer", response_class=Response)
@router.post("/models/{name}/versions/{version}/infer", response_class=Response)
async def infer(request: Request, name: str, version: str = VERSION) -> Response:
    """Run the program: `{"inputs": [{"name", "shape", "datatype", "data"}]}`, or bytes of tensors behind a JSON header
    whose length the header Inference-Header-Content-Length says."""
    served = find_served(request.app.state.store, name)
    with served.batcher.admit():
        model = await _find(request, name, version)
        body, length = await request.body(), _header_length(request)
        inference = await served.in_thread(
            lambda: read_request(body, length, model.engine.inputs, tuple(model.engine.outputs))
        )
        outputs = await model.infer(inference.inputs, served.deadline(inference.timeout))
        answer = await served.in_thread(lambda: write_response(name, VERSION, inference, outputs))
    return _respond(answer)


def _respond(answer: InferResponse) -> Response:
    if answer.header_length is None:
        return Response(answer.body, media_type="application/json")
    headers = {HEADER_LENGTH: str(answer.header_length)}
    return Response(answer.body, media_type="application/octet-stream", headers=headers)


async def _find(request: Request, name: str, version: str) -> TensorModel:
    check_version(name, version)
    store: ModelStore = request.app.state.store
    return await find_served(store, name).in_thread(lambda: find_tensor_model(store, name))


def _header_length(request: Request) -> int | None:
    text = request.headers.get(HEADER_LENGTH)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise BadRequestError(
            "this is no number of bytes", where=HEADER_LENGTH, received=text[:50], allowed="digits"
        )
    return int(text)
