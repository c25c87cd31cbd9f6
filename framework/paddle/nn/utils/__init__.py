"""paddle.nn.utils: weights as functions of other parameters, parameters as one vector, clipping by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.nn.utils.gradients import clip_grad_norm_ as clip_grad_norm_
from framework.paddle.nn.utils.gradients import clip_grad_value_ as clip_grad_value_
from framework.paddle.nn.utils.gradients import parameters_to_vector as parameters_to_vector
from framework.paddle.nn.utils.gradients import vector_to_parameters as vector_to_parameters
from framework.paddle.nn.utils.weights import remove_weight_norm as remove_weight_norm
from framework.paddle.nn.utils.weights import spectral_norm as spectral_norm
from framework.paddle.nn.utils.weights import weight_norm as weight_norm

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
