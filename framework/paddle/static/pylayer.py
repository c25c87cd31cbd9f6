"""paddle.static.nn.static_pylayer: a part of a static program whose gradient another part computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from framework.paddle._kernel.errors import AssertedError, ShapeError, require
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle.autograd.py_layer import PyLayer
from framework.paddle.static.control import RecordedFunction, variable_like
from framework.paddle.static.program import Op, Values, default_main_program
from framework.paddle.static.variable import value_of

_WHERE = "paddle.static.nn.static_pylayer"


class PyLayerOp(Op):
    """A part runs, and another one takes the place of its gradient."""

    type = "pylayer"

    def __init__(
        self, arguments: Sequence[Tensor], forward: RecordedFunction, backward: RecordedFunction | None
    ) -> None:
        self.arguments, self.forward, self.backward = arguments, forward, backward
        self.outputs = [variable_like(leaf, "pylayer") for leaf in forward.leaves if isinstance(leaf, Tensor)]
        differentiable = backward is not None and any(not t.stop_gradient for t in arguments)
        for output in self.outputs:
            output.stop_gradient = not differentiable
        self.inputs = [*arguments, *forward.reads(), *(backward.reads() if backward else ())]

    def replay(self, values: Values, for_test: bool) -> None:
        forward, backward = self.forward, self.backward

        def run(function: RecordedFunction, arguments: Sequence[object]) -> tuple[Tensor, ...]:
            results = function.replay(values, for_test, arguments)
            return tuple(result for result in results if isinstance(result, Tensor))

        class Recorded(PyLayer):
            @staticmethod
            def forward(ctx: object, *args: object, **kwargs: object) -> tuple[object, ...]:
                # A function may give an argument back, which is another variable of the program.
                inputs = set(map(id, args))
                return tuple(wrap(t._value) if id(t) in inputs else t for t in run(forward, args))

            @staticmethod
            def backward(ctx: object, *args: object) -> tuple[object, ...]:
                assert backward is not None
                return run(backward, args)

        arguments = [value_of(tensor, values) for tensor in self.arguments]
        enabled, mode.grad_enabled = mode.grad_enabled, mode.grad_enabled and backward is not None
        try:
            results = Recorded.apply(*arguments) if self.outputs else ()
        finally:
            mode.grad_enabled = enabled
        for variable, result in zip(self.outputs, results, strict=True):
            values[id(variable)] = result


def static_pylayer(
    forward_fn: Callable[..., object],
    inputs: list[Tensor],
    backward_fn: Callable[..., object] | None = None,
    name: str | None = None,
) -> object:
    """Record `forward_fn(*inputs)`; its gradients are what `backward_fn` makes of those of its results.

    Raises:
        AssertionError: dynamic mode, which has PyLayer; `inputs` is no list; there are not as many gradients as inputs.
        ShapeError: an input wants a gradient, and there is no `backward_fn`.
    """
    assert mode.recorder is not None, "please use PyLayer instead of static_pylayer in dygraph mode"
    assert isinstance(inputs, list), f"inputs of static_pylayer is a list, received {type(inputs).__name__}"
    assert callable(forward_fn), "forward_fn of static_pylayer is a function"
    for tensor in inputs if backward_fn is None else ():
        if not tensor.stop_gradient:
            raise ShapeError(
                "``stop_gradient`` attr of all inputs to ``forward_fn`` are expected to be True, when "
                f"``backward_fn == None``, but {tensor.name}.stop_gradient got False",
                where=_WHERE,
            )
    forward = RecordedFunction(forward_fn, [variable_like(tensor, "pylayer_in") for tensor in inputs])
    backward = None
    if backward_fn is not None:
        results = [leaf for leaf in forward.leaves if isinstance(leaf, Tensor)]
        backward = RecordedFunction(backward_fn, [variable_like(leaf, "pylayer_grad") for leaf in results])
        gradients = f"{len(backward.leaves)} gradients of {len(inputs)} inputs"
        require(
            not backward.leaves or len(backward.leaves) == len(inputs),
            "a gradient of each input",
            _WHERE,
            gradients,
            AssertedError,
        )
    op = PyLayerOp(inputs, forward, backward)
    default_main_program().ops.append(op)
    variables = iter(op.outputs)
    leaves = [next(variables) if isinstance(leaf, Tensor) else leaf for leaf in forward.leaves]
    return jax.tree_util.tree_unflatten(forward.tree, leaves)
