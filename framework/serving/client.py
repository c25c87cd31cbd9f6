"""Clients of a server: the results that a predictor here would give, over HTTP.

    from framework.serving import Client

    with Client("http://127.0.0.1:8000", "resnet18") as client:
        result = client.predict("image.jpg")

A request that finds no connection, or a server that is busy or restarts, is sent again until its time is over. To
predict changes nothing on a server, so that it does not matter whether the first try has arrived.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, cast, overload

from framework.core.errors import ConfigError, InputError, OarError
from framework.core.types import JSON
from framework.serving.exchange import (
    LINES_TYPE,
    Call,
    Lines,
    Retries,
    ServerError,
    Source,
    direct_mounts,
    httpx,
    make_call,
    make_result,
    no_answer,
    raise_for_status,
    read_json,
    read_models,
    result_format,
)

if TYPE_CHECKING:
    from framework.workflow.domain.result import Result

log = logging.getLogger("oar")
_CONNECTIONS = 8


class ModelFacts(TypedDict):
    """What a server says of a model; only `name` and `ready` before it is ready."""

    name: str
    ready: bool
    domain: str
    takes: str
    formats: list[str]
    options: dict[str, dict[str, JSON]]


class _BaseClient:
    """What both clients are told.

    Args:
        url: Of the server.
        model: By name; None: the only one that the server has.
        api_key: Where the server asks for one.
        timeout: Seconds of a call with all its tries.
        retries: Tries of a request besides the first.
        connections: At a time, of a list of sources.
        verify: Whether, or by which authorities, the certificate of a server of HTTPS is checked.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        model: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        retries: int = 8,
        connections: int = _CONNECTIONS,
        verify: bool | ssl.SSLContext = True,
    ) -> None:
        self.url, self.model, self.timeout, self.retries = url.rstrip("/"), model, timeout, retries
        self.connections = connections
        self._verify = verify
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._facts: ModelFacts | None = None

    def _begin(self) -> Retries:
        return Retries.begin(self.timeout, self.retries)

    def _choose(self, models: Sequence[ModelFacts]) -> ModelFacts:
        """The facts of the model. Raises: ConfigError, where it is not there or none is named and there are several."""
        named = [one for one in models if self.model in (None, one["name"])]
        if len(named) != 1:
            raise ConfigError(
                "the server has no model of this name" if self.model else "the server has several models",
                where=self.url,
                received=self.model,
                allowed=", ".join(one["name"] for one in models) or "none: it has no models",
                fix="name one: Client(url, model)",
            )
        return named[0]

    def _make_call(
        self, facts: ModelFacts, source: Source, options: Mapping[str, object], format: str | None
    ) -> Call:
        return make_call(facts["name"], facts.get("takes", "image"), source, options, format)


def _only(entries: Sequence[Mapping[str, JSON]], domain: str, label: str) -> Result:
    """The first result, as a predictor gives the first page of an image. Raises: its error."""
    if not entries:
        raise ServerError("the server answered with no result", where=label)
    result = make_result(domain, entries[0], label)
    if isinstance(result, OarError):
        raise result
    if len(entries) > 1:
        log.warning("%s has %d pages, of which the first is here: see predict_stream", label, len(entries))
    return result


def _refuse_pdf(call: Call) -> None:
    if call.data is not None and call.data[:1024].lstrip().startswith(b"%PDF-"):
        raise InputError(
            "a PDF has a result for each page",
            where=call.label or "the file",
            fix="for page in client.predict_stream(source): …",
        )


def _entries(answer: httpx.Response) -> list[Mapping[str, JSON]]:
    """The objects of an answer: of one object, a list, or a line each."""
    if answer.headers.get("content-type", "").startswith(LINES_TYPE):
        lines = Lines()
        return [*lines.add(answer.content), *lines.end()]
    content = read_json(answer)
    return cast("list[Mapping[str, JSON]]", content if isinstance(content, list) else [content])


