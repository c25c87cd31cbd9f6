"""The bridge to flax.nnx, and the only file that imports flax.

`to_nnx(layer)` is an nnx.Module around a layer, for code that trains nnx modules; `from_nnx(module)` is a Layer around
an nnx module, so that it can stand inside our models. Both hold the arrays of the other side under flat dotted names
and use nnx's graph mode. Randomness of a bridged module is its own: an nnx.Rngs there, `next_key()` here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from framework.core.types import PyTree
from framework.nn import initializer as I
from framework.nn.functional_core import GraphDef, apply, split
from framework.nn.layer import Layer, ParamAttr, Parameter


class LayerModule(nnx.Module):
    """A layer as an nnx module: `params` are nnx.Param, `buffers` nnx.BatchStat, keyed by dotted name.

    `train()` and `eval()` switch the mode as they do for nnx's own BatchNorm and Dropout.
    """

    def __init__(self, layer: Layer) -> None:
        mode = layer.training
        self.graphdefs: tuple[GraphDef, GraphDef] = nnx.static(
            (split(layer.eval())[0], split(layer.train())[0])
        )
        layer.train(mode)
        _, params, buffers = split(layer)
        self.params = nnx.Dict({name: nnx.Param(value) for name, value in params.items()})
        self.buffers = nnx.Dict({name: nnx.BatchStat(value) for name, value in buffers.items()})
        self.deterministic = not mode

    def __call__(self, *args: PyTree, key: jax.Array | None = None, **kwargs: PyTree) -> PyTree:
        """The layer's output; buffers are updated. `key` is needed where the layer draws random numbers."""
        params = {name: variable[...] for name, variable in self.params.items()}
        buffers = {name: variable[...] for name, variable in self.buffers.items()}
        graphdef = self.graphdefs[0 if self.deterministic else 1]
        out, changed = apply(graphdef, params, buffers, key, *args, **kwargs)
        for name, variable in self.buffers.items():
            variable[...] = changed[name]
        return out


def to_nnx(layer: Layer) -> LayerModule:
    """`layer` as an nnx.Module with copies of its parameters and buffers."""
    return LayerModule(layer)


def _flatten(state: PyTree) -> dict[str, jax.Array]:
    """{dotted path: array} of an nnx.State."""
    return {".".join(map(str, path)): variable[...] for path, variable in nnx.to_flat_state(state)}


class ModuleLayer(Layer):
    """An nnx module as a layer: its nnx.Param are the parameters, all its other variables are buffers."""

    def __init__(self, module: nnx.Module) -> None:
        super().__init__()
        graphdef, params, rest = nnx.split(module, nnx.Param, ...)
        self._paths = {
            part: tuple((".".join(map(str, path)), path) for path, _ in nnx.to_flat_state(state))
            for part, state in (("params", params), ("rest", rest))
        }
        self._definitions = self._modes(nnx.merge(graphdef, params, rest))
        for name, value in _flatten(params).items():
            made = Parameter(value.shape, value.dtype, ParamAttr(), I.Assign(np.asarray(value, np.float32)))
            self._parameters[name] = made
        for name, value in _flatten(rest).items():
            random = jnp.issubdtype(value.dtype, jax.dtypes.prng_key) or "rng" in name
            self.register_buffer(name, value, persistable=not random)

    @staticmethod
    def _modes(module: nnx.Module) -> tuple[nnx.GraphDef, nnx.GraphDef]:
        """The structure in inference and in training, which nnx keeps in attributes of the modules."""
        found = []
        for switch in (module.eval, module.train):
            switch()
            found.append(nnx.split(module, nnx.Param, ...)[0])
        return found[0], found[1]

    def forward(self, *args: object, **kwargs: object) -> PyTree:
        definition = self._definitions[int(self.training)]
        values = {name: parameter.value for name, parameter in self._parameters.items()}
        module = nnx.merge(
            definition, _nest(self._paths["params"], values), _nest(self._paths["rest"], self._buffers)
        )
        out = module(*args, **kwargs)
        for name, value in _flatten(nnx.split(module, nnx.Param, ...)[2]).items():
            setattr(self, name, value)
        return out


def _nest(paths: Iterable[tuple[str, tuple]], arrays: Mapping[str, jax.Array]) -> nnx.State:
    return nnx.from_flat_state([(path, arrays[name]) for name, path in paths])


def from_nnx(module: nnx.Module) -> ModuleLayer:
    """`module` as a Layer with copies of its variables; the module itself is left alone."""
    return ModuleLayer(module)
