"""Names of Paddle's models that are divided among processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
