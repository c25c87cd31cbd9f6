"""The routes of a server: a module with a `router` each, listed here."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter

from framework.serving.middleware import ErrorBody
from framework.serving.routes import health, predict

ROUTERS: tuple[APIRouter, ...] = (health.router, predict.router)
OPEN_PATHS: frozenset[str] = frozenset({"/healthz", "/readyz"})
"""Paths that need no key."""
ERROR_BODIES: Mapping[str, ErrorBody] = {}
"""Of routes of other protocols: how they write errors, by the beginning of their paths."""
