"""float32, bfloat16 or auto: the precision a predictor runs in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from framework.core.device import Device, bfloat16_is_fast
from framework.core.dtypes import Precision
from framework.core.errors import InputError

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
