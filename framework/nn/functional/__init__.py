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
from framework.nn.functional.activation import rrelu as rrelu
from framework.nn.functional.activation import selu as selu
from framework.nn.functional.activation import sigmoid as sigmoid
from framework.nn.functional.activation import silu as silu
from framework.nn.functional.activation import softmax as softmax
from framework.nn.functional.activation import softplus as softplus
from framework.nn.functional.activation import softshrink as softshrink
from framework.nn.functional.activation import softsign as softsign
from framework.nn.functional.activation import swiglu as swiglu
from framework.nn.functional.activation import swish as swish
from framework.nn.functional.activation import tanh as tanh
from framework.nn.functional.activation import tanhshrink as tanhshrink
from framework.nn.functional.activation import thresholded_relu as thresholded_relu
from framework.nn.functional.attention import attention_with_weights as attention_with_weights
from framework.nn.functional.attention import scaled_dot_product_attention as scaled_dot_product_attention
from framework.nn.functional.autocast import under_autocast as _under_autocast
from framework.nn.functional.common import alpha_dropout as alpha_dropout
from framework.nn.functional.common import bilinear as bilinear
from framework.nn.functional.common import cosine_similarity as cosine_similarity
from framework.nn.functional.common import dropout as dropout
from framework.nn.functional.common import dropout1d as dropout1d
from framework.nn.functional.common import dropout2d as dropout2d
from framework.nn.functional.common import dropout3d as dropout3d
from framework.nn.functional.common import embedding as embedding
from framework.nn.functional.common import feature_alpha_dropout as feature_alpha_dropout
from framework.nn.functional.common import gather_tree as gather_tree
from framework.nn.functional.common import label_smooth as label_smooth
from framework.nn.functional.common import one_hot as one_hot
from framework.nn.functional.common import pad as pad
from framework.nn.functional.common import pairwise_distance as pairwise_distance
from framework.nn.functional.common import sequence_mask as sequence_mask
from framework.nn.functional.common import zeropad2d as zeropad2d
from framework.nn.functional.conv import conv1d as conv1d
from framework.nn.functional.conv import conv2d as conv2d
from framework.nn.functional.conv import conv2d_transpose as conv2d_transpose
from framework.nn.functional.conv_nd import conv1d_transpose as conv1d_transpose
from framework.nn.functional.conv_nd import conv3d as conv3d
from framework.nn.functional.conv_nd import conv3d_transpose as conv3d_transpose
from framework.nn.functional.ctc import ctc_loss as ctc_loss
from framework.nn.functional.likelihood import adaptive_log_softmax as adaptive_log_softmax
from framework.nn.functional.likelihood import (
    adaptive_log_softmax_with_loss as adaptive_log_softmax_with_loss,
)
from framework.nn.functional.likelihood import gaussian_nll_loss as gaussian_nll_loss
from framework.nn.functional.likelihood import hsigmoid_loss as hsigmoid_loss
from framework.nn.functional.likelihood import poisson_nll_loss as poisson_nll_loss
from framework.nn.functional.likelihood import rnnt_loss as rnnt_loss
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
from framework.nn.functional.margin_losses import hinge_embedding_loss as hinge_embedding_loss
from framework.nn.functional.margin_losses import margin_cross_entropy as margin_cross_entropy
from framework.nn.functional.margin_losses import multi_label_margin_loss as multi_label_margin_loss
from framework.nn.functional.margin_losses import multi_label_soft_margin_loss as multi_label_soft_margin_loss
from framework.nn.functional.margin_losses import multi_margin_loss as multi_margin_loss
from framework.nn.functional.margin_losses import npair_loss as npair_loss
from framework.nn.functional.margin_losses import soft_margin_loss as soft_margin_loss
from framework.nn.functional.margin_losses import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from framework.nn.functional.norm import batch_norm as batch_norm
from framework.nn.functional.norm import group_norm as group_norm
from framework.nn.functional.norm import instance_norm as instance_norm
from framework.nn.functional.norm import layer_norm as layer_norm
from framework.nn.functional.norm import local_response_norm as local_response_norm
from framework.nn.functional.norm import normalize as normalize
from framework.nn.functional.norm import rms_norm as rms_norm
from framework.nn.functional.norm import spectral_norm as spectral_norm
from framework.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from framework.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from framework.nn.functional.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from framework.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from framework.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from framework.nn.functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from framework.nn.functional.pooling import avg_pool1d as avg_pool1d
from framework.nn.functional.pooling import avg_pool2d as avg_pool2d
from framework.nn.functional.pooling import avg_pool3d as avg_pool3d
from framework.nn.functional.pooling import global_avg_pool2d as global_avg_pool2d
from framework.nn.functional.pooling import lp_pool1d as lp_pool1d
from framework.nn.functional.pooling import lp_pool2d as lp_pool2d
from framework.nn.functional.pooling import max_pool1d as max_pool1d
from framework.nn.functional.pooling import max_pool2d as max_pool2d
from framework.nn.functional.pooling import max_pool3d as max_pool3d
from framework.nn.functional.pooling_places import fractional_max_pool2d as fractional_max_pool2d
from framework.nn.functional.pooling_places import fractional_max_pool3d as fractional_max_pool3d
from framework.nn.functional.pooling_places import max_unpool1d as max_unpool1d
from framework.nn.functional.pooling_places import max_unpool2d as max_unpool2d
from framework.nn.functional.pooling_places import max_unpool3d as max_unpool3d
from framework.nn.functional.products import linear as linear
from framework.nn.functional.products import matmul as matmul
from framework.nn.functional.quantized import linear_int4 as linear_int4
from framework.nn.functional.quantized import linear_int8 as linear_int8
from framework.nn.functional.rearrange import channel_shuffle as channel_shuffle
from framework.nn.functional.rearrange import fold as fold
from framework.nn.functional.rearrange import pixel_shuffle as pixel_shuffle
from framework.nn.functional.rearrange import pixel_unshuffle as pixel_unshuffle
from framework.nn.functional.rearrange import temporal_shift as temporal_shift
from framework.nn.functional.rearrange import unfold as unfold
from framework.nn.functional.rnn import rnn_cell as rnn_cell
from framework.nn.functional.rnn import rnn_scan as rnn_scan
from framework.nn.functional.rotary import apply_rotary as apply_rotary
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
