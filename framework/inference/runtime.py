"""Where and how programs run: the device, the precision and the engine that a user chose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from framework.core.device import Device, bfloat16_is_fast, default_device, find_device
from framework.core.dtypes import Precision
from framework.core.errors import FormatError, InputError
from framework.export.artifact import Artifact
from framework.inference.engine import Engine, XLAEngine

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
            DeviceError: no such device. InputError: no program of this precision. FormatError: no program at all.
        """
        if not artifact.programs:
            raise FormatError(
                "the artifact has no program of its own",
                where=artifact.source,
                received=f"stages: {', '.join(artifact.stages) or 'none'}",
                allowed="a program, such as model.jaxexp",
                fix="open the folder of one stage, or export it again",
            )
        device = self.find_device()
        verified = bool(artifact.config.get("bf16_verified"))
        precision = choose_precision(self.precision, device, artifact.programs, verified)
        return ENGINES[self.engine](artifact.programs[precision], artifact.weights, device)


PrecisionChoice = Literal["auto", "float32", "bfloat16"]


def choose_precision(choice: str, device: Device, available: Iterable[str], bf16_verified: bool) -> Precision:
    """The precision to run in. "auto" takes bfloat16 where the device multiplies it in hardware and the model's
    score table says that its score holds (`bf16_verified`), and where there is nothing else; else float32.

    Raises:
        InputError: unknown choice, or a precision that the artifact has no program for.
    """
    available = list(available)
    if choice == "auto":
        low = bf16_verified and "bfloat16" in available and bfloat16_is_fast(device)
        return "bfloat16" if low or available == ["bfloat16"] else "float32"
    if choice not in ("float32", "bfloat16") or choice not in available:
        raise InputError(
            "this precision is not available",
            received=repr(choice),
            allowed="auto, " + ", ".join(available),
            fix="export the model again with it" if choice in ("float32", "bfloat16") else None,
        )
    return choice  # type: ignore[return-value]
