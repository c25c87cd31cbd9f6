"""The page of a server: a file to drop, the model to choose, the drawing, the text, the JSON and the time.

It is plain HTML, CSS and JavaScript of this package, and asks nothing of any other server.
"""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from fastapi.responses import Response

router = APIRouter(include_in_schema=False)
_TYPES = {
    "index.html": "text/html",
    "style.css": "text/css",
    "app.js": "text/javascript",
    "chat.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_FILES = {name: resources.files("framework.serving").joinpath("page", name).read_bytes() for name in _TYPES}
OPEN_PATHS = frozenset({"/", *(f"/page/{name}" for name in _TYPES if name != "index.html")})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _respond(name: str) -> Response:
    return Response(_FILES[name], media_type=f"{_TYPES[name]}; charset=utf-8", headers=HEADERS)


@router.get("/")
async def page() -> Response:
    """The page."""
    return _respond("index.html")


@router.get("/page/{name}")
async def file(name: str) -> Response:
    """What it loads."""
    return _respond(name) if f"/page/{name}" in OPEN_PATHS else Response(status_code=404)
