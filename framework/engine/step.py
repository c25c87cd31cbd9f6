"""The training step: one pure, compiled function whose input state is donated."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Protocol

import jax
import jax.numpy as jnp

from framework import amp
from framework.core.compilation import CPU_RECOMPUTE_OPTIONS, compile_options, enable_compilation_cache
from framework.core.device import Device
from framework.core.rng import rng_scope
from framework.core.trace import explain_trace_errors
from framework.core.types import PyTree
from framework.distributed.one_f_one_b import Arrays
from framework.distributed.partitioner import StepShardings
from framework.engine.experiment import TrainOptions
from framework.engine.task import Losses, Task
from framework.nn.functional_core import GraphDef, State
from framework.nn.layer import Layer
from framework.nn.mesh_scope import BlockPipeline, MeshScope, mesh_scope
from framework.nn.moe import MoE
from framework.optimizer.base import Optimizer, ParamGroup
from framework.optimizer.lr.base import LRScheduler


@dataclass(frozen=True)
class TrainState:
    """All that a training step changes, as one pytree.

    Attributes:
        step: Steps done, int32 [].
        params, buffers: The model's, by name; parameters that are not trained are among them.
        optimizer: The optimizer's own state.
        ema: The state of the moving average of the trained parameters; empty where none is kept.
        scaler: The loss scaler's state; empty unless activations are float16.
        lr_factor: Multiplies the scheduled learning rate, float32 []; a plateau lowers it.
    """

    step: jax.Array
    params: State
    buffers: State
    optimizer: dict[str, PyTree]
    ema: dict[str, PyTree]
    scaler: PyTree
    lr_factor: jax.Array


jax.tree_util.register_dataclass(TrainState, [f.name for f in fields(TrainState)], [])


Log = dict[str, jax.Array]


class Step(Protocol):
    """(state, batch) -> (state, log), compiled by jax."""

    def __call__(self, state: TrainState, batch: Mapping[str, jax.Array], /) -> tuple[TrainState, Log]: ...

    def lower(
        self, state: TrainState, batch: Mapping[str, jax.Array | jax.ShapeDtypeStruct], /
    ) -> jax.stages.Lowered: ...


def init_state(
    params: State,
    buffers: State,
    how: Mapping[str, ParamGroup],
    optimizer: Optimizer,
    options: TrainOptions,
) -> TrainState:
    """The state before the first step; `how` names the parameters that are trained."""
    trained = {name: params[name] for name in how}
    scaler = amp.GradScaler().init() if options.amp == "float16" else {}
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        buffers=buffers,
        optimizer=optimizer.init(trained, how),
        ema=options.ema.init(trained) if options.ema else {},
        scaler=scaler,
        lr_factor=jnp.ones((), jnp.float32),
    )


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
) -> Step:
    """`(state, batch) -> (state, log)`; `lr_scale` multiplies the schedule, `shardings` say where the results
    lie.

    The key of step t is `fold_in(key(seed), t)`, so a resumed run draws the same. The log holds `loss`, its parts, `lr`
    and `grad_norm`, float32 []. With float16, a step whose gradients are not finite changes nothing but the loss scale.
    """
    enable_compilation_cache()
    scaler = amp.GradScaler() if options.amp == "float16" else None
    root = jax.random.key(options.seed)

    def run_task(
        params: Mapping[str, PyTree],
        state: TrainState,
        batch: Mapping[str, jax.Array],
        key: jax.Array,
        scope: MeshScope | None,
    ) -> tuple[jax.Array, tuple[Losses, State]]:
        """The loss, scaled; and unscaled with the buffers after it."""
        model = graphdef.bind(params, state.buffers)
        with rng_scope(key), _cast(options), explain_trace_errors(), mesh_scope(scope):
            losses = add_auxiliary(task.loss(model, {**batch, "step": state.step}), model)
        total = losses.total.astype(jnp.float32)
        scaled = total if scaler is None else scaler.scale(total, state.scaler)
        return scaled, (losses, dict(model.named_buffers()))

    def lay_out(params: State) -> State:
        return params if shardings is None else jax.lax.with_sharding_constraint(params, shardings.parameters)

    def differentiate(
        state: TrainState, batch: Mapping[str, jax.Array]
    ) -> tuple[State, tuple[Losses, State]]:
        """Gradients of the trained parameters, losses, and buffers after them."""
        scope = None if shardings is None else shardings.scope
        key = jax.random.fold_in(root, state.step)
        if scope is not None and scope.schedule is not None:

            def micro_loss(
                params: Mapping[str, PyTree], data: Arrays, number: jax.Array, blocks: BlockPipeline
            ) -> tuple[jax.Array, tuple[Losses, jax.Array]]:
                inner = dataclasses.replace(scope, blocks=blocks)
                scaled, (losses, _) = run_task(params, state, data, jax.random.fold_in(key, number), inner)
                weight = jax.lax.stop_gradient(jnp.float32(1 if losses.weight is None else losses.weight))
                return scaled, (Losses(losses.total, dict(losses.parts)), weight)

            gradients, losses = scope.schedule(micro_loss, lay_out(state.params), dict(batch), key)
            return {name: gradients[name] for name in how}, (losses, state.buffers)
        trained = {name: state.params[name] for name in how}

        def loss_of(trained: State) -> tuple[jax.Array, tuple[Losses, State]]:
            return run_task(lay_out({**state.params, **trained}), state, batch, key, scope)

        result = jax.grad(loss_of, has_aux=True)(trained)
        if scope is not None:
            scope.check_use()
        return result

    def step(state: TrainState, batch: Mapping[str, jax.Array]) -> tuple[TrainState, Log]:
        trained = {name: state.params[name] for name in how}
        grads, (losses, buffers) = differentiate(state, batch)
        if shardings is not None and shardings.gradients is not None:
            grads = jax.lax.with_sharding_constraint(grads, shardings.gradients)
        finite, scaled = None, state.scaler
        if scaler is not None:
            grads, finite, scaled = scaler.unscale_and_update(grads, state.scaler)
        lr = jnp.asarray(schedule.at(state.optimizer["step"]), jnp.float32) * lr_scale * state.lr_factor
        updated, inner, info = optimizer.update(grads, state.optimizer, trained, lr, how)
        if finite is not None:
            keep = functools.partial(jnp.where, finite)
            updated = jax.tree.map(keep, updated, trained)
            inner = jax.tree.map(keep, inner, state.optimizer)
            buffers = jax.tree.map(keep, buffers, state.buffers)
        ema = state.ema
        if options.ema is not None:
            applied = info["applied"] if finite is None else info["applied"] & finite
            keep = functools.partial(jnp.where, applied)
            ema = jax.tree.map(keep, options.ema.update(ema, updated), ema)
        log = {
            "loss": losses.total,
            **losses.parts,
            "lr": lr,
            "grad_norm": info["grad_norm"],
        }
        new = TrainState(
            step=state.step + 1,
            params={**state.params, **updated},
            buffers=buffers,
            optimizer=inner,
            ema=ema,
            scaler=scaled,
            lr_factor=state.lr_factor,
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
