"""paddle.jit.sot.opcode_translator.executor: what runs translated byte code, of which there is none here."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
