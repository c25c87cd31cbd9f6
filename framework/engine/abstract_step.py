"""The training step of a model that has no arrays yet, on a mesh that may not be here: traced, and compiled."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from framework.core.device import Device
from framework.distributed.layout import parameter_specs, state_specs, without_axis
from framework.distributed.mesh import AXES, BATCH_AXES, ParallelOptions
from framework.distributed.partitioner import Partitioner, StepShardings
from framework.distributed.planning.trace import Trace, flatten
from framework.engine.experiment import TrainOptions
from framework.engine.step import Step, TrainState, init_state, train_step, trained_graph
from framework.engine.task import Task
from framework.nn import functional_core
from framework.nn.functional.lowering import platform_scope
from framework.nn.layer import Layer
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

    def trace(self) -> Trace:
        """The operations of a step that divides nothing; `sharding_constraint` stands where a parameter is gathered."""
        state, device = self.state, jax.devices()[0]
        mesh = Mesh(np.array([device]).reshape((1,) * len(AXES)), AXES)
        whole = NamedSharding(mesh, PartitionSpec())
        shardings = StepShardings(
            mesh=mesh,
            state=jax.tree.map(lambda _: whole, state),
            log=whole,
            gathered={name: Gathered(whole, whole) for name in state.params},
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
        count = math.prod(sizes[axis] for axis in BATCH_AXES)
        batch = {
            name: PartitionSpec(BATCH_AXES) if leaf.shape[0] % count == 0 else PartitionSpec()
            for name, leaf in self.batch.items()
        }
        return jax.tree.leaves((state, batch), is_leaf=lambda one: isinstance(one, PartitionSpec))

    def compile(self, devices: Sequence[Device], options: ParallelOptions) -> jax.stages.Compiled:
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
            return step.lower(lies, batch).compile()

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
