"""Optimizer: holds parameters and their state, and moves all of them in one compiled program per step."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.core.compilation import enable_compilation_cache
from framework.optimizer.regularizer import WeightDecay
from framework.optimizer.rules import Rule, StateSlot
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel import tape
from framework.paddle._kernel.ahead import Pending, call_at_backward, compile_later, wait_for
from framework.paddle._kernel.arguments import DecayLike, Parameters
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, is_only_holder, wrap
from framework.paddle._kernel.x64 import enter_x64, leave_x64, x64
from framework.paddle.optimizer.lr import LRScheduler
from framework.paddle.optimizer.program import (
    Clipping,
    Part,
    Plan,
    StepOf,
    find_powers,
    update,
)
from framework.paddle.optimizer.state import (
    Pair,
    concrete,
    entry_of,
    load_into,
    regularizer_of,
    with_gradients,
)
from framework.paddle.regularizer import WeightDecayRegularizer
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.nn.clip import ClipGradBase

Group = Mapping[str, Any]
_HALF = frozenset((np.dtype(np.float16), np.dtype(jnp.bfloat16)))


def _state_of(slot: StateSlot, owner: Tensor) -> jax.ShapeDtypeStruct:
    """The shape and type of an entry of a parameter's state."""
    kind = owner._value.dtype
    kind = np.dtype(np.float32) if slot.wide and kind in _HALF else kind
    return _power_of(kind) if slot.power else jax.ShapeDtypeStruct(owner._value.shape, kind)


@functools.cache
def _power_of(kind: np.dtype) -> jax.ShapeDtypeStruct:
    """One object for all powers of a type: parameters share their arrays, too."""
    return jax.ShapeDtypeStruct((1,), kind)


