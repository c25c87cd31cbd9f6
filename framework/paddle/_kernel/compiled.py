"""The compiled forms of an operation: forward, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import jax

from framework.paddle._kernel.ahead import Pending, compile_later, cotangent_of, differentiated
from framework.paddle._kernel.program import Program
from framework.paddle._kernel.residual import Residual


class Compiled:
    """An operation with its settings: `forward` is the compiled program of its inputs.

    Attributes:
        name: of the operation, for messages, AMP's lists and recorded programs.
        function: the inputs, in order, to one array or a tuple; an input may be None.
        differentiable: False where no gradient exists.
        residual: keep what the forward run computed for the backward run, instead of computing it again.
        program: the compiled function; `whole` where it is a network rather than one operation.
        settings: the parameters that are not data, for messages and recorded programs.
        pending: what a thread compiles of the program, by its inputs.
        identity: a text that is the same in every process, under which the programs are stored; "" stores none.
    """

    __slots__ = (
        "_pullbacks",
        "_with_residuals",
        "differentiable",
        "forward",
        "function",
        "identity",
        "name",
        "pending",
        "program",
        "residual",
        "settings",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        *,
        differentiable: bool = True,
        residual: bool = False,
        whole: bool = False,
        settings: Mapping[str, object] | None = None,
        identity: str = "",
    ) -> None:
        self.name, self.function, self.identity = name, function, identity
        self.differentiable, self.residual = differentiable, residual
        self.settings = settings or {}
        self.program = Program(function, whole=whole, identity=identity)
        self.forward = self.program.outer
        self.pending: Pending = {}
        self._pullbacks: dict[object, Compiled] = {}
        self._with_residuals: dict[object, Residuals] = {}

    def pullback(self, mask: tuple[bool, ...], present: tuple[bool, ...]) -> Compiled:
        """The operation (inputs, gradients of the outputs that have one) -> gradients of the inputs in `mask`."""
        pullback = self._pullbacks.get((mask, present))
        if pullback is None:
            function, count = self.function, len(mask)

            def pull(*args: Any) -> Any:
                outs, vjp = _vjp(function, args[:count], mask, present)
                return vjp(tuple(c.astype(o.dtype) for c, o in zip(args[count:], outs, strict=True)))

            pullback = self._pullbacks[mask, present] = Compiled(
                f"{self.name}_grad",
                pull,
                whole=self.program.whole,
                identity=self.identity and f"{self.identity} gradient {mask} {present}",
            )
        return pullback

    def compile_pullback(
        self, mask: tuple[bool, ...], values: Sequence[object], outs: Sequence[jax.Array]
    ) -> None:
        """Let a thread compile what the gradients of these outputs will need."""
        present = differentiated(outs)
        program = self.pullback(mask, present)
        cotangents = [cotangent_of(o) for o, p in zip(outs, present, strict=True) if p]
        compile_later(program.program.lowerable, program.pending, [*values, *cotangents])

    def with_residuals(self, mask: tuple[bool, ...]) -> Residuals:
        """The programs that keep what the backward run needs."""
        residuals = self._with_residuals.get(mask)
        if residuals is None:
            residuals = self._with_residuals[mask] = Residuals(self, mask)
        return residuals


class Residuals:
    """An operation whose backward run takes what the forward run computed.

    Attributes:
        forward: the program inputs -> (outputs, what the backward run needs, a `Residual`).
    """

    def __init__(self, compiled: Compiled, mask: tuple[bool, ...]) -> None:
        function = compiled.function
        self._name = compiled.name
        self._backward: dict[Hashable, Compiled] = {}
        self._identity = compiled.identity and f"{compiled.identity} residuals {mask}"

        def run(*args: object) -> tuple[tuple[jax.Array, ...], Residual]:
            outs, vjp = _vjp(function, args, mask, None)
            return outs, Residual(*jax.tree_util.tree_flatten(vjp))

        self._run = run
        self.forward = Program(run, whole=compiled.program.whole, identity=self._identity)

    def backward(self, tree: Hashable | None, inputs: Sequence[object]) -> Compiled:
        """(arrays of a `Residual` with this tree, which `forward` gave for such inputs, gradients of all outputs) ->
        gradients of the inputs."""
        backward = self._backward.get(_form(inputs) if tree is None else tree)
        if backward is None:
            form, types = _form(inputs), jax.tree_util.tree_map(jax.typeof, tuple(inputs))

            def pull(arrays: Sequence[jax.Array], cotangents: tuple[jax.Array, ...]) -> Sequence[jax.Array]:
                vjp_tree = jax.eval_shape(self._run, *types)[1].tree if tree is None else tree
                return jax.tree_util.tree_unflatten(vjp_tree, arrays)(cotangents)  # type: ignore[arg-type]

            identity = self._identity and f"{self._identity} gradient {form}"
            backward = Compiled(f"{self._name}_grad", pull, identity=identity)
            self._backward[form if tree is None else tree] = backward
        return backward


Form: TypeAlias = tuple[object, ...]


def _form(inputs: Sequence[object]) -> Form:
    """Shapes and types of inputs, the same for values and while they are traced."""
    types = [None if value is None else jax.typeof(value) for value in inputs]
    return tuple([t and (t.shape, t.dtype, t.weak_type) for t in types])


def _vjp(
    function: Callable[..., Any],
    args: Sequence[Any],
    mask: tuple[bool, ...],
    present: tuple[bool, ...] | None,
) -> tuple[tuple[jax.Array, ...], jax.tree_util.Partial]:
    """Outputs that are `present` (None: all), and Paddle's pullback for the inputs in `mask`: for complex numbers the
    conjugate of jax's."""
    indices = [index for index, wanted in enumerate(mask) if wanted]

    def of_inputs(*values: Any) -> tuple[jax.Array, ...]:
        full = list(args)
        for index, value in zip(indices, values, strict=True):
            full[index] = value
        out = function(*full)
        outs = tuple(out) if isinstance(out, tuple | list) else (out,)
        return outs if present is None else tuple(o for o, p in zip(outs, present, strict=True) if p)

    outs, vjp = jax.vjp(of_inputs, *[args[index] for index in indices])
    return outs, jax.tree_util.Partial(_conjugated, vjp)


def _conjugated(
    vjp: Callable[..., Sequence[jax.Array]], cotangents: tuple[jax.Array, ...]
) -> tuple[jax.Array, ...]:
    return tuple(_conjugate(g) for g in vjp(tuple(_conjugate(c) for c in cotangents)))


def _conjugate(x: jax.Array) -> jax.Array:
    return x.conj() if x.dtype.kind == "c" else x
