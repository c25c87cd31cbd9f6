"""The layers without parameters, one row each: activations, dropout, pooling, padding, resizing, losses.

A class takes what its functional takes behind the inputs, with the functional's defaults, and is documented there.
Arrays are channels-last; places of maxima, windows and padding are those of the functionals.
"""

from __future__ import annotations

import functools

from framework.nn import functional as F
from framework.nn.leaf import leaf

_leaf = functools.partial(leaf, module=__name__)

# -- activations ------------------------------------------------------------------------------------------------------

CELU = _leaf("CELU", F.celu)
ELU = _leaf("ELU", F.elu)
GELU = _leaf("GELU", F.gelu)
GLU = _leaf("GLU", F.glu)
Hardshrink = _leaf("Hardshrink", F.hardshrink)
Hardsigmoid = _leaf("Hardsigmoid", F.hardsigmoid)
Hardswish = _leaf("Hardswish", F.hardswish)
Hardtanh = _leaf("Hardtanh", F.hardtanh)
LeakyReLU = _leaf("LeakyReLU", F.leaky_relu)
LogSigmoid = _leaf("LogSigmoid", F.log_sigmoid)
LogSoftmax = _leaf("LogSoftmax", F.log_softmax)
Maxout = _leaf("Maxout", F.maxout)
Mish = _leaf("Mish", F.mish)
ReLU = _leaf("ReLU", F.relu)
ReLU6 = _leaf("ReLU6", F.relu6)
RReLU = _leaf("RReLU", F.rrelu)
SELU = _leaf("SELU", F.selu)
Sigmoid = _leaf("Sigmoid", F.sigmoid)
Silu = _leaf("Silu", F.silu)
Softmax = _leaf("Softmax", F.softmax)
Softplus = _leaf("Softplus", F.softplus)
Softshrink = _leaf("Softshrink", F.softshrink)
Softsign = _leaf("Softsign", F.softsign)
Swish = _leaf("Swish", F.swish)
Tanh = _leaf("Tanh", F.tanh)
Tanhshrink = _leaf("Tanhshrink", F.tanhshrink)
ThresholdedReLU = _leaf("ThresholdedReLU", F.thresholded_relu)

# -- dropout ----------------------------------------------------------------------------------------------------------

AlphaDropout = _leaf("AlphaDropout", F.alpha_dropout)
Dropout = _leaf("Dropout", F.dropout)
Dropout2D = _leaf("Dropout2D", F.dropout2d, 2)
Dropout3D = _leaf("Dropout3D", F.dropout3d, 3)
FeatureAlphaDropout = _leaf("FeatureAlphaDropout", F.feature_alpha_dropout)

# -- similarity, channels and windows ---------------------------------------------------------------------------------

ChannelShuffle = _leaf("ChannelShuffle", F.channel_shuffle, 2)
CosineSimilarity = _leaf("CosineSimilarity", F.cosine_similarity)
LocalResponseNorm = _leaf("LocalResponseNorm", F.local_response_norm, 2)
PairwiseDistance = _leaf("PairwiseDistance", F.pairwise_distance)
PixelShuffle = _leaf("PixelShuffle", F.pixel_shuffle, 2)
PixelUnshuffle = _leaf("PixelUnshuffle", F.pixel_unshuffle, 2)
_WINDOWS = "kernel_sizes dilations paddings strides"  # Paddle's layers have dilations before strides
Fold = _leaf("Fold", F.fold, settings=f"output_sizes {_WINDOWS}")
Unfold = _leaf("Unfold", F.unfold, settings=_WINDOWS)

# -- pooling ----------------------------------------------------------------------------------------------------------

AdaptiveAvgPool1D = _leaf("AdaptiveAvgPool1D", F.adaptive_avg_pool1d, 1)
AdaptiveAvgPool2D = _leaf("AdaptiveAvgPool2D", F.adaptive_avg_pool2d, 2)
AdaptiveAvgPool3D = _leaf("AdaptiveAvgPool3D", F.adaptive_avg_pool3d, 3)
AdaptiveMaxPool1D = _leaf("AdaptiveMaxPool1D", F.adaptive_max_pool1d, 1)
AdaptiveMaxPool2D = _leaf("AdaptiveMaxPool2D", F.adaptive_max_pool2d, 2)
AdaptiveMaxPool3D = _leaf("AdaptiveMaxPool3D", F.adaptive_max_pool3d, 3)
AvgPool1D = _leaf("AvgPool1D", F.avg_pool1d)
AvgPool2D = _leaf("AvgPool2D", F.avg_pool2d, 2)
AvgPool3D = _leaf("AvgPool3D", F.avg_pool3d, 3)
FractionalMaxPool2D = _leaf("FractionalMaxPool2D", F.fractional_max_pool2d)
FractionalMaxPool3D = _leaf("FractionalMaxPool3D", F.fractional_max_pool3d)
LPPool1D = _leaf("LPPool1D", F.lp_pool1d, 1)
LPPool2D = _leaf("LPPool2D", F.lp_pool2d, 2)
MaxPool1D = _leaf("MaxPool1D", F.max_pool1d)
_PADDED = "kernel_size stride padding return_mask ceil_mode data_format pad_value"
MaxPool2D = _leaf("MaxPool2D", F.max_pool2d, 2, _PADDED)
MaxPool3D = _leaf("MaxPool3D", F.max_pool3d, 3)
_INVERSE = "kernel_size stride padding data_format output_size"
MaxUnPool1D = _leaf("MaxUnPool1D", F.max_unpool1d, 1, _INVERSE)
MaxUnPool2D = _leaf("MaxUnPool2D", F.max_unpool2d, 2, _INVERSE)
MaxUnPool3D = _leaf("MaxUnPool3D", F.max_unpool3d, 3, _INVERSE)

