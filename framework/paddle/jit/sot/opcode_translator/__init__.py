"""paddle.jit.sot.opcode_translator: the translator of byte code, which has nothing to do here."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
