"""Models of a server: opened, run once before they count as ready, opened anew where their folder changes."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from framework.core.errors import ConfigError, OarError, did_you_mean
from framework.core.process import cpu_count
from framework.core.types import JSON
from framework.export import Artifact
from framework.inference.engine import Engine
from framework.serving.batching import Batcher, Bucket
from framework.serving.budget import Budget
from framework.serving.errors import DeadlineError, UnknownModelError
from framework.serving.settings import Limits, ModelSettings, ServerSettings
from framework.serving.shared_runtime import SharedRuntime
from framework.serving.source import ServedSource
from framework.serving.text_models import ServedGenerator, find_generation
from framework.serving.warmup import BatchTimes, measure
from framework.workflow.domain.domain import Domain
from framework.workflow.domain.options import make_options
from framework.workflow.domain.predictor import (
    AnyPredictor,
    ImageItem,
    LanguagePredictor,
    Text,
)
from framework.workflow.domain.request_options import request_options
from framework.workflow.domain.result import Result
from framework.workflow.open.artifacts import find_artifact

log = logging.getLogger("oar.serving")
T = TypeVar("T")
Item = ImageItem | Text
Options = Mapping[str, JSON]
Outcome = Result | OarError
_VARIANTS = 8
"""Predictors of a model with other options than its fixed that are kept: those that were used last."""
_IMAGES = 8
"""Images of the largest size that are held decoded at a time."""
_PAGES = 4
"""Items that a pipeline of several programs takes at once: it works on two of them at a time."""


def make_runtime(settings: ModelSettings) -> SharedRuntime:
    """Where the programs of a model run: in this process."""
    return SharedRuntime(
        settings.device, settings.precision, settings.engine, settings.threads, settings.trust
    )


class ModelVersion:
    """An artifact that was opened, and its predictors: one for each set of options that requests give."""

    def __init__(self, settings: ModelSettings, runtime: SharedRuntime) -> None:
        self.settings, self.runtime = settings, runtime
        opened = find_artifact(
            settings.source, settings.overrides, None, self.runtime, dict(settings.options)
        )
        self.artifact: Artifact = opened.artifact
        self.domain: Domain[object] = opened.domain
        self.default = self._open({})
        self.times = BatchTimes()
        self._variants: OrderedDict[Hashable, AnyPredictor] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def engines(self) -> tuple[Engine, ...]:
        """What runs its programs."""
        return self.runtime.engines

    def warm_up(self) -> None:
        """Run the model, and measure what a batch saves."""
        self.times = measure(self.default, self.batch_size, self.settings.warmup)

    @functools.cached_property
    def batch_size(self) -> int:
        """Items that run together at most."""
        if self.settings.batch.size is not None:
            return self.settings.batch.size
        fixed = self.settings.options.get("batch_size") if not self.artifact.stages else None
        if isinstance(fixed, int):
            return fixed
        return _PAGES if self.artifact.stages else self.artifact.setting("batch_size", int, 8)

    @functools.cached_property
    def takes_one_size(self) -> bool:
        """Whether inputs of all sizes can stand in one batch: of a program of one size, and of pipelines."""
        engines = self.engines
        if len(engines) != 1:
            return True
        return all(isinstance(n, int) for spec in engines[0].inputs.values() for n in spec.shape[1:])

    def predictor(self, options: Options) -> AnyPredictor:
        """The predictor with these options of a request. Raises: OarError, where they are not of the model's."""
        if not options:
            return self.default
        values = request_options(self.domain.options, options, self.settings.name)
        key = tuple(sorted((name, str(value)) for name, value in values.items()))
        with self._lock:
            if key not in self._variants:
                self._variants[key] = self._open(values)
                while len(self._variants) > _VARIANTS:
                    self._variants.popitem(last=False)
            self._variants.move_to_end(key)
            return self._variants[key]

    def _open(self, values: Mapping[str, object]) -> AnyPredictor:
        options = make_options(
            self.domain.options, {**self.settings.options, **values}, f"the model {self.settings.name}"
        )
        opened = self.domain.open(self.artifact, options, self.runtime)
        if not opened.independent:
            raise ConfigError(
                "the results of this model depend on the images before, and those are of other clients",
                where=self.settings.name,
                received=", ".join(f"{name}={value}" for name, value in self.settings.options.items()),
                fix="leave the tracker out; `oar infer --video_file` follows objects",
            )
        return opened

    def bucket(self, predictor: AnyPredictor, item: Item) -> Bucket[Item, Outcome]:
        """What the item can run together with."""
        is_image = isinstance(item, ImageItem)
        size = item.image.shape[:2] if is_image and not self.takes_one_size else None
        return Bucket((id(predictor), size), functools.partial(self._run, predictor), self.batch_size)

    def _run(self, predictor: AnyPredictor, items: Sequence[Item]) -> Iterator[Outcome]:
        if isinstance(predictor, LanguagePredictor):
            return predictor.predict_attempts(item for item in items if not isinstance(item, ImageItem))
        if self.times.is_faster_alone(len(items), self.batch_size):
            return (result for item in items for result in predictor.predict_stream([item]))
        return predictor.predict_stream(items)