class Client(_BaseClient):
    """A client of a server; safe to use in threads. For its arguments see the base."""

    @functools.cached_property
    def _client(self) -> httpx.Client:
        mounts = direct_mounts(self.url)
        return httpx.Client(base_url=self.url, headers=self._headers, verify=self._verify, mounts=mounts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def models(self) -> list[ModelFacts]:
        """The server's models: name, domain, what each takes, its options."""
        retries = self._begin()
        answer = self._send(
            lambda: self._client.build_request("GET", "/v1/models", timeout=retries.seconds), retries
        )
        return cast("list[ModelFacts]", read_models(answer))

    def is_ready(self) -> bool:
        """Whether the server can be reached and all of its models are ready."""
        try:
            return self._client.get("/readyz", timeout=self.timeout).is_success
        except httpx.TransportError:
            return False

    @overload
    def predict(self, source: list[Source], **options: object) -> list[Result]: ...
    @overload
    def predict(self, source: Source, **options: object) -> Result: ...
    def predict(self, source: Source | list[Source], **options: object) -> Result | list[Result]:
        """The result of a source, or those of a list of sources in order, several of which are asked for at a time.

        Raises:
            InputError: a source cannot be read, here or there. ServerError: no answer in time.
        """
        if isinstance(source, list):
            with ThreadPoolExecutor(self.connections) as threads:
                return list(threads.map(lambda one: self.predict(one, **options), source))
        facts = self._describe()
        call = self._make_call(facts, source, options, result_format(facts["domain"]))
        _refuse_pdf(call)
        return _only(_entries(self._post(call)), facts["domain"], call.label)

    def predict_json(self, source: Source, **options: object) -> JSON:
        """What the server answers: the JSON of `oar infer`, of a document a list of its pages."""
        call = self._make_call(self._describe(), source, options, "json")
        return read_json(self._post(call))

    def predict_file(self, source: Source, format: str, **options: object) -> bytes:
        """The result in another format of the model, such as "png" (the drawing), "md" or "pdf"."""
        return self._post(self._make_call(self._describe(), source, options, format)).content

    def predict_stream(self, source: Source, **options: object) -> Iterator[Result | OarError]:
        """The result of each page of a PDF or of an image file, as the server has read it; in the place of a page that
        cannot be read stands its error. `timeout` counts for each page.

        Where the connection breaks, the rest is asked for anew.
        """
        facts = self._describe()
        call = self._make_call(facts, source, options, "ndjson")
        done, retries = 0, self._begin()
        while True:
            try:
                for number, entry in enumerate(self._lines(call, retries)):
                    if number >= done:
                        done = number + 1
                        retries = self._begin()
                        yield make_result(facts["domain"], entry, call.label)
                return
            except httpx.TransportError as error:
                self._wait(retries, error)

    def _lines(self, call: Call, retries: Retries) -> Iterator[Mapping[str, JSON]]:
        answer = self._send(lambda: call.build(self._client, retries.seconds), retries, stream=True)
        try:
            lines = Lines()
            for data in answer.iter_bytes():
                yield from lines.add(data)
            yield from lines.end()
        finally:
            answer.close()

    def _describe(self) -> ModelFacts:
        """What the server says of the model; asked for until the model is ready."""
        if self._facts is not None:
            return self._facts
        facts = self._choose(self.models())
        deadline = time.monotonic() + self.timeout
        while not facts.get("ready") and time.monotonic() < deadline:
            time.sleep(0.5)
            facts = self._choose(self.models())
        if not facts.get("ready"):
            raise ServerError("the model is not ready yet", status=503, where=facts["name"])
        self._facts = facts
        return facts

    def _post(self, call: Call) -> httpx.Response:
        retries = self._begin()
        return self._send(lambda: call.build(self._client, retries.seconds), retries)

    def _send(
        self, build: Callable[[], httpx.Request], retries: Retries, *, stream: bool = False
    ) -> httpx.Response:
        """The answer to a request. Raises: what it tells of."""
        while True:
            try:
                answer = self._client.send(build(), stream=stream)
            except httpx.TransportError as error:
                self._wait(retries, error)
                continue
            delay = retries.delay(answer)
            if delay is None:
                if stream and not answer.is_success:
                    answer.read()
                    answer.close()
                raise_for_status(answer)
                return answer
            answer.close()
            time.sleep(delay)

    def _wait(self, retries: Retries, error: httpx.TransportError) -> None:
        """Until the next try. Raises: ServerError, where there is none."""
        delay = retries.delay()
        if delay is None:
            raise no_answer(self.url, error) from error
        time.sleep(delay)


class AsyncClient(_BaseClient):
    """As `Client`, for asyncio."""

    @functools.cached_property
    def _client(self) -> httpx.AsyncClient:
        mounts = direct_mounts(self.url)
        return httpx.AsyncClient(base_url=self.url, headers=self._headers, verify=self._verify, mounts=mounts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def models(self) -> list[ModelFacts]:
        """The server's models: name, domain, what each takes, its options."""
        retries = self._begin()
        answer = await self._send(
            lambda: self._client.build_request("GET", "/v1/models", timeout=retries.seconds), retries
        )
        return cast("list[ModelFacts]", read_models(answer))

    async def is_ready(self) -> bool:
        """Whether the server can be reached and all of its models are ready."""
        try:
            return (await self._client.get("/readyz", timeout=self.timeout)).is_success
        except httpx.TransportError:
            return False

    @overload
    async def predict(self, source: list[Source], **options: object) -> list[Result]: ...
    @overload
    async def predict(self, source: Source, **options: object) -> Result: ...
    async def predict(self, source: Source | list[Source], **options: object) -> Result | list[Result]:
        """As `Client.predict`."""
        if isinstance(source, list):
            free = asyncio.Semaphore(self.connections)

            async def predict_one(one: Source) -> Result:
                async with free:
                    return cast("Result", await self.predict(one, **options))

            return list(await asyncio.gather(*map(predict_one, source)))
        facts = await self._describe()
        call = self._make_call(facts, source, options, result_format(facts["domain"]))
        _refuse_pdf(call)
        return _only(_entries(await self._post(call)), facts["domain"], call.label)

    async def predict_json(self, source: Source, **options: object) -> JSON:
        """As `Client.predict_json`."""
        call = self._make_call(await self._describe(), source, options, "json")
        return read_json(await self._post(call))

    async def predict_file(self, source: Source, format: str, **options: object) -> bytes:
        """As `Client.predict_file`."""
        call = self._make_call(await self._describe(), source, options, format)
        return (await self._post(call)).content

    async def predict_stream(self, source: Source, **options: object) -> AsyncIterator[Result | OarError]:
        """As `Client.predict_stream`."""
        facts = await self._describe()
        call = self._make_call(facts, source, options, "ndjson")
        done, retries = 0, self._begin()
        while True:
            try:
                number = 0
                async for entry in self._lines(call, retries):
                    number += 1
                    if number > done:
                        done = number
                        retries = self._begin()
                        yield make_result(facts["domain"], entry, call.label)
                return
            except httpx.TransportError as error:
                await self._wait(retries, error)

    async def _lines(self, call: Call, retries: Retries) -> AsyncIterator[Mapping[str, JSON]]:
        answer = await self._send(lambda: call.build(self._client, retries.seconds), retries, stream=True)
        try:
            lines = Lines()
            async for data in answer.aiter_bytes():
                for entry in lines.add(data):
                    yield entry
            for entry in lines.end():
                yield entry
        finally:
            await answer.aclose()

    async def _describe(self) -> ModelFacts:
        if self._facts is not None:
            return self._facts
        facts = self._choose(await self.models())
        deadline = time.monotonic() + self.timeout
        while not facts.get("ready") and time.monotonic() < deadline:
            await asyncio.sleep(0.5)
            facts = self._choose(await self.models())
        if not facts.get("ready"):
            raise ServerError("the model is not ready yet", status=503, where=facts["name"])
        self._facts = facts
        return facts

    async def _post(self, call: Call) -> httpx.Response:
        retries = self._begin()
        return await self._send(lambda: call.build(self._client, retries.seconds), retries)

    async def _send(
        self, build: Callable[[], httpx.Request], retries: Retries, *, stream: bool = False
    ) -> httpx.Response:
        while True:
            try:
                answer = await self._client.send(build(), stream=stream)
            except httpx.TransportError as error:
                await self._wait(retries, error)
                continue
            delay = retries.delay(answer)
            if delay is None:
                if stream and not answer.is_success:
                    await answer.aread()
                    await answer.aclose()
                raise_for_status(answer)
                return answer
            await answer.aclose()
            await asyncio.sleep(delay)

    async def _wait(self, retries: Retries, error: httpx.TransportError) -> None:
        delay = retries.delay()
        if delay is None:
            raise no_answer(self.url, error) from error
        await asyncio.sleep(delay)
