"""Layer: a Paddle-shaped object outside, a pure function of pytrees inside.

A Layer holds parameters, buffers and sublayers. `self.weight` reads the array; `layer.named_parameters()` yields the
`Parameter` objects that carry it together with what optimizers need to know. Values are made when first read, so a
model of any size is built in no time and loading a checkpoint never pays for an initialisation that it overwrites.

Everything that is compiled goes through three functions (framework/nn/functional_core.py):

    graphdef, params, buffers = nn.split(layer)
    out, buffers = nn.apply(graphdef, params, buffers, key, *args)
    nn.update(layer, params, buffers)

There is no tape: gradients come from `nn.value_and_grad(layer, loss_fn)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import jax
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike

from framework.core import rng
from framework.core.dtypes import autocast, narrow
from framework.core.errors import ConfigError, ShapeError, TraceError, WeightError, nearest
from framework.core.foreign_names import LAYER_KEYWORDS, constructor_arguments, foreign_name
from framework.core.torch_state import TorchState
from framework.nn import initializer as I
from framework.nn.mesh_scope import Gathered, gather
from framework.nn.recompute import gather_again, has_divided, recompute, record

_ARRAYS = (jax.Array, np.ndarray)


def _concrete(array: ArrayLike, dtype: DTypeLike | None = None) -> jax.Array:
    """An array with values even under a trace, where jnp.asarray would give a placeholder that must not be kept.

    What the caller may write into is copied: on a CPU the array would lie in the caller's memory, and change with it.
    """
    values = narrow(np.asarray(array))
    if values.flags.writeable:
        values = np.array(values, dtype)
    with jax.ensure_compile_time_eval():
        return jax.device_put(values if dtype is None else values.astype(dtype, copy=False))


@dataclass(frozen=True)
class ParamAttr:
    """How one parameter is made and trained.

    `learning_rate` multiplies the optimizer's rate, `regularizer` replaces its decay, `trainable=False` freezes the
    parameter, `need_clip=False` keeps it out of gradient clipping.
    """

    name: str | None = None
    initializer: I.Initializer | None = None
    learning_rate: float = 1.0
    regularizer: object = None  # of the optimizer: a WeightDecay or a number
    trainable: bool = True
    need_clip: bool = True

    @staticmethod
    def of(attr: AttrLike) -> ParamAttr | None:
        """Paddle's shorthands: None or True is the default, False is no parameter, or a name, or an initializer."""
        if attr is False:
            return None
        if attr is None or attr is True:
            return ParamAttr()
        if isinstance(attr, ParamAttr):
            return attr
        return ParamAttr(name=attr) if isinstance(attr, str) else ParamAttr(initializer=attr)


AttrLike = ParamAttr | I.Initializer | str | bool | None


class Parameter:
    """A named array that training changes. `value` is made by the initializer when it is first read.

    Attributes:
        gathered: Where a layer has it while it computes, of one that is divided among devices; set on bound copies.
    """

    __slots__ = ("_value", "attr", "dtype", "gathered", "initializer", "rng", "shape")

    def __init__(
        self, shape: tuple[int, ...], dtype: DTypeLike, attr: ParamAttr, initializer: I.Initializer
    ) -> None:
        self.shape, self.dtype, self.attr, self.initializer = tuple(shape), np.dtype(dtype), attr, initializer
        self.rng = rng.next_initializer_rng()
        self._value: jax.Array | None = None
        self.gathered: Gathered | None = None

    @property
    def value(self) -> jax.Array:
        if self._value is None:
            self._value = _concrete(self.initializer(self.rng, self.shape).astype(self.dtype))
        return self._value

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it; may be set."""
        return self.attr.trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.attr = replace(self.attr, trainable=bool(value))

    @property
    def stop_gradient(self) -> bool:
        """Paddle's word for the opposite of `trainable`; may be set."""
        return not self.attr.trainable

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.trainable = not value

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            error = foreign_name("a Parameter", name, "parameter")
            raise error or AttributeError(f"'Parameter' object has no attribute {name!r}")

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def set_value(self, array: ArrayLike) -> None:
        """Replace the value; shape must agree, the dtype is converted to the parameter's."""
        if tuple(np.shape(array)) != self.shape:
            raise ShapeError(
                "a parameter keeps its shape", received=tuple(np.shape(array)), allowed=self.shape
            )
        self._value = array if isinstance(array, jax.Array) else _concrete(array, self.dtype)

    def bind(self, value: jax.Array) -> Parameter:
        """A copy that carries `value`, for a functional call."""
        copy = object.__new__(type(self))
        copy.shape, copy.dtype, copy.attr = self.shape, self.dtype, self.attr
        copy.initializer, copy.rng, copy._value, copy.gathered = self.initializer, self.rng, value, None
        return copy

    def __repr__(self) -> str:
        return f"Parameter(shape={self.shape}, dtype={self.dtype}, trainable={self.trainable})"


