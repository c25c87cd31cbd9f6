"""The compile options that are shipped change no values: programs compiled as users' are, against numpy in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from framework.core import compilation
from framework.core.compilation import set_process_flags
from framework.core.device import cpu_features

REPO = Path(__file__).resolve().parents[4]


def run_scan(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.values", *arguments],
        cwd=REPO,
        env={**os.environ, "XLA_FLAGS": "", "JAX_NUMPY_DTYPE_PROMOTION": "standard"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout + done.stderr[-2000:]


def test_compile_options_change_no_values() -> None:
    code, said = run_scan("--sample")
    assert code == 0, said


@pytest.mark.slow
def test_compile_options_change_no_values_of_any_size_and_type() -> None:
    code, said = run_scan()
    assert code == 0, said


@pytest.mark.skipif(
    compilation.jax_version() != "0.10.2" or "avx512f" not in cpu_features(),
    reason="faults of jaxlib 0.10.2, one of them on CPUs with AVX-512",
)
@pytest.mark.parametrize(
    ("function", "option"),
    [
        ("arctan", "xla_cpu_prefer_vector_width=512"),
        ("sums_of_squares", "xla_cpu_experimental_ynn_fusion_type=LIBRARY_FUSION_TYPE_DOT"),
    ],
)
def test_the_scan_catches_options_that_change_values(function: str, option: str) -> None:
    code, said = run_scan("--sample", "--only", function, "--add", option)
    assert code == 1 and f"cpu float32 {function}" in said, said


def test_the_process_has_the_option_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    set_process_flags()
    set_process_flags()
    name, value = next(iter(compilation.CPU_COMPILE_OPTIONS.items()))
    assert os.environ["XLA_FLAGS"] == f"--xla_force_host_platform_device_count=2 --{name}={value}"
    monkeypatch.setenv("XLA_FLAGS", f"--{name}=")
    set_process_flags()
    assert os.environ["XLA_FLAGS"] == f"--{name}="  # the user's choice stays
    monkeypatch.setattr(compilation, "_has_ynn", lambda: False)
    monkeypatch.setenv("XLA_FLAGS", "")
    set_process_flags()
    assert os.environ["XLA_FLAGS"] == "" and name not in compilation.quick_compile_options()
