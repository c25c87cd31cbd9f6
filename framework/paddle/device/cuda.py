"""paddle.device.cuda: the GPU's memory and properties as jax knows them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from framework.core.device import Device
from framework.core.errors import DeviceError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.device.places import Place, device_of
from framework.paddle.device.streams import Event as Event
from framework.paddle.device.streams import Stream as Stream
from framework.paddle.device.streams import current_stream as current_stream
from framework.paddle.device.streams import stream_guard as stream_guard
from framework.paddle.device.streams import synchronize as synchronize


class Properties(NamedTuple):
    """name, compute capability as major and minor, memory in bytes, and multiprocessors of a GPU."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def _gpu(device: str | Place | int | None, where: str) -> Device:
    """The GPU that is meant.

    Raises:
        DeviceError: there is none.
    """
    try:
        return device_of(f"gpu:{device or 0}" if isinstance(device, int | None) else device)
    except DeviceError as error:
        raise DeviceError(
            "there is no GPU to ask",
            where=f"paddle.device.cuda.{where}",
            received=repr(device),
            fix="ask only if paddle.device.is_compiled_with_cuda()",
        ) from error


def device_count() -> int:
    """How many GPUs there are."""
    return sum(device.platform in ("gpu", "cuda", "rocm") for device in jax.local_devices())


def empty_cache() -> None:
    """jax returns memory by itself; there is nothing to do."""


def _memory(device: Any, key: str, where: str) -> int:
    return int((_gpu(device, where).memory_stats() or {}).get(key, 0))


def memory_allocated(device: str | Place | int | None = None) -> int:
    """Bytes in use by arrays."""
    return _memory(device, "bytes_in_use", "memory_allocated")


def max_memory_allocated(device: str | Place | int | None = None) -> int:
    """The most bytes that were in use."""
    return _memory(device, "peak_bytes_in_use", "max_memory_allocated")


def memory_reserved(device: str | Place | int | None = None) -> int:
    """Bytes that the allocator holds."""
    return _memory(device, "pool_bytes", "memory_reserved")


def max_memory_reserved(device: str | Place | int | None = None) -> int:
    """The most bytes that the allocator held."""
    return _memory(device, "peak_pool_bytes", "max_memory_reserved")


def get_device_properties(device: str | Place | int | None = None) -> Properties:
    """Name, compute capability and memory of a GPU."""
    found = _gpu(device, "get_device_properties")
    major, _, minor = str(getattr(found, "compute_capability", "0.0")).partition(".")
    limit = (found.memory_stats() or {}).get("bytes_limit", 0)
    return Properties(
        found.device_kind, int(major), int(minor or 0), int(limit), int(getattr(found, "core_count", 0))
    )


def get_device_name(device: str | Place | int | None = None) -> str:
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: str | Place | int | None = None) -> tuple[int, int]:
    """Compute capability: (major, minor)."""
    found = get_device_properties(device)
    return found.major, found.minor


_complete(__name__)