ArrayT = TypeVar("ArrayT")


class HookHandle:
    """Returned by the hook registrations; `remove()` takes the hook away."""

    def __init__(self, hooks: dict[int, Callable], number: int) -> None:
        self._hooks, self._number = hooks, number

    def remove(self) -> None:
        self._hooks.pop(self._number, None)


class Layer:
    """Base of all layers and models. Subclasses define `__init__` (calling `super().__init__()`) and `forward`."""

    training: bool
    statistics_frozen: bool = False
    """Set by `freeze`: running statistics do not change, and stand for those of the batch in training too."""
    state_renames: ClassVar[Sequence[tuple[str, str]]] = ()
    """Regular expressions and replacements that turn another official spelling of the names below this layer into ours;
    `set_state_dict` applies them in order to names that it does not know, and looks at them only then."""
    float32_parameters: ClassVar[bool] = False
    """Whether own parameters stay float32 under `amp.auto_cast(level="O2")`, as those of normalisation do."""
    transposed_in_torch: ClassVar[tuple[str, ...]] = ()
    """Own matrices that torch keeps the other way round."""
    conv_kernels: tuple[str, ...] = ()
    """Own parameters that 2-D convolutions read, [out, in, kh, kw]: exported programs have them in the order of memory
    that a convolution reads."""
    _recompute: bool = False  # set on instances by nn.set_recompute

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        for name in kwargs.keys() & LAYER_KEYWORDS.keys():
            allowed = constructor_arguments(cls)
            if name not in allowed and not any(p.kind is p.VAR_KEYWORD for p in allowed.values()):
                raise ConfigError(
                    "an argument of another framework",
                    where=f"{cls.__name__}({name}=…)",
                    received=f"{name}={kwargs[name]!r}",
                    allowed=", ".join(allowed),
                    fix=LAYER_KEYWORDS[name],
                )
        return object.__new__(cls)

    def __init__(self, name_scope: str | None = None) -> None:
        """`name_scope` is accepted for Paddle's sake: a layer is named by the attribute that holds it."""
        state = self.__dict__
        state["_parameters"], state["_buffers"], state["_sub_layers"] = {}, {}, {}
        state["_non_persistable"], state["_bound"] = set(), False
        state["_pre_hooks"], state["_post_hooks"] = {}, {}
        state["training"] = True

    # -- registration ---------------------------------------------------------------------------------------------

    def create_parameter(
        self,
        shape: tuple[int, ...] | list[int],
        attr: AttrLike = None,
        dtype: DTypeLike = "float32",
        is_bias: bool = False,
        default_initializer: I.Initializer | None = None,
    ) -> Any:
        """A Parameter to assign to an attribute, or None when `attr` is False.

        Typed Any: a type checker takes the attribute for what is assigned, and reading it gives the array.

        Without an initializer weights are XavierUniform and biases zero, as in Paddle.
        """
        made = ParamAttr.of(attr)
        if made is None:
            return None
        chosen = (
            made.initializer or default_initializer or (I.Constant(0.0) if is_bias else I.XavierUniform())
        )
        return Parameter(tuple(int(n) for n in shape), dtype, made, chosen)

    def register_buffer(self, name: str, tensor: ArrayLike, persistable: bool = True) -> None:
        """A named array that training does not differentiate; a non-persistable one is not in `state_dict()`."""
        self._forget(name)
        self._buffers[name] = tensor if isinstance(tensor, jax.Array) else _concrete(tensor)
        (self._non_persistable.discard if persistable else self._non_persistable.add)(name)

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        setattr(self, name, sublayer)
        return sublayer

    def add_parameter(self, name: str, parameter: Parameter) -> Parameter:
        setattr(self, name, parameter)
        return parameter

    def _forget(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._sub_layers, self.__dict__):
            registry.pop(name, None)
        self._non_persistable.discard(name)

    def __setattr__(self, name: str, value: object) -> None:
        if "_parameters" not in self.__dict__:
            raise TypeError(
                f"{type(self).__name__}.__init__ must call super().__init__() before it sets {name!r}"
            )
        if isinstance(value, (Parameter, Layer)):
            self._forget(name)
            (self._parameters if isinstance(value, Parameter) else self._sub_layers)[name] = value
        elif name in self._parameters and isinstance(value, _ARRAYS):
            self._refuse_placeholder("parameter", name, value)
            self._parameters[name].set_value(value)
        elif isinstance(value, _ARRAYS):
            self._set_buffer(name, value)
        elif isinstance(value, (list, tuple)) and any(isinstance(v, Layer) for v in value):
            raise TypeError(
                f"{type(self).__name__}.{name}: a {type(value).__name__} of layers is not registered; "
                "wrap it in nn.LayerList (or nn.Sequential)"
            )
        else:
            self._forget(name)
            self.__dict__[name] = value

    def _refuse_placeholder(self, kind: str, name: str, value: ArrayLike) -> None:
        if isinstance(value, Tracer) and not self._bound:
            raise TraceError(
                f"the {kind} {name!r} of {type(self).__name__} would keep a placeholder of a trace",
                received="an assignment under jit or grad to a layer that lives outside of it",
                allowed="`nn.apply(graphdef, params, buffers, key, …)`, which returns the new buffers",
                fix="use nn.apply, jit.to_static or nn.value_and_grad instead of tracing the layer's own call",
            )

    def _set_buffer(self, name: str, value: jax.Array | np.ndarray) -> None:
        self._refuse_placeholder("buffer", name, value)
        record(self, name)
        if name in self._buffers:
            self._buffers[name] = value if isinstance(value, jax.Array) else _concrete(value)
        else:  # Paddle: an array assigned to a new attribute is a buffer that is not saved
            self.register_buffer(name, value, persistable=False)

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        if name in state.get("_parameters", ()):
            parameter, policy = state["_parameters"][name], autocast()
            value = parameter.value
            if policy is not None and not self.float32_parameters:
                value = policy.parameter(value)
            if parameter.gathered is not None:
                value = gather(value, parameter.gathered)
            return value
        for registry in ("_buffers", "_sub_layers"):
            if name in state.get(registry, ()):
                return state[registry][name]
        if error := foreign_name(type(self).__name__, name, "layer"):
            raise error
        close = nearest(name, [*state.get("_parameters", ()), *state.get("_sub_layers", ())])
        hint = f"; did you mean {close!r}?" if close else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")

    def __delattr__(self, name: str) -> None:
        getattr(self, name)
        self._forget(name)

    # -- walking --------------------------------------------------------------------------------------------------

    def named_sublayers(self, prefix: str = "", include_self: bool = False) -> Iterator[tuple[str, Layer]]:
        """Every layer below this one with its dotted name, depth first in the order of registration."""
        if include_self:
            yield prefix, self
        for name, layer in self._sub_layers.items():
            yield from layer.named_sublayers(f"{prefix}.{name}" if prefix else name, include_self=True)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def children(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        return iter(self._sub_layers.items())

    def _slots(self, registry: str) -> Iterator[tuple[str, Layer, str]]:
        for path, layer in self.named_sublayers(include_self=True):
            for name in layer.__dict__[registry]:
                yield (f"{path}.{name}" if path else name), layer, name

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Every parameter with its dotted name. BatchNorm's running statistics are buffers, not parameters."""
        for full, layer, name in self._slots("_parameters"):
            yield (f"{prefix}.{full}" if prefix else full), layer._parameters[name]

    def parameters(self) -> list[Parameter]:
        return [parameter for _, parameter in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, jax.Array]]:
        for full, layer, name in self._slots("_buffers"):
            yield full, layer._buffers[name]

    def buffers(self) -> list[jax.Array]:
        return [buffer for _, buffer in self.named_buffers()]

    def apply(self, fn: Callable[[Layer], object]) -> Layer:
        """Call `fn` on every sublayer, children first, and then on this layer."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Layer:
        for layer in self.sublayers(include_self=True):
            layer.__dict__["training"] = mode
        return self

    def eval(self) -> Layer:
        return self.train(False)

    def freeze(self, pattern: str = "") -> list[str]:
        """Stop training the parameters whose dotted name contains the regular expression; returns their names.

        A normalisation of which no parameter is left to train keeps its running statistics too, and normalises with
        them in training: see `freeze_statistics`. Dropout stays as it is.
        """
        found = [(name, p) for name, p in self.named_parameters() if re.search(pattern, name)]
        if not found:
            names = [name for name, _ in self.named_parameters()]
            raise WeightError(
                "no parameter to freeze",
                received=f"the pattern {pattern!r}",
                allowed=f"a regular expression found in one of {len(names)} names such as {names[:3]}",
            )
        for _, parameter in found:
            parameter.attr = replace(parameter.attr, trainable=False)
        self.freeze_statistics(pattern, {name for name, p in self.named_parameters() if not p.trainable})
        return [name for name, _ in found]

    def freeze_statistics(self, pattern: str, frozen: Collection[str] = ()) -> list[Layer]:
        """Keep the running statistics of layers as they are, and use them in training; returns the layers changed.

        Chosen are layers whose parameters all have names that contain the regular expression or are in `frozen`, at
        least one of them the former; a layer without parameters counts by the names of its buffers.
        `layer.statistics_frozen = False` undoes it.
        """
        changed = []
        for path, layer in self.named_sublayers(include_self=True):
            names = [f"{path}.{name}" if path else name for name in layer._parameters or layer._buffers]
            matched = [re.search(pattern, name) is not None for name in names]
            if any(matched) and all(hit or name in frozen for hit, name in zip(matched, names)):
                changed += [] if layer.statistics_frozen else [layer]
                layer.statistics_frozen = True
        return changed

    # -- state ----------------------------------------------------------------------------------------------------

    def _state_slots(self) -> Iterator[tuple[str, Layer, str, str]]:
        """(full name, owner, registry, local name) in Paddle's order: own parameters, own buffers, then sublayers."""
        for path, layer in self.named_sublayers(include_self=True):
            for registry in ("_parameters", "_buffers"):
                for name in layer.__dict__[registry]:
                    if registry == "_parameters" or name not in layer._non_persistable:
                        yield (f"{path}.{name}" if path else name), layer, registry, name

    def state_dict(self) -> dict[str, jax.Array]:
        """Parameters and persistable buffers by dotted name, in Paddle's order."""
        return {
            full: layer._parameters[name].value if registry == "_parameters" else layer._buffers[name]
            for full, layer, registry, name in self._state_slots()
        }

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of `state_dict()` without making a value."""
        return {
            full: layer._parameters[name].shape
            if registry == "_parameters"
            else tuple(layer._buffers[name].shape)
            for full, layer, registry, name in self._state_slots()
        }

    def state_aliases(self) -> dict[str, str]:
        """Second names under which `set_state_dict` accepts own arrays: {alias: local name}."""
        return {}

    def _without_aliases(self, state: Mapping[str, ArrayT]) -> Mapping[str, ArrayT]:
        """`state` under first names only; where both names are present the first one counts."""
        names, own = {}, {full for full, *_ in self._state_slots()}
        other = [key for key in state if key not in own]
        for path, layer in self.named_sublayers(include_self=True):
            dot = f"{path}." if path else ""
            aliases = {dot + alias: dot + name for alias, name in layer.state_aliases().items()}
            names |= aliases
            for key in other if other and layer.state_renames else ():
                if key.startswith(dot) and key not in aliases:
                    renamed = key[len(dot) :]
                    for pattern, replacement in layer.state_renames:
                        renamed = re.sub(pattern, replacement, renamed)
                    names[key] = dot + renamed
        if not names.keys() & state.keys():
            return state
        renamed = {names[key]: value for key, value in state.items() if key in names}
        return renamed | {key: value for key, value in state.items() if key not in names}

    def set_state_dict(
        self, state: Mapping[str, ArrayLike], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Load values by dotted name; returns (missing, unexpected), both empty when `strict`.

        Raises:
            WeightError: one error that lists every missing, unexpected and mismatched key. With `strict=False` keys
                may be missing or unexpected, and nothing is loaded for them; a mismatched shape is always an error.
        """
        if isinstance(state, TorchState):
            self._refuse_torch(state)
        state = self._without_aliases(state)
        slots = {full: (layer, registry, name) for full, layer, registry, name in self._state_slots()}
        shapes = self.state_shapes()
        missing = [key for key in slots if key not in state]
        # A checkpoint of training holds the buffers too that are not saved otherwise.
        unsaved = {full for full, _, _ in self._slots("_buffers")}
        unexpected = [key for key in state if key not in slots and key not in unsaved]
        wrong = [
            f"{key}: ours {shapes[key]}, theirs {tuple(np.shape(state[key]))}"
            for key in slots
            if key in state and tuple(np.shape(state[key])) != shapes[key]
        ]
        if wrong or (strict and (missing or unexpected)):
            raise WeightError(
                f"the weights do not fit {type(self).__name__}",
                received="\n".join(
                    f"{len(keys)} {label}: " + ", ".join(keys[:20]) + (" …" if len(keys) > 20 else "")
                    for label, keys in (
                        ("missing", missing),
                        ("unexpected", unexpected),
                        ("mismatched", wrong),
                    )
                    if keys
                ),
                allowed=f"exactly the {len(slots)} entries of its state_dict()",
                fix="check variant and num_classes; strict=False loads what fits by name and leaves the rest",
            )
        for key, (layer, registry, name) in slots.items():
            if key in state:
                if registry == "_parameters":
                    layer._parameters[name].set_value(state[key])
                else:
                    old = layer._buffers[name]
                    layer._buffers[name] = _concrete(state[key], old.dtype)
        return missing, unexpected

    def _refuse_torch(self, state: TorchState) -> None:
        """Raises: WeightError, where a matrix would be loaded the other way round, which a square one does not show."""
        known = self._without_aliases(state)
        turned = [
            full
            for full, layer, _, name in self._state_slots()
            if name in layer.transposed_in_torch and full in known
        ]
        if turned:
            raise WeightError(
                "these weights are torch's, where linear layers are [out, in]",
                where=type(self).__name__,
                received=", ".join(turned[:5]) + (f" and {len(turned) - 5} more" if len(turned) > 5 else ""),
                allowed="Paddle's layout, [in, out]",
                fix="framework.workflow.domain.weights.load_pretrained(layer, path) loads names and statistics too",
            )

    set_dict = load_dict = set_state_dict

    # -- calling --------------------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    @classmethod
    def has_forward(cls) -> bool:
        """Whether calling the layer runs it: lists and dicts of layers are only looked up."""
        return cls.forward is not Layer.forward

    def register_forward_pre_hook(self, hook: Callable) -> HookHandle:
        """`hook(layer, args)` runs before forward; what it returns (a tuple or one value) replaces the arguments."""
        return self._add_hook(self._pre_hooks, hook)

    def register_forward_post_hook(self, hook: Callable) -> HookHandle:
        """`hook(layer, args, output)` runs after forward; what it returns replaces the output."""
        return self._add_hook(self._post_hooks, hook)

    @staticmethod
    def _add_hook(hooks: dict[int, Callable], hook: Callable) -> HookHandle:
        number = max(hooks, default=-1) + 1
        hooks[number] = hook
        return HookHandle(hooks, number)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for hook in tuple(self._pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        if self._recompute and self.training:
            out = recompute(self.forward, *args, **kwargs)
        elif self._bound and has_divided(self):
            out = gather_again(self, args, kwargs)
        else:
            out = self.forward(*args, **kwargs)
        for hook in tuple(self._post_hooks.values()):
            changed = hook(self, args, out)
            out = out if changed is None else changed
        return out

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={tuple(p.shape)}" for name, p in self._parameters.items())

    def __repr__(self) -> str:
        lines = [
            f"({name}): " + repr(layer).replace("\n", "\n  ") for name, layer in self._sub_layers.items()
        ]
        body = ("\n  " + "\n  ".join(lines) + "\n") if lines else ""
        return f"{type(self).__name__}({self.extra_repr()}{body})"
