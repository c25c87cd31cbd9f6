"""paddle.static.quantization: which operators Paddle quantises, and the arithmetic of it on arrays.

What rewrites the graph of Paddle's operators is not here (framework/paddle/_kernel/refused.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
