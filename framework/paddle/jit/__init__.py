"""paddle.jit: compiled programs of functions, methods, layers and training steps, and how they are saved."""

from __future__ import annotations

from framework.paddle.jit.ast_transform import ignore_module as ignore_module
from framework.paddle.jit.to_static import enable_to_static as enable_to_static
from framework.paddle.jit.to_static import not_to_static as not_to_static
from framework.paddle.jit.to_static import to_static as to_static
