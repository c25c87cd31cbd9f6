"""A server of models over HTTP: one process, any number of models, requests of all clients in shared batches.

    oar serve pp_lcnet_x0_25_clothing --port 8000

FastAPI and uvicorn are the extra `serving`. `settings` says what a server is, `models` opens and runs models,
`batching` puts the requests of all clients together, `app` is the ASGI application, `server` the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework.serving.client import AsyncClient as AsyncClient
    from framework.serving.client import Client as Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> object:
    """Clients are imported when they are first used: a server needs no httpx."""
    if name in __all__:
        from framework.serving import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
