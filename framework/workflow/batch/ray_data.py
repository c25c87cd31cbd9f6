"""A batch on the workers of Ray Data: a pool of actors that open the model once, each shard of sources a task.

Ray Data starts and restarts the workers and hands out the shards. Rows do not go through it: an error there ends a
whole job, or loses a whole block of rows. A worker writes the file of its shard itself, see `parts`.
"""

from __future__ import annotations

import faulthandler
import logging
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tqdm import tqdm

from framework.core.errors import ConfigError, InputError
from framework.core.process import cpu_count
from framework.core.types import JSON
from framework.inference import Runtime, keep_memory
from framework.workflow.batch.cluster import connect, import_ray
from framework.workflow.batch.inputs import SourceRef, list_inputs, read_sources
from framework.workflow.batch.parts import Format, PartFolder, Shard, compute_shard, make_shards
from framework.workflow.batch.rows import ResultRow, predict_rows
from framework.workflow.domain.outputs import Report
from framework.workflow.domain.predictor import AnyPredictor
from framework.workflow.open.artifacts import find_artifact
from framework.workflow.open.predict import open_predictor

log = logging.getLogger("oar")
_WORK = "oar infer --ray"
_MOST_BLOCKS = 2000  # of Ray Data: tasks that it keeps account of
_MOST_NAMED = 20  # errors that the report names; the rows have all


@dataclass(frozen=True)
class BatchModel:
    """A model that every worker opens for itself."""

    model: str
    runtime: Runtime = field(default_factory=Runtime)
    overrides: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)

    def make_predictor(self) -> AnyPredictor:
        """Its predictor."""
        return open_predictor(
            self.model, runtime=self.runtime, overrides=self.overrides, options=self.options
        )

    def make_artifact(self) -> None:
        """Export it where that was not done yet: once, and not in each worker. Raises: OarError."""
        find_artifact(self.model, self.overrides, None, self.runtime, self.options)

    def describe(self) -> dict[str, JSON]:
        """What results depend on."""
        options = {name: str(value) for name, value in self.options.items() if value is not None}
        return {"model": self.model, "overrides": list(self.overrides), "options": options}


@dataclass(frozen=True)
class BatchOptions:
    """How a batch runs.

    Attributes:
        address: Of a cluster, as `framework.workflow.batch.cluster.connect` takes it.
        workers: Processes with the model; None: one for each node of the cluster.
        cpus, gpus: That are reserved for each; None: all of a node by equal shares of its workers, and no GPU.
        shard_size: Sources of one file of results: what is done again where a worker dies.
        column: Of tables: what is read.
        timeout: Seconds without a row after which a worker counts as dead; None: it may take as long as it takes.
        retry_failed: Whether the sources whose rows are errors are done again.

    Raises:
        InputError: a number is out of range.
    """

    address: str | None = None
    workers: int | None = None
    cpus: float | None = None
    gpus: float = 0.0
    shard_size: int = 64
    column: str | None = None
    timeout: float | None = None
    retry_failed: bool = False

    def __post_init__(self) -> None:
        for name in ("workers", "shard_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name} is out of range", received=value, allowed="1 or more")
        if self.timeout is not None and self.timeout <= 0:
            raise InputError("--timeout is out of range", received=self.timeout, allowed="seconds")


class RowWorker:
    """An actor of the pool."""

    def __init__(
        self,
        model: BatchModel,
        folder: PartFolder,
        run: str,
        column: str | None,
        timeout: float | None = None,
    ) -> None:
        keep_memory()
        self._predictor = model.make_predictor()
        self._folder, self._run, self._column, self._timeout = folder, run, column, timeout

    def __call__(self, task: Mapping[str, str]) -> dict[str, object]:
        """The number of rows that were written, and the errors among them."""
        shard = Shard.from_json(task["shard"])
        rows = compute_shard(self._folder, self._run, shard, self._predict)
        if rows is None:  # written before the worker died that did it, which told nobody of its errors
            failed = self._folder.errors(shard)
        else:
            failed = [(row.source, row.error) for row in rows if row.error is not None]
        errors = [error if source in error else f"{source}: {error}" for source, error in failed]
        return {"rows": len(shard.references), "errors": len(errors), "messages": errors[:_MOST_NAMED]}

    def _predict(self, references: Sequence[SourceRef]) -> Iterator[ResultRow]:
        self._watch()
        try:
            for row in predict_rows(self._predictor, read_sources(references, self._column)):
                self._watch()
                yield row
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        """End this process where the next row does not come in time, whatever it does then."""
        if self._timeout is not None:
            faulthandler.dump_traceback_later(self._timeout, exit=True, file=sys.__stderr__ or sys.stderr)


