"""paddle.jit.sot.opcode_translator.executor.executor_cache: the translations of byte code that are kept."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver


class OpcodeExecutorCache:
    """The translations of functions, of which there are none: Python runs what `symbolic_translate` is given."""

    MAX_CACHE_SIZE = 20

    def __init__(self) -> None:
        self.cache: dict[CodeType, list[object]] = {}
        self.translate_count = 0

    def clear(self) -> None:
        """Forget the translations."""
        self.cache.clear()


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
