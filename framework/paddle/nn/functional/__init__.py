"""paddle.nn.functional: functions of Tensors, channels first unless `data_format` says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.nn.functional.activation import celu as celu
from framework.paddle.nn.functional.activation import elu as elu
from framework.paddle.nn.functional.activation import elu_ as elu_
from framework.paddle.nn.functional.activation import gelu as gelu
from framework.paddle.nn.functional.activation import glu as glu
from framework.paddle.nn.functional.activation import gumbel_softmax as gumbel_softmax
from framework.paddle.nn.functional.activation import hardshrink as hardshrink
from framework.paddle.nn.functional.activation import hardsigmoid as hardsigmoid
from framework.paddle.nn.functional.activation import hardswish as hardswish
from framework.paddle.nn.functional.activation import hardtanh as hardtanh
from framework.paddle.nn.functional.activation import hardtanh_ as hardtanh_
from framework.paddle.nn.functional.activation import leaky_relu as leaky_relu
from framework.paddle.nn.functional.activation import leaky_relu_ as leaky_relu_
from framework.paddle.nn.functional.activation import log_sigmoid as log_sigmoid
from framework.paddle.nn.functional.activation import log_softmax as log_softmax
from framework.paddle.nn.functional.activation import maxout as maxout
from framework.paddle.nn.functional.activation import mish as mish
from framework.paddle.nn.functional.activation import prelu as prelu
from framework.paddle.nn.functional.activation import relu as relu
from framework.paddle.nn.functional.activation import relu6 as relu6
from framework.paddle.nn.functional.activation import relu_ as relu_
from framework.paddle.nn.functional.activation import rrelu as rrelu
from framework.paddle.nn.functional.activation import selu as selu
from framework.paddle.nn.functional.activation import sigmoid as sigmoid
from framework.paddle.nn.functional.activation import silu as silu
from framework.paddle.nn.functional.activation import softmax as softmax
from framework.paddle.nn.functional.activation import softmax_ as softmax_
from framework.paddle.nn.functional.activation import softplus as softplus
from framework.paddle.nn.functional.activation import softshrink as softshrink
from framework.paddle.nn.functional.activation import softsign as softsign
from framework.paddle.nn.functional.activation import swish as swish
from framework.paddle.nn.functional.activation import tanh as tanh
from framework.paddle.nn.functional.activation import tanh_ as tanh_
from framework.paddle.nn.functional.activation import tanhshrink as tanhshrink
from framework.paddle.nn.functional.activation import thresholded_relu as thresholded_relu
from framework.paddle.nn.functional.activation import thresholded_relu_ as thresholded_relu_
from framework.paddle.nn.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from framework.paddle.nn.functional.attention import sparse_attention as sparse_attention
from framework.paddle.nn.functional.common import alpha_dropout as alpha_dropout
from framework.paddle.nn.functional.common import bilinear as bilinear
from framework.paddle.nn.functional.common import class_center_sample as class_center_sample
from framework.paddle.nn.functional.common import cosine_similarity as cosine_similarity
from framework.paddle.nn.functional.common import dropout as dropout
from framework.paddle.nn.functional.common import dropout2d as dropout2d
from framework.paddle.nn.functional.common import dropout3d as dropout3d
from framework.paddle.nn.functional.common import embedding as embedding
from framework.paddle.nn.functional.common import fold as fold
from framework.paddle.nn.functional.common import gather_tree as gather_tree
from framework.paddle.nn.functional.common import interpolate as interpolate
from framework.paddle.nn.functional.common import label_smooth as label_smooth
from framework.paddle.nn.functional.common import linear as linear
from framework.paddle.nn.functional.common import normalize as normalize
from framework.paddle.nn.functional.common import one_hot as one_hot
from framework.paddle.nn.functional.common import pad as pad
from framework.paddle.nn.functional.common import pairwise_distance as pairwise_distance
from framework.paddle.nn.functional.common import sequence_mask as sequence_mask
from framework.paddle.nn.functional.common import unfold as unfold
from framework.paddle.nn.functional.common import upsample as upsample
from framework.paddle.nn.functional.common import zeropad2d as zeropad2d
from framework.paddle.nn.functional.conv import conv1d as conv1d
from framework.paddle.nn.functional.conv import conv1d_transpose as conv1d_transpose
from framework.paddle.nn.functional.conv import conv2d as conv2d
from framework.paddle.nn.functional.conv import conv2d_transpose as conv2d_transpose
from framework.paddle.nn.functional.conv import conv3d as conv3d
from framework.paddle.nn.functional.conv import conv3d_transpose as conv3d_transpose
from framework.paddle.nn.functional.distance_loss import cosine_embedding_loss as cosine_embedding_loss
from framework.paddle.nn.functional.distance_loss import gaussian_nll_loss as gaussian_nll_loss
from framework.paddle.nn.functional.distance_loss import hinge_embedding_loss as hinge_embedding_loss
from framework.paddle.nn.functional.distance_loss import kl_div as kl_div
from framework.paddle.nn.functional.distance_loss import l1_loss as l1_loss
from framework.paddle.nn.functional.distance_loss import margin_ranking_loss as margin_ranking_loss
from framework.paddle.nn.functional.distance_loss import mse_loss as mse_loss
from framework.paddle.nn.functional.distance_loss import (
    multi_label_soft_margin_loss as multi_label_soft_margin_loss,
)
from framework.paddle.nn.functional.distance_loss import multi_margin_loss as multi_margin_loss
from framework.paddle.nn.functional.distance_loss import poisson_nll_loss as poisson_nll_loss
from framework.paddle.nn.functional.distance_loss import smooth_l1_loss as smooth_l1_loss
from framework.paddle.nn.functional.distance_loss import soft_margin_loss as soft_margin_loss
from framework.paddle.nn.functional.distance_loss import square_error_cost as square_error_cost
from framework.paddle.nn.functional.distance_loss import triplet_margin_loss as triplet_margin_loss
from framework.paddle.nn.functional.distance_loss import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from framework.paddle.nn.functional.loss import binary_cross_entropy as binary_cross_entropy
from framework.paddle.nn.functional.loss import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from framework.paddle.nn.functional.loss import cross_entropy as cross_entropy
from framework.paddle.nn.functional.loss import ctc_loss as ctc_loss
from framework.paddle.nn.functional.loss import dice_loss as dice_loss
from framework.paddle.nn.functional.loss import hsigmoid_loss as hsigmoid_loss
from framework.paddle.nn.functional.loss import log_loss as log_loss
from framework.paddle.nn.functional.loss import margin_cross_entropy as margin_cross_entropy
from framework.paddle.nn.functional.loss import nll_loss as nll_loss
from framework.paddle.nn.functional.loss import npair_loss as npair_loss
from framework.paddle.nn.functional.loss import rnnt_loss as rnnt_loss
from framework.paddle.nn.functional.loss import sigmoid_focal_loss as sigmoid_focal_loss
from framework.paddle.nn.functional.loss import softmax_with_cross_entropy as softmax_with_cross_entropy
from framework.paddle.nn.functional.norm import batch_norm as batch_norm
from framework.paddle.nn.functional.norm import instance_norm as instance_norm
from framework.paddle.nn.functional.norm import layer_norm as layer_norm
from framework.paddle.nn.functional.norm import local_response_norm as local_response_norm
from framework.paddle.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from framework.paddle.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from framework.paddle.nn.functional.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from framework.paddle.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from framework.paddle.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from framework.paddle.nn.functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from framework.paddle.nn.functional.pooling import avg_pool1d as avg_pool1d
from framework.paddle.nn.functional.pooling import avg_pool2d as avg_pool2d
from framework.paddle.nn.functional.pooling import avg_pool3d as avg_pool3d
from framework.paddle.nn.functional.pooling import max_pool1d as max_pool1d
from framework.paddle.nn.functional.pooling import max_pool2d as max_pool2d
from framework.paddle.nn.functional.pooling import max_pool3d as max_pool3d
from framework.paddle.nn.functional.pooling import max_unpool1d as max_unpool1d
from framework.paddle.nn.functional.pooling import max_unpool2d as max_unpool2d
from framework.paddle.nn.functional.pooling import max_unpool3d as max_unpool3d
from framework.paddle.nn.functional.vision import affine_grid as affine_grid
from framework.paddle.nn.functional.vision import channel_shuffle as channel_shuffle
from framework.paddle.nn.functional.vision import grid_sample as grid_sample
from framework.paddle.nn.functional.vision import pixel_shuffle as pixel_shuffle
from framework.paddle.nn.functional.vision import pixel_unshuffle as pixel_unshuffle
from framework.paddle.nn.functional.vision import temporal_shift as temporal_shift

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
