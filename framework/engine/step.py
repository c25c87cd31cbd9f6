"""The training step: one pure, compiled function whose input state is donated."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Protocol

import jax
import jax.numpy as jnp

from framework import amp
from framework.core.compilation import CPU_RECOMPUTE_OPTIONS, compile_options, enable_compilation_cache
from framework.core.device import Device
from framework.core.errors import ConfigError
from framework.core.rng import rng_scope
from framework.core.trace import explain_trace_errors
from framework.core.types import PyTree
from framework.distributed.one_f_one_b import Arrays
from framework.distributed.partitioner import StepShardings
from framework.engine.experiment import TrainOptions
from framework.engine.task import Losses, Task
from framework.nn import functional_core
from framework.nn.functional.tables import Rows
from framework.nn.functional_core import GraphDef, State
from framework.nn.layer import Layer
from framework.nn.lookups import Taps, lookups, row_gradients, skip_rows, zero_taps
from framework.nn.mesh_scope import BlockPipeline, MeshScope, gather, mesh_scope
from framework.nn.moe import MoE
from framework.nn.recompute import set_recompute
from framework.optimizer.base import Optimizer, ParamGroup
from framework.optimizer.lr.base import LRScheduler
from framework.optimizer.tables import TableGroups, TableStates, init_tables, update_tables


@dataclass(frozen=True)
class TrainState:
    """All that a training step changes, as one pytree.

    Attributes:
        step: Steps done, int32 [].
        params, buffers: The model's, by name; parameters that are not trained are among them.
        optimizer: The optimizer's own state.
        ema: The state of the moving average of the trained parameters and of the running statistics of
            normalisations, which fit no other parameters than those they were taken with; empty where none is kept.
        scaler: The loss scaler's state; empty unless activations are float16.
        lr_factor: Multiplies the scheduled learning rate, float32 []; a plateau lowers it.
        tables: The state of each table that is updated by rows (nn.ShardedEmbedding), by name.
    """

    step: jax.Array
    params: State
    buffers: State
    optimizer: dict[str, PyTree]
    ema: dict[str, PyTree]
    scaler: PyTree
    lr_factor: jax.Array
    tables: TableStates = field(default_factory=dict)


jax.tree_util.register_dataclass(TrainState, [f.name for f in fields(TrainState)], [])


Log = dict[str, jax.Array]


class Step(Protocol):
    """(state, batch) -> (state, log), compiled by jax."""

    def __call__(self, state: TrainState, batch: Mapping[str, jax.Array], /) -> tuple[TrainState, Log]: ...

    def trace(
        self, state: TrainState, batch: Mapping[str, jax.Array | jax.ShapeDtypeStruct], /
    ) -> jax.stages.Traced: ...

    def lower(
        self, state: TrainState, batch: Mapping[str, jax.Array | jax.ShapeDtypeStruct], /
    ) -> jax.stages.Lowered: ...


def trained_graph(
    model: Layer, optimizer: Optimizer, options: TrainOptions
) -> tuple[GraphDef, dict[str, ParamGroup]]:
    """The structure of `model` as a step trains it, and how the optimizer trains which of its parameters."""
    if options.recompute:
        set_recompute(model, options.recompute)
    # In the compiled programs alone: another optimizer may train all of the same model afterwards.
    frozen = (
        model.freeze_statistics("|".join(f"(?:{p})" for p in optimizer.frozen)) if optimizer.frozen else []
    )
    graphdef = functional_core.graph_def(model.train())
    for layer in frozen:
        layer.statistics_frozen = False
    return graphdef, optimizer.param_groups(model)


def init_state(
    params: State,
    buffers: State,
    how: Mapping[str, ParamGroup],
    optimizer: Optimizer,
    options: TrainOptions,
    tables: TableGroups | None = None,
) -> TrainState:
    """The state before the first step; `how` names the parameters that are trained, `tables` those by rows."""
    trained = {name: params[name] for name in how}
    scaler = amp.GradScaler().init() if options.amp == "float16" else {}
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        buffers=buffers,
        optimizer=optimizer.init(trained, how),
        ema=options.ema.init({**trained, **running_statistics(buffers)}) if options.ema else {},
        scaler=scaler,
        lr_factor=jnp.ones((), jnp.float32),
        tables=init_tables(params, tables or {}),
    )


def running_statistics(buffers: State) -> State:
    """Those buffers that are running means and variances of normalisations."""
    return {
        name: value
        for name, value in buffers.items()
        if name.rpartition(".")[2] in ("_mean", "_variance") and jnp.issubdtype(value.dtype, jnp.floating)
    }


def train_step(
    graphdef: GraphDef,
    task: Task,
    optimizer: Optimizer,
    schedule: LRScheduler,
    how: Mapping[str, ParamGroup],
    options: TrainOptions,
    device: Device,
    lr_scale: float = 1.0,
    shardings: StepShardings | None = None,
    tables: TableGroups | None = None,
) -> Step:
    """`(state, batch) -> (state, log)`; `lr_scale` multiplies the schedule, `shardings` say where the results
    lie, `tables` what is trained by the rows that a batch looks up: their gradients are neither clipped nor in
    `grad_norm`.

    The key of step t is `fold_in(key(seed), t)`, so a resumed run draws the same. The log holds `loss`, its parts, `lr`
    and `grad_norm`, float32 []. With float16, a step whose gradients are not finite changes nothing but the loss scale.
    """
    enable_compilation_cache()
    scaler = amp.GradScaler() if options.amp == "float16" else None
    root = jax.random.key(options.seed)

    mesh = None if shardings is None else shardings.mesh
    step_scope = None if shardings is None else shardings.scope
    gathered = {} if shardings is None else shardings.gathered
    tables = tables or {}
    if tables and step_scope is not None and step_scope.schedule is not None:
        raise ConfigError(
            "tables are trained by the schedule gpipe",
            where="parallel.schedule",
            received=f"1f1b, for a model with {next(iter(tables))}",
            allowed="gpipe",
        )

    def run_task(
        params: Mapping[str, PyTree],
        taps: Taps | None,
        state: TrainState,
        batch: Mapping[str, jax.Array],
        key: jax.Array,
        scope: MeshScope | None,
    ) -> tuple[jax.Array, tuple[Losses, State, dict[str, list[Rows]]]]:
        """The loss, scaled; and unscaled with the buffers after it and the lookups in tables."""
        model = graphdef.bind(params, state.buffers)
        if step_scope is None or step_scope.schedule is None:
            for name, parameter in model.named_parameters():
                parameter.gathered = gathered.get(name)
        with (
            rng_scope(key),
            _cast(options),
            explain_trace_errors(),
            mesh_scope(scope),
            lookups(model, taps, mesh) as noted,
        ):
            losses = add_auxiliary(task.loss(model, {**batch, "step": state.step}), model)
        total = losses.total.astype(jnp.float32)
        scaled = total if scaler is None else scaler.scale(total, state.scaler)
        return scaled, (losses, dict(model.named_buffers()), noted.rows)

    def differentiate(
        state: TrainState, batch: Mapping[str, jax.Array]
    ) -> tuple[tuple[State, Taps], tuple[Losses, State, dict[str, list[Rows]]]]:
        """Gradients of the trained parameters and of the rows of tables; losses, buffers after them, and lookups."""
        key = jax.random.fold_in(root, state.step)
        scope = step_scope
        if scope is not None and (schedule_blocks := scope.schedule) is not None:

            def micro_loss(
                params: Mapping[str, PyTree], data: Arrays, number: jax.Array, blocks: BlockPipeline
            ) -> tuple[jax.Array, tuple[Losses, jax.Array]]:
                inner = dataclasses.replace(scope, blocks=blocks)
                micro_key = jax.random.fold_in(key, number)
                scaled, (losses, _, _) = run_task(params, None, state, data, micro_key, inner)
                weight = jax.lax.stop_gradient(jnp.float32(1 if losses.weight is None else losses.weight))
                return scaled, (Losses(losses.total, dict(losses.parts)), weight)

            whole = {
                name: gather(value, gathered[name]) if name in gathered else value
                for name, value in state.params.items()
            }
            gradients, losses = schedule_blocks(micro_loss, whole, dict(batch), key)
            return ({name: gradients[name] for name in how}, {}), (losses, state.buffers, {})
        trained = {name: state.params[name] for name in how}

        def loss_of(
            trained: State, taps: Taps | None
        ) -> tuple[jax.Array, tuple[Losses, State, dict[str, list[Rows]]]]:
            return run_task({**state.params, **trained}, taps, state, batch, key, step_scope)

        taps: Taps = {}
        if tables:
            taps = zero_taps(lambda: loss_of(trained, None)[1][2], state.params)
        result = jax.grad(loss_of, argnums=(0, 1), has_aux=True)(trained, taps)
        if step_scope is not None:
            step_scope.check_use()
        return result

    def step(state: TrainState, batch: Mapping[str, jax.Array]) -> tuple[TrainState, Log]:
        trained = {name: state.params[name] for name in how}
        (grads, tapped), (losses, buffers, rows) = differentiate(state, batch)
        if shardings is not None and shardings.gradients is not None:
            grads = jax.lax.with_sharding_constraint(grads, shardings.gradients)
        finite, scaled = None, state.scaler
        if scaler is not None:
            (grads, tapped), finite, scaled = scaler.unscale_and_update((grads, tapped), state.scaler)
        lr = jnp.asarray(schedule.at(state.optimizer["step"]), jnp.float32) * lr_scale * state.lr_factor
        updated, inner, info = optimizer.update(grads, state.optimizer, trained, lr, how, losses.weight)
        met = row_gradients(rows, tapped) if tables else {}
        if finite is not None:
            met = {name: skip_rows(grad, ~finite) for name, grad in met.items()}
        tabled, table_states = update_tables(state.params, state.tables, met, lr, tables, mesh)
        if finite is not None:
            keep = functools.partial(jnp.where, finite)
            updated = jax.tree.map(keep, updated, trained)
            inner = jax.tree.map(keep, inner, state.optimizer)
            buffers = jax.tree.map(keep, buffers, state.buffers)
        ema = state.ema
        if options.ema is not None:
            applied = info["applied"] if finite is None else info["applied"] & finite
            keep = functools.partial(jnp.where, applied)
            present = {**updated, **running_statistics(buffers)}
            ema = jax.tree.map(keep, options.ema.update(ema, present), ema)
        log = {
            "loss": losses.total,
            **losses.parts,
            "lr": lr,
            "grad_norm": info["grad_norm"],
        }
        new = TrainState(
            step=state.step + 1,
            params={**state.params, **updated, **tabled},
            buffers=buffers,
            optimizer=inner,
            ema=ema,
            scaler=scaled,
            lr_factor=state.lr_factor,
            tables=table_states,
        )
        return new, {name: jnp.asarray(value, jnp.float32) for name, value in log.items()}

    compiler = compile_options(device)
    if options.recompute and device.platform == "cpu":
        compiler = {**compiler, **CPU_RECOMPUTE_OPTIONS}
    out = None if shardings is None else (shardings.state, shardings.log)
    return jax.jit(step, donate_argnums=0, compiler_options=compiler, out_shardings=out)


def add_auxiliary(losses: Losses, model: Layer) -> Losses:
    """The losses with those that layers of experts have of themselves, and the share of what they have dropped."""
    layers = [layer for layer in model.sublayers(include_self=True) if isinstance(layer, MoE)]
    if not layers:
        return losses
    balance = jnp.stack([layer.auxiliary_loss for layer in layers]).sum()
    dropped = jnp.stack([layer.dropped for layer in layers]).mean()
    logged = {**losses.parts, "balance_loss": balance, "dropped_tokens": dropped}
    return Losses(losses.total + balance, logged, losses.weight)


def _cast(options: TrainOptions) -> contextlib.AbstractContextManager[object]:
    if options.amp == "float32":
        return contextlib.nullcontext()
    return amp.auto_cast(level=options.amp_level, dtype=options.amp)
