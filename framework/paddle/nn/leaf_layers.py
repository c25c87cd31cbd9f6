"""The layers without parameters, one row each, made from those of the core."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from framework import nn as core
from framework.paddle._kernel.errors import ArgumentTypeError, ShapeError, require
from framework.paddle.nn import functional as F
from framework.paddle.nn.faces import Face, face

# -- activations ------------------------------------------------------------------------------------------------------

_face = functools.partial(face, module=__name__)
CELU = _face(core.CELU)
ELU = _face(core.ELU)
GELU = _face(core.GELU)
GLU = _face(core.GLU)
Hardshrink = _face(core.Hardshrink)
Hardsigmoid = _face(core.Hardsigmoid, settings="", attributes={"name": "name"})
Hardswish = _face(core.Hardswish)
Hardtanh = _face(core.Hardtanh)
LeakyReLU = _face(core.LeakyReLU)
LogSigmoid = _face(core.LogSigmoid)
LogSoftmax = _face(core.LogSoftmax, settings="axis")
Maxout = _face(core.Maxout)
Mish = _face(core.Mish)
ReLU = _face(core.ReLU)
ReLU6 = _face(core.ReLU6)
RReLU = _face(core.RReLU, shown="lower={lower}, upper={upper}, training={training}, dtype={dtype}{named}")
SELU = _face(core.SELU)
Sigmoid = _face(core.Sigmoid, attributes={"name": "name"})
Silu = _face(core.Silu)
Softmax = _face(core.Softmax, settings="axis")
Softplus = _face(core.Softplus)
Softshrink = _face(core.Softshrink)
Softsign = _face(core.Softsign)
Swish = _face(core.Swish, F.swish)
Tanh = _face(core.Tanh)
Tanhshrink = _face(core.Tanhshrink)
ThresholdedReLU = _face(core.ThresholdedReLU)


class _Rearrangement(Face):
    """Refuses a factor that is no integer above 0, and an unknown format, when the layer is built, as Paddle does."""

    def _settled(self, settings: dict[str, object]) -> dict[str, object]:
        where = f"paddle.nn.{type(self).__name__}"
        for name, value in settings.items():
            if name in ("upscale_factor", "downscale_factor", "groups"):
                if not isinstance(value, int):
                    raise ArgumentTypeError(
                        f"{name} is an integer", where=where, received=type(value).__name__
                    )
                require(value > 0, f"{name} is above 0", where, value)
            if name == "data_format":
                require(value in ("NCHW", "NHWC"), "data_format is NCHW or NHWC", where, value)
        return settings


# -- similarity and channels ------------------------------------------------------------------------------------------

CosineSimilarity = _face(core.CosineSimilarity)
_QUIET = ("data_format",)
ChannelShuffle = _face(core.ChannelShuffle, base=_Rearrangement, quiet=_QUIET)
PixelShuffle = _face(core.PixelShuffle, base=_Rearrangement, quiet=_QUIET)
PixelUnshuffle = _face(core.PixelUnshuffle, base=_Rearrangement, quiet=_QUIET)

# -- dropout, normalisation and windows -------------------------------------------------------------------------------

_face = functools.partial(face, module=__name__, prefix="")
AlphaDropout = _face(core.AlphaDropout, inputs="input")
Dropout = _face(core.Dropout, inputs="input")
Dropout2D = _face(core.Dropout2D, inputs="input")
Dropout3D = _face(core.Dropout3D, F.dropout3d, inputs="input")
LocalResponseNorm = _face(core.LocalResponseNorm, inputs="input", quiet=_QUIET)
PairwiseDistance = _face(core.PairwiseDistance, quiet=("epsilon", "keepdim"))
_SIZES = "kernel_size={kernel_sizes}, dilation={dilations}, padding={paddings}, stride={strides}"
Fold = _face(core.Fold, inputs="input", shown=_SIZES)
Unfold = _face(core.Unfold, inputs="input", shown=_SIZES)

# -- pooling ----------------------------------------------------------------------------------------------------------

_WINDOWS = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
_SIZE, _MASK = "output_size={output_size}", "output_size={output_size}, return_mask={return_mask}"
_KSIZE = {"kernel_size": "ksize", "divisor_override": "divisor"}
_HIDDEN = {name: f"_{name}" for name in ("output_size", "data_format", "return_mask", "name")}
MaxPool1D = _face(core.MaxPool1D, inputs="input", shown=_WINDOWS)
MaxPool2D = _face(core.MaxPool2D, attributes=_KSIZE, shown=_WINDOWS)
MaxPool3D = _face(core.MaxPool3D, attributes=_KSIZE, shown=_WINDOWS)
AvgPool1D = _face(core.AvgPool1D, shown=_WINDOWS)
AvgPool2D = _face(core.AvgPool2D, attributes=_KSIZE, shown=_WINDOWS)
AvgPool3D = _face(core.AvgPool3D, attributes=_KSIZE, shown=_WINDOWS)
AdaptiveAvgPool1D = _face(core.AdaptiveAvgPool1D, inputs="input", shown=_SIZE)
AdaptiveAvgPool2D = _face(core.AdaptiveAvgPool2D, attributes=_HIDDEN, shown=_SIZE)
AdaptiveAvgPool3D = _face(core.AdaptiveAvgPool3D, attributes=_HIDDEN, shown=_SIZE)
AdaptiveMaxPool1D = _face(core.AdaptiveMaxPool1D, inputs="input", shown=_MASK)
AdaptiveMaxPool2D = _face(core.AdaptiveMaxPool2D, attributes=_HIDDEN, shown=_MASK)
AdaptiveMaxPool3D = _face(core.AdaptiveMaxPool3D, attributes=_HIDDEN, shown=_MASK)
MaxUnPool1D = _face(core.MaxUnPool1D, attributes=_KSIZE, shown=_SIZE)
MaxUnPool2D = _face(core.MaxUnPool2D, attributes=_KSIZE, shown=_SIZE)
MaxUnPool3D = _face(core.MaxUnPool3D, attributes=_KSIZE, shown=_SIZE)

# -- losses -----------------------------------------------------------------------------------------------------------

_REDUCTIONS = ("mean", "sum", "none", "batchmean")


class _Loss(Face):
    """Refuses a reduction that there is not when the layer is built, as Paddle does."""

    def _settled(self, settings: dict[str, object]) -> dict[str, object]:
        if settings.get("reduction", "mean") not in _REDUCTIONS:
            raise ShapeError(
                "there is no such reduction",
                where=f"paddle.nn.{type(self).__name__}",
                received=repr(settings["reduction"]),
                allowed=", ".join(_REDUCTIONS),
            )
        self._check(f"paddle.nn.{type(self).__name__}", settings)  # type: ignore[arg-type]
        return settings

    def _check(self, where: str, settings: Mapping[str, float]) -> None:
        """What else Paddle refuses when the layer is built."""


class _CosineEmbedding(_Loss):
    def _check(self, where: str, settings: Mapping[str, float]) -> None:
        require(-1 <= settings["margin"] <= 1, "the margin lies from -1 to 1", where, settings["margin"])


class _Poisson(_Loss):
    def _check(self, where: str, settings: Mapping[str, float]) -> None:
        require(settings["epsilon"] > 0, "epsilon is above 0", where, settings["epsilon"])


_face = functools.partial(face, module=__name__, prefix="", shown="", base=_Loss)
BCELoss = _face(core.BCELoss)
BCEWithLogitsLoss = _face(core.BCEWithLogitsLoss)
CosineEmbeddingLoss = _face(core.CosineEmbeddingLoss, base=_CosineEmbedding)
CrossEntropyLoss = _face(core.CrossEntropyLoss)
GaussianNLLLoss = _face(core.GaussianNLLLoss)
HingeEmbeddingLoss = _face(core.HingeEmbeddingLoss)
KLDivLoss = _face(core.KLDivLoss)
L1Loss = _face(core.L1Loss)
MSELoss = _face(core.MSELoss)
MarginRankingLoss = _face(core.MarginRankingLoss)
MultiLabelSoftMarginLoss = _face(core.MultiLabelSoftMarginLoss)
MultiMarginLoss = _face(core.MultiMarginLoss)
NLLLoss = _face(core.NLLLoss, prefix="_")
PoissonNLLLoss = _face(core.PoissonNLLLoss, base=_Poisson, prefix="_")
RNNTLoss = _face(core.RNNTLoss)
SmoothL1Loss = _face(core.SmoothL1Loss)
SoftMarginLoss = _face(core.SoftMarginLoss)
TripletMarginLoss = _face(core.TripletMarginLoss)
TripletMarginWithDistanceLoss = _face(core.TripletMarginWithDistanceLoss)
