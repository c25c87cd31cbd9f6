"""value_and_grad, grad, jvp, vjp, jacobian and hessian: jax's transformations with Paddle's conventions.

Each takes a function of arrays; results can be differentiated again to any order. All but `jvp` run in reverse mode,
which every operation of the framework supports.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.typing import ArrayLike

from framework.core.errors import ShapeError, TraceError
from framework.core.types import PyTree
from framework.nn import functional as F
from framework.nn import functional_core
from framework.nn.functional_core import conjugate
from framework.nn.layer import Layer

P = ParamSpec("P")
T = TypeVar("T")  # a pytree of arrays
Inputs = ArrayLike | Sequence[ArrayLike]  # one argument, or several


def value_and_grad(
    target: Layer | Callable[..., PyTree],
    loss_fn: Callable[..., PyTree] | None = None,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
) -> Callable[..., tuple[PyTree, PyTree]]:
    """A function that returns (loss, gradients).

    `value_and_grad(layer, loss_fn)` is `nn.value_and_grad`: compiled, with gradients by parameter name.
    `value_and_grad(fn, argnums=…)` differentiates a function of arrays with respect to these arguments (each an array
    or a pytree of arrays) and is not compiled by itself. With `has_aux` the function returns (loss, aux), and so does
    the result. Gradients of complex arrays are Paddle's.

    Raises:
        ShapeError: no function, integer arguments, or a loss that is not one real number; the last two when called.
    """
    if isinstance(target, Layer):
        if loss_fn is None:
            raise ShapeError(
                "value_and_grad of a layer needs the loss",
                where=type(target).__name__,
                received="loss_fn=None",
                allowed="loss_fn(layer, *args) that returns a scalar",
            )
        return functional_core.value_and_grad(target, loss_fn, has_aux)
    return _value_and_grad(target, argnums, has_aux, "value_and_grad")


def _value_and_grad(
    fn: Callable[P, PyTree], argnums: int | Sequence[int], has_aux: bool, where: str
) -> Callable[P, tuple[PyTree, PyTree]]:
    _check_function(fn, where)
    function: Callable[..., PyTree] = fn  # called with other values than its caller gave
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> tuple[PyTree, PyTree]:
        if any(not -len(args) <= n < len(args) for n in numbers):
            raise ShapeError(
                "argnums names an argument that was not given by position",
                where=where,
                received=f"argnums {argnums}, {len(args)} positional arguments",
                allowed=f"{-len(args)} to {len(args) - 1}" if args else "a call with arguments",
            )
        positions = [n % len(args) for n in numbers]
        inputs = _check_inputs([args[n] for n in positions], where)

        def loss(inputs: list[PyTree]) -> tuple[jax.Array, PyTree]:
            given = list(args)
            for position, value in zip(positions, inputs):
                given[position] = value
            out = function(*given, **kwargs)
            value, aux = out if has_aux else (out, None)
            return _check_loss(value, where), aux

        (value, aux), grads = jax.value_and_grad(loss, has_aux=True)(inputs)
        grads = conjugate(grads)
        return ((value, aux) if has_aux else value), (grads[0] if isinstance(argnums, int) else tuple(grads))

    return call


def grad(
    fn: Callable[..., PyTree], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., PyTree]:
    """As `value_and_grad` of a function, returning the gradients, or (gradients, aux) with `has_aux`.

    Source: paddle.grad, which takes computed tensors instead.
    """
    both = _value_and_grad(fn, argnums, has_aux, "grad")

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> PyTree:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return call


# -- products with the derivative ---------------------------------------------------------------------------------


def _inputs(xs: Inputs, where: str) -> tuple[tuple[jax.Array, ...], bool]:
    """(the arguments, whether they came as a sequence)."""
    several = isinstance(xs, (tuple, list))
    return tuple(_check_inputs(list(xs) if several else [xs], where)), several


def _direction(v: object, like: T, where: str) -> T:
    """`v` in the types of `like`; ones where it is None."""
    if v is None:
        return jax.tree.map(jnp.ones_like, like)
    given, wanted = jax.tree.leaves(v), jax.tree.leaves(like)
    if [np.shape(a) for a in given] != [a.shape for a in wanted]:
        raise ShapeError(
            "the direction has another shape than what it multiplies",
            where=where,
            received=[np.shape(a) for a in given],
            allowed=[a.shape for a in wanted],
        )
    cast = [jnp.asarray(a, b.dtype) for a, b in zip(given, wanted)]
    return jax.tree.unflatten(jax.tree.structure(like), cast)


def jvp(func: Callable[..., PyTree], xs: Inputs, v: object = None) -> tuple[PyTree, PyTree]:
    """(func(xs), derivative along v) in forward mode. xs is an array or a sequence of arguments; v is shaped like it.

    Without `v` the direction is all ones. Source: paddle.incubate.autograd.jvp.

    Raises:
        ShapeError: integer inputs, or a direction of another shape.
        TraceError: an operation on the way supports reverse mode only; the message names it.
    """
    _check_function(func, "jvp")
    arguments, _ = _inputs(xs, "jvp")
    with _explain_forward_mode_errors(func, arguments, "jvp"):
        return jax.jvp(func, arguments, _direction(v, arguments, "jvp"))


def vjp(func: Callable[..., PyTree], xs: Inputs, v: object = None) -> tuple[PyTree, PyTree]:
    """(func(xs), v times the Jacobian): the gradient of sum(v * func(xs)). Shaped like xs: an array or a tuple.

    v is shaped like the output; without it all ones. Complex results are Paddle's.
    Source: paddle.incubate.autograd.vjp.

    Raises:
        ShapeError: integer inputs, or a `v` of another shape.
    """
    _check_function(func, "vjp")
    arguments, several = _inputs(xs, "vjp")
    out, back = jax.vjp(func, *arguments)
    grads = conjugate(back(conjugate(_direction(v, out, "vjp"))))
    return out, (grads if several else grads[0])


# -- whole matrices -----------------------------------------------------------------------------------------------


def _rows_first(out: ArrayLike, batch_axis: int | None, where: str) -> jax.Array:
    """An output to take the Jacobian of; with a batch, summed over it: each row depends on its own sample only."""
    out = jnp.asarray(out)
    if not jnp.issubdtype(out.dtype, jnp.floating):
        raise ShapeError(
            "Jacobians are of real functions",
            where=where,
            received=str(out.dtype),
            allowed="float outputs",
            fix="split it into real and imaginary part",
        )
    if batch_axis is None:
        return out
    if out.ndim < 1:
        raise ShapeError(
            "with batch_axis=0 the output has a batch", where=where, received=out.shape, allowed="[B, …]"
        )
    return out.sum(0)


def _check_batch(arguments: tuple[jax.Array, ...], batch_axis: int | None, where: str) -> None:
    if batch_axis not in (None, 0):
        raise ShapeError("unknown batch axis", where=where, received=batch_axis, allowed="None or 0")
    sizes = {a.shape[:1] for a in arguments}
    if batch_axis == 0 and (len(sizes) > 1 or () in sizes):
        raise ShapeError(
            "with batch_axis=0 all inputs have the same number of rows",
            where=where,
            received=[a.shape for a in arguments],
            allowed="[B, …] each",
        )
    if any(jnp.iscomplexobj(a) for a in arguments):
        raise ShapeError(
            "Jacobians are of real functions",
            where=where,
            received="a complex input",
            allowed="float inputs",
            fix="pass real and imaginary part, or use vjp",
        )


def _jacobian(
    func: Callable[..., PyTree], arguments: tuple[jax.Array, ...], batch_axis: int | None, where: str
) -> PyTree:
    """The Jacobians of every output leaf: a tree of tuples, one for each argument."""

    def outputs(*arguments: jax.Array) -> PyTree:
        return jax.tree.map(lambda out: _rows_first(out, batch_axis, where), func(*arguments))

    def rows(out: jax.Array, argument: jax.Array) -> jax.Array:
        if batch_axis is None:
            return out
        return jnp.moveaxis(out, out.ndim - argument.ndim, 0)  # [*out, B, *in] -> [B, *out, *in]

    tree = jax.jacrev(outputs, argnums=tuple(range(len(arguments))))(*arguments)
    return jax.tree.map(
        lambda blocks: tuple(map(rows, blocks, arguments)),
        tree,
        is_leaf=functools.partial(_is_block, len(arguments)),
    )


def _is_block(count: int, node: object) -> bool:
    return isinstance(node, tuple) and len(node) == count and all(isinstance(a, jax.Array) for a in node)


def jacobian(func: Callable[..., PyTree], xs: Inputs, batch_axis: Literal[0] | None = None) -> PyTree:
    """All first derivatives of func at xs, in reverse mode: [*out, *in] for an array in and an array out.

    With `batch_axis=0` row b of the output depends on row b of the inputs alone, and the result is [B, *out, *in] of
    the shapes behind the batch. Several inputs give a tuple, one entry for each; several outputs the structure of the
    output around that. Source: paddle.autograd.jacobian, which takes computed tensors.

    Raises:
        ShapeError: integer or complex inputs, or no common batch.
    """
    _check_function(func, "jacobian")
    arguments, several = _inputs(xs, "jacobian")
    _check_batch(arguments, batch_axis, "jacobian")
    found = _jacobian(func, arguments, batch_axis, "jacobian")
    if several:
        return found
    return jax.tree.map(lambda block: block[0], found, is_leaf=functools.partial(_is_block, 1))


def hessian(func: Callable[..., PyTree], xs: Inputs, batch_axis: Literal[0] | None = None) -> PyTree:
    """All second derivatives of a function that returns one number: [*in, *in], reverse over reverse.

    With `batch_axis=0` it returns one number for each row, [B] or [B, 1], and the result is [B, *in, *in]. Several
    inputs give a tuple of tuples: entry [i][j] is [*in_i, *in_j]. Source: paddle.autograd.hessian.

    Raises:
        ShapeError: integer or complex inputs, no common batch, or a function that returns more than one number.
    """
    _check_function(func, "hessian")
    arguments, several = _inputs(xs, "hessian")
    _check_batch(arguments, batch_axis, "hessian")

    def total(*arguments: jax.Array) -> jax.Array:
        out = jnp.asarray(func(*arguments))
        rows = () if batch_axis is None else arguments[0].shape[:1]
        if out.shape[: len(rows)] != rows or math.prod(out.shape) != math.prod(rows):
            raise ShapeError(
                "a Hessian is of a function that returns one number",
                where="hessian",
                received=out.shape,
                allowed="[]" if batch_axis is None else "[B] or [B, 1]",
                fix="reduce it with .sum() over all but the batch, or use jacobian of grad",
            )
        return _rows_first(out, None, "hessian").sum()

    first = jax.grad(total, tuple(range(len(arguments))))
    found = _jacobian(first, arguments, batch_axis, "hessian")
    return found if several else found[0][0]


# -- what can be differentiated ------------------------------------------------------------------------------------


def _check_function(function: object, where: str) -> None:
    """Refuse an array where a function is needed: Paddle passes computed tensors, whose history lies on a tape."""
    if not callable(function):
        raise ShapeError(
            "what is differentiated is a function: there is no tape that knows how an array was computed",
            where=where,
            received=type(function).__name__,
            allowed="a function of arrays",
            fix=f"write y = f(x) as a function and call {where}(f, …)",
        )


def _check_inputs(tree: object, where: str) -> PyTree:
    """The arrays of `tree` as jax arrays, all of them float or complex; Python floats are arrays of one value."""

    def check(leaf: ArrayLike) -> jax.Array:
        dtype = leaf.dtype if isinstance(leaf, (jax.Array, np.ndarray, np.generic)) else np.dtype(type(leaf))
        if not jnp.issubdtype(dtype, jnp.inexact):
            raise ShapeError(
                "a derivative with respect to integers does not exist",
                where=where,
                received=f"an argument of {dtype}",
                allowed="float or complex arrays",
                fix="convert it, x.astype('float32'), or leave it out of argnums",
            )
        return jnp.asarray(leaf)

    return jax.tree.map(check, tree)


def _check_loss(value: ArrayLike, where: str) -> jax.Array:
    """The loss: one real number."""
    value = jnp.asarray(value)
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        complex_one = jnp.iscomplexobj(value)
        raise ShapeError(
            "the function to differentiate returns one real number",
            where=where,
            received=f"{value.dtype} of shape {value.shape}",
            allowed="a float of shape ()",
            fix="take its real part or its absolute square"
            if complex_one
            else "reduce it with .mean() or .sum(), or use jacobian",
        )
    return value


@contextlib.contextmanager
def _explain_forward_mode_errors(
    function: Callable[..., PyTree], arguments: tuple, where: str
) -> Iterator[None]:
    """Turn jax's refusal of forward mode through a custom_vjp into an error that names the operations.

    Raises:
        TraceError: an operation on the way has a derivative of its own that runs backwards only.
    """
    try:
        yield
    except TypeError as error:
        if "custom_vjp" not in str(error):
            raise
        found = sorted(set(_reverse_only(jax.make_jaxpr(function)(*arguments).jaxpr, "")))
        raise TraceError(
            "forward mode meets an operation whose derivative is written for reverse mode only",
            where=where,
            received=", ".join(found),
            allowed="operations without a derivative of their own",
            fix="use reverse mode (vjp, grad, jacobian, hessian); or, for convolutions and BatchNorm, their plain "
            "form, which is slower on a CPU: `with framework.nn.functional.lowering.platform_scope('other'):`",
        ) from error


def _reverse_only(jaxpr: Jaxpr, inside: str) -> Iterator[str]:
    """The functionals, or else the functions, that carry a custom vjp; `inside` is the innermost named jit."""
    for equation in jaxpr.eqns:
        name = str(equation.params.get("name", ""))
        if equation.primitive.name.startswith("custom_vjp"):
            described = getattr(equation.params["call_jaxpr"].jaxpr, "debug_info", None)
            yield inside.removeprefix("_") or getattr(described, "func_name", "") or "a custom_vjp function"
            continue
        # Our jits are functionals, or named after them: _conv2d.
        at = name if name.startswith("_") or name in vars(F) else inside
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(part, ClosedJaxpr):
                    yield from _reverse_only(part.jaxpr, at)
                elif isinstance(part, Jaxpr):
                    yield from _reverse_only(part, at)
