"""Eager mode by its old names."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.base.dygraph.base import guard as guard
from framework.paddle.base.dygraph.base import no_grad as no_grad
from framework.paddle.base.dygraph.base import to_variable as to_variable

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
