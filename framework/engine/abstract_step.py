"""The training step of a model that has no arrays yet, on a mesh that may not be here: traced, and compiled."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from framework.core.device import Device
from framework.distributed.layout import parameter_specs, state_specs, without_axis
from framework.distributed.mesh import AXES, BATCH_AXES, ParallelOptions
from framework.distributed.partitioner import Partitioner, StepShardings, path_names
from framework.distributed.planning.trace import Trace, flatten
from framework.engine.experiment import TrainOptions
from framework.engine.step import Step, TrainState, init_state, train_step, trained_graph
from framework.engine.task import Task
from framework.nn import functional_core
from framework.nn.functional.lowering import platform_scope
from framework.nn.functional.tables import table_shape
from framework.nn.layer import Layer
from framework.nn.lookups import table_layers
from framework.nn.mesh_scope import Gathered
from framework.optimizer.base import Optimizer

Shapes = Mapping[str, jax.ShapeDtypeStruct]


@dataclass(frozen=True)
class AbstractStep:
    """A training step by the shapes of its state and its batch; no parameter is drawn.

    Attributes:
        batch: Of the whole batch, by name.
        total_steps: For the schedule of the learning rate.
    """

    model: Layer
    task: Task
    optimizer: Optimizer
    options: TrainOptions
    batch: Shapes
    total_steps: int = 1000

    @functools.cached_property
    def state(self) -> TrainState:
        """The shapes of the state."""
        _, params, buffers = functional_core.abstract(self.model)
        _, groups = trained_graph(self.model, self.optimizer, self.options)
        tables = self.optimizer.table_groups(self.model)
        return jax.eval_shape(
            lambda p, b: init_state(p, b, groups, self.optimizer, self.options, tables), params, buffers
        )

    def trace(self, devices: int = 1) -> Trace:
        """The operations of a step that divides nothing; `sharding_constraint` stands where a parameter is gathered.

        Args:
            devices: Tables have a multiple of so many rows, as where they are dealt out.
        """
        state, device = self._round_tables(devices), jax.devices()[0]
        mesh = Mesh(np.array([device]).reshape((1,) * len(AXES)), AXES)
        whole = NamedSharding(mesh, PartitionSpec())
        shardings = StepShardings(
            mesh=mesh,
            state=jax.tree.map(lambda _: whole, state),
            log=whole,
            gathered={name: Gathered(whole, whole) for name in state.params if name not in self._tables},
            gradients=None,
            scope=None,
        )
        traced = self._step(device, shardings).trace(state, dict(self.batch))
        return flatten(traced.jaxpr)

    def inputs(self, options: ParallelOptions, sizes: Mapping[str, int]) -> list[PartitionSpec]:
        """The division of each argument of the traced program, as the Partitioner lays them out.

        Raises:
            ConfigError: a rule of names fits no parameter.
        """
        divided = parameter_specs(self.model, options, sizes)
        stored = divided
        if options.stage != 3:
            stored = {name: without_axis(spec, "fsdp") for name, spec in divided.items()}
        state = state_specs(self.state, divided, stored, sizes)
        dealt = PartitionSpec(tuple(AXES))
        state = jax.tree_util.tree_map_with_path(
            lambda path, spec, leaf: dealt if leaf.ndim and self._is_of_table(path) else spec,
            state,
            self.state,
            is_leaf=lambda one: isinstance(one, PartitionSpec),
        )
        count = math.prod(sizes[axis] for axis in BATCH_AXES)
        batch = {
            name: PartitionSpec(BATCH_AXES) if leaf.shape[0] % count == 0 else PartitionSpec()
            for name, leaf in self.batch.items()
        }
        return jax.tree.leaves((state, batch), is_leaf=lambda one: isinstance(one, PartitionSpec))

    def _round_tables(self, devices: int) -> TrainState:
        """The shapes of the state with as many rows of tables as are dealt out to so many devices."""

        def round_up(path: tuple[object, ...], leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
            if not leaf.ndim or not self._is_of_table(path):
                return leaf
            rows = math.prod(table_shape(leaf.shape[0], devices))
            return jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype)

        return jax.tree_util.tree_map_with_path(round_up, self.state)

    @functools.cached_property
    def _tables(self) -> frozenset[str]:
        return frozenset(table_layers(self.model))

    def _is_of_table(self, path: tuple[object, ...]) -> bool:
        """Whether a leaf of the state lies as the rows of a table do."""
        return not self._tables.isdisjoint(path_names(path))

    def compile(self, devices: Sequence[Device], options: ParallelOptions) -> CompiledStep:
        """The program of a step on a mesh of these devices. Nothing is computed."""
        partitioner = Partitioner(devices, options)
        partitioner.set_model(self.model)
        _, groups = trained_graph(self.model, self.optimizer, self.options)
        state = partitioner.dealt_shapes(self.state)
        step = self._step(partitioner.devices[0], partitioner.step_shardings(state, list(groups)))
        lies = jax.tree.map(
            lambda leaf, where: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where),
            state,
            partitioner.shardings(state),
        )
        batch = {
            name: jax.ShapeDtypeStruct(
                leaf.shape,
                leaf.dtype,
                sharding=partitioner.batch if partitioner.divides(leaf.shape[0]) else partitioner.replicated,
            )
            for name, leaf in self.batch.items()
        }
        with platform_scope("cpu" if devices[0].platform == "cpu" else "other"):
            return CompiledStep(step.lower(lies, batch).compile(), lies, batch)

    def _step(self, device: Device, shardings: StepShardings | None) -> Step:
        graphdef, groups = trained_graph(self.model, self.optimizer, self.options)
        updates = max(1, self.total_steps // self.optimizer.accumulate)
        schedule = self.optimizer.schedule.resolve(updates, updates)
        tables = self.optimizer.table_groups(self.model)
        return train_step(
            graphdef,
            self.task,
            self.optimizer,
            schedule,
            groups,
            self.options,
            device,
            1.0,
            shardings,
            tables,
        )


@dataclass(frozen=True)
class CompiledStep:
    """The program of a step, and the shapes and shardings of its arguments."""

    program: jax.stages.Compiled
    state: TrainState
    batch: Shapes

    def memory(self) -> tuple[int, int] | None:
        """Bytes on each device by the compiler, for state and batch, and besides; None where it says nothing."""
        analysis = self.program.memory_analysis()
        if analysis is None:
            return None
        besides = analysis.temp_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes
        return analysis.argument_size_in_bytes, besides

    def measure(self, steps: int = 3) -> float:
        """Seconds of the fastest of some steps on arrays of zeros, which are made where the arguments lie."""
        arguments = self.state, dict(self.batch)
        shardings = jax.tree.map(lambda leaf: leaf.sharding, arguments)
        zeros = jax.jit(
            lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), arguments),
            out_shardings=shardings,
        )
        state, batch = zeros()
        fastest = math.inf
        for _ in range(steps + 1):  # the first one warms up
            began = time.perf_counter()
            state, log = self.program(state, batch)
            jax.block_until_ready((state, log))
            fastest = min(fastest, time.perf_counter() - began)
        return fastest
