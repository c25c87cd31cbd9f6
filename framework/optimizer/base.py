"""What all optimizers share: the fields, the group of each parameter, the pure update and Paddle's surface.

The pure core is for a compiled, donated training step:

    groups = optimizer.param_groups(layer)                         # {name: ParamGroup} of what it trains
    state = optimizer.init(params, groups)                      # params: {name: array} of exactly these names
    lr = schedule.at(state["step"])
    params, state, info = optimizer.update(grads, state, params, lr, groups)

The eager surface keeps the state of a layer as long as the layer lives:

    optimizer.step(layer, grads)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from framework.core.errors import ConfigError, WeightError, did_you_mean
from framework.core.foreign_names import NO_TAPE, OPTIMIZER_KEYWORDS, constructor_arguments, foreign_name
from framework.core.types import PyTree
from framework.io.checkpoint import flatten, unflatten
from framework.nn.clip import GradClip, global_norm
from framework.nn.functional_core import update as write_back
from framework.nn.layer import Layer, ParamAttr, Parameter
from framework.nn.lookups import RowGradients, Table
from framework.optimizer.lr.base import Constant, LRScheduler, Rate
from framework.optimizer.regularizer import WeightDecay
from framework.optimizer.rules import Rule, StateSlot
from framework.optimizer.tables import (
    TableGroup,
    TableGroups,
    TableStates,
    init_tables,
    table_groups,
    update_tables,
)

Arrays = dict[str, jax.Array]
RuleState = dict[str, PyTree]  # arrays by slot and parameter, numbers by slot

_BLOCK = re.compile(r"^(.*?\.)?(blocks|layers?|stages)\.\d+(\.(blocks|layers?|stages)\.\d+)*(?=\.)")


@dataclass(frozen=True)
class ParamGroup:
    """What is done to one parameter: `rate` multiplies the learning rate, `coupled` is added to the gradient,
    `decoupled` shrinks the parameter by `lr * rate * decoupled` a step, `clip` lets the gradient be clipped."""

    rate: float
    coupled: WeightDecay
    decoupled: float
    clip: bool


ParamGroups = Mapping[str, ParamGroup]


class _Session:
    """What an optimizer remembers of one layer."""

    def __init__(
        self,
        groups: ParamGroups,
        state: dict[str, PyTree],
        run: Callable[..., tuple[Arrays, dict[str, PyTree], Arrays]],
        tables: TableGroups,
        table_states: TableStates,
    ) -> None:
        self.groups, self.state, self.run = groups, state, run
        self.tables, self.table_states = tables, table_states
        self.run_tables = jax.jit(functools.partial(update_tables, groups=tables))

    def everything(self) -> dict[str, PyTree]:
        """The state of all parameters and, where there are any, of tables."""
        return {**self.state, "tables": self.table_states} if self.tables else self.state


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """Base of the optimizers: frozen dataclasses that hold settings; arrays are in the state.

    A step is Paddle's: gradients are clipped, then weight decay is added, then the rule of the optimizer is applied in
    float32 whatever the parameters' dtype. Patterns are regular expressions that are searched in dotted names.

    Attributes:
        learning_rate: A number or a schedule (framework.optimizer.lr).
        weight_decay: A number is L2; `L1Decay(coeff)`, `L2Decay(coeff)`. `ParamAttr(regularizer=...)` replaces it for a
            parameter. Optimizers with decoupled decay (AdamW, Lion) take a number only.
        grad_clip: `GradClip`, or Paddle's `ClipGradByGlobalNorm(1.0)` and the like.
        no_decay: Parameters of this pattern, or these, have no weight decay, unless their ParamAttr asks for it.
        decay_norm_and_bias: False takes the decay from parameters of less than two dimensions: biases and the scales
            of normalisations.
        lr_multipliers: Pattern to factor; the factors of all patterns found in a name, `layer_decay` and
            `ParamAttr(learning_rate=...)` multiply. A parameter whose factor is 0 is not trained.
        layer_decay: Layer-wise decay of the learning rate. The numbered blocks (`blocks.3`, `layers.1.blocks.0`,
            `layer.5`) count from 1 to n in the order of registration; block k has the factor
            `layer_decay**(n + 1 - k)`, what is registered before the first block `layer_decay**(n + 1)`, what is
            behind the blocks 1. Source: BEiT (arXiv 2106.08254); PaddleDetection's AdamWDL.
        frozen: Parameters of this pattern, or these, are not trained: no gradient, no state, no part in the gradient's
            norm. A Trainer leaves the running statistics of normalisations that are frozen as they are, as
            `Layer.freeze` does.
        accumulate: The gradients of so many calls are averaged for one step, each by its weight, where one is given.
        multi_precision: Keeps a float32 copy of parameters of 16 bits, so that small steps are not lost.
        parameters: Python only: as in Paddle, a list of parameters such as `layer.parameters()`; of the layer that is
            stepped no others are trained. None trains all.
        name: As in Paddle; it changes nothing.
    """

    learning_rate: Rate = field(kw_only=False)
    weight_decay: float | WeightDecay | None = None
    grad_clip: GradClip | None = None
    no_decay: str | tuple[str, ...] = ()
    decay_norm_and_bias: bool = True
    lr_multipliers: dict[str, float] = field(default_factory=dict)
    layer_decay: float | None = None
    frozen: str | tuple[str, ...] = ()
    accumulate: int = 1
    multi_precision: bool = False
    parameters: InitVar[Iterable[Parameter] | None] = None
    name: InitVar[str | None] = None
    _sessions: WeakKeyDictionary[Layer, _Session] = field(
        init=False, repr=False, compare=False, default_factory=WeakKeyDictionary
    )

    decoupled: ClassVar[bool] = False
    state_names: ClassVar[Mapping[str, str]] = {}  # of slots that checkpoints have under another name

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        known = constructor_arguments(cls)
        for name in kwargs:
            if name not in known:
                raise ConfigError(
                    "unknown argument",
                    where=f"{cls.__name__}({name}=…)",
                    received=f"{name}={kwargs[name]!r}"[:80],
                    allowed=", ".join(known),
                    fix=OPTIMIZER_KEYWORDS.get(name) or did_you_mean(name, known),
                )
        return object.__new__(cls)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            error = foreign_name(type(self).__name__, name, "optimizer")
            raise error or AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __post_init__(self, parameters: Iterable[Parameter] | None, name: str | None) -> None:
        for patterns in ("no_decay", "frozen"):  # a string is one pattern, not its letters
            given = getattr(self, patterns)
            object.__setattr__(self, patterns, (given,) if isinstance(given, str) else tuple(given))
        # Kept under the argument's name, where dataclasses.replace finds it. Not a field: YAML holds no parameters.
        object.__setattr__(self, "parameters", self._check_parameters(parameters))
        if not isinstance(self.learning_rate, (int, float, np.number, LRScheduler)):
            raise self.error(
                "the learning rate must be a number or a schedule",
                type(self.learning_rate).__name__,
                f"{type(self).__name__}(learning_rate=0.001, parameters=layer.parameters()), or a schedule of lr",
            )
        if self.accumulate < 1:
            raise self.error("accumulate is too small", self.accumulate, "1 or more")
        if self.layer_decay is not None and not 0 < self.layer_decay <= 1:
            raise self.error("layer_decay is out of range", self.layer_decay, "above 0, up to 1")
        if not isinstance(self.learning_rate, LRScheduler) and self.learning_rate < 0:
            raise self.error("the learning rate is negative", self.learning_rate, "0 or more, or a schedule")
        for name in ("beta1", "beta2", "rho"):
            if not 0 <= getattr(self, name, 0.0) < 1:
                raise self.error(f"{name} is out of range", getattr(self, name), "from 0, below 1")
        for name in ("epsilon", "momentum"):
            if getattr(self, name, 0.0) < 0:
                raise self.error(f"{name} is negative", getattr(self, name), "0 or more")
        if min(self.lr_multipliers.values(), default=0.0) < 0:
            raise self.error("a factor of lr_multipliers is negative", self.lr_multipliers, "0 or more")
        for pattern in (*self.no_decay, *self.lr_multipliers, *self.frozen):
            try:
                re.compile(pattern)
            except re.error as problem:
                raise self.error("a pattern must be a regular expression", pattern, str(problem)) from None
        if self.own_decay.l1 and self.decoupled:
            raise self.error(
                "its decay is decoupled",
                f"weight_decay {self.weight_decay}",
                "a number, or None for no decay",
            )

    def _check_parameters(self, parameters: Iterable[Parameter] | None) -> tuple[Parameter, ...] | None:
        if parameters is None:
            return None
        given = tuple(parameters)
        if not given or not all(isinstance(parameter, Parameter) for parameter in given):
            raise self.error(
                "parameters is a list of parameters",
                ", ".join(sorted({type(parameter).__name__ for parameter in given})) or "an empty list",
                "layer.parameters(); groups are lr_multipliers={pattern: factor} and no_decay=(pattern, …)",
            )
        return given

    def error(self, problem: str, received: object, allowed: str) -> ConfigError:
        return ConfigError(problem, where=type(self).__name__, received=received, allowed=allowed)

    # -- the rule: what a subclass defines ----------------------------------------------------------------------------

    def rule(self, group: ParamGroup) -> Rule:
        """What is done to a parameter of this group; the state has the same slots for all."""
        raise NotImplementedError(f"{type(self).__name__} defines no rule()")

    def init_rules(self, params: Arrays, groups: ParamGroups) -> RuleState:
        """The state of the rules, for float32 parameters."""
        state: RuleState = {}
        for name, param in params.items():
            rule = self.rule(groups[name])
            if rule.timed:
                state["count"] = jnp.zeros((), jnp.int32)
            for _, key, made in self._slots(rule):
                if made.single:
                    state[key] = jnp.full((), made.fill, jnp.float32)
                else:
                    shape = (*made.leading, *param.shape)
                    state.setdefault(key, {})[name] = jnp.full(shape, made.fill, param.dtype)
        return state

    def apply_rules(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        """The new parameters, and the new state of the rules; `rates` are the learning rates of each."""
        moved: Arrays = {}
        after: RuleState = {"count": state["count"] + 1} if "count" in state else {}
        for name, param in params.items():
            rule = self.rule(groups[name])
            slots = self._slots(rule)
            own = {slot: state[key] if made.single else state[key][name] for slot, key, made in slots}
            if rule.timed:
                own["count"] = state["count"]
            kind = param.dtype
            moved[name], new = rule.update(param, grads[name].astype(kind), rates[name].astype(kind), own)
            for slot, key, made in slots:
                if made.single:
                    after[key] = new[slot].astype(state[key].dtype)
                else:
                    after.setdefault(key, {})[name] = new[slot].astype(state[key][name].dtype)
        return moved, after

    def _slots(self, rule: Rule) -> list[tuple[str, str, StateSlot]]:
        """The slots of a rule but the powers, for which there is the count: name, key in the state, slot."""
        slots = rule.slots().items()
        return [(name, self.state_names.get(name, name), slot) for name, slot in slots if not slot.power]

    @property
    def own_decay(self) -> WeightDecay:
        """The optimizer's weight decay, before any exception for a parameter."""
        return WeightDecay.of(self.weight_decay)

    def decays(self, name: str) -> bool:
        """Whether the optimizer's own weight decay may apply to this parameter."""
        return True

    def ratio(self, name: str) -> float:
        """A factor of the learning rate beside those of the common fields."""
        return 1.0

    # -- what is done to which parameter ------------------------------------------------------------------------------

    def param_groups(self, layer: Layer) -> dict[str, ParamGroup]:
        """What is done to each parameter of `layer` that this optimizer trains, by name in the order of registration.

        Raises:
            ConfigError: a pattern of `frozen` or `lr_multipliers` is found in no name; nothing is left to train;
                `layer_decay` finds no numbered blocks; the regularizer of a ParamAttr is no weight decay.
        """
        named = dict(layer.named_parameters())
        for pattern in (*self.frozen, *self.lr_multipliers):
            if not any(re.search(pattern, name) for name in named):
                raise self.error(
                    "no parameter has a name with this pattern",
                    repr(pattern),
                    f"a regular expression found in one of {len(named)} names such as {list(named)[:3]}",
                )
        depth = {} if self.layer_decay is None else self._depth_factors(list(named))
        found = {}
        for name, parameter in named.items():
            group = self._param_group(name, parameter.attr, len(parameter.shape), depth.get(name, 1.0))
            if isinstance(parameter, Table):  # trained by the rows that are met, see optimizer/tables.py
                continue
            if parameter.trainable and group.rate != 0 and not _matches(self.frozen, name):
                found[name] = group
        only: tuple[Parameter, ...] | None = self.__dict__["parameters"]
        if only is not None:
            chosen = {id(parameter) for parameter in only}
            found = {name: group for name, group in found.items() if id(named[name]) in chosen}
        if not found and not self.table_groups(layer):
            raise self.error(
                "nothing is left to train",
                type(layer).__name__,
                "a trainable parameter"
                + (" among `parameters`, which are those of one layer" if only else ""),
            )
        return found

    def table_groups(self, layer: Layer) -> dict[str, TableGroup]:
        """The tables of `layer` (nn.ShardedEmbedding) that are trained; `param_groups` has none of them.

        Raises:
            ConfigError: with `accumulate`, which tables do not take: their rows are updated at every step.
        """
        groups = table_groups(layer, self.frozen, self.lr_multipliers)
        only: tuple[Parameter, ...] | None = self.__dict__["parameters"]
        if only is not None:
            trained = {id(parameter) for parameter in only}
            named = dict(layer.named_parameters())
            groups = {name: group for name, group in groups.items() if id(named[name]) in trained}
        if groups and self.accumulate > 1:
            raise self.error(
                "tables are updated at every step", f"accumulate {self.accumulate}, {next(iter(groups))}", "1"
            )
        return groups

    def trainable(self, layer: Layer) -> dict[str, ParamGroup]:
        """`param_groups` under its name of the last release."""
        return self.param_groups(layer)

    def _param_group(self, name: str, attr: ParamAttr, rank: int, rate: float) -> ParamGroup:
        rate *= attr.learning_rate * self.ratio(name)
        for pattern, factor in self.lr_multipliers.items():
            rate *= factor if re.search(pattern, name) else 1.0
        spared = _matches(self.no_decay, name) or (rank < 2 and not self.decay_norm_and_bias)
        own = self.own_decay if self.decays(name) and not spared else WeightDecay()
        coupled = WeightDecay.of(attr.regularizer if attr.regularizer is not None or self.decoupled else own)
        return ParamGroup(rate, coupled, own.l2 if self.decoupled else 0.0, attr.need_clip)

    def _depth_factors(self, names: list[str]) -> dict[str, float]:
        """The factor of `layer_decay` for each name."""
        assert self.layer_decay is not None
        found = [_BLOCK.match(name) for name in names]
        blocks = list(dict.fromkeys(match[0] for match in found if match))
        if not blocks:
            raise self.error(
                "layer_decay finds no numbered blocks",
                f"{len(names)} names such as {names[:3]}",
                "names such as blocks.0.norm.weight, layers.1.blocks.0.mlp.weight or layer.5.weight",
            )
        factors, seen = {}, False
        for name, match in zip(names, found):
            seen = seen or match is not None
            height = len(blocks) - blocks.index(match[0]) if match else 0 if seen else len(blocks) + 1
            factors[name] = self.layer_decay**height
        return factors

    # -- the pure core ------------------------------------------------------------------------------------------------

    def init(self, params: Mapping[str, jax.Array], groups: ParamGroups) -> dict[str, PyTree]:
        """The state before the first step: a pytree of arrays whose structure never changes.

        `step` (int32 []) counts the steps done, `rule` is the optimizer's own; `master` (float32 copies) is there only
        with `multi_precision` and parameters of 16 bits, `accumulated`, `micro` and `weight` only with `accumulate`.

        Raises:
            WeightError: `params` has other names than `groups`.
        """
        _same_names(params, groups, "params")
        full = {name: wide(params[name]) for name in groups}
        state: dict[str, PyTree] = {"step": jnp.zeros((), jnp.int32), "rule": self.init_rules(full, groups)}
        if master := {n: w for n, w in full.items() if self.multi_precision and w.dtype != params[n].dtype}:
            state["master"] = master
        if self.accumulate > 1:
            state["accumulated"] = {name: jnp.zeros_like(value) for name, value in full.items()}
            state["micro"] = jnp.zeros((), jnp.int32)
            state["weight"] = jnp.zeros((), jnp.float32)
        return state

    def update(
        self,
        grads: Mapping[str, jax.Array],
        state: dict[str, PyTree],
        params: Mapping[str, jax.Array],
        lr: jax.Array | float,
        groups: ParamGroups,
        weight: jax.Array | None = None,
    ) -> tuple[Arrays, dict[str, PyTree], Arrays]:
        """One step, pure: (new params, new state, info).

        `grads` and `params` have exactly the names of `groups`; `lr` is the learning rate of this step, float32 [].
        `weight`, float32 [], says of how much the gradients are the mean, such as the number of tokens: with
        `accumulate` they are averaged by it; None: each call counts the same.
        `info` holds `grad_norm`, float32 []: the L2 norm of all gradients before clipping (with `accumulate`, of the
        mean of the gradients so far), and `applied`, bool []: False while gradients are only collected.

        Raises:
            WeightError: names are missing or unexpected.
        """
        _same_names(grads, groups, "grads")
        _same_names(params, groups, "params")
        full = {name: wide(grads[name]) for name in groups}
        kept = {name: params[name] for name in groups}
        if self.accumulate == 1:
            new, after = self._apply(full, state, kept, lr, groups)
            return new, after, {"grad_norm": global_norm(full), "applied": jnp.array(True)}
        before = {name: state[name] for name in state if name not in ("accumulated", "micro", "weight")}
        micro = state["micro"] + 1
        share = jnp.float32(1) if weight is None else jnp.asarray(weight, jnp.float32)
        weights = state["weight"] + share
        # Of no tokens at all the mean is no number: they count nothing, whatever their gradients are.
        counted = {name: jnp.where(share > 0, grad * share, 0) for name, grad in full.items()}
        total = {name: state["accumulated"][name] + grad for name, grad in counted.items()}
        mean = {name: value / jnp.maximum(weights, 1e-20) for name, value in total.items()}
        last = micro == self.accumulate
        new, after = jax.lax.cond(
            last, lambda: self._apply(mean, before, kept, lr, groups), lambda: (kept, before)
        )
        after["accumulated"] = {name: jnp.where(last, 0, value) for name, value in total.items()}
        after["micro"] = jnp.where(last, 0, micro)
        after["weight"] = jnp.where(last, 0, weights)
        return new, after, {"grad_norm": global_norm(mean), "applied": last}

    def _apply(
        self,
        grads: Arrays,
        state: dict[str, PyTree],
        params: Arrays,
        lr: jax.Array | float,
        groups: ParamGroups,
    ) -> tuple[Arrays, dict[str, PyTree]]:
        master = state.get("master", {})
        full = {name: master[name] if name in master else wide(params[name]) for name in groups}
        if self.grad_clip is not None:
            grads = grads | self.grad_clip({name: grads[name] for name in groups if groups[name].clip})
        grads = {name: groups[name].coupled.add_to(grads[name], full[name]) for name in groups}
        rates = {name: lr * jnp.float32(groups[name].rate) for name in groups}
        moved, rule = self.apply_rules(grads, state["rule"], full, rates, groups)
        new = {"step": state["step"] + 1, "rule": rule}
        if master:
            new["master"] = {name: moved[name] for name in master}
        return {name: moved[name].astype(params[name].dtype) for name in groups}, new

    # -- Paddle's surface ---------------------------------------------------------------------------------------------

    @property
    def schedule(self) -> LRScheduler:
        """The learning rate as a schedule; a number is constant."""
        rate = self.learning_rate
        return rate if isinstance(rate, LRScheduler) else Constant(float(rate))

    def step(self, layer: Layer | None = None, grads: Mapping[str, jax.Array] | None = None) -> Arrays:
        """Update `layer` in place with the gradients by name, as `nn.value_and_grad` returns them; gives `info`.

        Gradients of parameters that are not trained are ignored. The state is kept as long as the layer lives; when
        parameters are frozen or freed between steps, that of the others stays.

        Raises:
            WeightError: the layer has no parameter of a name, or a gradient is missing.
            ConfigError: no layer or no gradients are given, as in Paddle.
        """
        if layer is None or grads is None:
            raise ConfigError(
                "step needs the layer and its gradients",
                where=f"{type(self).__name__}.step",
                received="no "
                + " and no ".join(w for w, v in (("layer", layer), ("gradients", grads)) if v is None),
                allowed="optimizer.step(layer, grads)",
                fix=NO_TAPE,
            )
        session, named = self._session(layer), dict(layer.named_parameters())
        if unknown := [name for name in grads if name not in named]:
            raise WeightError(
                "gradients were given for parameters that the layer has not",
                where=f"{type(self).__name__}.step",
                received=unknown[:10],
                allowed=f"names of the parameters of {type(layer).__name__}",
                fix=did_you_mean(unknown[0], named) or "use what nn.value_and_grad(layer, ...) returned",
            )
        rate = np.float32(self.get_lr(layer))
        if session.tables:
            rows = {
                name: grad
                for name, grad in grads.items()
                if name in session.tables and isinstance(grad, RowGradients)
            }
            tables = {name: named[name].value for name in session.tables}
            tables, session.table_states = session.run_tables(tables, session.table_states, rows, rate)
            write_back(layer, tables)
        params = {name: named[name].value for name in session.groups}
        grads = {name: grad for name, grad in grads.items() if name in session.groups}
        params, session.state, info = session.run(grads, session.state, params, rate)
        write_back(layer, params)
        return info

    def get_lr(self, layer: Layer | None = None) -> float:
        """The learning rate of the layer's next step; without a layer that of the only one that was stepped, or of
        step 0 when there was none.

        Raises:
            ConfigError: several layers were stepped and none is named; the schedule is not resolved.
        """
        if layer is None and len(self._sessions) > 1:
            raise self.error("get_lr needs a layer", f"{len(self._sessions)} layers that were stepped", "one")
        layer = layer if layer is not None else next(iter(self._sessions), None)
        session = self._sessions.get(layer) if layer is not None else None
        return float(self.schedule.at(int(session.state["step"]) if session is not None else 0))

    def state_dict(self, layer: Layer) -> dict[str, jax.Array]:
        """The state of a layer as a flat dict by path, such as "rule/mu/conv.weight"."""
        return flatten(self._session(layer).everything())

    def set_state_dict(self, layer: Layer, state: Mapping[str, ArrayLike]) -> None:
        """Continue from what `state_dict` gave. Raises: WeightError listing entries that are missing or do not fit."""
        session = self._session(layer)
        loaded = unflatten(session.everything(), state, where="set_state_dict")
        session.state = jax.tree.map(jnp.asarray, loaded)
        session.table_states = session.state.pop("tables", {})

    def _session(self, layer: Layer) -> _Session:
        groups, known = self.param_groups(layer), self._sessions.get(layer)
        tables = self.table_groups(layer)
        if known is not None and known.groups == groups and known.tables == tables:
            return known
        named = dict(layer.named_parameters())
        state = self.init({name: named[name].value for name in groups}, groups)
        if known is not None:
            fresh = flatten(state)
            state = unflatten(state, fresh | {n: v for n, v in flatten(known.state).items() if n in fresh})
        states = init_tables({name: named[name].value for name in tables}, tables)
        if known is not None:
            states |= {name: one for name, one in known.table_states.items() if name in tables}
        run = jax.jit(functools.partial(self.update, groups=groups))
        session = _Session(groups, state, run, tables, states)
        self._sessions[layer] = session
        return session

    def resolve(self, total_steps: int, steps_per_epoch: float | None = None) -> Optimizer:
        """This optimizer with its schedule resolved, see `LRScheduler.resolve`."""
        return replace(self, learning_rate=self.schedule.resolve(total_steps, steps_per_epoch))


def _matches(patterns: Iterable[str], name: str) -> bool:
    return any(re.search(pattern, name) for pattern in patterns)


def wide(array: jax.Array) -> jax.Array:
    """`array` in at least 32 bits, a new array where that is another dtype."""
    return array.astype(jnp.float32) if jnp.finfo(array.dtype).bits < 32 else array


def _same_names(given: Mapping[str, jax.Array], groups: ParamGroups, what: str) -> None:
    missing = [name for name in groups if name not in given]
    unexpected = [name for name in given if name not in groups]
    if missing or unexpected:
        raise WeightError(
            f"the names of {what} are not those that are trained",
            received=f"missing {missing[:10]}, unexpected {unexpected[:10]}",
            allowed=f"the {len(groups)} names of optimizer.param_groups(layer)",
        )
