"""Derivatives of functions: there is no tape, so what is differentiated is a function and not a computed array.

Gradients with respect to complex arrays follow Paddle: dL/dx + i dL/dy, the conjugate of what jax.grad returns.
"""

from typing import TYPE_CHECKING

from framework.autograd.functional import grad as grad
from framework.autograd.functional import hessian as hessian
from framework.autograd.functional import jacobian as jacobian
from framework.autograd.functional import jvp as jvp
from framework.autograd.functional import value_and_grad as value_and_grad
from framework.autograd.functional import vjp as vjp
from framework.autograd.py_layer import PyLayer as PyLayer
from framework.autograd.py_layer import PyLayerContext as PyLayerContext
from framework.core.foreign_names import module_error as _module_error

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise _module_error("framework.autograd", name, globals())
