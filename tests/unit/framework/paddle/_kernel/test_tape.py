"""The tape and the dispatch of framework.paddle: gradients, histories, in-place changes, types of results."""

from __future__ import annotations

import threading
from collections.abc import Generator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ShapeError, TraceError
from framework.paddle._kernel import tape
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.random import seed
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.ops.arithmetic import add, divide, matmul, multiply


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), stop_gradient=False)


def gradient(tensor: Tensor) -> list[float]:
    assert tensor.grad is not None
    return tensor.grad.tolist()


def test_backward_adds_to_grad_from_ones() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * y + x).backward()
    assert gradient(x) == [4.0, 5.0]
    assert gradient(y) == [1.0, 2.0]
    (x * 2.0).backward()
    assert gradient(x) == [6.0, 7.0]


def test_one_value_used_twice_collects_both_gradients() -> None:
    x = leaf(3.0)
    y = x * x
    (y * y).backward()  # x^4
    assert gradient(x) == [108.0]


def test_a_second_backward_needs_retain_graph() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert gradient(x) == [8.0]
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_backward_of_what_has_no_history_says_so(caplog: pytest.LogCaptureFixture) -> None:
    Tensor([1.0]).backward()  # Paddle does nothing and says nothing
    assert "stop_gradient" in caplog.text
    with pytest.raises(ShapeError, match="another shape"):
        (leaf(1.0) * 2.0).backward(Tensor([1.0, 2.0]))


def test_deep_graphs_need_no_recursion() -> None:
    x = y = leaf(1.0)
    for _ in range(3000):
        y = y + 1.0
    y.backward()
    assert gradient(x) == [1.0]


def test_clear_grad_leaves_zeros_or_nothing() -> None:
    x = leaf(2.0, 3.0)
    (x * x).backward()
    x.clear_grad()
    assert gradient(x) == [0.0, 0.0]
    (x * x).backward()
    assert gradient(x) == [4.0, 6.0]
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None


@pytest.mark.parametrize("order, expected", [(1, 12.0), (2, 12.0), (3, 6.0)])
def test_higher_derivatives_of_a_cube(order: int, expected: float) -> None:
    x = leaf(2.0)
    y = x * x * x
    for _ in range(order):
        (found,) = tape.grad(y, x, create_graph=True)
        assert found is not None
        y = found
    assert y.tolist() == [expected]
    assert x.grad is None


def test_grad_of_an_inner_value_and_of_an_unused_one() -> None:
    x, unused = leaf(2.0), leaf(1.0)
    y = x * x
    z = y * 3.0
    dy, nothing = tape.grad(z, [y, unused], allow_unused=True)
    assert dy is not None and dy.tolist() == [3.0] and nothing is None
    with pytest.raises(ValueError, match="allow_unused=True"):
        tape.grad(x * 2.0, [unused])


def test_grad_passes_by_what_no_grad_vars_name() -> None:
    x = leaf(2.0)
    y = x * x
    z = x + y
    (through_x,) = tape.grad(z, x, no_grad_vars=[y])
    assert through_x is not None and through_x.tolist() == [1.0]


def test_a_leaf_changed_after_use_still_gets_its_second_derivative() -> None:
    x = leaf(3.0)
    y = x * x * x
    with tape.no_grad():
        replace_value(x, Tensor([100.0]))
    (first,) = tape.grad(y, x, create_graph=True)
    assert first is not None and first.tolist() == [27.0]
    (second,) = tape.grad(first, x)
    assert second is not None and second.tolist() == [18.0]


def test_no_grad_as_block_and_decorators() -> None:
    x = leaf(1.0)

    @tape.no_grad()
    def called() -> Tensor:
        return x * 2.0

    @tape.no_grad
    def bare() -> Tensor:
        return x * 2.0

    with tape.no_grad():
        inside = x * 2.0
        with tape.enable_grad():
            again = x * 2.0
    assert (
        inside.stop_gradient and called().stop_gradient and bare().stop_gradient and not again.stop_gradient
    )
    tape.set_grad_enabled(False)
    assert (x * 2.0).stop_gradient
    tape.set_grad_enabled(True)
    with tape.set_grad_enabled(False):
        assert not tape.is_grad_enabled()
    assert tape.is_grad_enabled()


