"""Backward programs that a thread compiles while the forward run goes on."""

from __future__ import annotations

import os
import subprocess
import sys

import jax.monitoring
import numpy as np
import pytest

from framework import paddle
from framework.paddle._kernel import ahead
from framework.paddle._kernel.dispatch import Array, Compiled, operation


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_several_cores", lambda: True)


@operation
def cube(x: Array, by: float = 1.0) -> Array:
    return by * x * x * x


@operation
def extremes(x: Array) -> tuple[Array, Array]:
    return x - x.min(), x.max()


def run(size: int, by: float) -> list[float]:
    x = paddle.to_tensor(np.arange(size, dtype="float32"), stop_gradient=False)
    y = cube(cube(x, by=by), by=by)
    y.sum().backward()
    assert x.grad is not None
    return x.grad.tolist()


def pending_of(form: Compiled) -> list[object]:
    return [key for pullback in form._pullbacks.values() for key in pullback.pending]


def test_a_pullback_is_compiled_once_and_gives_the_same_gradients() -> None:
    compiled: list[str] = []

    def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(str(kwargs.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        first = run(11, 1.5)
        count = len(compiled)
        assert run(11, 1.5) == first and len(compiled) == count
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert not [form for form in cube.operation._compiled.values() if any(pending_of(form))]  # type: ignore[attr-defined]
    expected = [1.5**4 * 9 * float(k) ** 8 for k in range(11)]
    np.testing.assert_allclose(first, expected, rtol=1e-5)
    assert compiled.count("jit(pull)") + compiled.count("pull") <= 3  # of cube, and of sum


def test_a_wrong_guess_of_the_outputs_changes_no_gradient() -> None:
    x = paddle.to_tensor([3.0, 1.0, 2.0], stop_gradient=False)
    _, largest = extremes(x)
    (largest * 2).backward()
    assert x.grad is not None and x.grad.tolist() == [2, 0, 0]


def test_an_error_in_a_gradient_is_raised_where_it_is_asked_for() -> None:
    @operation
    def broken(x: Array) -> Array:
        import jax

        @jax.custom_vjp
        def identity(value: Array) -> Array:
            return value

        def backward(_: None, cotangent: Array) -> tuple[Array]:
            raise ValueError("no gradient of broken")

        identity.defvjp(lambda value: (value, None), backward)
        return identity(x)

    y = broken(paddle.to_tensor([1.0], stop_gradient=False))
    with pytest.raises(ValueError, match="no gradient of broken"):
        y.backward()


def test_nothing_is_compiled_without_gradients_or_a_second_core(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[object] = []
    monkeypatch.setattr(ahead.Compiler, "submit", lambda self, task: tasks.append(task))
    with paddle.no_grad():
        run_forward = cube(paddle.to_tensor(np.ones(13, "float32"), stop_gradient=False), by=2.5)
    assert run_forward.shape == [13] and not tasks
    monkeypatch.setattr(ahead, "_several_cores", lambda: False)
    cube(paddle.to_tensor(np.ones(14, "float32"), stop_gradient=False), by=2.5)
    assert not tasks


_PROGRAM = """
import os
from framework import paddle
from framework.paddle._kernel import ahead
ahead._several_cores = lambda: True
x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
y = paddle.exp(paddle.tanh(x)).sum()
y.backward()
if hasattr(os, "fork"):
    parent, begun = ahead._compiler(), ahead.Future()
    begun.set_running_or_notify_cancel()
    pending = {ahead._key_here([x._value]): begun}
    child = os.fork()
    if child == 0:
        assert len(ahead._threads) == 1 and ahead._compiler() is not parent
        ahead.wait_for(pending, [x._value])  # of the parent: nobody ends it
        parent._changed.acquire()  # as where the thread held it
        parent.end()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for number in range(40):  # work that is not done at the end
    paddle.scale(x, 1.0 + number)
print("end", x.grad.shape)
"""


def test_the_process_ends_with_work_left_and_a_fork_waits_for_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM],
        env={**os.environ, "OAR_COMPILATION_CACHE": "off"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and "end [2]" in done.stdout, done.stderr[-2000:]


def _train(
    size: int, frozen: bool = False, unused: bool = False
) -> tuple[paddle.optimizer.Adam, list[list[float]]]:
    weight, other = (paddle.create_parameter([size], "float32", default_initializer=ones) for _ in range(2))
    other.stop_gradient = frozen
    optimizer = paddle.optimizer.Adam(0.1, parameters=[weight, other], weight_decay=0.01)
    loss = (weight * 3).sum() if unused or frozen else (weight * other).sum()
    loss.backward()
    assert bool(optimizer._pending) == ahead._several_cores()
    optimizer.step()
    assert not optimizer._pending
    return optimizer, [weight.tolist(), other.tolist()]


ones = paddle.nn.initializer.Constant(1.0)


@pytest.mark.parametrize(
    "case", [{}, {"frozen": True}, {"unused": True}], ids=["all", "frozen", "wrong guess"]
)
def test_the_step_is_compiled_during_the_backward_run(
    case: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            names.append(str(kwargs.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        _, moved = _train(23, **case)
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    if "unused" not in case:
        assert sum("_update" in name for name in names) == 1
    monkeypatch.setattr(ahead, "_several_cores", lambda: False)
    assert _train(23, **case)[1] == moved


def test_an_optimizer_that_is_gone_compiles_nothing() -> None:
    ahead.begin_backward()
    weight = paddle.create_parameter([3], "float32")
    paddle.optimizer.SGD(0.1, parameters=[weight])
    assert len(ahead.at_backward) == 1
    (weight * 2).sum().backward()
    assert not ahead.at_backward


@operation(residual=True)
def varied(x: Array) -> Array:
    import jax

    precise = jax.config.jax_default_matmul_precision == "highest"  # type: ignore[attr-defined]
    return jax.numpy.sin(x) if precise else x + 2


def test_what_a_forward_run_keeps_belongs_to_the_pullback_of_its_own_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import jax

    monkeypatch.setattr(ahead, "_several_cores", lambda: False)  # nothing is compiled before it is asked for
    xs = [paddle.to_tensor([1.0], stop_gradient=False) for _ in range(2)]
    with jax.default_matmul_precision("highest"):
        first = varied(xs[0])
    second = varied(xs[1])
    first.backward()
    second.backward()
    assert [x.grad.item() for x in xs if x.grad is not None] == pytest.approx([np.cos(1.0), 1.0])