class ServedModel(ServedSource[ModelVersion]):
    """A model under its name: requests of all clients in, results out.

    Args:
        workers: Threads that open models, and read and write what requests hold.
        pixels: Of decoded images that all models share.
        observe: Called with the model's name, the number of items of each batch, and its seconds.
        runtime_of: Where its programs run.
    """

    def __init__(
        self,
        settings: ModelSettings,
        limits: Limits,
        workers: ThreadPoolExecutor,
        pixels: Budget,
        observe: Callable[[str, int, float], object] = lambda name, count, seconds: None,
        runtime_of: Callable[[ModelSettings], SharedRuntime] = make_runtime,
    ) -> None:
        super().__init__(settings, workers)
        self.limits, self._runtime_of, self.pixels = limits, runtime_of, pixels
        self.batcher: Batcher[Item, Outcome] = Batcher(
            settings.name,
            settings.batch.wait_ms / 1000,
            limits.queue,
            functools.partial(observe, settings.name),
            limits.wait,
        )

    @property
    def predictor(self) -> AnyPredictor:
        """With the model's fixed options. Raises: RetryError, before it is ready."""
        return self.version.default

    # -- opening -------------------------------------------------------------------------------------------------------

    @property
    def admitted(self) -> int:
        return self.batcher.admitted

    @property
    def _settle_seconds(self) -> float:
        return min(0.5, self.settings.batch.wait_ms / 1000 + 0.2)

    def _open_version(self) -> ModelVersion:
        version = ModelVersion(self.settings, self._runtime_of(self.settings))
        version.warm_up()
        self.batcher.load.seconds_alone = version.times.alone
        return version

    # -- running -------------------------------------------------------------------------------------------------------

    def deadline(self, seconds: float | None = None, began: float | None = None) -> float:
        """When a request that begins now, or began then, is late, in seconds of `time.monotonic`."""
        longest = self.limits.deadline
        began = time.monotonic() if began is None else began
        return began + (longest if seconds is None else min(seconds, longest))

    async def predictor_of(self, options: Options, version: ModelVersion | None = None) -> AnyPredictor:
        """The predictor with these options of a request. Raises: OarError, where they are not of the model's."""
        version = version or self.version
        return await self.in_thread(lambda: version.predictor(options)) if options else version.default

    async def predict(
        self,
        item: Item,
        options: Options | None = None,
        deadline: float | None = None,
        can_be_refused: bool = False,
    ) -> Result:
        """The result of one item, in a batch with those of other clients.

        Args:
            options: Of the domain's predictor, by name.
            deadline: As `deadline` gives it.
            can_be_refused: Whether it is all of a request, which an overloaded model may still refuse.

        Raises:
            DeadlineError: it was not there in time. RetryError: the model is not ready, or has too much to do.
            OarError: the item cannot be read, or an option is not one of the model's.
        """
        version = self.version
        predictor = await self.predictor_of(options or {}, version)
        deadline = self.deadline() if deadline is None else deadline
        future = self.batcher.submit(version.bucket(predictor, item), item, deadline, can_be_refused)
        outcome = await self.within(asyncio.wrap_future(future), deadline)
        if isinstance(outcome, OarError):
            raise outcome
        return outcome

    async def within(self, awaitable: Awaitable[T], deadline: float) -> T:
        """What an awaitable gives before the deadline. Raises: DeadlineError."""
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0.001)):
                return await awaitable
        except TimeoutError as error:
            if isinstance(error, DeadlineError):
                raise
            raise DeadlineError("the result was not there before the deadline of the request") from None

    async def close(self) -> None:
        """Finish what is under way."""
        await asyncio.get_running_loop().run_in_executor(None, self.batcher.close)