def test_steps_of_a_generator_run_without_recording_and_its_caller_records() -> None:
    x = leaf(1.0)

    @tape.no_grad()
    def doubled() -> Generator[Tensor, float, str]:
        factor = yield x * 2.0
        try:
            yield x * factor
        except KeyError:
            yield x * 4.0
        return "end"

    steps = doubled()
    assert next(steps).stop_gradient and not (x * 2.0).stop_gradient
    second = steps.send(3.0)
    assert second.stop_gradient and second.tolist() == [3.0]
    third = steps.throw(KeyError("again"))
    assert third.stop_gradient and third.tolist() == [4.0]
    with pytest.raises(StopIteration, match="end"):
        next(steps)
    assert tape.is_grad_enabled()


def test_packages_derive_blocks_from_the_base_of_no_grad() -> None:
    class Counted(tape.no_grad.__mro__[1]):  # as PaddleNLP does
        entered = 0

        def __enter__(self) -> None:
            Counted.entered += 1

        def __exit__(self, *error: object) -> None:
            pass

    @Counted()
    def called() -> int:
        return 3

    with Counted():
        assert called() == 3
    assert Counted.entered == 2
    assert isinstance(tape.no_grad(), tape.no_grad)


def test_hooks_change_gradients_and_can_be_removed() -> None:
    x = leaf(1.0)
    y = x * 3.0
    inner = y.register_hook(lambda g: g * 2.0)
    outer = x.register_hook(lambda g: g + 1.0)
    (y * 1.0).backward(retain_graph=True)
    assert gradient(x) == [7.0]
    assert inner.remove() and outer.remove() and not inner.remove()
    x.clear_grad()
    y.backward()
    assert gradient(x) == [3.0]
    with pytest.raises(RuntimeError, match="stop_gradient"):
        Tensor([1.0]).register_hook(lambda g: g)


def test_retain_grads_keeps_an_inner_gradient() -> None:
    x = leaf(2.0)
    y = x * x
    y.retain_grads()
    (y * 5.0).backward()
    assert gradient(y) == [5.0]


def test_in_place_changes() -> None:
    x = leaf(2.0)
    with pytest.raises(RuntimeError, match="in place"):
        x.add_(Tensor([1.0]))
    y = x * 3.0
    assert y.add_(x) is y and y.inplace_version == 1
    y.multiply_(Tensor([2.0]))
    y.backward()
    assert gradient(x) == [8.0]


def test_complex_gradients_are_conjugates_of_those_of_jax() -> None:
    z = Tensor(np.array([1 + 2j], np.complex64), stop_gradient=False)

    @operation
    def squared_size(z: Array) -> Array:
        return jnp.real(z * jnp.conj(z))

    squared_size(z).backward()
    assert z.grad is not None and z.grad.tolist() == [2 + 4j]


@pytest.mark.parametrize(
    "x, y, kind",
    [
        ([1, 2], 1, "int64"),
        ([1, 2], 2.5, "float32"),
        ([1.0], 2, "float32"),
        ([True], 2, "int64"),
        ([1], [1.5], "float32"),
        ([1.0], 1j, "complex64"),
        (np.array([1.0]), 2.5, "float64"),
        (np.array([1.0]), [1.0], "float64"),
        (np.array([1], np.int32), [1], "int32"),
    ],
)
def test_types_of_results(x: object, y: object, kind: str) -> None:
    assert (Tensor(x) + (Tensor(y) if isinstance(y, list) else y)).dtype == kind


def test_integers_divide_to_floats() -> None:
    assert (Tensor([7]) / Tensor([2])).tolist() == [3.5]
    assert divide(Tensor([7]), Tensor([2])).tolist() == [3]  # the function keeps integers, as Paddle's
    assert (1 / Tensor([4])).dtype == "float32"


