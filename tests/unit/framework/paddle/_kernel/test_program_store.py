from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from framework.paddle._kernel import program_store
from framework.paddle._kernel.program_store import describe
from framework.paddle.ops import unary

pytestmark = pytest.mark.skipif(
    not program_store._JAX[0] <= jax.__version_info__[:2] < program_store._JAX[1]
    or jax.default_backend() != "cpu",
    reason="the programs of this jax are not stored",
)

_PROGRAM = """
import collections, sys
import jax.monitoring
counts = collections.Counter()
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: counts.update([name.rpartition("/")[2]]))
import numpy as np
from framework import paddle
values = np.random.RandomState(0).rand(2, 3, 8, 8).astype("float32")
x = paddle.to_tensor(values, stop_gradient=False)
weight = paddle.to_tensor(values[:, :, :3, :3], stop_gradient=False)
mean, variance = paddle.zeros([2]), paddle.ones([2])
counts.clear()
y = paddle.nn.functional.conv2d(x, weight, padding=1)
y = paddle.nn.functional.batch_norm(y, mean, variance, training=True)
loss = (paddle.nn.functional.relu(y) * 2.0).exp().sum()
loss.backward()
results = [loss.item(), float(x.grad.sum()), float(weight.grad.abs().sum()), float(mean.sum())]
traces = counts["jaxpr_trace_duration"]
matrix = paddle.to_tensor(values[0, 0] + np.eye(8, dtype="float32") * 9)
results.append(float(paddle.linalg.det(paddle.linalg.cholesky(matrix @ matrix.T))))
print(*results, traces)
"""


def _run(home: Path, program: str = _PROGRAM) -> tuple[list[str], str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "OAR_HOME": str(home), "JAX_COMPILATION_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def _programs(home: Path) -> list[Path]:
    return sorted(path for path in home.glob("compiled/*/operations/*/*") if not path.name.startswith("."))


def test_a_second_process_traces_nothing_and_what_was_changed_is_made_again(tmp_path: Path) -> None:
    first, _ = _run(tmp_path)
    programs = _programs(tmp_path)
    assert int(first[-1]) > 8 and len(programs) > 8
    second, errors = _run(tmp_path)
    assert second[:-1] == first[:-1] and int(second[-1]) <= 2 and not errors  # two that are no operations
    assert _programs(tmp_path) == programs
    # Exchanged, cut off, and emptied:
    shutil.copy(programs[0], programs[1])
    programs[2].write_bytes(programs[2].read_bytes()[:-7])
    programs[3].write_bytes(b"")
    third, errors = _run(tmp_path)
    assert third[:-1] == first[:-1] and 0 < int(third[-1]) <= 5
    assert errors.count("it is made again") == 3
    assert _run(tmp_path) == (second, "")


def test_a_function_is_described_by_what_it_is() -> None:
    exp, tanh = (describe(getattr(unary, name).operation.function) for name in ("exp", "tanh"))
    assert exp is not None and tanh is not None and exp != tanh
    assert describe(partial(jax.numpy.sum, axis=0)) != describe(partial(jax.numpy.sum, axis=1))
    assert len({describe(value) for value in ((1, 2), [1, 2], (1.0, 2), (True, 2), ("1", 2))}) == 5
    assert describe(object()) is None and describe([1, object()]) is None
    assert describe(lambda x: x + 1) is None  # of a module whose sources are not counted
    assert describe(pytest.raises) is None


def test_two_functions_of_one_line_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_store, "_is_ours", lambda module: True)
    makers = [lambda by: lambda x: x + by, lambda by: lambda x: x - by]
    texts = {describe(maker(by)) for maker in makers for by in (1, 2)}
    assert None not in texts and len(texts) == 4
    assert describe(makers[0](object())) is None


@pytest.mark.parametrize("setting", ["default type", "flag", "precision"])
def test_a_program_is_known_by_the_settings_that_its_trace_reads(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_store, "_folder", lambda: tmp_path)
    inputs = [np.ones(3, np.float32)]
    before = program_store.path_of("f", inputs)
    assert before is not None and before == program_store.path_of("f", inputs)
    others = [program_store.path_of("g", inputs), program_store.path_of("f", [np.ones(4, np.float32)])]
    others += [program_store.path_of("f", [1.0]), program_store.path_of("f", [1])]
    assert len({before, *others}) == 5
    if setting == "default type":
        monkeypatch.setattr(program_store.mode, "default_dtype", "float64")
        assert program_store.path_of("f", inputs) != before
    elif setting == "flag":
        monkeypatch.setitem(program_store.state.flags, "FLAGS_cudnn_deterministic", True)
        assert program_store.path_of("f", inputs) != before
    else:
        with jax.default_matmul_precision("bfloat16"):
            assert program_store.path_of("f", inputs) != before
    monkeypatch.undo()
    monkeypatch.setattr(program_store, "_folder", lambda: tmp_path)
    assert program_store.path_of("f", inputs) == before
    assert program_store.path_of("f", [object()]) is None


_THROUGH_JAX = """
import jax, numpy as np
from framework import paddle
x = paddle.full([3], 2.0)
y = paddle.exp(x)
with jax.disable_jit():
    print((paddle.exp(x).numpy() == y.numpy()).all())
jaxpr = jax.make_jaxpr(lambda a: paddle.multiply(paddle.exp(x), paddle.to_tensor(a))._value)(x._value)
print(*[equation.params["name"] for equation in jaxpr.eqns])
print(bool(paddle.log(x - 3).isnan().all()))
paddle.set_flags({"FLAGS_check_nan_inf": True})
try:
    paddle.log(x - 3)
except FloatingPointError:
    print("watched")
paddle.set_flags({"FLAGS_check_nan_inf": False})
print(bool(paddle.log(x - 3).isnan().all()))
"""


def test_traces_disabled_jit_and_watched_nans_go_through_jax(tmp_path: Path) -> None:
    for _ in range(2):  # compiled, and read
        words, _ = _run(tmp_path, _THROUGH_JAX)  # jax tells of the nan in between
        assert words[:4] == ["True", "exp", "multiply", "True"] and words[-2:] == ["watched", "True"]
