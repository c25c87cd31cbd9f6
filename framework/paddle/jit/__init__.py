"""paddle.jit: compiled programs of functions, methods, layers and training steps, and how they are saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.jit.ast_transform import ignore_module as ignore_module
from framework.paddle.jit.dy2static.logging_utils import set_code_level as set_code_level
from framework.paddle.jit.dy2static.logging_utils import set_verbosity as set_verbosity
from framework.paddle.jit.save import TranslatedLayer as TranslatedLayer
from framework.paddle.jit.save import load as load
from framework.paddle.jit.save import save as save
from framework.paddle.jit.to_static import enable_to_static as enable_to_static
from framework.paddle.jit.to_static import not_to_static as not_to_static
from framework.paddle.jit.to_static import to_static as to_static

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
