"""What a server is: its models, limits and keys; from flags of `oar serve` or from a YAML file of these fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from framework.config import bind, load
from framework.core.errors import ConfigError
from framework.inference.runtime import ENGINES

OptionValue: TypeAlias = bool | int | float | str | tuple[bool | int | float | str, ...] | None
"""What an option of a predictor may be in a YAML file."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+")
_ROOT = re.compile(r"(?:/[^/?#\s]+)+")
MB = 1 << 20


def _check_least(where: str, value: float, least: float) -> None:
    if not value >= least:
        raise ConfigError("the value is too small", where=where, received=value, allowed=f"{least:g} or more")


@dataclass(frozen=True)
class BatchSettings:
    """How the requests of all clients share batches.

    Attributes:
        size: Requests that run together at most; None: the batch size of the model. 1: each runs alone.
        wait_ms: How long the oldest request waits for others, where others are on their way.
    """

    size: int | None = None
    wait_ms: float = 5.0

    def __post_init__(self) -> None:
        _check_least("batch.size", 1 if self.size is None else self.size, 1)
        _check_least("batch.wait_ms", self.wait_ms, 0)


@dataclass(frozen=True)
class ModelSettings:
    """One model of a server.

    Attributes:
        source: The name of a configuration, a configuration file (.yml), or an artifact's folder.
        name: In addresses: letters, digits, `.`, `_`, `-`. Empty: the last part of `source`, without .yml.
        options: Of the domain's predictor, which requests may change.
        overrides: Of the configuration, as `-o` of `oar infer`: "a.b=value".
        device, engine, precision, threads, trust: As of `framework.inference.Runtime`.
        batch: How its requests share batches.
        warmup: Files of images, or texts, that it runs before it is ready; empty: an image, or a text, that is made.
        stages: On Ray, the stages of a pipeline that are deployments of their own, by name, and the replicas of each.

    Raises:
        ConfigError: the name cannot stand in an address, or there is no such engine.
    """

    source: str
    name: str = ""
    options: dict[str, OptionValue] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    device: str | None = None
    engine: str = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    threads: int | None = None
    trust: bool = False
    batch: BatchSettings = BatchSettings()
    warmup: tuple[str, ...] = ()
    stages: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            last = self.source.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
            object.__setattr__(self, "name", re.sub(r"\.ya?ml$", "", last))
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                "the model's name cannot stand in an address",
                where=self.source,
                received=repr(self.name),
                allowed="letters, digits, `.`, `_` and `-`, beginning with a letter or a digit",
                fix="name: <another>, or NAME=SOURCE on the command line",
            )
        if self.engine not in ENGINES:
            raise ConfigError(
                "unknown engine", where=self.name, received=repr(self.engine), allowed=", ".join(ENGINES)
            )
        for stage, replicas in self.stages.items():
            _check_least(f"{self.name}: stages.{stage}", replicas, 1)


@dataclass(frozen=True)
class Limits:
    """What a request may be and take, checked before anything of it is decoded.

    Attributes:
        body_mb: MiB of one request's body.
        bodies_mb: MiB of the bodies of all requests that are under way; more are told to come again.
        pixels: Of one image or page.
        side: Pixels of the longer side of one: strips of a few rows cost models that look at them piece by piece far
            more than their pixels say. JPEG has no longer ones.
        pages: Of one PDF or image file.
        items: Images or texts of one request.
        queue: Requests of one model that are under way at a time: that are read, decoded, waiting or running. More are
            answered with 503 at once, so that those that are taken are not late. Where that goes on, fewer are taken:
            `framework.serving.overload`.
        wait: Seconds that a request may have to wait for those before it, as far as the time of the last ones tells;
            more are answered with 503 at once. A bound on latency: about that of one request alone, plus this.
        deadline: Seconds of a request, or of a page of one with several; what is later is answered with 504.
        text_deadline: Seconds of a text that a language model writes, with its wait.
        read_seconds: Without a byte of a header or of a body, and of a whole header.
        idle_seconds: Of a connection between two requests. Proxies and clients send the next one over a connection that
            is there: where the server closes it first, that request is lost, and most of them close after 60 s.
        connections: At a time.
    """

    body_mb: float = 64
    bodies_mb: float = 512
    pixels: int = 50_000_000
    side: int = 65_535
    pages: int = 500
    items: int = 64
    queue: int = 32
    wait: float = 30.0
    deadline: float = 60.0
    text_deadline: float = 600.0
    read_seconds: float = 20.0
    idle_seconds: float = 75.0
    connections: int = 1000

    def __post_init__(self) -> None:
        for name in ("pixels", "side", "pages", "items", "queue", "connections"):
            _check_least(f"limits.{name}", getattr(self, name), 1)
        for name in (
            "body_mb",
            "bodies_mb",
            "wait",
            "deadline",
            "text_deadline",
            "read_seconds",
            "idle_seconds",
        ):
            _check_least(f"limits.{name}", getattr(self, name), 0.001)

    @property
    def body_bytes(self) -> int:
        """Of one request's body."""
        return int(self.body_mb * MB)

    @property
    def bodies_bytes(self) -> int:
        """Of all bodies under way; at least of one."""
        return max(int(self.bodies_mb * MB), self.body_bytes)


