"""Between the two rooms: a layer written for Paddle as a layer of the core, and a layer of the core as one of Paddle.

class MyNet(CoreLayer):                       # in a file that `imports:` of a config names
    def __init__(self, config): super().__init__(PaddleNet(config.width), channels_last=True)

core = paddle.core_layer(net)                 # trained by the Trainer, exported, sharded
net = paddle.wrap(core)                       # called with Tensors, trained by loss.backward() and opt.step()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from framework import nn as core
from framework.core.dtypes import narrow
from framework.core.rng import next_key as next_core_key
from framework.nn import functional_core
from framework.nn.initializer import Initializer
from framework.nn.layer import ParamAttr as CoreParamAttr
from framework.nn.layer import Parameter as CoreParameter
from framework.paddle._kernel.dispatch import KEY, Compiled, run
from framework.paddle._kernel.mode import mode, recorder_scope
from framework.paddle._kernel.tape import enable_grad
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle._kernel.tensor import wrap as wrap_array
from framework.paddle._kernel.watch import watching
from framework.paddle.jit.control import stopped
from framework.paddle.jit.recording import Recording
from framework.paddle.jit.structure import map_tensors
from framework.paddle.nn.layer import Layer


def _is_statistic(name: str, tensor: Tensor) -> bool:
    """Paddle keeps running statistics among the parameters, as `_mean` and `_variance`."""
    return tensor.stop_gradient and name.startswith("_")


class _Values(Initializer):
    """An initializer that gives the values a Tensor has."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __call__(self, rng: object, shape: tuple[int, ...]) -> np.ndarray:
        return self.tensor.numpy()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Values) and other.tensor is self.tensor

    def __hash__(self) -> int:
        return id(self.tensor)


