"""The optimizers by Paddle's names, argument order and defaults, made from the core's, which say what is computed.

Arguments that are accepted and change nothing: `use_multi_tensor` (all parameters are one program), and `lazy_mode`
but for Adam's tables that an embedding reads with `sparse=True`. `rescale_grad` multiplies gradients after they are
clipped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from framework.optimizer import base as core_base
from framework.optimizer import optimizers as core
from framework.optimizer import rules
from framework.paddle._kernel.constructors import Rowed, make_class, parameters
from framework.paddle._kernel.errors import AssertedError, require
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.optimizer.base import Group, Optimizer

_COMMON: dict[str, object] = {
    **dict.fromkeys(("parameters", "weight_decay", "grad_clip", "name")),
    **dict.fromkeys(("lazy_mode", "multi_precision", "use_multi_tensor"), False),
    "rescale_grad": 1.0,
}


def _number(value: Any) -> Any:
    """A setting as a rule takes it: of Python, not a Tensor."""
    return value if value is None or isinstance(value, bool) or callable(value) else float(value)


class _Face(Rowed, Optimizer):
    """Base of the optimizers that `_optimizer` makes. Settings are attributes, and a group may have its own."""

    _core: ClassVar[type[core_base.Optimizer]]
    _attributes: ClassVar[dict[str, str]]  # of settings: their names as attributes
    _numbers: ClassVar[tuple[str, ...]]  # settings that are not negative, betas below 1
    _rescale_grad = 1.0

    def _begin(self, settings: dict[str, Any]) -> None:
        self._check(settings)
        decay = None if self._core.decoupled else settings.get("weight_decay")
        common = (settings["learning_rate"], settings["parameters"], decay, settings["grad_clip"])
        Optimizer.__init__(self, *common, settings["name"])
        for name, attribute in self._attributes.items():
            setattr(self, attribute, settings[name])

    def _check(self, settings: dict[str, Any]) -> None:
        """Raises: ValueError, TypeError."""
        for name in self._numbers:
            value, is_share = settings[name], name.startswith("beta")
            where = f"paddle.optimizer.{type(self).__name__}"
            require(value is not None, f"{name} is set", where, None, AssertedError)
            if isinstance(value, Tensor) or (value >= 0 and (value < 1 or not is_share)):
                continue
            allowed = "be from 0 to below 1" if is_share else "not be negative"
            raise ValueError(f"{type(self).__name__}: {name} must {allowed}, received {value}")

    def _settings(self, group: Group) -> Any:
        """The settings for the parameters of a group, which are the core's optimizer to its rule."""
        own = {name: getattr(self, attribute) for name, attribute in self._attributes.items()}
        return SimpleNamespace(**{name: _number(group.get(name, value)) for name, value in own.items()})

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        settings = self._settings(group)
        applied: Any = SimpleNamespace(decoupled=self._decoupled(param, settings))
        return self._core.rule(settings, applied)

    def _decoupled(self, param: Tensor, settings: object) -> float:
        """The decay apart from the gradient."""
        return 0.0

    def _rescale(self, group: Group) -> float:
        return float(self._rescale_grad)


class _Momentum(_Face):
    """`rescale_grad` multiplies gradients after they are clipped."""

    def _check(self, settings: dict[str, object]) -> None:
        if settings["momentum"] is None:
            raise ValueError("Momentum: momentum is not set")


class _Adam(_Face):
    """`lazy_mode` moves rows with a gradient alone, in tables that an embedding reads with `sparse=True`."""

    _lazy_mode: bool

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        rule = super()._rule(param, group)
        is_lazy = (
            group.get("lazy_mode", self._lazy_mode) and isinstance(param, Parameter) and param.sparse_rows
        )
        if not (is_lazy and isinstance(rule, rules.AdamRule)):
            return rule
        return rules.LazyAdamRule(**dataclasses.asdict(rule))