# -- padding ----------------------------------------------------------------------------------------------------------

_ANY, _FILLED, _EDGES = (
    "padding:pad mode value data_format",
    "padding:pad value data_format",
    "padding:pad data_format",
)
Pad1D = _leaf("Pad1D", F.pad, 1, _ANY)
Pad2D = _leaf("Pad2D", F.pad, 2, _ANY)
Pad3D = _leaf("Pad3D", F.pad, 3, _ANY)
ConstantPad1D = _leaf("ConstantPad1D", F.pad, 1, _FILLED, mode="constant")
ConstantPad2D = _leaf("ConstantPad2D", F.pad, 2, _FILLED, mode="constant")
ConstantPad3D = _leaf("ConstantPad3D", F.pad, 3, _FILLED, mode="constant")
ZeroPad1D = _leaf("ZeroPad1D", F.pad, 1, _EDGES, mode="constant", value=0.0)
ZeroPad2D = _leaf("ZeroPad2D", F.pad, 2, _EDGES, mode="constant", value=0.0)
ZeroPad3D = _leaf("ZeroPad3D", F.pad, 3, _EDGES, mode="constant", value=0.0)
CircularPad1D = _leaf("CircularPad1D", F.pad, 1, _EDGES, mode="circular")
CircularPad2D = _leaf("CircularPad2D", F.pad, 2, _EDGES, mode="circular")
CircularPad3D = _leaf("CircularPad3D", F.pad, 3, _EDGES, mode="circular")
ReflectionPad1D = _leaf("ReflectionPad1D", F.pad, 1, _EDGES, mode="reflect")
ReflectionPad2D = _leaf("ReflectionPad2D", F.pad, 2, _EDGES, mode="reflect")
ReflectionPad3D = _leaf("ReflectionPad3D", F.pad, 3, _EDGES, mode="reflect")
ReplicationPad1D = _leaf("ReplicationPad1D", F.pad, 1, _EDGES, mode="replicate")
ReplicationPad2D = _leaf("ReplicationPad2D", F.pad, 2, _EDGES, mode="replicate")
ReplicationPad3D = _leaf("ReplicationPad3D", F.pad, 3, _EDGES, mode="replicate")

# -- resizing ---------------------------------------------------------------------------------------------------------

_SIZE = "size scale_factor data_format"
Upsample = _leaf("Upsample", F.interpolate, 2)
UpsamplingBilinear2D = _leaf(
    "UpsamplingBilinear2D", F.interpolate, 2, _SIZE, mode="bilinear", align_corners=True
)
UpsamplingNearest2D = _leaf("UpsamplingNearest2D", F.interpolate, 2, _SIZE, mode="nearest")

# -- losses: classes are the last axis --------------------------------------------------------------------------------

BCELoss = _leaf("BCELoss", F.binary_cross_entropy)
BCEWithLogitsLoss = _leaf("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits)
CosineEmbeddingLoss = _leaf("CosineEmbeddingLoss", F.cosine_embedding_loss)
CrossEntropyLoss = _leaf("CrossEntropyLoss", F.cross_entropy)
GaussianNLLLoss = _leaf("GaussianNLLLoss", F.gaussian_nll_loss)
HingeEmbeddingLoss = _leaf("HingeEmbeddingLoss", F.hinge_embedding_loss)
KLDivLoss = _leaf("KLDivLoss", F.kl_div)
L1Loss = _leaf("L1Loss", F.l1_loss)
MarginRankingLoss = _leaf("MarginRankingLoss", F.margin_ranking_loss)
MSELoss = _leaf("MSELoss", F.mse_loss)
MultiLabelMarginLoss = _leaf("MultiLabelMarginLoss", F.multi_label_margin_loss)
MultiLabelSoftMarginLoss = _leaf("MultiLabelSoftMarginLoss", F.multi_label_soft_margin_loss)
MultiMarginLoss = _leaf("MultiMarginLoss", F.multi_margin_loss)
NLLLoss = _leaf("NLLLoss", F.nll_loss)
PoissonNLLLoss = _leaf("PoissonNLLLoss", F.poisson_nll_loss)
RNNTLoss = _leaf("RNNTLoss", F.rnnt_loss)
SmoothL1Loss = _leaf("SmoothL1Loss", F.smooth_l1_loss)
SoftMarginLoss = _leaf("SoftMarginLoss", F.soft_margin_loss)
TripletMarginLoss = _leaf("TripletMarginLoss", F.triplet_margin_loss)
TripletMarginWithDistanceLoss = _leaf("TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss)
