"""Places: what programs name as the device of a Tensor. jax decides where arrays are, so a place only says it."""

from __future__ import annotations

import jax
from jax.core import Tracer


class Place:
    """A kind of device ("cpu", "gpu", "gpu_pinned", "tpu") and its number."""

    __slots__ = ("index", "kind")

    def __init__(self, kind: str = "cpu", index: int = 0) -> None:
        self.kind, self.index = kind, index

    def __repr__(self) -> str:
        return (
            f"Place({self.kind})"
            if self.kind in ("cpu", "gpu_pinned")
            else f"Place({self.kind}:{self.index})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self) -> int:
        return hash((self.kind, self.index))

    def is_cpu_place(self) -> bool:
        return self.kind == "cpu"

    def is_gpu_place(self) -> bool:
        return self.kind == "gpu"

    def is_cuda_pinned_place(self) -> bool:
        return self.kind == "gpu_pinned"

    def gpu_device_id(self) -> int:
        return self.index


class CPUPlace(Place):
    """The processor."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("cpu")


class CUDAPlace(Place):
    """A GPU."""

    __slots__ = ()

    def __init__(self, index: int = 0) -> None:
        super().__init__("gpu", index)


class CUDAPinnedPlace(Place):
    """Memory of the host from which a GPU copies fast."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("gpu_pinned")


def place_of(value: jax.Array) -> Place:
    """Where an array is; of a compiled function's arrays, where they will be."""
    device = jax.devices()[0] if isinstance(value, Tracer) else next(iter(value.devices()))
    return CPUPlace() if device.platform == "cpu" else Place(device.platform, device.id)
