"""The compile options that are shipped change no values: programs compiled as users' are, against numpy in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[4]
# Arrays of more elements than a vector holds, and wide ranges: jaxlib's kernels for vectors of 512 bits had an arctan
# that was wrong for 64 and more numbers.
PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
from framework.core.compilation import CPU_RECOMPUTE_OPTIONS, compile_options
assert "optimization_level" not in __import__("os").environ.get("XLA_FLAGS", "")
jax.config.update("jax_enable_x64", True)
base = compile_options(jax.devices("cpu")[0])
names = ("arctan", "arcsinh", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log1p", "cbrt", "sin", "cos", "floor",
         "rint", "sign", "abs", "square")
bounded = ("arcsin", "arccos", "arctanh")
wrong = []
for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-13)):
    wide = np.concatenate([np.linspace(-30, 30, 257), np.logspace(-20, 4, 100), [0.0, -0.0]]).astype(dtype)
    near = np.linspace(-0.999, 0.999, 259).astype(dtype)
    for options in (base, {**base, **CPU_RECOMPUTE_OPTIONS}):
        for name in (*names, *bounded):
            x = near if name in bounded else wide
            x = np.abs(x) if name == "log1p" else np.clip(x, -30, 30) if name in ("sinh", "cosh", "exp", "exp2",
                                                                                  "expm1") else x
            got = np.asarray(jax.jit(getattr(jnp, name), compiler_options=options)(x), np.float64)
            true = getattr(np, name)(x.astype(np.float64))
            error = np.abs(got - true) / np.maximum(1, np.abs(true))
            if not error.max() <= tolerance * (30 if name in ("sinh", "cosh", "exp", "exp2", "expm1") else 1):
                wrong.append((name, dtype.__name__, float(error.max())))
print(wrong)
sys.exit(bool(wrong))
"""


def test_compile_options_change_no_values() -> None:
    environment = {**os.environ, "XLA_FLAGS": "", "JAX_NUMPY_DTYPE_PROMOTION": "standard"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=REPO,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