class _AdamW(_Face):
    """`apply_decay_param_fun(name)` says whether the parameter of this name decays, `lr_ratio(parameter)` multiplies
    its rate. A regularizer of a ParamAttr is added to the gradient, and the decoupled decay stays beside it."""

    _weight_decay: float | Tensor
    _lr_ratio: Callable[[Tensor], float] | None

    def _check(self, settings: dict[str, object]) -> None:
        super()._check(settings)
        decay, ratio = settings["weight_decay"], settings["lr_ratio"]
        if not isinstance(decay, float | Tensor):
            raise TypeError(f"AdamW: weight_decay is a float or a Tensor, received {type(decay).__name__}")
        if ratio is not None and not callable(ratio):
            raise TypeError(f"AdamW: lr_ratio is a function of a parameter, received {type(ratio).__name__}")

    def _take_decay(self, group: Group, parameters: Sequence[object]) -> None:
        """A group's decay is the decoupled one: the regularizers of its parameters stay."""

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        rule: Any = super()._rule(param, group)
        return (
            rule if self._lr_ratio is None else dataclasses.replace(rule, ratio=float(self._lr_ratio(param)))
        )

    def _decoupled(self, param: Tensor, settings: Any) -> float:
        decays = settings.apply_decay_param_fun
        return settings.weight_decay if decays is None or decays(param.name) else 0.0

    def __str__(self) -> str:
        return f"AdamW, weight decay {self._weight_decay}"


class _Lamb(_Face):
    """`exclude_from_weight_decay_fn(parameter)` takes the decay from a parameter, which is then not scaled either,
    unless `always_adapt`."""

    def _decoupled(self, param: Tensor, settings: Any) -> float:
        excluded = settings.exclude_from_weight_decay_fn
        return 0.0 if excluded is not None and excluded(param) else settings.lamb_weight_decay


class _RMSProp(_Face):
    """The momentum is taken of steps that the learning rate has scaled already."""

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        rule: Any = super()._rule(param, group)
        return dataclasses.replace(rule, keep_mean=True)


def _optimizer(
    kind: type[core_base.Optimizer],
    order: str,
    base: type[_Face] = _Face,
    numbers: str = "",
    public: tuple[str, ...] = (),
) -> type[_Face]:
    """Paddle's optimizer of the name of the core's.

    Args:
        order: names of the arguments, in Paddle's order; defaults are the core's.
        numbers: see `_Face`.
        public: settings whose attributes have no underscore before their name.
    """
    names = order.split()
    own = {f.name: f.default for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING}
    shared = {name: value for name, value in _COMMON.items() if name != "weight_decay" or not kind.decoupled}
    settings = [name for name in names if name not in shared and name != "learning_rate"]
    settings += [name for name in ("lazy_mode", "multi_precision", "rescale_grad") if name in names]
    doc = (kind.__doc__ or "").split("\n\n")[0]
    return make_class(
        kind.__name__,
        base,
        parameters(names, own | shared),
        __name__,
        doc if base is _Face else f"{doc}\n\n{base.__doc__}",
        _core=kind,
        _attributes={name: name if name in public else f"_{name}" for name in settings},
        _numbers=tuple(numbers.split()),
    )


_BETAS = "beta1 beta2 epsilon"
SGD = _optimizer(core.SGD, "learning_rate parameters weight_decay grad_clip multi_precision name")
Momentum = _optimizer(
    core.Momentum,
    "learning_rate momentum parameters use_nesterov weight_decay grad_clip multi_precision rescale_grad "
    "use_multi_tensor name",
    _Momentum,
)
Adam = _optimizer(
    core.Adam,
    "learning_rate beta1 beta2 epsilon parameters weight_decay grad_clip lazy_mode multi_precision use_multi_tensor "
    "name",
    _Adam,
    _BETAS,
)
AdamW = _optimizer(
    core.AdamW,
    "learning_rate beta1 beta2 epsilon parameters weight_decay lr_ratio apply_decay_param_fun grad_clip lazy_mode "
    "multi_precision name",
    _AdamW,
    numbers=_BETAS,
)
Adamax = _optimizer(
    core.Adamax,
    "learning_rate beta1 beta2 epsilon parameters weight_decay grad_clip name",
    numbers=_BETAS,
)
Lamb = _optimizer(
    core.Lamb,
    "learning_rate lamb_weight_decay beta1 beta2 epsilon parameters grad_clip exclude_from_weight_decay_fn "
    "multi_precision always_adapt name",
    _Lamb,
    numbers=_BETAS,
    public=("always_adapt",),
)
Adagrad = _optimizer(
    core.Adagrad,
    "learning_rate epsilon parameters weight_decay grad_clip name initial_accumulator_value",
    public=("initial_accumulator_value",),
)
Adadelta = _optimizer(
    core.Adadelta, "learning_rate epsilon rho parameters weight_decay grad_clip name", numbers="epsilon rho"
)
RMSProp = _optimizer(
    core.RMSProp,
    "learning_rate rho epsilon momentum centered parameters weight_decay grad_clip name",
    _RMSProp,
    numbers="rho epsilon momentum",
)
