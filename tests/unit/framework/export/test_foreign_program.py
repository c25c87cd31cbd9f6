"""Programs that someone made to do more than compute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from framework.core.errors import FormatError
from framework.export import foreign_program
from framework.export.artifact import read_exported

FILE = Path("model.jaxexp")
X = jax.ShapeDtypeStruct((4, 4), "float32")


def written(function: Any, *shapes: Any, allow: str = "", **options: Any) -> bytes:
    checks = [export.DisabledSafetyCheck.custom_call(allow)] if allow else []
    made = export.export(jax.jit(function), platforms=["cpu"], disabled_checks=checks)(*(shapes or (X,)))
    return bytes(made.serialize(**options))


def callback(x: jax.Array) -> jax.Array:
    """As jax lowers `pure_callback`, which it does not export: the number of a function of this process."""
    return jax.ffi.ffi_call("xla_ffi_python_cpu_callback", X)(x, index=np.uint64(0))


def test_a_callback_into_python_is_refused() -> None:
    data = written(callback, allow="xla_ffi_python_cpu_callback")
    with pytest.raises(FormatError, match=r"xla_ffi_python_cpu_callback: 1 times(?s:.*)without callbacks"):
        read_exported(data, FILE, "")


def test_calls_are_found_in_branches_loops_and_gradients() -> None:
    def deep(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda _, y: lax.cond(y.sum() > 0, callback, lambda z: -z, y), x)

    with pytest.raises(FormatError, match="python_cpu_callback"):
        read_exported(written(deep, allow="xla_ffi_python_cpu_callback"), FILE, "")

    @jax.custom_vjp
    def harmless(x: jax.Array) -> jax.Array:
        return x * 2

    harmless.defvjp(lambda x: (x * 2, x), lambda x, dy: (callback(dy),))
    allowed = written(harmless, allow="xla_ffi_python_cpu_callback")
    assert read_exported(allowed, FILE, "").in_avals[0].shape == (4, 4)  # without its gradient
    with pytest.raises(FormatError, match="python_cpu_callback"):
        read_exported(written(harmless, allow="xla_ffi_python_cpu_callback", vjp_order=1), FILE, "")


@pytest.mark.parametrize(
    "name", ["my_library_function", "tpu_custom_call", "lapack_sgesdd_ffi_2", "Sharding.so"]
)
def test_functions_of_other_libraries_are_refused(name: str) -> None:
    def foreign(x: jax.Array) -> jax.Array:
        return jax.ffi.ffi_call(name, X)(x)

    with pytest.raises(FormatError, match=f"{name}: 1 times"):
        read_exported(written(foreign, allow=name), FILE, "")


def test_what_jax_exports_is_read() -> None:
    (n,) = export.symbolic_shape("n")
    symbolic = written(lambda x: jnp.sum(x[:, 1:] * x.shape[0]), jax.ShapeDtypeStruct((n, n), "float32"))
    assert b"custom_call" in symbolic  # the assertion of its shapes
    algebra = written(
        lambda x: (
            tuple(jnp.linalg.svd(x)),
            tuple(jnp.linalg.qr(x)),
            jnp.linalg.inv(x),
            tuple(jnp.linalg.eigh(x)),
        )
    )
    assert b"custom_call" in algebra
    for data in (symbolic, algebra, written(lambda x: lax.top_k(x, 2)), written(jnp.sin, vjp_order=2)):
        assert read_exported(data, FILE, "").platforms == ("cpu",)


def test_a_program_without_calls_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export.Exported, "mlir_module", lambda *_: pytest.fail("parsed"))
    data = written(lambda x: x + 1)
    foreign_program.check_calls(export.deserialize(bytearray(data)), data, FILE)


RUN = """
import random, sys
from pathlib import Path
from framework.core.errors import FormatError
from framework.export.artifact import read_exported
whole = Path(sys.argv[1]).read_bytes()
draw, body = random.Random(5), whole.find(b"xla_ffi_python_cpu_callback")
refused = 0
for _ in range(20):
    data = bytearray(whole)
    for _ in range(3):
        place = draw.randrange(body, body + 27)  # another name, never an allowed one
        data[place] = draw.choice(b"abcxyz_")
    try:
        read_exported(bytes(data), Path("model.jaxexp"), "")
    except FormatError:
        refused += 1
print(refused)
"""


def test_other_names_of_a_callback_are_refused_in_a_process_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(written(callback, allow="xla_ffi_python_cpu_callback"))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "p")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.split() == ["20"], done.stderr
