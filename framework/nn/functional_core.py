"""split, apply, update and value_and_grad: a Layer as a pure function of pytrees.

`GraphDef` is everything of a layer but its arrays: classes, plain attributes, names, `training`. It compares by value
and hashes, so it is a static argument of jit: two programs for train and eval, never a traced branch.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from framework.core.errors import WeightError
from framework.core.rng import next_key, rng_scope
from framework.core.types import PyTree
from framework.nn.functional.lowering import Scopes, current_scopes
from framework.nn.functional.tables import Rows
from framework.nn.layer import Layer, Parameter
from framework.nn.lookups import RowGradients, Table, Taps, lookups, row_gradients, zero_taps

_NOT_STATIC = frozenset({"_parameters", "_buffers", "_sub_layers", "_bound"})

State = dict[str, jax.Array]
T = TypeVar("T")  # a pytree of arrays
Noted = dict[str, list[Rows]]


@dataclass(frozen=True, eq=False)
class GraphDef:
    """The structure of a layer: a value that compares and hashes, and builds layers around arrays."""

    cls: type[Layer]
    static: dict[str, Any]
    parameters: dict[str, Parameter]
    buffers: tuple[str, ...]
    children: dict[str, GraphDef]
    _hash: list[int] = field(default_factory=list, repr=False)

    def _signature(self) -> tuple:
        meta = tuple((name, p.shape, p.dtype, p.attr) for name, p in self.parameters.items())
        return self.cls, meta, self.buffers, tuple(self.children)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, GraphDef) or hash(self) != hash(other):
            return False
        return (
            self._signature() == other._signature()
            and self.static == other.static
            and all(child == other.children[name] for name, child in self.children.items())
        )

    def __hash__(self) -> int:
        if not self._hash:
            shapes = tuple((name, p.shape) for name, p in self.parameters.items())
            children = tuple((name, hash(child)) for name, child in self.children.items())
            self._hash.append(hash((self.cls, shapes, self.buffers, children, self.static["training"])))
        return self._hash[0]

    def bind(
        self, params: Mapping[str, jax.Array], buffers: Mapping[str, jax.Array], prefix: str = ""
    ) -> Layer:
        """A layer that carries these arrays; it lives for one functional call."""
        layer = object.__new__(self.cls)
        state = layer.__dict__
        state.update(self.static)
        state["_bound"] = True
        state["_non_persistable"] = set(self.static["_non_persistable"])
        try:
            state["_parameters"] = {n: p.bind(params[prefix + n]) for n, p in self.parameters.items()}
            state["_buffers"] = {n: buffers[prefix + n] for n in self.buffers}
        except KeyError as error:
            raise WeightError(
                "an array that the layer needs was not given",
                where=self.cls.__name__,
                received=f"no entry {error.args[0]!r}",
                allowed="the params and buffers that nn.split returned",
            ) from None
        state["_sub_layers"] = {n: c.bind(params, buffers, f"{prefix}{n}.") for n, c in self.children.items()}
        return layer


def graph_def(layer: Layer) -> GraphDef:
    """The structure of `layer`.

    Raises:
        WeightError: a layer or a parameter is reachable by two attributes. Tied weights read the other layer's array.
    """
    seen: dict[int, str] = {}

    def visit(node: Layer, path: str) -> GraphDef:
        for thing, name in ((node, path), *((p, f"{path}.{n}") for n, p in node._parameters.items())):
            if id(thing) in seen:
                raise WeightError(
                    "the same layer or parameter is reachable by two attributes",
                    received=f"{seen[id(thing)] or '(the model)'} and {name}",
                    allowed="one owner for each array",
                    fix="for tied weights let one layer own the parameter and read it in forward: self.embed.weight",
                )
            seen[id(thing)] = name.removeprefix(".")
        static = {k: v for k, v in node.__dict__.items() if k not in _NOT_STATIC}
        static["_pre_hooks"], static["_post_hooks"] = dict(node._pre_hooks), dict(node._post_hooks)
        static["_non_persistable"] = frozenset(node._non_persistable)
        children = {n: visit(c, f"{path}.{n}" if path else n) for n, c in node._sub_layers.items()}
        return GraphDef(type(node), static, dict(node._parameters), tuple(node._buffers), children)

    return visit(layer, "")


def split(layer: Layer) -> tuple[GraphDef, State, State]:
    """(graphdef, params, buffers): the structure and two flat dicts of arrays by dotted name."""
    graphdef = graph_def(layer)
    params = {name: parameter.value for name, parameter in layer.named_parameters()}
    return graphdef, params, dict(layer.named_buffers())


def abstract(
    layer: Layer,
) -> tuple[GraphDef, dict[str, jax.ShapeDtypeStruct], dict[str, jax.ShapeDtypeStruct]]:
    """As `split` with shapes and dtypes instead of arrays: nothing is initialised, so any size is free."""
    params = {n: jax.ShapeDtypeStruct(p.shape, p.dtype) for n, p in layer.named_parameters()}
    buffers = {n: jax.ShapeDtypeStruct(b.shape, b.dtype) for n, b in layer.named_buffers()}
    return graph_def(layer), params, buffers


def apply(
    graphdef: GraphDef,
    params: Mapping[str, jax.Array],
    buffers: Mapping[str, jax.Array],
    key: jax.Array | None,
    *args: object,
    method: str = "__call__",
    **kwargs: object,
) -> tuple[PyTree, State]:
    """Run the layer as a pure function; returns (output, buffers after the call).

    `key` is the root of all randomness of the call; None where nothing is random (eval).
    """
    layer = graphdef.bind(params, buffers)
    with rng_scope(key) if key is not None else contextlib.nullcontext():
        out = getattr(layer, method)(*args, **kwargs)
    return out, dict(layer.named_buffers())


def update(
    layer: Layer,
    params: Mapping[str, ArrayLike] | None = None,
    buffers: Mapping[str, jax.Array] | None = None,
) -> None:
    """Write arrays back into a layer by dotted name."""
    for arrays, registry in ((params or {}, "_parameters"), (buffers or {}, "_buffers")):
        slots = {full: (owner, name) for full, owner, name in layer._slots(registry)}
        unknown = [key for key in arrays if key not in slots]
        if unknown:
            raise WeightError(
                "update got names that the layer has not", received=unknown[:10], where=type(layer).__name__
            )
        for key, value in arrays.items():
            owner, name = slots[key]
            if registry == "_parameters":
                owner._parameters[name].set_value(value)
            else:
                owner._buffers[name] = value


def conjugate(grads: T) -> T:
    """Gradients by jax in Paddle's convention: with respect to x + iy it is dL/dx + i dL/dy, a direction of ascent."""
    return jax.tree.map(lambda g: jnp.conj(g) if jnp.iscomplexobj(g) else g, grads)


