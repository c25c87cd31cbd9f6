"""paddle.static.amp: mixed precision of static programs, by the casts of paddle.amp."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.amp import auto_cast
from framework.paddle.static.amp.decorator import decorate as decorate
from framework.paddle.static.amp.lists import AutoMixedPrecisionLists as AutoMixedPrecisionLists
from framework.paddle.static.program import in_dynamic_mode

CustomOpLists = AutoMixedPrecisionLists


def _keep_layer_norm_scale_bias_to_fp32(*args: bool) -> bool:
    """Whether the scale and the bias of a layer_norm stay float32: always. An argument, the new answer, is accepted."""
    return True


@contextlib.contextmanager
def _guard(dtype: str) -> Iterator[None]:
    with contextlib.nullcontext() if in_dynamic_mode() else auto_cast(level="O1", dtype=dtype):
        yield


def fp16_guard() -> contextlib.AbstractContextManager[None]:
    """Operations within compute in float16 where the program is static; nothing in dynamic mode, as in Paddle."""
    return _guard("float16")


def bf16_guard() -> contextlib.AbstractContextManager[None]:
    """As `fp16_guard`, in bfloat16."""
    return _guard("bfloat16")


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)

_complete(__name__)
