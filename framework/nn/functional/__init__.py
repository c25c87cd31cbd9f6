"""Pure, stateless operations with Paddle's names and numerics on NHWC arrays."""

from typing import TYPE_CHECKING

from framework.core.foreign_names import find_functional_hint as _find_functional_hint
from framework.core.foreign_names import module_error as _module_error
from framework.nn.functional.activation import argmax_last as argmax_last
from framework.nn.functional.activation import celu as celu
from framework.nn.functional.activation import elu as elu
from framework.nn.functional.activation import gelu as gelu
from framework.nn.functional.activation import glu as glu
from framework.nn.functional.activation import gumbel_softmax as gumbel_softmax
from framework.nn.functional.activation import hardshrink as hardshrink
from framework.nn.functional.activation import hardsigmoid as hardsigmoid
from framework.nn.functional.activation import hardswish as hardswish
from framework.nn.functional.activation import hardtanh as hardtanh
from framework.nn.functional.activation import leaky_relu as leaky_relu
from framework.nn.functional.activation import log_sigmoid as log_sigmoid
from framework.nn.functional.activation import log_softmax as log_softmax
from framework.nn.functional.activation import maxout as maxout
from framework.nn.functional.activation import mish as mish
from framework.nn.functional.activation import prelu as prelu
from framework.nn.functional.activation import relu as relu
from framework.nn.functional.activation import relu6 as relu6
from framework.nn.functional.activation import selu as selu
from framework.nn.functional.activation import sigmoid as sigmoid
from framework.nn.functional.activation import silu as silu
from framework.nn.functional.activation import softmax as softmax
from framework.nn.functional.activation import softplus as softplus
from framework.nn.functional.activation import softshrink as softshrink
from framework.nn.functional.activation import softsign as softsign
from framework.nn.functional.activation import swish as swish
from framework.nn.functional.activation import tanh as tanh
from framework.nn.functional.activation import tanhshrink as tanhshrink
from framework.nn.functional.activation import thresholded_relu as thresholded_relu
from framework.nn.functional.attention import attention_with_weights as attention_with_weights
from framework.nn.functional.attention import scaled_dot_product_attention as scaled_dot_product_attention
from framework.nn.functional.autocast import under_autocast as _under_autocast
from framework.nn.functional.common import cosine_similarity as cosine_similarity
from framework.nn.functional.common import dropout as dropout
from framework.nn.functional.common import dropout2d as dropout2d
from framework.nn.functional.common import dropout3d as dropout3d
from framework.nn.functional.common import embedding as embedding
from framework.nn.functional.common import label_smooth as label_smooth
from framework.nn.functional.common import one_hot as one_hot
from framework.nn.functional.common import pad as pad
from framework.nn.functional.conv import conv1d as conv1d
from framework.nn.functional.conv import conv2d as conv2d
from framework.nn.functional.conv import conv2d_transpose as conv2d_transpose
from framework.nn.functional.conv_nd import conv1d_transpose as conv1d_transpose
from framework.nn.functional.conv_nd import conv3d as conv3d
from framework.nn.functional.ctc import ctc_loss as ctc_loss
from framework.nn.functional.losses import binary_cross_entropy as binary_cross_entropy
from framework.nn.functional.losses import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from framework.nn.functional.losses import cosine_embedding_loss as cosine_embedding_loss
from framework.nn.functional.losses import cross_entropy as cross_entropy
from framework.nn.functional.losses import dice_loss as dice_loss
from framework.nn.functional.losses import kl_div as kl_div
from framework.nn.functional.losses import l1_loss as l1_loss
from framework.nn.functional.losses import log_loss as log_loss
from framework.nn.functional.losses import margin_ranking_loss as margin_ranking_loss
from framework.nn.functional.losses import mse_loss as mse_loss
from framework.nn.functional.losses import nll_loss as nll_loss
from framework.nn.functional.losses import sigmoid_focal_loss as sigmoid_focal_loss
from framework.nn.functional.losses import smooth_l1_loss as smooth_l1_loss
from framework.nn.functional.losses import softmax_with_cross_entropy as softmax_with_cross_entropy
from framework.nn.functional.losses import square_error_cost as square_error_cost
from framework.nn.functional.losses import triplet_margin_loss as triplet_margin_loss
from framework.nn.functional.norm import batch_norm as batch_norm
from framework.nn.functional.norm import group_norm as group_norm
from framework.nn.functional.norm import instance_norm as instance_norm
from framework.nn.functional.norm import layer_norm as layer_norm
from framework.nn.functional.norm import normalize as normalize
from framework.nn.functional.norm import spectral_norm as spectral_norm
from framework.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from framework.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from framework.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from framework.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from framework.nn.functional.pooling import avg_pool1d as avg_pool1d
from framework.nn.functional.pooling import avg_pool2d as avg_pool2d
from framework.nn.functional.pooling import global_avg_pool2d as global_avg_pool2d
from framework.nn.functional.pooling import max_pool1d as max_pool1d
from framework.nn.functional.pooling import max_pool2d as max_pool2d
from framework.nn.functional.products import linear as linear
from framework.nn.functional.products import matmul as matmul
from framework.nn.functional.rearrange import channel_shuffle as channel_shuffle
from framework.nn.functional.rearrange import fold as fold
from framework.nn.functional.rearrange import pixel_shuffle as pixel_shuffle
from framework.nn.functional.rearrange import pixel_unshuffle as pixel_unshuffle
from framework.nn.functional.rearrange import unfold as unfold
from framework.nn.functional.rnn import rnn_cell as rnn_cell
from framework.nn.functional.rnn import rnn_scan as rnn_scan
from framework.nn.functional.sampling import affine_grid as affine_grid
from framework.nn.functional.sampling import grid_sample as grid_sample
from framework.nn.functional.sampling import interpolate as interpolate
from framework.nn.functional.sampling import upsample as upsample

for _name, _function in list(globals().items()):  # every operation listens to amp.auto_cast
    if not _name.startswith("_") and callable(_function):
        globals()[_name] = _under_autocast(_function, _name)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise _module_error("framework.nn.functional", name, globals(), _find_functional_hint)
