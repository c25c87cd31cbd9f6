"""The routes of a server: a module with a `router` each, listed here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastapi import APIRouter

from framework.serving.admission import ErrorBody
from framework.serving.errors import error_body
from framework.serving.models import ModelStore, ServedModel
from framework.serving.routes import (
    health,
    open_inference,
    openai,
    paddlex,
    page,
    predict,
    text_embeddings,
    text_tokens,
)
from framework.serving.tensors import HEADER_LENGTH

ROUTERS: tuple[APIRouter, ...] = (
    predict.router,  # first: they are looked through in this order, for each request
    health.router,
    openai.router,
    open_inference.router,
    paddlex.router,
    text_embeddings.router,
    text_tokens.router,
    page.router,
)
OPEN_PATHS: frozenset[str] = frozenset(
    {"/healthz", "/readyz", *open_inference.OPEN_PATHS, *paddlex.OPEN_PATHS, *page.OPEN_PATHS}
)
"""Paths that need no key to be read."""
EXPOSED_HEADERS = ("Retry-After", "X-Request-Id", predict.WARNINGS, HEADER_LENGTH)
"""Of answers, that scripts of other web pages may read."""
_PREDICT = re.compile(
    r"/v1/models/([^/:]+)(?:/versions/[^/:]+)?:predict|/v2/models/([^/:.]+)(?:\.[^/:]*)?(?:/versions/[^/]+)?/infer"
)


def find_target(store: ModelStore, path: str) -> ServedModel | None:
    """The model that a request of this path runs, where the path alone says it."""
    target = _PREDICT.fullmatch(path)
    return None if target is None else store.models.get(target[1] or target[2])


ERROR_BODIES: Mapping[str, ErrorBody] = {
    **openai.ERROR_BODIES,  # first: Cohere's rankings are below /v2, too
    "/v1": error_body,
    "/v2": open_inference.write_error,
    **paddlex.ERROR_BODIES,
    **text_embeddings.ERROR_BODIES,
    **text_tokens.ERROR_BODIES,
    "/": paddlex.write_both_errors,
}
"""Of routes of other protocols: how they write errors, by the beginning of their paths."""
