"""The application: routes over a store of models, behind the gate that every request passes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from importlib import metadata

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from framework.core.bounded import SETTINGS, read_text
from framework.core.errors import OarError
from framework.serving.admission import Admission
from framework.serving.errors import BadRequestError, RequestError
from framework.serving.metrics import Metrics
from framework.serving.middleware import Gate
from framework.serving.models import ModelStore, make_runtime
from framework.serving.responses_answers import ResponseStore
from framework.serving.routes import ERROR_BODIES, EXPOSED_HEADERS, OPEN_PATHS, ROUTERS, find_target
from framework.serving.settings import ModelSettings, ServerSettings
from framework.serving.shared_runtime import SharedRuntime

log = logging.getLogger("oar.serving")
KEYS = "OAR_API_KEYS"
"""The environment variable with further keys, commas between them: it is seen by fewer than a command line is."""


class _RouteError(RequestError):
    """What the router says itself: no such path, no such method."""

    def __init__(self, error: HTTPException) -> None:
        super().__init__(str(error.detail).lower())
        self.status = error.status_code  # type: ignore[misc]
        self.headers = error.headers or {}  # `Allow`, with 405


def create_app(
    settings: ServerSettings | ModelStore,
    on_failure: Callable[[Exception], object] | None = None,
    runtime_of: Callable[[ModelSettings], SharedRuntime] = make_runtime,
) -> FastAPI:
    """The ASGI application of a server. Its models are opened when it starts, while it answers already: /readyz says
    when they are ready.

    Args:
        settings: Or a store of models.
        on_failure: Called where a model cannot be opened, in the place of a line of the log.
        runtime_of: Where the programs of a model run.
    """
    metrics = Metrics()
    if isinstance(settings, ModelStore):
        store = settings
    else:
        store = ModelStore(settings, metrics.observe_batch, runtime_of)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(_run(store, on_failure))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await store.close()

    app = FastAPI(
        title="Oar",
        version=metadata.version("oar-toolkit"),
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from another server
        redoc_url=None,
        openapi_url="/openapi.json" if store.settings.open_docs else None,
        servers=[{"url": store.settings.root_path}] if store.settings.root_path else None,
    )
    app.state.store, app.state.metrics, app.state.responses = store, metrics, ResponseStore()
    for router in ROUTERS:
        # Not `include_router`, whose routes are looked for twice for each request.
        app.router.routes.extend(router.routes)
    keys = read_keys(store.settings)
    admission = Admission(store, metrics, keys, OPEN_PATHS, ERROR_BODIES, find_target)
    app.state.admission = admission
    app.add_middleware(Gate, store=store, metrics=metrics, admission=admission)
    if origins := store.settings.allow_origins:  # outside of the gate, so that its errors can be read, too
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=EXPOSED_HEADERS,
        )
    # The gate answers with errors: they go through to it.
    app.add_exception_handler(OarError, _raise)
    app.add_exception_handler(HTTPException, _raise_route_error)
    app.add_exception_handler(RequestValidationError, _raise_invalid)
    return app


async def _run(store: ModelStore, on_failure: Callable[[Exception], object] | None) -> None:
    try:
        if not store.ready:  # a replica of Ray has opened them before
            await store.start()
    except Exception as error:
        if on_failure is None:
            log.exception("a model cannot be opened")
        else:
            on_failure(error)
        return
    await store.watch()


def _raise(request: Request, error: Exception) -> Response:
    raise error


def _raise_route_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    raise _RouteError(error) from None


def _raise_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    raise BadRequestError(
        "the request has the wrong form",
        where=".".join(map(str, first["loc"])),
        received=str(first.get("input"))[:200],
        allowed=first["msg"],
    ) from None


def read_keys(settings: ServerSettings) -> tuple[str, ...]:
    """The keys of the settings, of their file and of the environment.

    Raises: ConfigError, where the file cannot be read.
    """
    keys = [*settings.api_keys, *os.environ.get(KEYS, "").split(",")]
    if settings.api_key_file is not None:
        keys += read_text(settings.api_key_file, SETTINGS, "file of keys").splitlines()
    return tuple(dict.fromkeys(key.strip() for key in keys if key.strip()))
