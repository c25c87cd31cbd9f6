"""Readers of the bodies of requests and answers, which are damaged as files."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Read = Callable[[Path], object]
_BOUNDARY = "8f3b0c5d"
_TENSORS = {
    "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [2, 3], "data": [[1, 2.5, 3], [4, 5, 6e3]]},
        {"name": "ids", "datatype": "INT64", "shape": [3], "data": [1, 2, 3]},
        {"name": "flags", "datatype": "BOOL", "shape": [1, 2], "data": [True, 0]},
    ],
    "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    "parameters": {"timeout": 1000, "binary_data_output": False},
    "id": "a",
}
_PREDICT = {
    "inputs": [
        {"image": "iVBORw0KGgo=", "name": "a/b.png"},
        {"image": "data:image/png;base64,iVBORw0KGgo="},
        "a text",
        {"text": "a", "pair": "b"},
        {"url": "http://127.0.0.1/a.png"},
    ],
    "options": {"threshold": 0.5},
    "format": "json",
    "timeout": 3,
}
TENSORS, PREDICT = json.dumps(_TENSORS), json.dumps(_PREDICT)
ANSWER = (
    b'{"index": 0, "source": "a", "label": "cat"}\n{"error": {"type": "InputError", "problem": "no"}}\n' * 3
)


def binary_tensors() -> tuple[bytes, int]:
    """A body of a JSON header with the bytes of its tensors behind it, and the header's length."""
    values = (np.arange(6, dtype="<f4"), np.arange(3, dtype="<i8"), np.array([1, 0], np.uint8))
    tensors = [
        {
            **{key: one[key] for key in ("name", "datatype", "shape")},
            "parameters": {"binary_data_size": array.nbytes},
        }
        for one, array in zip(_TENSORS["inputs"], values, strict=True)  # type: ignore[arg-type]
    ]
    header = json.dumps({**_TENSORS, "inputs": tensors}).encode()
    return b"".join([header, *(array.tobytes() for array in values)]), len(header)


def form() -> bytes:
    """A body of multipart/form-data: a file, a text and options."""
    rows = (
        ('name="file"; filename="a.png"\r\nContent-Type: image/png', "\x89PNG"),
        ('name="text"', "a"),
        ('name="options"', '{"threshold": 0.5}'),
    )
    parts = (
        f"--{_BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n" for head, body in rows
    )
    return "".join([*parts, f"--{_BOUNDARY}--\r\n"]).encode("latin-1")


def read_tensors(header_length: int | None = None) -> Read:
    """Reads a body of the Open Inference Protocol, of a header of that many bytes."""
    from framework.inference.engine import TensorShape
    from framework.serving.tensors import read_request

    declared = {
        "x": TensorShape(("n", 3), np.dtype(np.float32)),
        "ids": TensorShape(("n",), np.dtype(np.int64)),
        "flags": TensorShape((1, "n"), np.dtype(bool)),
    }

    def read(path: Path) -> object:
        with _refused():
            return read_request(path.read_bytes(), header_length, declared, ("y", "z"))

    return read


def read_predict(kind: str) -> Read:
    """Reads a body of /v1/models/<name>:predict of that Content-Type."""
    headers = {"json": "application/json", "form": f"multipart/form-data; boundary={_BOUNDARY}"}

    def read(path: Path) -> object:
        with _refused():
            return asyncio.run(_read_predict(path.read_bytes(), headers[kind]))

    return read


async def _read_predict(body: bytes, kind: str) -> object:
    from fastapi import Request
    from starlette.exceptions import HTTPException

    from framework.serving.request_body import read_request
    from framework.serving.settings import Limits

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def in_thread(function: Callable[[], object]) -> object:
        return function()

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "app": None,  # starlette's forms raise its own error for a server only where there is an application
        "headers": [(b"content-type", kind.encode())],
    }
    model: Any = SimpleNamespace(in_thread=in_thread, predictor=None)
    store: Any = SimpleNamespace(settings=SimpleNamespace(limits=Limits(), allow_url=False))
    with contextlib.suppress(HTTPException):  # starlette's own, of forms that are none: answered with 400
        return await read_request(Request(scope, receive), model, store)


def read_answer(path: Path) -> object:
    """Reads an answer of lines of JSON, as a client does."""
    from framework.serving.exchange import Lines, make_result

    with _refused():
        lines = Lines()
        entries = [*lines.add(path.read_bytes()), *lines.end()]
        return [make_result("classification", entry, "a") for entry in entries]


def _refused() -> contextlib.suppress:
    """A body has no name of a file, and our own errors are what a server answers with."""
    from framework.core.errors import OarError

    return contextlib.suppress(OarError)
