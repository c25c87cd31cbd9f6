"""What a client sends and what it makes of answers: bodies, errors, when to try again. Opens no connection."""

from __future__ import annotations

import io
import ipaddress
import json
import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast
from urllib.parse import quote, urlsplit

from framework.core import errors as core_errors
from framework.core.errors import ConfigError, InputError, MissingExtraError, OarError
from framework.core.types import JSON
from framework.serving import errors as serving_errors

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", "client", "clients of a server") from error

if TYPE_CHECKING:
    import numpy as np

    from framework.workflow.domain.result import Result

Source: TypeAlias = "str | os.PathLike[str] | bytes | BinaryIO | np.ndarray | tuple[str, str]"
"""A file, an array [H, W, 3] uint8 RGB, a PIL image; a text, or a pair of texts, for models that take these."""
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0  # seconds
_TRY_AGAIN = (429, 502, 503)
LINES_TYPE = "application/x-ndjson"


class ServerError(OarError, RuntimeError):
    """The server failed, or cannot be reached.

    Attributes:
        status: Of the last answer; 0 where there was none.
    """

    def __init__(
        self,
        problem: str,
        *,
        status: int = 0,
        where: object = None,
        received: object = None,
        allowed: object = None,
        fix: str | None = None,
    ) -> None:
        self.status = status
        super().__init__(problem, where=where, received=received, allowed=allowed, fix=fix)


@dataclass(frozen=True)
class Call:
    """A request to predict.

    Attributes:
        label: What a result's `source` is: the path as it was given.
    """

    path: str
    options: Mapping[str, JSON]
    name: str = ""
    data: bytes | None = None
    text: str | tuple[str, str] | None = None
    label: str = ""
    format: str | None = None

    def build(self, client: httpx.Client | httpx.AsyncClient, seconds: float) -> httpx.Request:
        """The request, whose answer must be there in so many seconds."""
        headers = {"Accept": "application/json, */*;q=0.5"} if self.format is None else {}
        settings: dict[str, JSON] = {"timeout": round(seconds, 3)}
        if self.format is not None:
            settings["format"] = self.format
        timeout = seconds + 1.0  # the server says sooner what was late
        if self.data is None:
            pair = self.text if isinstance(self.text, tuple) else None
            texts = {"text": self.text} if pair is None else {"text": pair[0], "pair": pair[1]}
            body = {**settings, **texts, "options": self.options}
            return client.build_request("POST", self.path, json=body, headers=headers, timeout=timeout)
        form = {name: str(value) for name, value in settings.items()}
        form["options"] = json.dumps(self.options)
        return client.build_request(
            "POST",
            self.path,
            data=form,
            files={"file": (self.name or "file", self.data)},
            headers=headers,
            timeout=timeout,
        )


def direct_mounts(url: str) -> dict[str, None]:
    """Mounts of httpx, so that a server on this machine is not asked through a proxy that HTTP_PROXY names: another
    machine does not reach it."""
    host = urlsplit(url).hostname or ""
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost" or host.endswith(".localhost")
    return {f"all://[{host}]" if ":" in host else f"all://{host}": None} if is_here else {}


def predict_path(model: str) -> str:
    """The address of a model, below that of the server."""
    return f"/v1/models/{quote(model, safe='')}:predict"


def make_call(
    model: str,
    takes: str,
    source: Source,
    options: Mapping[str, object],
    format: str | None = None,
) -> Call:
    """The request that sends a source.

    Args:
        takes: What the server says that the model takes: "image", "text" or "text pair".

    Raises:
        InputError: the source cannot be read, or is nothing that the model takes.
    """
    path = predict_path(model)
    plain = {name: _plain(value, name) for name, value in options.items() if value is not None}
    if takes != "image":
        pairs = takes == "text pair"
        if pairs != isinstance(source, tuple) or not isinstance(source, str | tuple):
            raise InputError(
                "the model takes another source",
                where=model,
                received=type(source).__name__,
                allowed="a pair of texts: (text, text)" if pairs else "a text",
            )
        return Call(path, plain, text=cast("str | tuple[str, str]", source), format=format)
    if isinstance(source, str | os.PathLike):
        file = Path(source)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise InputError("the file cannot be read", where=str(source), received=error.strerror) from error
        return Call(path, plain, file.name, data, label=str(source), format=format)
    return Call(path, plain, data=_read_bytes(source), format=format)


def _read_bytes(source: object) -> bytes:
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if callable(read := getattr(source, "read", None)):
        return cast(bytes, read())
    if callable(save := getattr(source, "save", None)):  # a PIL image
        out = io.BytesIO()
        save(out, "PNG")
        return out.getvalue()
    if hasattr(source, "__array__"):
        import numpy as np

        from framework.vision import image

        return image.encode(np.asarray(source), ".png")
    raise InputError(
        "this is no source of an image",
        received=type(source).__name__,
        allowed="a path, bytes, a file, an array [H, W, 3], a PIL image",
    )


def _plain(value: object, name: str) -> JSON:
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ConfigError(
        "a request cannot hold this option",
        where=name,
        received=type(value).__name__,
        allowed="numbers, texts, truth values, and lists of them",
    )