@dataclass(frozen=True)
class RaySettings:
    """The server as a deployment of Ray Serve.

    Attributes:
        address: Of a cluster: "auto", "host:6379", "ray://host:10001". None: RAY_ADDRESS of the environment, else a Ray
            that is started on this machine and ends with the server.
        replicas: Processes with all models; "auto": as many as keep about `target_requests` under way in each.
        min_replicas, max_replicas: Of "auto".
        target_requests: Of "auto".
        upscale_seconds, downscale_seconds: Of "auto": for how long there have to be more, or fewer, requests than that.
        max_queued: Requests that wait at a proxy for a replica; more are answered with 503. None: `limits.queue` of
            each model and replica.
        cpus, gpus: That are reserved for each replica, of the server and of stages.

    Raises:
        ConfigError: a number is out of range.
    """

    address: str | None = None
    replicas: int | Literal["auto"] = 1
    min_replicas: int = 1
    max_replicas: int = 4
    target_requests: float = 8.0
    upscale_seconds: float = 30.0
    downscale_seconds: float = 600.0
    max_queued: int | None = None
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        _check_least("ray.replicas", 1 if self.replicas == "auto" else self.replicas, 1)
        _check_least("ray.min_replicas", self.min_replicas, 1)
        _check_least("ray.max_replicas", self.max_replicas, self.min_replicas)
        _check_least("ray.target_requests", self.target_requests, 0.01)
        _check_least("ray.upscale_seconds", self.upscale_seconds, 0)
        _check_least("ray.downscale_seconds", self.downscale_seconds, 0)
        _check_least("ray.max_queued", 0 if self.max_queued is None else self.max_queued, 0)
        _check_least("ray.cpus", self.cpus, 0)
        _check_least("ray.gpus", self.gpus, 0)


@dataclass(frozen=True)
class ServerSettings:
    """A server and its models.

    Attributes:
        host: 127.0.0.1 is reached from this machine alone; 0.0.0.0 from others too.
        port: 0 takes a free one, which the log names.
        workers: Processes, each with its own models.
        allow_url: Whether requests may name an address (http, https) to fetch.
        allow_private_url: Whether such an address may be of this machine or of a private network.
        api_keys: Requests need one of them, as `Authorization: Bearer KEY` or `X-API-Key: KEY`. Empty: none is needed.
        api_key_file: A file with a key a line, besides.
        allow_origins: Of web pages that may read answers in a browser, such as https://example.org; "*": of all. Empty:
            pages of this server alone.
        root_path: What a proxy before the server leaves of its own address in paths, such as /oar.
        tls_cert, tls_key: PEM files: HTTPS in the place of HTTP.
        log_format: "json": a line of JSON a request; "text": a line for people.
        reload_seconds: How often folders of artifacts are looked at for a change; 0: never.
        drain_seconds: How long the server still takes requests after SIGTERM, while it says that it is not ready.
        open_docs: Whether /openapi.json is served.
        ray: Where the server is a deployment of Ray Serve; None: it is a process of its own.

    Raises:
        ConfigError: two models have one name, one of certificate and key is missing, or settings are of Ray alone or
        not of Ray.
    """

    models: tuple[ModelSettings, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    limits: Limits = Limits()
    allow_url: bool = False
    allow_private_url: bool = False
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    api_key_file: Path | None = None
    allow_origins: tuple[str, ...] = ()
    root_path: str = ""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    log_format: Literal["json", "text"] = "json"
    reload_seconds: float = 2.0
    drain_seconds: float = 1.0
    open_docs: bool = True
    ray: RaySettings | None = None

    def __post_init__(self) -> None:
        _check_least("workers", self.workers, 1)
        _check_least("reload_seconds", self.reload_seconds, 0)
        _check_least("drain_seconds", self.drain_seconds, 0)
        if not 0 <= self.port <= 65535:
            raise ConfigError("there is no such port", where="port", received=self.port, allowed="0 to 65535")
        for origin in self.allow_origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ConfigError(
                    "this is no origin of web pages",
                    where="allow_origins",
                    received=repr(origin),
                    allowed='"*", or scheme, host and port alone: https://example.org, http://localhost:3000',
                )
        if self.root_path and not _ROOT.fullmatch(self.root_path):
            raise ConfigError(
                "this is no beginning of paths",
                where="root_path",
                received=repr(self.root_path),
                allowed="a path with a slash before it and none behind it: /oar",
            )
        names = [model.name for model in self.models]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(
                "two models have one name",
                where="models",
                received=", ".join(twice),
                fix="name: <another>, or NAME=SOURCE on the command line",
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError(
                "TLS needs a certificate and its key",
                where="tls_cert, tls_key",
                received="one of them",
                fix="name both PEM files, or none",
            )
        staged = [model.name for model in self.models if model.stages]
        if self.ray is None and staged:
            raise ConfigError(
                "stages are deployments of Ray",
                where=f"{staged[0]}: stages",
                received="a server without Ray",
                fix="--ray",
            )
        if self.ray is not None and self.workers > 1:
            raise ConfigError(
                "the processes of a server on Ray are its replicas",
                where="workers",
                received=self.workers,
                fix=f"--replicas {self.workers} in its place",
            )


def load_settings(path: str | Path, overrides: Sequence[str] = ()) -> ServerSettings:
    """The settings of a YAML file. Raises: ConfigError, with file, line and the nearest key where one is unknown."""
    return bind(load(path, overrides), ServerSettings)