class Optimizer:
    """Base of the optimizers: a subclass says by `_rule` what is done to a parameter.

    Args:
        learning_rate: a float, or a schedule that the program moves on by `scheduler.step()`.
        parameters: the parameters, or groups: dicts with `params` and, where a group differs, `learning_rate` (a factor
            of the optimizer's rate), `weight_decay`, `grad_clip` and the settings of the optimizer.
        weight_decay: a coefficient of L2, or `paddle.regularizer.L1Decay`, `L2Decay`. A regularizer of a ParamAttr
            takes its place for that parameter.
        grad_clip: `paddle.nn.ClipGradByGlobalNorm` and its kin; each group is clipped for itself.
        name: stands before the names of the state.

    The state is made at the first step that a parameter has a gradient; `state_dict` names it as Paddle does.
    """

    _multi_precision = False
    _plans: dict[tuple[int, ...], Plan]

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        parameters: Parameters | None = None,
        weight_decay: DecayLike = None,
        grad_clip: ClipGradBase | None = None,
        name: str | None = None,
    ) -> None:
        enable_compilation_cache()
        self._name = name
        if learning_rate is None:  # before the parameters, as Paddle asks
            raise ValueError(f"{type(self).__name__}: learning_rate is not set")
        self._parameter_list = self._checked(parameters)
        if learning_rate is None:
            raise ValueError(f"{type(self).__name__}: learning_rate is not set")
        if not isinstance(learning_rate, float | LRScheduler):
            raise TypeError(
                f"{type(self).__name__}: learning_rate is a float or a schedule of paddle.optimizer.lr, received "
                f"{type(learning_rate).__name__}"
            )
        if grad_clip is not None and not callable(grad_clip):
            raise TypeError(
                f"{type(self).__name__}: grad_clip is one of paddle.nn.ClipGradBy…, received {grad_clip!r}"
            )
        self.regularization = regularizer_of(weight_decay)
        self._grad_clip = grad_clip
        self._accumulators: dict[str, dict[str, Tensor]] = defaultdict(dict)
        self._master_weights: dict[str, Tensor] = {}
        self._first_values: dict[str, float] = {}  # of the state, by the names of its Tensors
        self._powers: set[str] = set()  # names of Tensors of the state
        self._first_powers: dict[tuple[np.dtype, bytes], jax.Array] = {}  # by their values
        self._accumulators_holder: dict[str, Any] = {}
        self._opti_name_list: list[str] = []
        self._found_inf: Tensor | None = None  # of a GradScaler: true where the step is to change nothing
        self._param_groups: Any = self._parameter_list
        if self._parameter_list and isinstance(self._parameter_list[0], dict):
            self._param_groups = []
            for group in self._parameter_list:
                self._add_param_group(dict(group))
        kinds = {p._value.dtype for group in self._groups() for p in group["params"][:1]}
        kind = np.float64 if np.dtype(np.float64) in kinds else np.float32
        self._learning_rate_tensor = wrap(concrete(np.zeros((), kind)))
        self._learning_rate_tensor.persistable = True
        self._rate = float("nan")
        self._learning_rate = learning_rate
        self._pending: Pending = {}
        if mode.recorder is None:
            call_at_backward(self._compile_step)

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings may be changed between steps: what was derived from them is forgotten."""
        object.__setattr__(self, name, value)
        if name not in ("_rate", "_found_inf"):
            self.__dict__["_plans"] = {}
        if name == "_learning_rate" and "_learning_rate_tensor" in self.__dict__:
            if isinstance(value, LRScheduler):
                value._follow(self)
            else:
                self._rate_changed(float(value))

    def _checked(self, parameters: Any) -> list[Any] | None:
        where = type(self).__name__
        if isinstance(parameters, Tensor | dict):
            raise TypeError(
                f"{where}: parameters is a list of Tensors or of groups (dicts), received one "
                f"{type(parameters).__name__}"
            )
        if parameters is not None:
            return list(parameters)
        if mode.recorder is None:
            raise AttributeError(
                f"{where}: parameters is missing; give layer.parameters() (only static programs may leave it out)"
            )
        return None

    def _add_param_group(self, group: dict[str, Any]) -> None:
        if "params" not in group:
            raise AssertionError(f"{type(self).__name__}: a group of parameters needs the entry params")
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(
                f"{type(self).__name__}: params of a group is a list, received a set, which has no order"
            )
        group["params"] = [params] if isinstance(params, Tensor) else list(params)
        known = {id(p) for other in self._param_groups for p in other["params"]}
        if any(id(p) in known for p in group["params"]):
            raise ValueError(f"{type(self).__name__}: some parameters appear in more than one group")
        group.setdefault("grad_clip", self._grad_clip)
        for parameter in group["params"]:
            parameter.optimize_attr["learning_rate"] = group.get("learning_rate", 1.0)
        self._take_decay(group, group["params"])
        self._param_groups.append(group)
        self._plans.clear()

    def _take_decay(self, group: Group, parameters: Sequence[Any]) -> None:
        """A group's decay takes the place of its parameters' regularizers."""
        for parameter in parameters:
            parameter.regularizer = regularizer_of(group.get("weight_decay", self.regularization))

    # What a subclass says

    def _rule(self, param: Tensor, group: Group) -> Rule:
        """What is done to a parameter of a group."""
        raise NotImplementedError(
            f"{type(self).__name__} says nothing about a parameter: use a subclass, such as paddle.optimizer.Adam"
        )

    def _rescale(self, group: Group) -> float:
        """What gradients are multiplied by after clipping."""
        return 1.0

    # The learning rate

    def _rate_changed(self, rate: float) -> None:
        """Compiled steps read the rate from a Tensor, so that they see a new one."""
        if isinstance(self._learning_rate, LRScheduler) and self._learning_rate.last_lr != rate:
            return  # a schedule that this optimizer had before
        if rate != self._rate:
            self._rate = rate
            tensor = self._learning_rate_tensor
            tensor._value = concrete(np.asarray(rate, tensor._value.dtype))

    def get_lr(self) -> float:
        """The learning rate of the next step."""
        rate = self._learning_rate
        return float(rate()) if isinstance(rate, LRScheduler) else rate

    def set_lr(self, value: float) -> None:
        """Change a constant learning rate.

        Raises:
            RuntimeError: a schedule decides on it. TypeError: `value` is no number.
        """
        if not isinstance(value, int | float):
            raise TypeError(f"set_lr takes a number, received {type(value).__name__}")
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError(
                "set_lr: a schedule decides on the learning rate of this optimizer; replace it by set_lr_scheduler, or "
                "give a float when the optimizer is made"
            )
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Take the learning rate from this schedule from now on."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(
                f"set_lr_scheduler takes a schedule of paddle.optimizer.lr, received {type(scheduler)}"
            )
        self._learning_rate = scheduler

    # State

    def state_dict(self) -> dict[str, object]:
        """The Tensors of the state by name, `master_weights` and the `LR_Scheduler` where they are."""
        state: dict[str, Any] = {
            tensor.name: tensor for by_param in self._accumulators.values() for tensor in by_param.values()
        }
        if self._master_weights:
            state["master_weights"] = self._master_weights
        if isinstance(self._learning_rate, LRScheduler):
            state["LR_Scheduler"] = self._learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` gave; what the state has not yet is set when it is made.

        Raises:
            KeyError: a schedule is used and the state has none. AssertionError: an entry is missing.
            ShapeError: an entry has another shape or type.
        """
        state = dict(state_dict)
        if isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(state["LR_Scheduler"])
        state.pop("LR_Scheduler", None)
        for name, value in (state.pop("master_weights", None) or {}).items():
            master = self._master_weights.setdefault(name, wrap(as_array(value)))
            master._value = as_array(value)
            master.name = value.name if isinstance(value, Tensor) else master.name
        self._accumulators_holder = state
        self._first_powers.clear()
        for by_param in self._accumulators.values():
            for tensor in by_param.values():
                key = entry_of(state, tensor.name)
                if key is None:
                    raise AssertionError(f"the state of {type(self).__name__} has no entry {tensor.name}")
                load_into(tensor, state[key])
                self._share_power(tensor)

    set_dict = set_state_dict

    def get_opti_var_name_list(self) -> list[str]:
        """The names of the state, in the order in which it was made."""
        return self._opti_name_list

    def _accumulator(self, name: str, slot: StateSlot, param: Tensor, owner: Tensor) -> Tensor:
        """One Tensor of the state, made where it is not there yet."""
        name = name if self._name is None else f"{self._name}_{name}"
        found = self._accumulators[name].get(owner.name)
        if found is not None:
            return found
        like = _state_of(slot, owner)
        tensor = wrap(concrete(np.full(like.shape, slot.fill, like.dtype)))
        tensor.name = unique_name.generate(f"{owner.name}_{name}")
        tensor.persistable = True
        self._opti_name_list.append(tensor.name)
        self._first_values[tensor.name] = slot.fill
        if self._accumulators_holder:
            key = entry_of(self._accumulators_holder, tensor.name)
            if key is None:
                raise AssertionError(
                    f"{type(self).__name__}: the state that was loaded has no entry {tensor.name}; it has "
                    f"{list(self._accumulators_holder)[:5]}. Names count the layers made before in this process: "
                    "build the model in the same order, or within paddle.utils.unique_name.guard()"
                )
            load_into(tensor, self._accumulators_holder.pop(key))
        if slot.power:
            self._powers.add(tensor.name)
            self._share_power(tensor)
        self._accumulators[name][owner.name] = tensor
        return tensor

    def _share_power(self, tensor: Tensor) -> None:
        """Let a power have the array of those that are equal, which a step computes once: parameters that began
        together stay equal."""
        array = tensor._value
        if tensor.name in self._powers and not isinstance(array, Tracer | Symbol):
            key = np.dtype(array.dtype), np.asarray(array).tobytes()
            tensor._value = self._first_powers.setdefault(key, array)

    def _begin_anew(self) -> None:
        """Give the state the values that it began with, and float32 copies those of their parameters."""
        with x64():
            for by_param in self._accumulators.values():
                for tensor in by_param.values():
                    tensor._value = jnp.full_like(tensor._value, self._first_values[tensor.name])
                    self._share_power(tensor)
            for parameter in self._all_parameters():
                master = self._master_weights.get(parameter.name)
                if master is not None:
                    master._value = parameter._value.astype(np.float32)

    @property
    def _dtype(self) -> types.dtype | None:
        """The type of the first parameter; None before there are any."""
        return next((parameter.dtype for parameter in self._all_parameters()), None)

    def _get_accumulator(self, name: str, param: Tensor) -> Tensor:
        """The state of this name of a parameter. Raises: KeyError: there is none."""
        full = name if self._name is None else f"{self._name}_{name}"
        state = self._accumulators[full].get(param.name)
        if state is None:
            raise KeyError(f"Accumulator {name} does not exist for parameter {param.name}")
        return state

    def _master(self, param: Tensor) -> Tensor:
        """The float32 copy of a parameter of 16 bits."""
        found = self._master_weights.get(param.name)
        if found is None:
            # Under to_static the dictionary still holds the values, where the attribute is what stands for them.
            with jax.ensure_compile_time_eval(), x64():
                found = wrap(param._array.astype(np.float32))
            found.name = unique_name.generate(f"{param.name}_fp32_master")
            found.persistable = True
            self._master_weights[param.name] = found
        return found

    # Steps

    def _groups(self) -> list[dict[str, Any]]:
        if not self._param_groups:
            return []
        if isinstance(self._param_groups[0], dict):
            return self._param_groups
        return [{"params": self._param_groups, "grad_clip": self._grad_clip}]

    def _all_parameters(self) -> list[Parameter]:
        return [parameter for group in self._groups() for parameter in group["params"]]

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        self._apply([(group, with_gradients(group["params"])) for group in self._groups()])

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradients to zeros, or to None."""
        for parameter in self._all_parameters():
            if not parameter.stop_gradient:
                tape.clear_grad(parameter, set_to_zero)

    clear_gradients = clear_grad

    def backward(
        self,
        loss: Tensor,
        startup_program: object = None,
        parameters: Sequence[Parameter] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
        callbacks: object = None,
    ) -> Sequence[tuple[Parameter, Tensor]]:
        """The parameters that have a gradient, with it; `loss.backward()` is the caller's."""
        if isinstance(loss._value, Symbol):
            from framework.paddle.static import backward as static

            return static.append_backward(loss, parameters or static.own_parameters(self), no_grad_set)
        return with_gradients(list(parameters) if parameters else self._all_parameters())

    def minimize(
        self,
        loss: Tensor,
        startup_program: object = None,
        parameters: Sequence[Parameter] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
    ) -> tuple[Sequence[object], Sequence[tuple[Parameter, Tensor]]]:
        """`step()` after the caller's `loss.backward()`; returns ([], [(parameter, gradient), …])."""
        if not isinstance(loss, Tensor):
            raise AssertionError(f"minimize takes the loss, a Tensor, received {type(loss).__name__}")
        if isinstance(loss._value, Symbol):
            from framework.paddle.static import backward as static

            return static.minimize(self, loss, parameters, no_grad_set)
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        chosen = {id(parameter) for parameter, _ in pairs}
        groups = self._groups()
        if parameters:
            groups = [{"params": list(parameters), "grad_clip": self._grad_clip}]
        self._apply([(g, with_gradients([p for p in g["params"] if id(p) in chosen])) for g in groups])
        return [], pairs

    def apply_gradients(self, params_grads: Iterable[Any]) -> Sequence[object]:
        """Clip, regularize and apply these gradients."""
        params_grads = list(params_grads)
        if any(isinstance(grad._value, Symbol) for _, grad in params_grads if grad is not None):
            from framework.paddle.static import backward as static

            return [static.append_step(self, params_grads)]
        self._apply(
            [({"params": [], "grad_clip": self._grad_clip}, [p for p in params_grads if p[1] is not None])]
        )
        return []

    def append_regularization_ops(
        self,
        parameters_and_grads: Iterable[tuple[Parameter, Tensor | None]],
        regularization: DecayLike = None,
    ) -> list[tuple[Parameter, Tensor | None]]:
        """The pairs with what the regularizers add to the gradients."""
        pairs = []
        with tape.no_grad():
            for parameter, grad in parameters_and_grads:
                own: Any = parameter.regularizer
                decay = own if own is not None else regularizer_of(regularization)
                if grad is not None and decay is not None:
                    grad = grad + decay(parameter, grad)
                pairs.append((parameter, grad))
        return pairs

    def _apply(self, groups: Sequence[tuple[Group, Sequence[Pair]]]) -> None:
        pairs = [(p, grad._value) for _, found in groups for p, grad in found]
        if not pairs:
            return
        if isinstance(self._learning_rate, LRScheduler):
            self._rate_changed(float(self._learning_rate()))
        key = tuple([id(p) for p, _ in pairs])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(groups)
        if plan.outside:
            pairs = [(p, grad._value) for group, found in groups for p, grad in self._prepared(group, found)]
        masters = [
            self._master(p) if part.master else None for (p, _), part in zip(pairs, plan.parts, strict=True)
        ]
        states = [
            {
                name: self._accumulator(name, slot, p, p if master is None else master)
                for name, slot in part.slots
            }
            for (p, _), part, master in zip(pairs, plan.parts, masters, strict=True)
        ]
        indices, powers = find_powers(
            plan,
            [[state[n]._value for n in part.powers] for part, state in zip(plan.parts, states, strict=True)],
        )
        others = [{n: state[n] for n in part.others} for part, state in zip(plan.parts, states, strict=True)]
        replaced = [p for p, _ in pairs] + [m for m in masters if m is not None]
        replaced += [tensor for state in others for tensor in state.values()]
        alone = all(map(is_only_holder, replaced))
        inputs = (
            [p._value for p, _ in pairs],
            [grad for _, grad in pairs],
            [None if m is None else m._value for m in masters],
            [{name: tensor._value for name, tensor in state.items()} for state in others],
            powers,
            self._learning_rate_tensor._value,
            self._factors([p for p, _ in pairs]),
            None if self._found_inf is None else self._found_inf._value,
        )
        if self._pending:
            wait_for(self._pending, inputs)
            self._pending.clear()
        before = enter_x64(True)
        try:
            moved, full, changed, raised = update(plan, indices, *inputs, in_place=alone)
        finally:
            leave_x64(before)
        for index, (parameter, _) in enumerate(pairs):
            parameter._value = moved[index]
            master = masters[index]
            copy = full[index]
            if master is not None and copy is not None:
                master._value = copy
            for name, tensor in others[index].items():
                tensor._value = changed[index][name]
            for name, k in zip(plan.parts[index].powers, indices[index], strict=True):
                states[index][name]._value = raised[k]

    def _compile_step(self) -> None:
        """Let a thread compile the step while the first backward run goes on, as if every parameter got a gradient; a
        wrong guess costs time of the other core."""
        groups = [(g, [(p, p) for p in g["params"] if not p.stop_gradient]) for g in self._groups()]
        parameters = [p for _, pairs in groups for p, _ in pairs]
        if not parameters or any(p._value.dtype in _HALF for p in parameters) or self._found_inf is not None:
            return
        try:
            plan = self._plan(groups)
        except (NotImplementedError, RuntimeError):  # it moves all parameters together
            return
        if plan.outside:
            return
        values = [p._value for p in parameters]
        pairs = list(zip(plan.parts, parameters, strict=True))
        indices, powers = find_powers(
            plan, [[_state_of(slot, p) for slot in part.powers.values()] for part, p in pairs]
        )
        states = [{name: _state_of(slot, p) for name, slot in part.others.items()} for part, p in pairs]
        rate = self._learning_rate_tensor._value
        inputs = (values, values, [None] * len(values), states, powers, rate, self._factors(parameters), None)
        compile_later(StepOf(plan, indices), self._pending, inputs, first=True)

    def _factors(self, parameters: Sequence[Tensor]) -> np.ndarray | None:
        """The parameters' factors of the learning rate, where one is not 1."""
        factors = [p.optimize_attr["learning_rate"] if isinstance(p, Parameter) else 1.0 for p in parameters]
        if all(factor == 1.0 for factor in factors):
            return None
        return np.asarray([float(factor) for factor in factors], np.float32)

    def _plan(self, groups: Sequence[tuple[Group, Sequence[Pair]]]) -> Plan:
        parts: list[Part] = []
        clips: list[Clipping] = []
        outside = False
        for group, found in groups:
            outside = outside or self._by_hand(group, found)
            if group["grad_clip"] is not None and found:
                places = tuple(range(len(parts), len(parts) + len(found)))
                needed = tuple(bool(p.need_clip) if isinstance(p, Parameter) else True for p, _ in found)
                clips.append(Clipping(group["grad_clip"], places, needed))
            for param, _ in found:
                decay = self._decay_of(param)
                half = param._value.dtype in _HALF
                if half and not self._multi_precision:
                    warnings.warn(
                        f"{type(self).__name__} keeps its state of a parameter of {param.dtype} without a float32 "
                        "copy: multi_precision=True is more exact",
                        stacklevel=4,
                    )
                rule = self._rule(param, group)
                parts.append(
                    Part(
                        rule,
                        decay.decay if decay is not None and not outside else WeightDecay(),
                        self._rescale(group),
                        half and self._multi_precision,
                    )
                )
        return Plan(tuple(parts), () if outside else tuple(clips), outside)

    def _decay_of(self, param: Tensor) -> WeightDecayRegularizer | None:
        own: Any = param.regularizer if isinstance(param, Parameter) else None
        return own if own is not None else self.regularization

    def _by_hand(self, group: Group, pairs: Sequence[Pair]) -> bool:
        """Whether the user's own clipping or regularizer has to be called, outside of the compiled step."""
        from framework.paddle.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue

        known = (type(None), ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue)
        if type(group["grad_clip"]) not in known:
            return True
        return any(
            decay is not None and type(decay).__call__ is not WeightDecayRegularizer.__call__
            for decay in (self._decay_of(p) for p, _ in pairs)
        )

    def _prepared(self, group: Group, pairs: Sequence[Pair]) -> list[Any]:
        """Gradients that the user's own objects have clipped and regularized."""
        with tape.no_grad():
            clipped = pairs if group["grad_clip"] is None else group["grad_clip"](list(pairs))
            return self.append_regularization_ops(clipped, self.regularization)
