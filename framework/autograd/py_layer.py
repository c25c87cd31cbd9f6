"""PyLayer: an operation whose derivative the user writes."""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from framework.core.errors import ShapeError
from framework.core.types import PyTree
from framework.nn.functional_core import conjugate

_ARRAYS = (jax.Array, np.ndarray)
# The tree of the attributes, the leaves that are no arrays, and the outputs without a gradient.
Structure = tuple[jax.tree_util.PyTreeDef, tuple[tuple[object] | None, ...], frozenset[int]]


class PyLayerContext:
    """Carries what forward keeps for backward: saved tensors, and whatever attributes it sets."""

    def __init__(self) -> None:
        self._saved: tuple[jax.Array, ...] = ()
        self._fixed: tuple[jax.Array, ...] = ()

    def save_for_backward(self, *tensors: jax.Array) -> None:
        """Keep these arrays; a second call replaces them."""
        self._saved = tensors

    def saved_tensor(self) -> tuple[jax.Array, ...]:
        """What `save_for_backward` kept. A method, as in Paddle."""
        return self._saved

    def mark_non_differentiable(self, *tensors: jax.Array) -> None:
        """These outputs pass no gradient back: backward receives zeros for them."""
        self._fixed = tensors


@jax.tree_util.register_pytree_node_class
class _Residuals:
    """Attributes of a context between forward and backward: arrays are children, all else is structure."""

    def __init__(self, attributes: dict[str, object], fixed: frozenset[int]) -> None:
        self.attributes, self.fixed = attributes, fixed

    def tree_flatten(self) -> tuple[list[jax.Array | np.ndarray], Structure]:
        leaves, tree = jax.tree.flatten(self.attributes)
        arrays = [leaf for leaf in leaves if isinstance(leaf, _ARRAYS)]
        rest = tuple(None if isinstance(leaf, _ARRAYS) else (leaf,) for leaf in leaves)
        return arrays, (tree, rest, self.fixed)

    @classmethod
    def tree_unflatten(cls, structure: Structure, arrays: Iterable[jax.Array]) -> _Residuals:
        tree, rest, fixed = structure
        remaining = iter(arrays)
        leaves = [next(remaining) if slot is None else slot[0] for slot in rest]
        return cls(jax.tree.unflatten(tree, leaves), fixed)


class PyLayer:
    """Subclass it with static `forward(ctx, *args)` and `backward(ctx, *grads)`; call `apply`.

        class Cube(PyLayer):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensor()
                return 3 * x**2 * dy

    forward returns an array or a tuple of arrays. backward receives one gradient for each of them and returns one for
    each array among forward's arguments, in their order, or None where there is none. Gradients of complex arrays
    follow Paddle's convention. It works under jit, in reverse mode and to any order. Source: paddle.autograd.PyLayer.
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: PyTree, **kwargs: PyTree) -> PyTree:
        raise NotImplementedError("a PyLayer defines a static forward(ctx, ...)")

    @staticmethod
    def backward(ctx: PyLayerContext, *grads: jax.Array) -> PyTree:
        raise NotImplementedError("a PyLayer defines a static backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Run forward. Arrays anywhere among the arguments are inputs; all else is passed on as it is.

        Raises:
            ShapeError: forward returns no array; when differentiated, backward's gradients do not fit the inputs.
        """
        leaves, tree = jax.tree.flatten((args, kwargs))
        where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _ARRAYS)]

        def run(arrays: tuple[jax.Array, ...]) -> tuple[PyTree, _Residuals]:
            filled = list(leaves)
            for i, array in zip(where, arrays):
                filled[i] = array
            given, named = jax.tree.unflatten(tree, filled)
            ctx = PyLayerContext()
            out = cls.forward(ctx, *given, **named)
            outputs = out if isinstance(out, tuple) else (out,)
            if not all(isinstance(o, _ARRAYS) for o in outputs):
                raise ShapeError(
                    "forward of a PyLayer returns arrays",
                    where=cls.__name__,
                    received=", ".join(type(o).__name__ for o in outputs),
                    allowed="an array or a tuple of arrays",
                )
            fixed = frozenset(i for i, o in enumerate(outputs) if any(o is marked for marked in ctx._fixed))
            attributes = {name: value for name, value in ctx.__dict__.items() if name != "_fixed"}
            return jax.tree.map(jnp.asarray, out), _Residuals(attributes, fixed)

        def call(*arrays: jax.Array) -> PyTree:
            return run(arrays)[0]

        def forward(*arrays: jax.Array) -> tuple[PyTree, PyTree]:
            out, residuals = run(arrays)
            return out, (residuals, arrays)

        def backward(
            saved: tuple[_Residuals, tuple[jax.Array, ...]], cotangents: jax.Array | tuple[jax.Array, ...]
        ) -> tuple[jax.Array | None, ...]:
            residuals, arrays = saved
            ctx = PyLayerContext()
            ctx.__dict__.update(residuals.attributes)
            many = cotangents if isinstance(cotangents, tuple) else (cotangents,)
            grads = [_gradient(c, i in residuals.fixed) for i, c in enumerate(many)]
            returned = cls.backward(ctx, *grads)
            return cls._cotangents(returned if isinstance(returned, tuple) else (returned,), arrays)

        call.__name__ = cls.__name__
        differentiable = jax.custom_vjp(call)
        differentiable.defvjp(forward, backward)
        return differentiable(*(jnp.asarray(leaves[i]) for i in where))

    @classmethod
    def _cotangents(
        cls, grads: tuple[ArrayLike | None, ...], inputs: tuple[jax.Array, ...]
    ) -> tuple[jax.Array | None, ...]:
        """backward's gradients as jax wants them: one for each input in its type, None for integers."""
        if len(grads) != len(inputs):
            raise ShapeError(
                "backward returns one gradient for each array that forward takes",
                where=cls.__name__,
                received=f"{len(grads)} gradients",
                allowed=f"{len(inputs)}, None where an input has none",
            )
        checked = []
        for number, (grad, x) in enumerate(zip(grads, inputs)):
            if grad is None or not jnp.issubdtype(x.dtype, jnp.inexact):
                checked.append(None)
            elif np.shape(grad) != x.shape:
                raise ShapeError(
                    f"gradient {number} of backward has another shape than its input",
                    where=cls.__name__,
                    received=np.shape(grad),
                    allowed=x.shape,
                )
            else:
                checked.append(conjugate(jnp.asarray(grad).astype(x.dtype)))
        return tuple(checked)


def _gradient(cotangent: jax.Array, fixed: bool) -> jax.Array:
    """What backward sees: zeros for outputs without a gradient (integers, or marked)."""
    if cotangent.dtype == jax.dtypes.float0:
        return jnp.zeros(cotangent.shape)
    return jnp.zeros_like(cotangent) if fixed else conjugate(cotangent)
