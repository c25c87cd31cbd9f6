"""paddle.nn.Layer: parameters, buffers, sublayers, hooks and state, as programs for Paddle use them."""

from __future__ import annotations

import copy
import itertools
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.errors import ArgumentTypeError, AssertedError, OperandError, ShapeError
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array
from framework.paddle.nn import initializer as initializers
from framework.paddle.nn.param_attr import AttrLike, ParamAttr
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.base.layer_helper import LayerHelper
    from framework.paddle.nn.initializer import Initializer

log = logging.getLogger("oar")
Self = TypeVar("Self", bound="Layer")
Excluded: TypeAlias = "type[Layer] | list[type[Layer]] | tuple[type[Layer], ...] | None"
_hook_numbers = itertools.count()


def _snake_case(name: str) -> str:
    parts = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", parts).lower()


class HookRemoveHelper:
    """What registering a hook returns: `remove()` takes it away."""

    def __init__(self, hooks: OrderedDict[int, Callable[..., object]]) -> None:
        self._hooks = hooks
        self._hook_id = next(_hook_numbers)

    def remove(self) -> None:
        self._hooks.pop(self._hook_id, None)


class Layer:
    """Base of all layers and models. Parameters, layers and Tensors set as attributes are registered.

    Args:
        name_scope: start of the names of parameters; by default the class's name in snake_case.
        dtype: of parameters that are created without one.
    """

    training: bool
    _parameters: OrderedDict[str, Parameter | None]
    _sub_layers: OrderedDict[str, Layer | None]
    _buffers: OrderedDict[str, Tensor | None]

    def __init__(self, name_scope: str | None = None, dtype: object = "float32") -> None:
        assign = object.__setattr__
        assign(self, "training", True)
        assign(self, "_full_name", unique_name.generate_layer(name_scope or _snake_case(type(self).__name__)))
        assign(self, "_dtype", types.of_numpy(types.to_numpy(dtype)).name)
        for name in ("_parameters", "_sub_layers", "_buffers", "_forward_pre_hooks", "_forward_post_hooks"):
            assign(self, name, OrderedDict())
        assign(self, "_state_dict_hooks", OrderedDict())
        assign(self, "_non_persistable_buffer_names_set", set())

    # Calling

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    def __call__(self, *inputs: object, **kwargs: object) -> Any:
        for hook in tuple(self._forward_pre_hooks.values()):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in tuple(self._forward_post_hooks.values()):
            changed = hook(self, inputs, outputs)
            if changed is not None:
                outputs = changed
        return outputs

    _dygraph_call_func = __call__

    def backward(self, *inputs: object) -> None:
        raise ValueError("a Layer has no backward: call backward() of the loss")

    def register_forward_pre_hook(self, hook: Callable[..., object]) -> HookRemoveHelper:
        """Call `hook(layer, inputs)` before forward; what it returns replaces the inputs."""
        handle = HookRemoveHelper(self._forward_pre_hooks)
        self._forward_pre_hooks[handle._hook_id] = hook
        return handle

    def register_forward_post_hook(self, hook: Callable[..., object]) -> HookRemoveHelper:
        """Call `hook(layer, inputs, outputs)` after forward; what it returns replaces the outputs."""
        handle = HookRemoveHelper(self._forward_post_hooks)
        self._forward_post_hooks[handle._hook_id] = hook
        return handle

    register_forward_hook = register_forward_post_hook

    # Modes

    def train(self: Self, mode: bool = True) -> Self:
        for layer in self.sublayers(include_self=True):
            object.__setattr__(layer, "training", mode)
        return self

    def eval(self: Self) -> Self:
        # Not through `self.train`: layers of packages (PaddleNLP's LoRALinear) define it without an argument.
        Layer.train(self, False)
        return self

    def apply(self: Self, fn: Callable[[Layer], object]) -> Self:
        """Call `fn` with every layer, the innermost first."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    @property
    def _helper(self) -> LayerHelper:
        """What layers outside of Paddle make parameters and run operators by, as Paddle's own layers do."""
        from framework import paddle  # paddle.base stands above this module

        return paddle.base.layer_helper.LayerHelper(self._full_name, name=self._full_name)

    def full_name(self) -> str:
        return self._full_name

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        lines = [
            f"({name}): " + "\n  ".join(repr(layer).split("\n")) for name, layer in self._sub_layers.items()
        ]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return "\n  ".join([f"{type(self).__name__}({extra}", *lines]) + "\n)"

    # Parameters

    def create_parameter(
        self,
        shape: Any,
        attr: Any = None,
        dtype: object = None,
        is_bias: bool = False,
        default_initializer: Any = None,
    ) -> Parameter | None:
        """A new parameter, not yet registered; None where `attr` is False."""
        kind = dtype or types.get_default_dtype()
        return new_parameter(self._full_name, shape, attr, kind, is_bias, default_initializer)

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        _check_name(self, name, self._parameters, "parameter")
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"{name} should be a Parameter, received {type(parameter).__name__}")
        self._parameters[name] = parameter
        return parameter

    register_parameter = add_parameter

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        return [parameter for _, parameter in self.named_parameters(include_sublayers=include_sublayers)]

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter), each parameter once."""
        yield from self.__named("_parameters", prefix, include_sublayers)

    def clear_gradients(self) -> None:
        for parameter in self.parameters():
            parameter.clear_gradient()

    # Buffers

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """A Tensor of the layer's state that is not trained; not in `state_dict` unless persistable."""
        _check_name(self, name, self._buffers, "buffer")
        if tensor is not None and (not isinstance(tensor, Tensor) or isinstance(tensor, Parameter)):
            raise TypeError(
                f"The registered buffer should be a Paddle.Tensor, received {type(tensor).__name__} for {name}"
            )
        self._buffers[name] = tensor
        if persistable:
            self._non_persistable_buffer_names_set.discard(name)
        else:
            self._non_persistable_buffer_names_set.add(name)

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        return [buffer for _, buffer in self.named_buffers(include_sublayers=include_sublayers)]

    def named_buffers(self, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Tensor]]:
        yield from self.__named("_buffers", prefix, include_sublayers)

    def create_tensor(
        self, name: str | None = None, persistable: bool | None = None, dtype: object = None
    ) -> Tensor:
        """An empty Tensor with a name of this layer."""
        tensor = Tensor(np.zeros((0,), types.to_numpy(dtype or self._dtype)))
        tensor.name = name or unique_name.generate(f"{self._full_name}._generated_var")
        tensor.persistable = bool(persistable)
        return tensor

    create_variable = create_tensor

    def __named(self, kind: str, prefix: str, include_sublayers: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        layers = (
            self.named_sublayers(prefix=prefix, include_self=True) if include_sublayers else [(prefix, self)]
        )
        for path, layer in layers:
            for name, member in vars(layer)[kind].items():
                if member is not None and id(member) not in seen:
                    seen.add(id(member))
                    yield f"{path}.{name}" if path else name, member

    # Sublayers

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        if not isinstance(sublayer, Layer) and sublayer is not None:
            raise TypeError(f"sublayer {name} should be a Layer, received {type(sublayer).__name__}")
        _check_name(self, str(name), self._sub_layers, "sublayer", dots=True)
        self._sub_layers[str(name)] = sublayer
        return sublayer

    add_module = register_module = add_sublayer

    def children(self) -> Iterator[Layer]:
        for _, layer in self.named_children():
            yield layer

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        seen: set[int] = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False, layers_set: set[Layer] | None = None
    ) -> Iterator[tuple[str, Layer]]:
        """(name, layer) of all layers below, each once, outer before inner."""
        seen = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            seen.add(self)
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from layer.named_sublayers(prefix=path, include_self=True, layers_set=seen)

    # State

    def state_dict(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
    ) -> OrderedDict[str, Tensor]:
        """Parameters and persistable buffers by name: the layer's own, then those of its sublayers."""
        return self.__state(
            destination, include_sublayers, structured_name_prefix, use_hook, every_buffer=False
        )

    def to_static_state_dict(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
    ) -> OrderedDict[str, Tensor]:
        """`state_dict` with all buffers."""
        return self.__state(
            destination, include_sublayers, structured_name_prefix, use_hook, every_buffer=True
        )

    def __state(self, destination: object, deep: bool, prefix: str, hooks: bool, every_buffer: bool) -> Any:
        state: Any = OrderedDict() if destination is None else destination
        for name, parameter in self._parameters.items():
            if parameter is not None:
                state[prefix + name] = parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and (every_buffer or name not in self._non_persistable_buffer_names_set):
                state[prefix + name] = buffer
        if deep:
            for name, layer in self._sub_layers.items():
                if layer is not None:
                    layer.__state(state, deep, f"{prefix}{name}.", hooks, every_buffer)
        if hooks:
            for hook in self._state_dict_hooks.values():
                state = hook(state) or state
        return state

    def register_state_dict_hook(self, hook: Callable[..., object]) -> HookRemoveHelper:
        handle = HookRemoveHelper(self._state_dict_hooks)
        self._state_dict_hooks[handle._hook_id] = hook
        return handle

    _register_state_dict_hook = register_state_dict_hook

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Take values by structured name (or by the names of the Tensors). Entries that are missing or have another
        shape are left alone with a warning; returns (missing keys, unexpected keys)."""
        own = self.to_static_state_dict(use_hook=False)
        missing: list[str] = []
        used: set[str] = set()
        for name, tensor in own.items():
            key = name if use_structured_name else tensor.name
            if key not in state_dict:
                if not self.__is_non_persistable(name):
                    missing.append(key)
                    log.warning("Skip loading for %s: not in the given state", key)
                continue
            used.add(key)
            value = state_dict[key]
            shape = list(np.shape(value._value if isinstance(value, Tensor) else value))
            if shape != tensor.shape:
                missing.append(key)
                used.discard(key)
                log.warning("Skip loading for %s: shape %s is given, %s is needed", key, shape, tensor.shape)
                continue
            _set(tensor, value, key)
        unexpected = [key for key in state_dict if key not in used and key != "StructuredToParameterName@@"]
        return missing, unexpected

    set_dict = load_dict = set_state_dict

    def __is_non_persistable(self, path: str) -> bool:
        layer: Layer | None = self
        *folders, name = path.split(".")
        for folder in folders:
            layer = layer._sub_layers.get(folder) if layer is not None else None
        return layer is not None and name in layer._non_persistable_buffer_names_set

    # Types and places

    def to(self: Self, device: object = None, dtype: object = None, blocking: bool | None = None) -> Self:
        """Cast floating-point parameters and buffers; the device is where jax put them."""
        return self._to_impl(device, dtype, blocking)

    def _to_impl(
        self: Self,
        device: object = None,
        dtype: object = None,
        blocking: bool | None = None,
        include_sublayers: bool = True,
        floating_only: bool = False,
    ) -> Self:
        """`to`, by the name that packages override and call."""
        if dtype is not None:
            self.__cast(dtype, None, include_sublayers)
        return self

    def astype(self: Self, dtype: object = None) -> Self:
        if dtype is not None:
            self.__cast(dtype, None)
        return self

    def float(self: Self, excluded_layers: Excluded = None) -> Self:
        return self.__cast("float32", excluded_layers)

    def float16(self: Self, excluded_layers: Excluded = None) -> Self:
        return self.__cast("float16", excluded_layers)

    def bfloat16(self: Self, excluded_layers: Excluded = None) -> Self:
        return self.__cast("bfloat16", excluded_layers)

    def __cast(self: Self, dtype: object, excluded: Excluded, deep: bool = True) -> Self:
        kind = types.to_numpy(dtype)
        left_out = tuple(excluded) if isinstance(excluded, list | tuple) else (excluded,) if excluded else ()
        for layer in self.sublayers(include_self=True) if deep else [self]:
            if left_out and isinstance(layer, left_out):
                continue
            object.__setattr__(layer, "_dtype", types.of_numpy(kind).name)
            for tensor in (*layer._parameters.values(), *layer._buffers.values()):
                if tensor is not None and tensor._value.dtype in types.FLOATING:
                    tensor._value = as_array(tensor._value, kind)
                    tensor._grad = None
        return self

    # Attributes

    def __setattr__(self, name: str, value: object) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in state:
                raise ValueError(f"super().__init__() should be called before {name} is set")
            self.__forget(name, but="_parameters")
            state["_parameters"][name] = value
        elif isinstance(value, Layer):
            if "_sub_layers" not in state:
                raise ValueError(f"super().__init__() should be called before {name} is set")
            self.__forget(name, but="_sub_layers")
            state["_sub_layers"][name] = value
        elif "_parameters" in state and name in state["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"{name} is a parameter: it takes a Parameter or None, received {type(value).__name__}"
                )
            state["_parameters"][name] = None
        elif "_sub_layers" in state and name in state["_sub_layers"]:
            if value is not None:
                raise TypeError(
                    f"{name} is a sublayer: it takes a Layer or None, received {type(value).__name__}"
                )
            state["_sub_layers"][name] = None
        elif "_buffers" in state and (name in state["_buffers"] or isinstance(value, Tensor)):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"{name} is a buffer: it takes a Tensor or None, received {type(value).__name__}"
                )
            if name not in state["_buffers"]:
                self.__forget(name)
                state["_non_persistable_buffer_names_set"].add(name)
            state["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def __forget(self, name: str, but: str | None = None) -> None:
        """Drop what has this name, of whatever kind; one of the kind `but` stays, for what replaces it takes its place
        in the order."""
        state = self.__dict__
        for kind in ("_parameters", "_sub_layers", "_buffers"):
            if kind != but:
                state[kind].pop(name, None)
        state["_non_persistable_buffer_names_set"].discard(name)
        state.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for kind in ("_parameters", "_sub_layers", "_buffers"):
            members = state.get(kind)
            if members and name in members:
                return members[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        if any(name in self.__dict__[kind] for kind in ("_parameters", "_sub_layers", "_buffers")):
            self.__forget(name)
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._sub_layers, *self._buffers})


def _check_name(layer: Layer, name: str, kind: Mapping[str, object], what: str, dots: bool = False) -> None:
    if not isinstance(name, str):
        raise TypeError(f"The name of {what} should be a string, but received {type(name).__name__}")
    if "." in name and not dots:
        raise KeyError(
            f"The name of {what} can not contain `.`, received {name!r}: attributes are found by it"
        )
    if not name:
        raise KeyError(f"The name of {what} can not be empty")
    # Paddle lets a sublayer have the name of an attribute; the attribute is what is read by that name then.
    if not dots and name not in kind and hasattr(layer, name):
        raise KeyError(f"{type(layer).__name__}: attribute {name!r} already exists")


def new_parameter(
    owner: str,
    shape: Integers,
    attr: AttrLike,
    dtype: object,
    is_bias: bool,
    default_initializer: Initializer | None,
) -> Parameter | None:
    """A parameter with its first values. `owner` starts its name; see `Layer.create_parameter`.

    Raises:
        AssertedError: a size is not above 0.
        OperandError: `attr` says nothing about a parameter, or `default_initializer` fills none.
    """
    attribute = ParamAttr._to_attr(attr)
    if default_initializer is not None and not callable(default_initializer):
        raise OperandError(
            "default_initializer is an initializer",
            where="create_parameter",
            received=type(default_initializer).__name__,
        )
    if not isinstance(attribute, ParamAttr):
        return None
    sizes = tuple(int(size) for size in ([shape] if isinstance(shape, int) else shape))
    if any(size <= 0 for size in sizes):
        raise AssertedError(
            "the sizes of a parameter must be above 0", where="create_parameter", received=list(sizes)
        )
    if attribute.name is not None:
        if mode.find_parameter is None:
            unique_name.claim(attribute.name)
        elif (shared := mode.find_parameter(attribute.name)) is not None:
            return _with_sizes(shared, sizes)
    parameter = Parameter(
        initializers.new_value(sizes, dtype),
        name=attribute.name or unique_name.generate(f"{owner}.{'b' if is_bias else 'w'}"),
        trainable=attribute.trainable,
        learning_rate=attribute.learning_rate,
        regularizer=attribute.regularizer,
        need_clip=attribute.need_clip,
        do_model_average=attribute.do_model_average,
    )
    initializer = initializers.starting(attribute.initializer, is_bias, default_initializer)
    initializers.begin(parameter, initializer)
    if mode.keep_parameter is not None:
        mode.keep_parameter(parameter, initializer)
    return parameter


def _with_sizes(parameter: Parameter, sizes: tuple[int, ...]) -> Parameter:
    """The parameter, which a second layer names. Raises: ShapeError, where the layer needs other sizes."""
    if tuple(parameter.shape) != sizes:
        raise ShapeError(
            "a parameter of this name with another shape is in the program",
            where=f"ParamAttr(name={parameter.name!r})",
            received=sizes,
            allowed=tuple(parameter.shape),
            fix="give one of them another name",
        )
    return parameter


def _check_parameter(shape: object, initializer: object) -> None:
    if not isinstance(shape, list | tuple | np.ndarray) or not all(
        isinstance(n, int | np.integer) for n in shape
    ):
        raise ArgumentTypeError(
            "the shape of a parameter is a list of integers",
            where="paddle.create_parameter",
            received=str(shape),
        )
    if initializer is not None and not isinstance(initializer, initializers.Initializer):
        raise ArgumentTypeError(
            "default_initializer is an initializer",
            where="paddle.create_parameter",
            received=type(initializer).__name__,
        )


def create_parameter(
    shape: Any,
    dtype: object,
    name: str | None = None,
    attr: AttrLike = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Parameter | None:
    """A parameter outside of any layer; `name` holds where `attr` has none.

    Raises:
        ArgumentTypeError: in static mode, sizes that are no integers, or something else than an initializer.
    """
    if mode.recorder is not None:
        _check_parameter(shape, default_initializer)
    attribute = ParamAttr._to_attr(attr)
    if name is not None and isinstance(attribute, ParamAttr) and attribute.name is None:
        attribute = copy.copy(attribute)
        attribute.name = name
    owner = unique_name.generate("create_parameter")
    return new_parameter(owner, shape, attribute, dtype, is_bias, default_initializer)


def _set(tensor: Tensor, value: object, key: str) -> None:
    array = as_array(value)
    if array.dtype != tensor._value.dtype:
        raise AssertionError(
            f"{key}: values of {array.dtype} cannot be loaded into a Tensor of {tensor._value.dtype}; cast them first"
        )
    tensor._value = array


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
