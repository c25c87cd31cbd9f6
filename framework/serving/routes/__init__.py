"""The routes of a server: a module with a `router` each, listed here."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter

from framework.serving.middleware import ErrorBody
from framework.serving.routes import health, open_inference, paddlex, page, predict

ROUTERS: tuple[APIRouter, ...] = (
    health.router,
    predict.router,
    open_inference.router,
    paddlex.router,
    page.router,
)
OPEN_PATHS: frozenset[str] = frozenset(
    {"/healthz", "/readyz", *open_inference.OPEN_PATHS, *paddlex.OPEN_PATHS, *page.OPEN_PATHS}
)
"""Paths that need no key."""
ERROR_BODIES: Mapping[str, ErrorBody] = {"/v2": open_inference.write_error, **paddlex.ERROR_BODIES}
"""Of routes of other protocols: how they write errors, by the beginning of their paths."""