def value_and_grad(
    layer: Layer, loss_fn: Callable[..., PyTree], has_aux: bool = False
) -> Callable[..., tuple[PyTree, State]]:
    """A compiled function of the arguments that returns (loss, grads).

    `loss_fn(layer, *args)` returns a scalar, or (scalar, aux) with `has_aux`. `grads` holds one entry for each
    trainable parameter; for the table of a ShardedEmbedding it is the RowGradients of the rows that were looked up. The
    layer's buffers (BatchNorm's statistics) are updated by each call. Keys for dropout come from the surrounding
    stream.
    """

    @functools.partial(jax.jit, static_argnums=(0, 1, 2))
    def run(
        graphdef: GraphDef,
        scopes: Scopes,
        tables: bool,
        trained: State,
        fixed: State,
        buffers: State,
        key: jax.Array,
        args: tuple,
    ) -> tuple[PyTree, dict[str, jax.Array | RowGradients]]:
        def loss(trained: State, taps: Taps | None) -> tuple[jax.Array, tuple[State, PyTree, Noted]]:
            bound = graphdef.bind({**trained, **fixed}, buffers)
            with rng_scope(key), lookups(bound, taps) as noted:
                out = loss_fn(bound, *args)
            value, aux = out if has_aux else (out, None)
            return value, (dict(bound.named_buffers()), aux, noted.rows)

        taps = zero_taps(lambda: loss(trained, None)[1][2], fixed) if tables else {}
        differentiate = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
        (value, (after, aux, rows)), (grads, tapped) = differentiate(trained, taps)
        return (value, (after, aux)), {**conjugate(grads), **row_gradients(rows, tapped)}

    def call(*args: object) -> tuple[PyTree, State]:
        graphdef, params, buffers = split(layer)
        named = list(layer.named_parameters())
        tables = any(isinstance(p, Table) for _, p in named)
        trainable = {n for n, p in named if p.trainable and not isinstance(p, Table)}
        trained = {n: v for n, v in params.items() if n in trainable}
        fixed = {n: v for n, v in params.items() if n not in trainable}
        (value, (new_buffers, aux)), grads = run(
            graphdef, current_scopes(), tables, trained, fixed, buffers, next_key(), args
        )
        update(layer, None, new_buffers)
        return ((value, aux) if has_aux else value), grads

    return call
