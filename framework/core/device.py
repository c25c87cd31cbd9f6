"""Devices: list them and choose one.

Names follow Paddle: "cpu", "gpu", "gpu:1", "tpu:0". A GPU is what jax calls cuda or rocm.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.core.errors import DeviceError
from framework.core.lazy import LazyModule

if TYPE_CHECKING:
    import jax
else:
    jax = LazyModule("jax")

Device = Any  # jax.Device; jaxlib ships no types, so a type checker takes it for a variable

_KINDS = ("cpu", "gpu", "tpu")


def device_list() -> list[str]:
    """Names of all devices of this process, such as ["cpu:0", "gpu:0"]."""
    names = []
    for kind in _KINDS:
        try:
            names += [f"{kind}:{device.id}" for device in jax.local_devices(backend=kind)]
        except RuntimeError:  # jax has no such backend here
            continue
    return names


def find_device(name: str) -> Device:
    """The jax device called `name`: a kind ("gpu" is its first) or kind:index.

    Raises:
        DeviceError: unknown kind, index out of range, or a backend that this installation of jax has not.
    """
    kind, _, index = name.lower().partition(":")
    kind = {"cuda": "gpu", "rocm": "gpu"}.get(kind, kind)
    if kind not in _KINDS or not (index.isdecimal() or index == ""):
        raise DeviceError("unknown device", received=repr(name), allowed="cpu, gpu, gpu:N, tpu or tpu:N")
    try:
        return jax.local_devices(backend=kind)[int(index or 0)]
    except (RuntimeError, IndexError):
        there = device_list()
        no_gpu = kind == "gpu" and not any(device.startswith("gpu") for device in there)
        raise DeviceError(
            "unknown device",
            received=repr(name),
            allowed=", ".join(there),
            fix='for an NVIDIA GPU: pip install "jax[cuda13]"' if no_gpu else "choose one of the above",
        ) from None


def set_device(name: str) -> Device:
    """Make `name` the device on which new arrays are placed in this process."""
    device = find_device(name)
    jax.config.update("jax_default_device", device)
    return device


def default_device() -> Device:
    """The jax device on which new arrays are placed: what `set_device` chose, else jax's first."""
    default = jax.config.jax_default_device  # type: ignore[attr-defined]
    if default is None or isinstance(default, str):  # jax takes the name of a platform, too
        return jax.local_devices(backend=default)[0]
    return default


def default_device_name() -> str:
    """The default device by Paddle's name: "cpu", "gpu:0", "tpu". jax is not asked, which takes a third of a second,
    where nothing is installed by which it could find another device than the CPU."""
    if "jax" not in sys.modules and _has_cpu_alone():
        return "cpu"
    name = get_device()
    return name if name.startswith("gpu") else name.partition(":")[0]


def _has_cpu_alone() -> bool:
    asked = os.environ.get("JAX_PLATFORMS") or os.environ.get("JAX_PLATFORM_NAME")
    if asked:
        return asked == "cpu"
    return not (
        any(map(importlib.util.find_spec, ("jax_plugins", "libtpu")))
        or importlib.metadata.entry_points(group="jax_plugins")
    )


def get_device() -> str:
    """The device on which new arrays are placed, as kind:index."""
    device = default_device()
    return f"{'gpu' if device.platform in ('cuda', 'rocm', 'gpu') else device.platform}:{device.id}"


def cpu_features() -> frozenset[str]:
    """Instruction sets of this CPU in Linux' spelling; empty where the system does not say."""
    try:
        if sys.platform == "linux":
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith(("flags", "Features")):
                    return frozenset(line.partition(":")[2].split())
        if sys.platform == "darwin" and platform.machine() == "arm64":
            return frozenset({"neon"})
    except OSError:
        pass
    return frozenset()


def bfloat16_is_fast(device: Device | str) -> bool:
    """Whether the device, or one of this platform, multiplies bfloat16 in hardware: GPUs, TPUs, CPUs with AVX512-BF16
    or AMX."""
    platform_name = device if isinstance(device, str) else device.platform
    return platform_name != "cpu" or bool(cpu_features() & {"avx512_bf16", "amx_bf16", "bf16"})
