"""Errors of requests: what each says, and its HTTP status."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from framework.core.errors import ConfigError, InputError, MissingExtraError, OarError, ShapeError
from framework.core.types import JSON


class RequestError(OarError):
    """A request that is answered with an error. The class says with which status.

    Attributes:
        headers: Of the answer.
    """

    status: ClassVar[int] = 400
    headers: Mapping[str, str] = MappingProxyType({})


class BadRequestError(RequestError, ValueError):
    """The request itself cannot be read: its JSON, its form, its options."""


class UnauthorizedError(RequestError, PermissionError):
    """There is no key with the request, or a wrong one."""

    status = 401


class ForbiddenError(RequestError, PermissionError):
    """What the request asks for is switched off on this server."""

    status = 403


class UnknownModelError(RequestError, LookupError):
    """The server has no model of this name."""

    status = 404


class UnknownResponseError(RequestError, LookupError):
    """No such response is stored."""

    status = 404


class MethodError(RequestError, ValueError):
    """The address takes another method of HTTP."""

    status = 405
    headers = MappingProxyType({"Allow": "POST"})


class NotAcceptableError(RequestError, ValueError):
    """The result cannot be written in the format that is asked for."""

    status = 406


class SlowClientError(RequestError, TimeoutError):
    """The body did not come in time."""

    status = 408


class TooLargeError(RequestError, ValueError):
    """A body, an image or a document above a limit."""

    status = 413


class UnsupportedError(RequestError, ValueError):
    """A body of a type that is not read."""

    status = 415


class EncodingError(UnsupportedError):
    """A body that is compressed in another way than those that are read."""


class RetryError(RequestError, RuntimeError):
    """The server cannot take the request now.

    Args:
        retry_after: Seconds after which it is worth another try.
    """

    status = 503

    def __init__(self, problem: str, *, retry_after: float = 1.0, received: object = None) -> None:
        self.retry_after = max(1, math.ceil(retry_after))
        super().__init__(problem, received=received, fix=f"try again in {self.retry_after} s")


class DeadlineError(RequestError, TimeoutError):
    """The result was not there before the deadline of the request."""

    status = 504


_STATUS: tuple[tuple[type[OarError], int], ...] = (
    (ConfigError, 400),
    (ShapeError, 400),
    (InputError, 422),
    (MissingExtraError, 501),
)


def status_of(error: Exception) -> int:
    """The HTTP status of an error; 500 for those that are no fault of the request."""
    if isinstance(error, RequestError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def error_headers(error: Exception) -> dict[str, str]:
    """Headers that belong to an error."""
    if isinstance(error, RetryError):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, EncodingError):
        return {"Accept-Encoding": "gzip, deflate"}  # RFC 9110, 12.5.3
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": "Bearer"}
    return dict(error.headers) if isinstance(error, RequestError) else {}


def error_body(error: Exception, request_id: str = "") -> Mapping[str, JSON]:
    """`{"error": {"status", "type", "problem", "where", "received", "allowed", "fix", "request_id"}}`.

    Of an error that is no fault of the request nothing is told but the id, under which the log has it.
    """
    status = status_of(error)
    if not isinstance(error, OarError) or status == 500:
        facts: dict[str, JSON] = {
            "problem": "the server failed; its log has the reason under the request's id"
        }
    else:
        facts = {"problem": error.problem}
        for name in ("where", "received", "allowed", "fix"):
            if (value := getattr(error, name)) is not None:
                facts[name] = str(value)[:2000].encode("utf-8", "backslashreplace").decode()
    kind = "InternalError" if status == 500 else type(error).__name__.lstrip("_")
    return {"error": {"status": status, "type": kind, **facts, "request_id": request_id}}
