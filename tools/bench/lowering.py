"""Each row of the lowering table of framework/nn/functional: the form for this platform against the plain one.

The two forms run in turn; medians in milliseconds and the ratio plain / chosen are printed, and the largest difference
of the results: wall time and, because machines are shared, CPU time of the process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.inference import compile_options
from framework.nn import functional as F
from framework.nn.functional.lowering import Platform, platform, platform_scope
from ocr.layers.ctc_head import greedy
from tools.bench.peers import arguments


def cases(rng: np.random.Generator) -> dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]]:
    """Name to (function of arrays, arrays); the function is lowered once for each platform."""

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "depthwise 3x3, 160x160x48": (
            lambda x, w: F.conv2d(x, w, padding=1, groups=48),
            (normal(1, 160, 160, 48), normal(48, 1, 3, 3)),
        ),
        "depthwise 7x7, 160x160x96": (
            lambda x, w: F.conv2d(x, w, padding=3, groups=96),
            (normal(1, 160, 160, 96), normal(96, 1, 7, 7)),
        ),
        "3x3 stride 2, 640x640x3 to 24": (
            lambda x, w: F.conv2d(x, w, stride=2, padding=1),
            (normal(1, 640, 640, 3), normal(24, 3, 3, 3)),
        ),
        "3x3, 64x128x256 to 64": (
            lambda x, w: F.conv2d(x, w, padding=1),
            (normal(1, 64, 128, 256), normal(64, 256, 3, 3)),
        ),
        "3x3, 40x40x192": (
            lambda x, w: F.conv2d(x, w, padding=1),
            (normal(1, 40, 40, 192), normal(192, 192, 3, 3)),
        ),
        "max pool 2x2 stride 1, 320x320x24": (
            lambda x: F.max_pool2d(x, 2, 1, ((0, 1), (0, 1))),
            (normal(1, 320, 320, 24),),
        ),
        "global mean, 160x160x48": (F.global_avg_pool2d, (normal(1, 160, 160, 48),)),
        "average pool 3x2, 6x3x80x384": (lambda x: F.avg_pool2d(x, (3, 2)), (normal(6, 3, 80, 384),)),
    }


def best_classes(rng: np.random.Generator) -> dict[str, Callable[[], Any]]:
    """CTC over 18,710 classes: all logits at once, and line by line."""
    x = jnp.asarray(rng.standard_normal((8, 40, 120)), jnp.float32)
    w = jnp.asarray(rng.standard_normal((120, 18710)) * 0.3, jnp.float32)
    options = compile_options(jax.devices()[0])
    forms = {
        "plain": lambda x, w: greedy(F.linear(x, w)),
        "chosen": lambda x, w: jax.lax.map(lambda line: greedy(F.linear(line, w)), x),
    }
    compiled = {
        name: jax.jit(form).lower(x, w).compile(compiler_options=options) for name, form in forms.items()
    }
    return {name: lambda run=run: jax.block_until_ready(run(x, w)) for name, run in compiled.items()}


def compare(name: str, runs: dict[str, Callable[[], Any]], rounds: int) -> None:
    """Run both forms in turn and print one line."""
    wall: dict[str, list[float]] = {key: [] for key in runs}
    cpu: dict[str, list[float]] = {key: [] for key in runs}
    results = {key: run() for key, run in runs.items()}
    for _ in range(rounds):
        for key, run in runs.items():
            started, used = time.perf_counter(), time.process_time()
            run()
            wall[key].append(time.perf_counter() - started)
            cpu[key].append(time.process_time() - used)
    plain, chosen = (statistics.median(wall[key]) * 1e3 for key in ("plain", "chosen"))
    ratio = statistics.median(cpu["plain"]) / statistics.median(cpu["chosen"])
    pairs = zip(jax.tree.leaves(results["plain"]), jax.tree.leaves(results["chosen"]))
    error = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
    print(
        f"{name:<36}{plain:8.2f} {chosen:8.2f} ms  {plain / chosen:5.1f}x wall {ratio:5.1f}x cpu  differ {error:.0e}"
    )


def lowering(argv: list[str]) -> None:
    args = arguments(__doc__, rounds=10).parse_args(argv)
    rng = np.random.default_rng(0)
    options = compile_options(jax.devices()[0])
    forms: dict[str, Platform] = {"plain": "other", "chosen": platform()}
    print(f"{'':<36}{'plain':>8} {'chosen':>8}")
    for name, (fn, arrays) in cases(rng).items():
        placed = tuple(map(jnp.asarray, arrays))
        runs = {}
        for key, on in forms.items():
            with platform_scope(on):
                compiled = jax.jit(lambda *a, fn=fn: fn(*a)).lower(*placed).compile(compiler_options=options)
            runs[key] = lambda compiled=compiled, placed=placed: jax.block_until_ready(compiled(*placed))
        compare(name, runs, args.rounds)
    compare("best of 18,710 classes, 8x40", best_classes(rng), args.rounds)
