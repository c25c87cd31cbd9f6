"""GPUs that are not here, for which the compiler of jax's plugin makes programs all the same.

A plugin (`pip install "jax[cuda13]"`) compiles without a GPU and without a driver for what it is told of one. Nothing
can be run on such devices; a compiled program says what it needs of their memory.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from jax.experimental import topologies

from framework.core.device import Device
from framework.distributed.planning.hardware import HARDWARE

_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
_KIB = 1024


@dataclass(frozen=True)
class GPU:
    """What the compiler asks of a kind of GPU, beside its memory and speed in `HARDWARE`.

    Attributes:
        title: As the driver calls it.
        capability: Of CUDA: (major, minor).
        cores: Multiprocessors.
        lanes: Products of float32 of each in a clock.
        clock: GHz.
        cache: Bytes of the second level.
        shared: KiB of shared memory of a multiprocessor.
        threads: Of a multiprocessor, at most.
    """

    title: str
    capability: tuple[int, int]
    cores: int
    lanes: int
    clock: float
    cache: int
    shared: int
    threads: int = 2048


# NVIDIA's data sheets and CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
GPUS = {
    "a100": GPU("NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 1.41, 40 << 20, 164),
    "a100-40": GPU("NVIDIA A100-SXM4-40GB", (8, 0), 108, 64, 1.41, 40 << 20, 164),
    "l4": GPU("NVIDIA L4", (8, 9), 58, 128, 2.04, 48 << 20, 100, 1536),
    "rtx4090": GPU("NVIDIA GeForce RTX 4090", (8, 9), 128, 128, 2.52, 72 << 20, 100, 1536),
    "h100": GPU("NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 1.98, 50 << 20, 228),
    "h200": GPU("NVIDIA H200", (9, 0), 132, 128, 1.98, 60 << 20, 228),
}


def has_compiler(name: str) -> bool:
    """Whether programs for the GPU of this name in `HARDWARE` can be compiled on this machine."""
    return name in GPUS and any(importlib.util.find_spec(one) is not None for one in _PLUGINS)


def absent_devices(name: str, count: int) -> list[Device]:
    """`count` GPUs of the kind `name`, in nodes as `HARDWARE` says where they fill nodes, else in one."""
    per_node = HARDWARE[name].per_node
    nodes, of_node = divmod(count, per_node)
    shape = f"1x{nodes}x{per_node}" if nodes and not of_node else f"1x1x{count}"
    described = topologies.get_topology_desc(
        platform="cuda", topology_name="", target_config=_describe(name), topology=shape
    )
    return list(described.devices)


def _describe(name: str) -> str:
    """The text of XLA's GpuTargetConfigProto."""
    gpu, hardware = GPUS[name], HARDWARE[name]
    major, minor = gpu.capability
    numbers = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 48 * _KIB,
        "shared_memory_per_core": gpu.shared * _KIB,
        "threads_per_core_limit": gpu.threads,
        "core_count": gpu.cores,
        "fpus_per_core": gpu.lanes,
        "block_dim_limit_x": 2**31 - 1,
        "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535,
        "memory_bandwidth": int(hardware.bandwidth),
        "l2_cache_size": gpu.cache,
        "clock_rate_ghz": gpu.clock,
        "device_memory_size": int(hardware.memory),
        "shared_memory_per_block_optin": (gpu.shared - 1) * _KIB,
        "registers_per_core_limit": 65536,
        "registers_per_block_limit": 65536,
    }
    facts = " ".join(f"{key}: {value}" for key, value in numbers.items())
    return (
        f"gpu_device_info {{ {facts} cuda_compute_capability {{ major: {major} minor: {minor} }} }} "
        f'platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 10 }} runtime_version {{ major: 13 }} '
        f'device_description_str: "{gpu.title}"'
    )