@dataclass
class Retries:
    """When a request is worth another try: its time, and how often it was tried."""

    deadline: float
    left: int
    tried: int = 0

    @classmethod
    def begin(cls, seconds: float, retries: int) -> Retries:
        """For a request that begins now."""
        return cls(time.monotonic() + seconds, retries)

    @property
    def seconds(self) -> float:
        """What is left of the time. Raises: ServerError, where nothing is."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise ServerError("the request was not answered in time", received=f"{self.tried} tries")
        return seconds

    def delay(self, answer: httpx.Response | None = None) -> float | None:
        """Seconds until the next try, after an answer, or after none at all; None: there is none.

        A server says by `Retry-After` when it is worth a try; else the time doubles. Some of it is random, so that
        clients that were sent away together do not come back together.
        """
        if answer is not None and answer.status_code not in _TRY_AGAIN and not _is_of_proxy(answer):
            return None
        if self.left <= 0:
            return None
        after = None if answer is None else read_retry_after(answer.headers.get("Retry-After"))
        if after is None:
            seconds = random.uniform(0.5, 1) * min(_LONGEST_DELAY, _FIRST_DELAY * 2**self.tried)
        else:
            seconds = after * random.uniform(1, 1.25)
        if time.monotonic() + seconds >= self.deadline:
            return None
        self.left -= 1
        self.tried += 1
        return seconds


def _is_of_proxy(answer: httpx.Response) -> bool:
    """Whether a failure is told by what stands before a server that has gone: the server itself tells it in JSON."""
    return answer.status_code == 500 and "json" not in answer.headers.get("content-type", "")


def read_retry_after(text: str | None) -> float | None:
    """Seconds, of a number or a date. Source: RFC 9110, 10.2.3."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def no_answer(url: object, error: Exception) -> ServerError:
    """Of a connection that gave none."""
    return ServerError(
        "the server cannot be reached" if isinstance(error, httpx.ConnectError) else "the connection broke",
        where=url,
        received=f"{type(error).__name__}: {error}"[:300],
        fix="check the address, and that `oar serve` runs there",
    )


def raise_for_status(answer: httpx.Response) -> None:
    """Raises: the error that an answer tells of, of the class that a predictor raises here."""
    if answer.is_success:
        return
    try:
        facts = answer.json()["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise ServerError(
            f"the server answered with status {answer.status_code}",
            status=answer.status_code,
            where=answer.request.url,
            received=answer.text[:300],
        )
    raise make_error(facts, answer.status_code)


def make_error(facts: Mapping[str, JSON], status: int) -> OarError:
    """The error of `{"type", "problem", "where", "received", "allowed", "fix"}`."""
    texts = {name: str(facts[name]) for name in ("where", "received", "allowed", "fix") if name in facts}
    problem, name = str(facts.get("problem", "the request failed")), str(facts.get("type"))
    kind = getattr(core_errors, name, None) or getattr(serving_errors, name, None)
    if (
        isinstance(kind, type)
        and issubclass(kind, OarError)
        and kind not in (serving_errors.RetryError, MissingExtraError)
    ):
        return kind(problem, **texts)
    if request_id := facts.get("request_id"):
        texts.setdefault("where", f"request {request_id}")
    return ServerError(problem, status=status, **texts)


class Lines:
    """Lines of JSON of the bytes of an answer. A line ends in a newline alone: texts may hold other ends of lines."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[Mapping[str, JSON]]:
        """The objects of the lines that end in these bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [read_line(line) for line in lines if line.strip()]

    def end(self) -> list[Mapping[str, JSON]]:
        """The object of what stands behind the last newline."""
        return [read_line(self._rest)] if self._rest.strip() else []


def read_line(line: bytes) -> Mapping[str, JSON]:
    """The object of a line of JSON. Raises: ServerError, where it is none."""
    entry = _parse(line)
    if not isinstance(entry, dict):
        raise _no_result(line)
    return entry


def read_json(answer: httpx.Response) -> JSON:
    """The JSON of an answer. Raises: ServerError, where it is none, as of another server or of a proxy."""
    entry = _parse(answer.content)
    if not isinstance(entry, dict | list):
        raise _no_result(answer.content, answer.request.url)
    return cast(JSON, entry)


def read_models(answer: httpx.Response) -> list[dict[str, JSON]]:
    """What an answer tells of the models of a server. Raises: ServerError, where it is none."""
    entry = read_json(answer)
    models = entry.get("data") if isinstance(entry, dict) else None
    if not isinstance(models, list) or not all(isinstance(one, dict) and "name" in one for one in models):
        raise _no_result(answer.content, answer.request.url)
    return cast("list[dict[str, JSON]]", models)


def _parse(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):  # no JSON, or nested without end
        return None


def _no_result(data: bytes, where: object = None) -> ServerError:
    return ServerError(
        "the server answered with something that is no result",
        where=where,
        received=data[:200].decode("utf-8", "replace"),
        fix="check that `oar serve` answers at this address",
    )


def result_format(domain: str) -> str | None:
    """The format to ask for that results of a domain are made of; None: their JSON."""
    from framework.workflow.domain.capabilities import ResultReader
    from framework.workflow.domain.domain import find_domain

    reader = find_domain(domain).capability(ResultReader)
    return None if reader is None else reader.format


def make_result(domain: str, entry: Mapping[str, JSON], label: str) -> Result | OarError:
    """The result of a JSON object of a server; the error where one stands in its place.

    Raises:
        ConfigError: results of the domain cannot be made of JSON. FormatError: this is none.
    """
    facts = entry.get("error")
    if isinstance(facts, Mapping):
        status = facts.get("status")
        return make_error(facts, status if isinstance(status, int) else 500)
    # Only here, so that a client that wants JSON loads nothing of models.
    from framework.workflow.domain.capabilities import ResultReader
    from framework.workflow.domain.domain import find_domain

    reader = find_domain(domain).capability(ResultReader)
    if reader is None:
        raise ConfigError(
            "results of this domain are more than their JSON",
            where=domain,
            fix="ask for predict_json, or for a file: predict_file(source, format)",
        )
    result = reader.read({**entry, "source": label} if "source" in entry else entry)
    return cast("Result", result)
