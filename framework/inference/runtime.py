"""Where and how programs run: the device, the precision and the engine that a user chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from framework.core.device import Device, default_device, find_device
from framework.core.errors import InputError
from framework.export.artifact import Artifact
from framework.inference.engine import Engine, XLAEngine
from framework.inference.precision import choose_precision

ENGINES: dict[str, Callable[..., Engine]] = {"xla": XLAEngine}


@dataclass(frozen=True)
class Runtime:
    """How an artifact's programs run.

    Attributes:
        device: "cpu", "gpu", "gpu:1", "tpu", …; None is what `set_device` chose, else jax's default.
        precision: "float32", "bfloat16" or "auto"; see `choose_precision`.
        engine: What runs a program; "xla" compiles it with jax.

    Raises:
        InputError: there is no such engine.
    """

    device: str | None = None
    precision: str = "auto"
    engine: str = "xla"

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(
                "there is no such engine", received=repr(self.engine), allowed=", ".join(ENGINES)
            )

    def find_device(self) -> Device:
        """The jax device. Raises: DeviceError, where there is none."""
        return default_device() if self.device is None else find_device(self.device)

    def open(self, artifact: Artifact) -> Engine:
        """The engine of an artifact's program, in the precision that fits the device and the model.

        Raises:
            DeviceError: no such device. InputError: no program of this precision.
        """
        device = self.find_device()
        verified = bool(artifact.config.get("bf16_verified"))
        precision = choose_precision(self.precision, device, artifact.programs, verified)
        return ENGINES[self.engine](artifact.programs[precision], artifact.weights, device)