class _Node(core.Layer):
    """The parameters and buffers of one layer written for Paddle, under the same names."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self._take(layer)

    def _take(self, layer: Layer) -> None:
        for name, tensor in (*layer._parameters.items(), *layer._buffers.items()):
            if tensor is None:
                continue
            if isinstance(tensor, Parameter) and not _is_statistic(name, tensor):
                attr = CoreParamAttr(
                    learning_rate=tensor.optimize_attr["learning_rate"],
                    trainable=not tensor.stop_gradient,
                    need_clip=bool(tensor.need_clip),
                )
                shape = tuple(tensor._value.shape)
                self._parameters[name] = CoreParameter(shape, tensor._value.dtype, attr, _Values(tensor))  # type: ignore[arg-type]
            else:
                kept = name not in layer._non_persistable_buffer_names_set
                self.register_buffer(name, narrow(tensor.numpy()), persistable=kept)
        for name, sublayer in layer._sub_layers.items():
            if sublayer is not None:
                self.add_sublayer(name, _Node(sublayer))


class CoreLayer(_Node):
    """A layer of the core that runs a layer written for Paddle, with the same parameters under the same names.

    Arrays come in as the Paddle layer takes them, that is channels first; with `channels_last` arrays of four axes are
    [N, H, W, C] and are turned at the edge, in both directions. The values are those the Paddle layer has now; training
    this layer does not change them there (`write_back` does).
    """

    def __init__(self, layer: Layer, channels_last: bool = False) -> None:
        core.Layer.__init__(self)
        object.__setattr__(self, "_source", layer)
        self.channels_last = channels_last
        self._take(layer)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        source: Layer = self.__dict__["_source"]
        bound = list(self._bound_tensors(source, self))
        modes = [(sub, sub.training) for sub in source.sublayers(include_self=True)]
        recording = Recording({id(tensor): tensor for tensor, _, _ in bound})
        keys, mode.keys = mode.keys, _core_key
        try:
            with watching(recording), recorder_scope(stopped), enable_grad(), jax.enable_x64(True):  # type: ignore[union-attr]
                for sub, _ in modes:
                    object.__setattr__(sub, "training", self.training)
                for tensor, owner, name in bound:
                    recording.snapshot(tensor)
                    kind = tensor._array.dtype
                    array = owner._buffers[name] if name in owner._buffers else owner._parameters[name].value
                    tensor._array = jax.numpy.asarray(array, kind)
                returned = source(*map_tensors(inputs, self._entered), **map_tensors(kwargs, self._entered))
                result = map_tensors(returned, lambda t: self._left(t._value))
                changed = {id(t): t._array for t in recording.written.values()}
        finally:
            mode.keys = keys
            recording.restore()
            for sub, training in modes:
                object.__setattr__(sub, "training", training)
        for tensor, owner, name in bound:
            if id(tensor) in changed and name in owner._buffers:
                owner._set_buffer(name, changed[id(tensor)].astype(owner._buffers[name].dtype))
        return result

    @staticmethod
    def _bound_tensors(layer: Layer, node: core.Layer) -> Iterator[tuple[Tensor, core.Layer, str]]:
        for name, tensor in (*layer._parameters.items(), *layer._buffers.items()):
            if tensor is not None:
                yield tensor, node, name
        for name, sublayer in layer._sub_layers.items():
            if sublayer is not None:
                yield from CoreLayer._bound_tensors(sublayer, node._sub_layers[name])

    def _entered(self, value: object) -> Tensor:
        array = value._value if isinstance(value, Tensor) else jax.numpy.asarray(value)
        return wrap_array(array.transpose(0, 3, 1, 2) if self.channels_last and array.ndim == 4 else array)

    def _left(self, array: jax.Array) -> jax.Array:
        return array.transpose(0, 2, 3, 1) if self.channels_last and array.ndim == 4 else array

    def write_back(self) -> Layer:
        """Give the Paddle layer the values that this one has now; returns it."""
        source: Layer = self.__dict__["_source"]
        for tensor, owner, name in self._bound_tensors(source, self):
            array = owner._buffers[name] if name in owner._buffers else owner._parameters[name].value
            with jax.enable_x64(True):
                tensor._value = jax.numpy.asarray(array, tensor._value.dtype)
        return source


def _core_key() -> jax.Array:
    return jax.random.key_data(next_core_key())


def core_layer(layer: Layer, channels_last: bool = False) -> CoreLayer:
    """A layer of the core with the parameters of a layer written for Paddle: see CoreLayer."""
    if not isinstance(layer, Layer):
        raise TypeError(f"core_layer takes a paddle.nn.Layer, received {type(layer).__name__}")
    return CoreLayer(layer, channels_last)


class _Held(Layer):
    """The parameters and buffers of one layer of the core."""

    def __init__(self, layer: core.Layer) -> None:
        super().__init__(type(layer).__name__.lower())
        for name, parameter in layer._parameters.items():
            self._parameters[name] = Parameter(parameter.value, trainable=parameter.trainable)
        for name, buffer in layer._buffers.items():
            self._buffers[name] = tensor = wrap_array(buffer)  # names of saved programs have dots
            tensor.persistable = name not in layer._non_persistable
            if not tensor.persistable:
                self._non_persistable_buffer_names_set.add(name)
        for name, sublayer in layer._sub_layers.items():
            self.add_sublayer(name, _Held(sublayer))


class WrappedLayer(_Held):
    """A layer of the core, called with Tensors as one operation. Arrays of four axes are channels first outside."""

    def __init__(self, layer: core.Layer, data_format: str = "NCHW") -> None:
        super().__init__(layer)
        object.__setattr__(self, "_core", layer)
        self._channels_first = data_format == "NCHW"
        self._forms: dict[Any, _Form] = {}

    def forward(self, *inputs: object) -> object:
        given = [x if isinstance(x, Tensor) else Tensor(x) for x in inputs]
        layer = self.__dict__["_core"]
        if layer.training != self.training:  # a model that holds this layer sets `training` alone
            layer.train(self.training)
        graphdef, _, _ = functional_core.split(layer)
        key = (graphdef, len(given))
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = _Form(self, graphdef, len(given))
        made = run(form.compiled, [*given, KEY, *form.tensors])
        made = made if isinstance(made, tuple) else (made,)
        for buffer, new in zip(form.buffers, made[len(made) - len(form.buffers) :], strict=True):
            buffer._value = new._value
        return jax.tree_util.tree_unflatten(form.tree, list(made[: len(made) - len(form.buffers)]))


class _Form:
    """The operation of a wrapped layer in one mode."""

    tree: Any = None

    def __init__(self, layer: WrappedLayer, graphdef: functional_core.GraphDef, count: int) -> None:
        parameters, buffers = dict(layer.named_parameters()), dict(layer.named_buffers())
        self.tensors: Sequence[Tensor] = [*parameters.values(), *buffers.values()]
        self.buffers = list(buffers.values())
        first, training = layer._channels_first, layer.training

        def call(*values: Any) -> tuple[jax.Array, ...]:
            inputs, key, state = values[:count], values[count], values[count + 1 :]
            with jax.enable_x64(False):  # the core keeps to 32 bits
                arrays = [_narrowed(x) for x in inputs]
                arrays = [x.transpose(0, 2, 3, 1) if first and x.ndim == 4 else x for x in arrays]
                out, new = functional_core.apply(
                    graphdef,
                    dict(zip(parameters, state, strict=False)),
                    dict(zip(buffers, state[len(parameters) :], strict=True)),
                    jax.random.wrap_key_data(key) if training else None,
                    *arrays,
                )
                leaves, self.tree = jax.tree_util.tree_flatten(out)
                leaves = [x.transpose(0, 3, 1, 2) if first and x.ndim == 4 else x for x in leaves]
            return (*leaves, *[new[name] for name in buffers])

        self.compiled = Compiled(type(layer.__dict__["_core"]).__name__, call, residual=True, whole=True)


def _narrowed(x: jax.Array) -> jax.Array:
    kinds = {"int64": "int32", "float64": "float32", "uint64": "uint32"}
    return x.astype(kinds.get(str(x.dtype), x.dtype))


def wrap(layer: core.Layer, data_format: str = "NCHW") -> WrappedLayer:
    """A paddle.nn.Layer of a layer of the core, with the same parameters under the same names. With `NCHW` inputs and
    outputs of four axes are channels first; `NHWC` leaves them as the core has them."""
    if not isinstance(layer, core.Layer):
        raise TypeError(f"wrap takes a layer of framework.nn, received {type(layer).__name__}")
    return WrappedLayer(layer, data_format)
