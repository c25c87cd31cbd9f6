"""Places: where a Tensor is, as Paddle names it."""

from __future__ import annotations

import jax

from framework.core.device import Device
from framework.core.errors import DeviceError

_KINDS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu", "rocm": "gpu", "tpu": "tpu"}


class Place:
    """A device by kind and number; `repr` is Paddle's, `Place(cpu)` or `Place(gpu:0)`."""

    kind = "cpu"

    def __init__(self, id: int = 0) -> None:
        self._id = int(id)

    def get_device_id(self) -> int:
        return self._id

    def _equals(self, other: object) -> bool:
        """Whether it is the same device."""
        return self == other

    def is_cpu_place(self) -> bool:
        return self.kind == "cpu"

    def is_gpu_place(self) -> bool:
        return self.kind == "gpu"

    def is_cuda_pinned_place(self) -> bool:
        return self.kind == "gpu_pinned"

    def is_xpu_place(self) -> bool:
        return False

    def is_custom_place(self) -> bool:
        return self.kind not in ("cpu", "gpu", "gpu_pinned")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return (
            f"Place({self.kind})" if self.kind in ("cpu", "gpu_pinned") else f"Place({self.kind}:{self._id})"
        )


class CPUPlace(Place):
    """The processor."""

    def __init__(self) -> None:
        super().__init__(0)


class CUDAPlace(Place):
    """A GPU."""

    kind = "gpu"


class CUDAPinnedPlace(Place):
    """Page-locked memory of the host; jax decides by itself when to use it."""

    kind = "gpu_pinned"

    def __init__(self) -> None:
        super().__init__(0)


class CustomPlace(Place):
    """A device of another kind, such as a TPU."""

    def __init__(self, dev_type: str, id: int = 0) -> None:
        super().__init__(id)
        self.kind = dev_type


def place_of(device: Device) -> Place:
    """The place of a device of jax."""
    platform = str(device.platform)
    kind = _KINDS.get(platform, platform)
    if kind == "cpu":
        return CPUPlace()
    return CUDAPlace(device.id) if kind == "gpu" else CustomPlace(kind, device.id)


def default_device() -> Device:
    """Where new Tensors go."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    return chosen if isinstance(chosen, jax.Device) else jax.devices(chosen)[0]


def device_of(name: str | Place) -> Device:
    """The device of jax for "cpu", "gpu", "gpu:1", "tpu:0" or a place.

    Raises:
        DeviceError: there is none.
    """
    text = str(name).removeprefix("Place(").removesuffix(")").lower()
    kind, _, number = text.partition(":")
    wanted = "cpu" if kind == "gpu_pinned" else _KINDS.get(kind, kind)
    try:
        return jax.devices(wanted)[int(number or 0)]
    except (RuntimeError, IndexError, ValueError):
        there = [f"{_KINDS.get(d.platform, d.platform)}:{d.id}" for d in jax.local_devices()]
        raise DeviceError(
            "this device is not there",
            where="paddle.set_device",
            received=repr(name),
            allowed=", ".join(["cpu", *(name for name in there if not name.startswith("cpu"))]),
            fix='paddle.set_device(paddle.get_device()), or pip install "jax[cuda]" on a machine with a GPU',
        ) from None
