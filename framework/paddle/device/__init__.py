"""paddle.device: which device computes, and what this installation has.

The devices are those of jax. Streams and events order work that jax orders by itself: they are accepted, and an event
measures time by waiting for the work before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.device import cuda as cuda
from framework.paddle.device import xpu as xpu
from framework.paddle.device.places import CPUPlace as CPUPlace
from framework.paddle.device.places import CUDAPinnedPlace as CUDAPinnedPlace
from framework.paddle.device.places import CUDAPlace as CUDAPlace
from framework.paddle.device.places import CustomPlace as CustomPlace
from framework.paddle.device.places import Place as Place
from framework.paddle.device.places import default_device, device_of, place_of
from framework.paddle.device.streams import Event as Event
from framework.paddle.device.streams import Stream as Stream
from framework.paddle.device.streams import current_stream as current_stream
from framework.paddle.device.streams import set_stream as set_stream
from framework.paddle.device.streams import stream_guard as stream_guard
from framework.paddle.device.streams import synchronize as synchronize


def set_device(device: str | Place) -> Place:
    """Compute on this device from here on: "cpu", "gpu", "gpu:1", "tpu", or a place.

    Raises:
        DeviceError: there is no such device.
    """
    found = device_of(device)
    jax.config.update("jax_default_device", found)
    return place_of(found)


def _convert_to_place(device: str | Place) -> Place:
    """The place of a device by its name, which toolkits read before they set it.

    Raises:
        DeviceError: there is no such device.
    """
    return place_of(device_of(device))


def get_device() -> str:
    """Where new Tensors go: "cpu", "gpu:0", "tpu:0"."""
    return repr(place_of(default_device())).removeprefix("Place(").removesuffix(")")


def XPUPlace(dev_id: int) -> Place:
    """A Kunlun XPU, which jax does not drive.

    Raises:
        DeviceError: always.
    """
    place = device_of(f"xpu:{dev_id}")
    return place_of(place)


def IPUPlace() -> Place:
    """A Graphcore IPU, which jax does not drive.

    Raises:
        DeviceError: always.
    """
    return place_of(device_of("ipu"))


def is_compiled_with_cuda() -> bool:
    """Whether a GPU is there to compute on."""
    return any(device.platform in ("gpu", "cuda") for device in jax.local_devices())


def is_compiled_with_rocm() -> bool:
    """Whether an AMD GPU is there to compute on."""
    return any(device.platform == "rocm" for device in jax.local_devices())


def is_compiled_with_xpu() -> bool:
    """False: jax drives no XPU."""
    return False


def is_compiled_with_ipu() -> bool:
    """False: jax drives no IPU."""
    return False


def is_compiled_with_cinn() -> bool:
    """False: XLA compiles here, not CINN."""
    return False


def is_compiled_with_distribute() -> bool:
    """True: `paddle.distributed` is there."""
    return True


def is_compiled_with_custom_device(device_type: str) -> bool:
    """Whether devices of another kind are there, such as "tpu"."""
    return device_type in get_all_custom_device_type()


def get_cudnn_version() -> int | None:
    """None: XLA brings its own."""
    return None


def _others() -> list[Place]:
    return [place for device in jax.local_devices() if (place := place_of(device)).is_custom_place()]


def get_all_device_type() -> list[str]:
    """The kinds of devices, "cpu" first."""
    kinds = ["cpu", *(place_of(device).kind for device in jax.local_devices())]
    return list(dict.fromkeys(kinds))


def get_all_custom_device_type() -> list[str]:
    """The kinds of devices that are neither processors nor GPUs."""
    return list(dict.fromkeys(place.kind for place in _others()))


def get_available_device() -> list[str]:
    """The devices by name, "cpu" first."""
    names = [
        repr(place_of(device)).removeprefix("Place(").removesuffix(")") for device in jax.local_devices()
    ]
    return list(dict.fromkeys(["cpu", *names]))


def get_available_custom_device() -> list[str]:
    """The devices that are neither processors nor GPUs, by name."""
    return [f"{place.kind}:{place.get_device_id()}" for place in _others()]


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
