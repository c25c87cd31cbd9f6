"""The application of a server as a deployment of Ray Serve, which starts, watches and scales its replicas."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import FrameType, ModuleType

from fastapi import FastAPI

from framework.core.errors import ConfigError
from framework.inference import keep_memory
from framework.serving.app import create_app, read_keys
from framework.serving.logs import server_logs, set_up_logs
from framework.serving.models import make_runtime
from framework.serving.ray_engine import StageHandle, StageReplica, StageRuntime
from framework.serving.ray_retry import CALLBACK, IMPORT_PATH
from framework.serving.settings import ModelSettings, RaySettings, ServerSettings
from framework.serving.shared_runtime import SharedRuntime
from framework.workflow.batch.cluster import connect, import_ray

log = logging.getLogger("oar.serving")
APPLICATION = "oar"
_LOOK = 1.0  # seconds between two looks at the application
_STAGE_CALLS = 2  # of a replica of a stage: one runs while the arrays of another come
_STARTS = 2  # tries to start a replica
_WORK = "oar serve --ray"


class ServerReplica:
    """One replica: the application with all models, which are open before it takes requests."""

    async def __init__(
        self, settings: ServerSettings, stages: Mapping[str, Mapping[str, StageHandle]]
    ) -> None:
        set_up_logs(settings.log_format)
        keep_memory()
        self._application = create_app(
            settings, runtime_of=functools.partial(_runtime_of, stages, settings.limits.deadline)
        )
        await self._application.state.store.start()

    def __serve_build_asgi_app__(self) -> FastAPI:
        return self._application


def _runtime_of(
    stages: Mapping[str, Mapping[str, StageHandle]], seconds: float, settings: ModelSettings
) -> SharedRuntime:
    handles = stages.get(settings.name)
    return StageRuntime.of(settings, handles, seconds) if handles else make_runtime(settings)


def _replica_options(settings: ServerSettings) -> dict[str, object]:
    options = settings.ray or RaySettings()
    return {
        "ray_actor_options": {"num_cpus": options.cpus, "num_gpus": options.gpus},
        "graceful_shutdown_timeout_s": settings.limits.deadline,
        "graceful_shutdown_wait_loop_s": 0.2,
        "max_constructor_retry_count": _STARTS,
        "health_check_period_s": 2,
    }


def stage_application(settings: ServerSettings, model: ModelSettings, stage: str) -> object:
    """What `serve.run` takes for a stage of a pipeline."""
    deployment = import_ray("ray.serve", _WORK).deployment(
        StageReplica,
        name=f"{model.name}.{stage}",
        num_replicas=model.stages[stage],
        max_ongoing_requests=_STAGE_CALLS,
        **_replica_options(settings),
    )
    return deployment.bind(model, stage)


def server_application(
    settings: ServerSettings, stages: Mapping[str, Mapping[str, StageHandle]] | None = None
) -> object:
    """What `serve.run` takes for the server.

    Args:
        stages: Of each model by name, the handles of its stages that have deployments.
    """
    serve, options = import_ray("ray.serve", _WORK), settings.ray or RaySettings()
    under_way = settings.limits.queue * len(settings.models)
    # At the proxy waits what is being sent to a replica, too: a queue for one would refuse what all have room for.
    waiting = under_way * _most_replicas(options) if options.max_queued is None else options.max_queued
    scale: dict[str, object] = {"num_replicas": options.replicas}
    if options.replicas == "auto":
        scale["autoscaling_config"] = {
            "min_replicas": options.min_replicas,
            "max_replicas": options.max_replicas,
            "target_ongoing_requests": options.target_requests,
            "upscale_delay_s": options.upscale_seconds,
            "downscale_delay_s": options.downscale_seconds,
        }
    deployment = serve.deployment(
        serve.ingress()(ServerReplica),
        name="server",
        max_ongoing_requests=under_way,
        max_queued_requests=waiting,
        **scale,
        **_replica_options(settings),
    )
    return deployment.bind(settings, stages or {})


def _most_replicas(options: RaySettings) -> int:
    return options.max_replicas if options.replicas == "auto" else options.replicas


def reserved_cpus(settings: ServerSettings) -> float:
    """CPUs that all replicas reserve together, at most."""
    options = settings.ray or RaySettings()
    return options.cpus * (
        _most_replicas(options) + sum(sum(model.stages.values()) for model in settings.models)
    )


def serve_on_ray(settings: ServerSettings) -> int:
    """Serve until SIGTERM or Ctrl+C; requests that are under way are answered then. Returns the exit status.

    Raises: MissingExtraError; ConfigError: no cluster answers, the address is taken, or a model cannot be opened.
    """
    with server_logs(settings.log_format):
        return _serve_on_ray(settings)


def _serve_on_ray(settings: ServerSettings) -> int:
    keys = read_keys(settings)  # here, as the environment and files of other machines may differ
    settings = replace(settings, api_keys=keys, api_key_file=None)
    options = settings.ray or RaySettings()
    # The proxies of a Ray that is started here read it; a cluster's nodes have environments of their own.
    os.environ.setdefault(CALLBACK, IMPORT_PATH)
    # Inside, as Ray brings signal handlers of its own.
    with connect(options.address, _WORK, reserved_cpus(settings)), _until_stopped():
        serve = import_ray("ray.serve", _WORK)
        deployed = None
        try:
            _start(serve, settings)
            deployed = _deploy_time(serve)
            scheme = "http" if settings.tls_cert is None else "https"
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            names = ", ".join(model.name for model in settings.models)
            facts = {
                "url": f"{scheme}://{host}:{settings.port}",
                "models": names,
                "replicas": options.replicas,
            }
            log.info("listening on %s", facts["url"], extra={"facts": facts})
            _watch(serve)
        finally:
            with _ignoring_stops():
                if deployed in (None, _deploy_time(serve)):
                    _delete(serve, settings)
                else:
                    log.info("another server has taken over, and goes on")
    return 0


def _delete(serve: ModuleType, settings: ServerSettings) -> None:
    """Stop the server, whose requests under way are answered, and then its stages, which it needs for that."""
    for name in (APPLICATION, *_stage_names(settings)):
        try:
            serve.delete(name)
        except TimeoutError as error:
            log.warning("%s", error)


def _stage_names(settings: ServerSettings) -> dict[str, tuple[ModelSettings, str]]:
    """The applications of stages by name. They are apart, as the deployments of one application end together."""
    return {
        f"{APPLICATION}.{model.name}.{stage}": (model, stage)
        for model in settings.models
        for stage in model.stages
    }


def _deploy_time(serve: ModuleType) -> float | None:
    """When the application was deployed last: by this process, or by another one that took its place since."""
    application = serve.status().applications.get(APPLICATION)
    return None if application is None else application.last_deployed_time_s


def _start(serve: ModuleType, settings: ServerSettings) -> None:
    http = {
        "host": settings.host,
        "port": settings.port,
        "ssl_certfile": None if settings.tls_cert is None else str(settings.tls_cert),
        "ssl_keyfile": None if settings.tls_key is None else str(settings.tls_key),
    }
    logs = {
        "encoding": "JSON" if settings.log_format == "json" else "TEXT",
        "log_level": "WARNING",  # the log of the server itself has requests
        "enable_access_log": False,
    }
    try:
        serve.start(http_options=http, logging_config=logs)
        handles: dict[str, dict[str, StageHandle]] = {}
        for name, (model, stage) in _stage_names(settings).items():
            application = stage_application(settings, model, stage)
            handle = serve.run(application, name=name, route_prefix=None, logging_config=logs)
            handles.setdefault(model.name, {})[stage] = handle
        serve.run(
            server_application(settings, handles), name=APPLICATION, route_prefix="/", logging_config=logs
        )
    except (RuntimeError, ValueError) as error:
        raise ConfigError(
            "the deployment did not become ready", where="Ray Serve", received=_reason(serve, str(error))
        ) from error


def _reason(serve: ModuleType, text: str) -> str:
    """The error of ours that a replica tells of, without the traceback; else what Ray says."""
    for application in serve.status().applications.values():
        text = "\n".join([text, *(one.message for one in application.deployments.values() if one.message)])
    matches = re.findall(
        r"^framework\.[\w.]+?(?:Error|Exception): (.*(?:\n  [a-z ]+: .*)*)", text, re.MULTILINE
    )
    return matches[-1] if matches else text.strip()[-2000:]


def _watch(serve: ModuleType) -> None:
    """Log what changes of the application, until it is stopped."""
    before = ""
    while True:
        application = serve.status().applications.get(APPLICATION)
        status = "deleted" if application is None else str(application.status.value).lower()
        if status != before:
            facts = {"status": status, "reason": application.message if application is not None else ""}
            log.log(
                logging.INFO if status == "running" else logging.WARNING,
                "application",
                extra={"facts": facts},
            )
            before = status
        if application is None:  # somebody else has deleted it
            return
        time.sleep(_LOOK)


class _Stop(BaseException):
    """SIGTERM or Ctrl+C."""


@contextlib.contextmanager
def _until_stopped() -> Iterator[None]:
    """Leave the block where SIGTERM or Ctrl+C comes."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stop

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _Stop:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _ignoring_stops() -> Iterator[None]:
    """A second signal does not cut the end short; SIGKILL does."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
