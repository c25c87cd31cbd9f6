"""paddle.autograd: own gradients (PyLayer), Jacobians and Hessians, hooks on what is kept for the backward run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tape import backward as backward
from framework.paddle.autograd.hooks import saved_tensors_hooks as saved_tensors_hooks
from framework.paddle.autograd.jacobian import Hessian as Hessian
from framework.paddle.autograd.jacobian import Jacobian as Jacobian
from framework.paddle.autograd.jacobian import hessian as hessian
from framework.paddle.autograd.jacobian import jacobian as jacobian
from framework.paddle.autograd.py_layer import PyLayer as PyLayer
from framework.paddle.autograd.py_layer import PyLayerContext as PyLayerContext
from framework.paddle.autograd.recompute import recompute as recompute

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
