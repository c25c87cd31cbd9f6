"""Whether a request is let in: its key, and whether its model takes more. Decided by its header alone."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from framework.core.errors import OarError
from framework.core.types import JSON
from framework.serving.addresses import plain_path
from framework.serving.errors import RetryError, UnauthorizedError, error_body, error_headers, status_of
from framework.serving.metrics import Metrics
from framework.serving.models import ModelStore, ServedModel

log = logging.getLogger("oar.serving")
ErrorBody = Callable[[Exception, str], Mapping[str, JSON]]
"""The JSON of an error and the request's id, for routes of other protocols."""
Headers = Sequence[tuple[bytes, bytes]]
RETRY_AFTER = "retry_after"
"""Where the state of a request that was refused has the seconds that its client was told."""
_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_LOG_SECONDS = 1.0
_ANSWERS = 256  # that are kept written, but for their ids
_MARK = "id-of-the-request"


@dataclass(frozen=True)
class Refusal:
    """The answer to a request whose model takes no more.

    Attributes:
        retry_after: Seconds, as its headers say; None: of another error.
    """

    status: int
    headers: Headers
    body: bytes
    retry_after: int | None = None


class Admission:
    """Lets requests in, or says what they are answered.

    Args:
        keys: Of clients; none: every client may ask.
        open_paths: That need no key to be read.
        error_bodies: By the beginning of paths.
        find_target: The model that a request of a path runs, where the path says it.
    """

    def __init__(
        self,
        store: ModelStore,
        metrics: Metrics,
        keys: Sequence[str],
        open_paths: frozenset[str],
        error_bodies: Mapping[str, ErrorBody],
        find_target: Callable[[ModelStore, str], ServedModel | None],
    ) -> None:
        self.store, self._metrics = store, metrics
        self._keys = tuple(hashlib.sha256(key.encode()).digest() for key in keys)
        self._open_paths, self._error_bodies, self._find_target = open_paths, error_bodies, find_target
        self._refused: Counter[str] = Counter()
        self._written: dict[tuple[str, str, str | None], tuple[int, Headers, tuple[bytes, ...]]] = {}

    def check_key(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Raises: UnauthorizedError, where the request needs a key and there is none of ours."""
        if not self._keys or (method == "GET" and path in self._open_paths):
            return
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        sent = [bearer.strip() if scheme.lower() == b"bearer" else b"", headers.get(b"x-api-key", b"")]
        digests = [hashlib.sha256(key).digest() for key in sent if key]
        # All are compared, so that the time does not say which one is like the key that was sent. A proxy may need
        # `Authorization` for a token of its own: one of the two headers is enough.
        if not any([hmac.compare_digest(digest, known) for digest in digests for known in self._keys]):
            raise UnauthorizedError(
                "a key is needed" if not digests else "the key is wrong",
                allowed="Authorization: Bearer KEY, or X-API-Key: KEY",
            )

    def refuse(self, path: str, headers: Headers) -> Refusal | None:
        """The answer to a request whose model takes no more; None, where it does, or where the path does not say which
        model that is. It is counted here."""
        started = time.monotonic()
        target = self._find_target(self.store, path)
        if target is None or not target.ready or not target.batcher.is_full or self.store.draining:
            return None
        entries = dict(headers)
        request_id = choose_id(entries)
        try:
            self.check_key("POST", path, entries)
            target.batcher.check_admission()
        except OarError as error:
            status, answer, body = self._answer_quickly(error, path, request_id)
            route = "/v1/models/{name}:predict" if path.startswith("/v1") else "/v2/models/{name}/infer"
            self._metrics.observe_request(route, target.name, status, time.monotonic() - started)
            retry_after = None
            if isinstance(error, RetryError):
                retry_after = error.retry_after
                self._note_refusal(target.name)
            return Refusal(status, [*answer, *self.id_headers(request_id)], body, retry_after)
        return None

    def refuse_early(self, path: str, headers: Headers) -> Refusal | None:
        """As `refuse`, where a request goes no further: those of other web pages do, whose browsers hide an answer that
        does not name their page."""
        settings = self.store.settings
        if settings.allow_origins and any(name == b"origin" for name, _ in headers):
            return None
        return self.refuse(plain_path(path, settings.root_path), headers)

    def id_headers(self, request_id: str) -> Headers:
        """What tells a client the id of its request; none on Ray, whose proxy does that."""
        return [] if self.store.settings.ray is not None else [(b"x-request-id", request_id.encode())]

    def answer(self, error: Exception, path: str, request_id: str) -> tuple[int, Headers, bytes]:
        """Status, headers and body that tell of an error."""
        forms = (form for start, form in self._error_bodies.items() if path.startswith(start))
        content = json.dumps(next(forms, error_body)(error, request_id), ensure_ascii=False) + "\n"
        body = content.encode("utf-8", "backslashreplace")
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in error_headers(error).items()]
        return status_of(error), headers, body

    def _answer_quickly(self, error: OarError, path: str, request_id: str) -> tuple[int, Headers, bytes]:
        """As `answer`, written once for all requests that are refused alike: only their ids are put in."""
        key = path, str(error), error.fix
        if (written := self._written.get(key)) is None:
            status, headers, body = self.answer(error, path, _MARK)
            if len(self._written) >= _ANSWERS:
                self._written.clear()
            others = [header for header in headers if header[0] != b"content-length"]
            written = self._written[key] = status, others, tuple(body.split(_MARK.encode()))
        status, headers, segments = written
        body = request_id.encode().join(segments)
        return status, [*headers, (b"content-length", b"%d" % len(body))], body

    def _note_refusal(self, model: str) -> None:
        """Under load a line of the log for each would take longer than the rest: there is one a second."""
        if not self._refused:
            asyncio.get_running_loop().call_later(_LOG_SECONDS, self._log_refusals)
        self._refused[model] += 1

    def _log_refusals(self) -> None:
        refused, self._refused = self._refused, Counter()
        for model, count in refused.items():
            facts = {"status": RetryError.status, "model": model, "count": count}
            log.warning("requests were refused in the last second", extra={"facts": facts})


def choose_id(headers: Mapping[bytes, bytes]) -> str:
    """The id that a client gives to its request, where it can stand in a log; else one that is made."""
    text = headers.get(b"x-request-id", b"").decode("latin-1")
    return text if _ID.fullmatch(text) else f"{random.getrandbits(128):032x}"
