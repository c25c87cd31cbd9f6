"""paddle.incubate.asp: automatic sparsity, 2 of 4 weights zero in training and in inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.incubate.asp.asp import ASPHelper as ASPHelper
from framework.paddle.incubate.asp.asp import decorate as decorate
from framework.paddle.incubate.asp.asp import prune_model as prune_model
from framework.paddle.incubate.asp.asp import reset_excluded_layers as reset_excluded_layers
from framework.paddle.incubate.asp.asp import set_excluded_layers as set_excluded_layers
from framework.paddle.incubate.asp.supported_layer_list import add_supported_layer as add_supported_layer
from framework.paddle.incubate.asp.utils import CheckMethod as CheckMethod
from framework.paddle.incubate.asp.utils import MaskAlgo as MaskAlgo
from framework.paddle.incubate.asp.utils import calculate_density as calculate_density
from framework.paddle.incubate.asp.utils import check_mask_1d as check_mask_1d
from framework.paddle.incubate.asp.utils import check_mask_2d as check_mask_2d
from framework.paddle.incubate.asp.utils import check_sparsity as check_sparsity
from framework.paddle.incubate.asp.utils import create_mask as create_mask
from framework.paddle.incubate.asp.utils import get_mask_1d as get_mask_1d
from framework.paddle.incubate.asp.utils import get_mask_2d_best as get_mask_2d_best
from framework.paddle.incubate.asp.utils import get_mask_2d_greedy as get_mask_2d_greedy

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
