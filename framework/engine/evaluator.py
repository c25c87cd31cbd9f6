"""Run a task's inference over a data set and collect its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import numpy as np
from numpy.typing import ArrayLike

from framework.core.compilation import compile_options, enable_compilation_cache
from framework.core.dtypes import narrow
from framework.distributed import Partitioner
from framework.distributed.collectives import compile_together
from framework.engine.compile_notice import CompileNotice
from framework.engine.details import DetailedMetric, Details
from framework.engine.task import Metric, Task
from framework.io.device import without_texts
from framework.io.loader import DataLoader
from framework.nn.functional_core import GraphDef, State
from framework.nn.lookups import lookups
from framework.nn.mesh_scope import mesh_scope

SAMPLE_ID = "sample_id"  # the key under which metrics get the names of samples, [N] texts


class EvaluationCancelled(Exception):
    """`cancelled` of an evaluator said so; there are no scores."""


class Judge:
    """Runs inference over a data set and collects the metrics of a task; who computes it is up to `infer`.

    `loader` pads its last batch and marks the padding in `valid`, so that every batch has one shape. `cancelled` is
    asked before each batch.
    """

    def __init__(self, task: Task, loader: DataLoader, labels: tuple[str, ...] = ()) -> None:
        self.task, self.loader, self.labels = task, loader, labels
        self.cancelled: Callable[[], bool] = lambda: False
        self.first: tuple[dict, dict] | None = None  # (outputs, batch) of a run, arrays by name
        self._metrics: Mapping[str, Metric] = {}

    def judge(self, infer: Callable[[dict[str, np.ndarray]], Mapping[str, ArrayLike]]) -> dict[str, float]:
        """Scores by name, the one that decides first.

        Args:
            infer: The outputs of a batch of numbers; they may still be under way.

        Raises:
            EvaluationCancelled: as `cancelled` asks for.
        """
        metrics, self.first = self.task.metrics(self.labels), None
        waiting: list[tuple[dict, dict]] = []

        def collect() -> None:
            outputs, batch = waiting.pop(0)
            keep = batch.pop("valid")
            if not keep.any():  # a batch of samples that could not be read
                return
            outputs = {name: np.asarray(value)[keep] for name, value in outputs.items()}
            batch = {name: value[keep] for name, value in batch.items()}
            self.first = self.first or (outputs, batch)
            for metric in metrics.values():
                metric.update(outputs, batch)

        for batch in self.loader.batches(epoch=0):
            if self.cancelled():
                raise EvaluationCancelled
            numbers = without_texts(batch.data)
            arrays = {name: narrow(value, name) for name, value in numbers.items() if name != "valid"}
            names = [str(one) for one in batch.ids]
            padded = np.array(names + [""] * (len(batch.data["valid"]) - len(names)), np.str_)
            waiting.append((dict(infer(arrays)), {**batch.data, SAMPLE_ID: padded}))
            if len(waiting) > 1:  # the device works on one batch while another is judged
                collect()
        while waiting:
            collect()
        scores: dict[str, float] = {}
        for metric in metrics.values():
            scores |= metric.result()
        self._metrics = metrics
        return scores

    def details(self) -> Details | None:
        """What the last run told of each class, where a metric knows that."""
        detailed = (metric for metric in self._metrics.values() if isinstance(metric, DetailedMetric))
        return next((metric.details() for metric in detailed), None)


class Evaluator(Judge):
    """Evaluates parameters of one model; the program is compiled once. See `Judge`."""

    def __init__(
        self,
        graphdef: GraphDef,
        task: Task,
        loader: DataLoader,
        labels: tuple[str, ...] = (),
        partitioner: Partitioner | None = None,
    ) -> None:
        super().__init__(task, loader, labels)
        enable_compilation_cache()
        self.partitioner = partitioner

        scope = None if partitioner is None else partitioner.scope(training=False)

        def infer(params: State, buffers: State, batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
            model = graphdef.bind(params, buffers)
            mesh = None if partitioner is None else partitioner.mesh
            with mesh_scope(scope), lookups(model, mesh=mesh):
                return task.infer(model, batch)

        device = jax.local_devices()[0] if partitioner is None else partitioner.devices[0]
        # Every process judges all outputs, so that all come to the same decisions.
        self._together = partitioner is not None and partitioner.several_processes
        self._compile_notice = CompileNotice("the evaluation")
        out = partitioner.replicated if partitioner is not None and self._together else None
        self._infer = jax.jit(infer, compiler_options=compile_options(device), out_shardings=out)

    def run(self, params: State, buffers: State) -> dict[str, float]:
        """Scores by name, the one that decides first. `params` and `buffers` are the model's.

        Raises:
            EvaluationCancelled: as `cancelled` asks for.
        """

        def infer(arrays: dict[str, np.ndarray]) -> dict[str, jax.Array]:
            placed = arrays if self.partitioner is None else self.partitioner.place_batch(arrays)
            if not self._together:
                return self._infer(params, buffers, placed)
            with self._compile_notice.around(placed) as is_first:
                if is_first:
                    compile_together(self._infer.lower, params, buffers, placed)
                return self._infer(params, buffers, placed)

        return self.judge(infer)
