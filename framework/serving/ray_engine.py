"""A stage of a pipeline in a deployment of its own: an Engine whose program runs in another process of Ray Serve.

The pipeline itself is the one of a single process, so that its results are too; what differs is where arrays go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import ConfigError, OarError
from framework.export import Artifact
from framework.inference import keep_memory
from framework.inference.engine import Engine, TensorShape
from framework.serving.errors import DeadlineError
from framework.serving.models import make_runtime
from framework.serving.settings import ModelSettings
from framework.serving.shared_runtime import SharedRuntime
from framework.workflow.batch.cluster import import_ray
from framework.workflow.open.artifacts import find_artifact

_TRIES = 5  # of a call whose replica dies: a program may run twice, it changes nothing
_PAUSE = 0.2  # seconds before another replica is asked


class EngineFacts(NamedTuple):
    """What a pipeline asks an engine."""

    inputs: Mapping[str, TensorShape]
    outputs: Mapping[str, TensorShape]
    takes_any_shape: bool


class StageReplica:
    """One replica of the deployment of a stage. Raises: ConfigError, where the model has no such stage."""

    def __init__(self, settings: ModelSettings, stage: str) -> None:
        keep_memory()
        runtime = make_runtime(settings)
        opened = find_artifact(settings.source, settings.overrides, None, runtime, dict(settings.options))
        stages = opened.artifact.stages
        if stage not in stages:
            raise ConfigError(
                "the model has no such stage",
                where=f"{settings.name}: stages",
                received=stage,
                allowed=", ".join(stages)
                or "none: it is one program, whose replicas are those of the server",
            )
        self._engine = runtime.open(stages[stage])

    async def describe(self) -> EngineFacts:
        """What a pipeline asks."""
        engine = self._engine
        return EngineFacts(dict(engine.inputs), dict(engine.outputs), engine.takes_any_shape)

    async def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name."""
        return await asyncio.to_thread(self._engine, inputs)

    async def prepare(self, shapes: list[Mapping[str, tuple[int, ...]]]) -> None:
        """As `Engine.prepare`."""
        self._engine.prepare(shapes)


class _Response(Protocol):
    def result(self, *, timeout_s: float | None = None) -> object: ...


class _Method(Protocol):
    def remote(self, *arguments: object) -> _Response: ...


class StageHandle(Protocol):
    """A handle of Ray Serve of the deployment of `StageReplica`."""

    @property
    def describe(self) -> _Method: ...
    @property
    def run(self) -> _Method: ...
    @property
    def prepare(self) -> _Method: ...


class RemoteEngine:
    """The engine of a stage, in whichever replica is free. Safe in threads, but not in the loop of asyncio.

    Args:
        seconds: That a call takes at most, with the time that it waits for a replica.
    """

    compile_count = 0

    def __init__(self, handle: StageHandle, seconds: float) -> None:
        self._handle, self._seconds = handle, seconds
        facts = _Call(handle.describe, (), seconds).result()
        assert isinstance(facts, EngineFacts)
        self.inputs, self.outputs, self.takes_any_shape = facts

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """Outputs by name. Raises: DeadlineError; what the engine raises there."""
        return dict(self.start(inputs))

    def start(self, inputs: Mapping[str, ArrayLike]) -> Mapping[str, np.ndarray]:
        """The outputs, which are waited for when one is looked at."""
        arrays = {name: np.asarray(value) for name, value in inputs.items()}
        return _Outputs(_Call(self._handle.run, (arrays,), self._seconds), tuple(self.outputs))

    def prepare(self, shapes: Iterable[Mapping[str, tuple[int, ...]]]) -> None:
        """In one replica; others follow when they see the shapes."""
        if listed := [dict(one) for one in shapes]:
            self._handle.prepare.remote(listed)


class _Call:
    """A call of a replica that is under way, and begins anew where the replica dies."""

    def __init__(self, method: _Method, arguments: tuple[object, ...], seconds: float) -> None:
        self._method, self._arguments = method, arguments
        self._deadline = time.monotonic() + seconds
        self._response = method.remote(*arguments)

    def result(self) -> object:
        """What it returns. Raises: DeadlineError; OarError, as it was raised there."""
        exceptions = import_ray("ray.exceptions", "stages on Ray")
        for left in range(_TRIES - 1, -1, -1):
            try:
                return self._response.result(timeout_s=max(self._deadline - time.monotonic(), 0.001))
            except exceptions.RayTaskError as error:
                if isinstance(error.cause, OarError):
                    raise error.cause from None
                raise
            except TimeoutError:
                raise DeadlineError("a stage of the model did not answer in time") from None
            except exceptions.RayActorError:
                if not left:
                    raise
                time.sleep(_PAUSE)
                self._response = self._method.remote(*self._arguments)
        raise AssertionError


class _Outputs(Mapping[str, np.ndarray]):
    def __init__(self, call: _Call, names: tuple[str, ...]) -> None:
        self._call, self._names = call, names
        self._arrays: Mapping[str, np.ndarray] | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        if self._arrays is None:
            arrays = self._call.result()
            assert isinstance(arrays, dict)
            self._arrays = arrays
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class StageRuntime(SharedRuntime):
    """As `SharedRuntime`; programs of the stages that have a deployment run there."""

    @classmethod
    def of(cls, settings: ModelSettings, handles: Mapping[str, StageHandle], seconds: float) -> StageRuntime:
        """The runtime of a model whose stages of these names have deployments."""
        runtime = cls(settings.device, settings.precision, settings.engine, settings.threads, settings.trust)
        object.__setattr__(runtime, "_handles", handles)
        object.__setattr__(runtime, "_seconds", seconds)
        return runtime

    _handles: Mapping[str, StageHandle]
    _seconds: float

    def open_engine(self, artifact: Artifact) -> Engine:
        name = "" if artifact.folder is None else artifact.folder.name
        if name in self._handles:
            return RemoteEngine(self._handles[name], self._seconds)
        return super().open_engine(artifact)