def run_batch(
    model: BatchModel,
    names: Sequence[str],
    output_dir: Path,
    format: Format = "parquet",
    options: BatchOptions | None = None,
) -> Report:
    """A row for each source that the names stand for, in files of `output_dir`; those that are there stay.

    Raises: OarError: nothing can be read, the model cannot be opened, no cluster answers; MissingExtraError.
    """
    options = options or BatchOptions()
    import_ray("ray.data", _WORK)
    inputs = list_inputs(names, output_dir, options.column)
    folder, report = PartFolder(output_dir.absolute(), format), Report(notes=list(inputs.notes))
    with folder.open({**model.describe(), "column": options.column}):
        if options.retry_failed and (failed := folder.drop_failed()):
            report.notes.append(f"{failed} rows with an error are done again")
        finished = folder.finished()
        shards = list(make_shards(inputs.references, finished, options.shard_size))
        left = sum(len(one.references) for one in shards)
        if before := len(inputs.references) - left:
            report.notes.append(f"{before} of {len(inputs.references)} were done before")
        if shards:
            model.make_artifact()
            folder.forget_attempts()  # of runs before, whose workers died with them
            _run(model, folder, shards, options, report)
            folder.forget_attempts()
        report.written = sorted(folder.path.glob(f"part-*.{format}"))
    return report


def _run(
    model: BatchModel, folder: PartFolder, shards: Sequence[Shard], options: BatchOptions, report: Report
) -> None:
    run = secrets.token_hex(4)
    cpus = (options.workers or 1) * (options.cpus or 0)
    with connect(options.address, _WORK, cpus) as ray:
        data = import_ray("ray.data", _WORK)
        context = data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        workers, share = plan_workers(options, [one for one in ray.nodes() if one["Alive"]])
        tasks = data.from_items(
            [{"shard": one.to_json()} for one in shards], override_num_blocks=min(len(shards), _MOST_BLOCKS)
        )
        # Workers that die are started again, and their shards with them, as often as it takes: Ray Data's default.
        if (
            workers > 1 and model.runtime.threads is None and share >= 1
        ):  # else each takes all CPUs of its node
            model = replace(model, runtime=replace(model.runtime, threads=int(share)))
        done = tasks.map(
            RowWorker,
            fn_constructor_args=(model, folder, run, options.column, options.timeout),
            compute=data.ActorPoolStrategy(size=min(workers, len(shards))),
            num_cpus=share,
            num_gpus=options.gpus,
        )
        rows = errors = 0
        total = sum(len(one.references) for one in shards)
        with tqdm(total=total, unit="file", disable=not sys.stderr.isatty()) as bar:
            try:
                for one in done.iter_rows():
                    rows, errors = rows + one["rows"], errors + one["errors"]
                    for message in one["messages"][: _MOST_NAMED - len(report.failed)]:
                        report.failed.append((message.partition(": ")[0], message))
                    bar.update(one["rows"])
            except import_ray("ray.exceptions", _WORK).RayError as error:
                raise ConfigError(
                    "the workers cannot go on",
                    where=_WORK,
                    received=str(getattr(error, "cause", None) or error).strip()[-2000:],
                    fix="the same command goes on where this one has ended",
                ) from error
    note = f"{rows} rows written, {errors} of them with an error"
    report.notes.append(note if errors <= len(report.failed) else f"{note}, such as those below")


def plan_workers(
    options: BatchOptions, nodes: Sequence[Mapping[str, Mapping[str, float]]]
) -> tuple[int, float]:
    """Workers, and the CPUs that each reserves: of one node, which all are taken to be like."""
    workers = options.workers or len(nodes)
    if options.cpus is not None:
        return workers, options.cpus
    fewest = min((one["Resources"].get("CPU", 1.0) for one in nodes), default=float(cpu_count()))
    together = -(-workers // max(len(nodes), 1))
    return workers, max(fewest / together, 0.01)
