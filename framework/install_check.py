"""Prove that the installation works: a model trains, is exported and runs on the device of this process.

Source: paddle.utils.install_check.
"""

from __future__ import annotations

import platform
import time

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.core.device import bfloat16_is_fast, default_device, device_list, get_device
from framework.core.errors import DeviceError
from framework.core.process import cpu_count
from framework.export.program import lower_layer
from framework.export.specs import TensorSpec
from framework.inference.engine import XLAEngine


def run_check(verbose: bool = True) -> dict[str, object]:
    """Find the devices and prove on the chosen one that a model trains, exports and runs from the exported file.

    Returns what was found; prints it too when `verbose`. Raises what the failing step raises.
    """
    started = time.perf_counter()
    device = default_device()
    report: dict[str, object] = {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "devices": ", ".join(device_list()),
        "device": get_device(),
        "cpus": cpu_count(),
        "bfloat16 in hardware": bfloat16_is_fast(device),
    }
    layer = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.Conv2D(8, 1, 1))
    images = jnp.asarray(np.random.default_rng(0).standard_normal((4, 16, 16, 3)), jnp.float32)
    step = nn.value_and_grad(layer, lambda model, x: ((model(x) - x.mean(-1, keepdims=True)) ** 2).mean())
    losses = []
    for _ in range(5):
        loss, grads = step(images)
        _, params, _ = nn.split(layer)
        nn.update(layer, {name: params[name] - 0.1 * grad for name, grad in grads.items()})
        losses.append(float(loss))
    if not losses[-1] < losses[0]:
        raise DeviceError(
            "five training steps did not lower the loss",
            where=get_device(),
            received=losses,
            fix="another version of jax, or of the device's driver",
        )
    report["train step"] = f"loss {losses[0]:.3f} -> {losses[-1]:.3f}"

    expected = layer.eval()(images)
    program, weights = lower_layer(layer, {"x": TensorSpec(("n", "8*h", "8*w", 3))})
    engine = XLAEngine(program, weights, device)
    error = float(np.abs(engine({"x": np.asarray(images)})["output"] - np.asarray(expected)).max())
    if not error < 1e-3:
        raise DeviceError(
            "the exported program differs from the model",
            where=get_device(),
            received=f"{error:.2e}",
            allowed="< 1e-3",
            fix="another version of jax, or of the device's driver",
        )
    report["export"] = f"reloaded program differs by {error:.1e}"
    report["seconds"] = round(time.perf_counter() - started, 1)
    if verbose:
        width = max(map(len, report))
        print("\n".join(f"{key:<{width}}  {value}" for key, value in report.items()))
        print("Oar works on this machine.")
    return report