class ModelStore:
    """The models of a server by name."""

    def __init__(
        self,
        settings: ServerSettings,
        observe: Callable[[str, int, float], object] = lambda name, count, seconds: None,
        runtime_of: Callable[[ModelSettings], SharedRuntime] = make_runtime,
    ) -> None:
        self.settings = settings
        self._workers = ThreadPoolExecutor(cpu_count() + 1, "oar-serve")
        self.pixels = Budget(_IMAGES * settings.limits.pixels)
        self.models: dict[str, ServedModel] = {}
        self.generators: dict[str, ServedGenerator] = {}
        for one in settings.models:
            generation = find_generation(one)
            if generation is not None:
                self.generators[one.name] = ServedGenerator(one, generation, settings.limits, self._workers)
            else:
                self.models[one.name] = ServedModel(
                    one, settings.limits, self._workers, self.pixels, observe, runtime_of
                )
        self.draining = False

    def get(self, name: str) -> ServedModel:
        """The model of this name. Raises: UnknownModelError."""
        if name not in self.models:
            generates = name in self.generators
            raise UnknownModelError(
                "this model writes texts" if generates else "the server has no model of this name",
                received=name[:100],
                allowed=", ".join(self.models) or "none: it was started without such models",
                fix="POST /v1/chat/completions" if generates else did_you_mean(name[:100], self.models),
            )
        return self.models[name]

    def get_generator(self, name: str) -> ServedGenerator:
        """The model of this name that writes texts. Raises: UnknownModelError."""
        if name not in self.generators:
            raise UnknownModelError(
                "this model writes no texts"
                if name in self.models
                else "the server has no model of this name",
                received=name[:100],
                allowed=", ".join(self.generators) or "none: it was started without language models",
                fix=did_you_mean(name[:100], self.generators),
            )
        return self.generators[name]

    @property
    def sources(self) -> Sequence[ServedModel | ServedGenerator]:
        """All models."""
        return (*self.models.values(), *self.generators.values())

    @property
    def ready(self) -> bool:
        """Whether all models are, and the server takes requests for long enough yet."""
        return not self.draining and all(model.ready for model in self.sources)

    async def start(self) -> None:
        """Open all models, one after the other: each uses all CPUs. Raises: OarError, of the first that fails."""
        for model in self.sources:
            await model.start()

    async def watch(self) -> None:
        """Open models anew whose folders change, until it is cancelled."""
        while self.settings.reload_seconds:
            await asyncio.sleep(self.settings.reload_seconds)
            for model in self.sources:
                if model.ready:
                    await model.reload_if_changed()

    async def close(self) -> None:
        """Finish what is under way, and end all threads."""
        for model in self.sources:
            await model.close()
        self._workers.shutdown(wait=False, cancel_futures=True)
