"""Eager mode by its old names."""

from framework.paddle.base.dygraph.base import guard as guard
from framework.paddle.base.dygraph.base import no_grad as no_grad
from framework.paddle.base.dygraph.base import to_variable as to_variable