def test_64_bits_stay_in_this_room() -> None:
    assert (Tensor([2**40]) + 1).tolist() == [2**40 + 1]
    assert jnp.arange(3).dtype == jnp.int32


def test_arguments_are_bound_as_in_python() -> None:
    a, b = Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 4), np.float32))
    assert matmul(a, b, transpose_x=True).shape == [3, 4]
    assert matmul(x=a, y=b, transpose_x=True, name="m").shape == [3, 4]
    with pytest.raises(TypeError, match=r"matmul\(\) misses 'y'"):
        matmul(a)
    with pytest.raises(TypeError, match="no argument 'transposed'"):
        matmul(a, b, transposed=True)
    with pytest.raises(TypeError, match="'x' twice"):
        matmul(a, b, x=a)
    with pytest.raises(ShapeError, match=r"(?s)paddle.matmul.*float32\[2, 3\], float32\[2, 4\]"):
        matmul(a, b)


def test_settings_are_compiled_once_each_and_numbers_are_data() -> None:
    traces = []

    @operation
    def scaled(x: Array, by: Array, power: int = 1) -> Array:
        traces.append(power)
        return (x * by) ** power

    for by in (1.0, 2.0, 3.0):
        scaled(Tensor(1.0), by)  # without gradients, whose programs are compiled beside
        scaled(Tensor(1.0), by, power=2)
    assert traces == [1, 2]


def test_random_keys_differ_and_a_seed_repeats_them() -> None:
    @operation
    def noise(x: Array, key: Key) -> Array:
        return x + jax.random.normal(key, x.shape, x.dtype)

    seed(7)
    first, second = noise(leaf(0.0)).tolist(), noise(leaf(0.0)).tolist()
    seed(7)
    assert first == noise(leaf(0.0)).tolist() != second


def test_residual_operations_have_both_derivatives() -> None:
    @operation(residual=True)
    def cube(x: Array) -> tuple[Array, Array]:
        return x * x * x, x.astype("int32")

    x = leaf(2.0)
    out, whole = cube(x)
    assert not whole.stop_gradient  # as Paddle has it for positions beside values
    out.backward()
    assert gradient(x) == [12.0]
    (first,) = tape.grad(cube(x)[0], x, create_graph=True)
    assert first is not None
    (second,) = tape.grad(first, x)
    assert second is not None and second.tolist() == [12.0]


def test_the_tape_works_under_a_trace_of_jax() -> None:
    def square_gradient(value: jax.Array) -> jax.Array:
        x = Tensor(value, stop_gradient=False)
        multiply(x, x).backward()
        assert x.grad is not None
        return x.grad._value

    assert jax.jit(square_gradient)(jnp.array([3.0])).tolist() == [6.0]


def test_a_compiled_function_has_no_values() -> None:
    def look(value: jax.Array) -> jax.Array:
        return Tensor(value).numpy()  # type: ignore[return-value]

    with pytest.raises(TraceError, match="not_to_static"):
        jax.jit(look)(jnp.ones(2))


def test_threads_have_their_own_switches() -> None:
    seen = []
    with tape.no_grad():
        thread = threading.Thread(target=lambda: seen.append((leaf(1.0) * 2.0).stop_gradient))
        thread.start()
        thread.join()
    assert seen == [False]


def test_a_parameter_wants_gradients() -> None:
    p = Parameter([1.0, 2.0], name="p")
    assert not p.stop_gradient and p.trainable and p.is_leaf and p.name == "p"
    add(p, p).backward()
    assert gradient(p) == [2.0, 2.0]
    p.trainable = False
    assert p.stop_gradient


def test_an_operation_takes_the_first_of_a_tuple() -> None:
    # As Paddle 2.6.2, with its gradient: a layer that returns (result, None) stands before another.
    x = leaf(1.0, 2.0)
    y = multiply((x, None), (Tensor([3.0, 4.0]), Tensor([5.0])))
    y.backward()
    assert y.tolist() == [3.0, 8.0] and gradient(x) == [3.0, 4.0]
