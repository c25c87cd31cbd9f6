"""Heads of the recognisers: CTC, and beside it in training an attention decoder that guides the backbone.

Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/{rec_ctc_head,rec_multi_head}.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.reparam import Arrays, deploy_state, fuse_conv_bn, prefixed
from ocr.layers.nrtr import NRTRConfig, NRTRDecoder
from ocr.layers.svtr import LightSVTR, LightSVTRConfig, SVTREncoder, SVTREncoderConfig


@dataclass(frozen=True)
class ReshapeConfig:
    """No encoder: the row of features is the sequence."""

    kind: Literal["reshape"] = "reshape"


EncoderConfig = SVTREncoderConfig | LightSVTRConfig | ReshapeConfig


@dataclass(frozen=True)
class CTCHeadConfig:
    """`mid_channels` splits the classifier in two; `guide` puts two small convolutions along the line before it.

    `fc_decay` takes the place of the optimizer's weight decay for the classifier, also where that is none. PaddleOCR
    trains its recognisers with 1e-5 here and 3e-5 elsewhere.
    """

    mid_channels: int | None = None
    guide: bool = False
    fc_decay: float | None = None


class Reshape(nn.Layer):
    """The identity, where a recogniser has no encoder."""

    def __init__(self, config: ReshapeConfig, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.out_channels = in_channels

    def forward(self, x: jax.Array) -> jax.Array:
        return x


ENCODERS = {"reshape": Reshape, "svtr": SVTREncoder, "lightsvtr": LightSVTR}


class SequenceEncoder(nn.Layer):
    """[N, 1, T, in_channels] -> [N, T, out_channels]."""

    def __init__(self, config: EncoderConfig, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.encoder = ENCODERS[config.kind](config, in_channels, deploy)  # type: ignore[arg-type]
        self.out_channels = self.encoder.out_channels

    def forward(self, x: jax.Array) -> jax.Array:
        return self.encoder(x)[:, 0]


class GuideLayer(nn.Layer):
    """Depthwise 5 and pointwise convolutions along [N, T, C], each with normalisation and hard swish."""

    def __init__(self, channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.deploy = deploy
        bias = None if deploy else False
        self.add_sublayer("0", nn.Conv1D(channels, channels, 5, padding=2, groups=channels, bias_attr=bias))
        if not deploy:
            self.add_sublayer("1", nn.BatchNorm1D(channels))
        self.add_sublayer("3", nn.Conv1D(channels, channels, 1, bias_attr=bias))
        if not deploy:
            self.add_sublayer("4", nn.BatchNorm1D(channels))

    def forward(self, x: jax.Array) -> jax.Array:
        for conv, bn in (("0", "1"), ("3", "4")):
            x = getattr(self, conv)(x)
            x = F.hardswish(x if self.deploy else getattr(self, bn)(x))
        return x

    def deploy_state(self) -> Arrays:
        state: Arrays = {}
        for conv, bn in (("0", "1"), ("3", "4")):
            weight, bias = fuse_conv_bn(getattr(self, conv).weight, None, getattr(self, bn))
            state.update({f"{conv}.weight": weight, f"{conv}.bias": bias})
        return state


def uniform_linear(in_channels: int, out_channels: int, decay: float | None = None) -> nn.Linear:
    """Weight and bias start uniform within 1 / sqrt(in_channels); `decay` takes the place of the optimizer's."""
    bound = in_channels**-0.5
    attr = nn.ParamAttr(initializer=I.Uniform(-bound, bound), regularizer=decay)
    return nn.Linear(in_channels, out_channels, weight_attr=attr, bias_attr=attr)


class CTCHead(nn.Layer):
    """[N, T, C] -> logits [N, T, num_classes]; class 0 is the blank."""

    def __init__(
        self, config: CTCHeadConfig, in_channels: int, num_classes: int, deploy: bool = False
    ) -> None:
        super().__init__()
        self.guide, self.split = config.guide, config.mid_channels is not None
        if config.guide:
            self.guide_layer = GuideLayer(in_channels, deploy)
        if config.mid_channels is None:
            self.feature_channels = in_channels
            self.fc = uniform_linear(in_channels, num_classes, config.fc_decay)
        else:
            self.feature_channels = config.mid_channels
            self.fc1 = uniform_linear(in_channels, config.mid_channels, config.fc_decay)
            self.fc2 = uniform_linear(config.mid_channels, num_classes, config.fc_decay)

    def forward(self, x: jax.Array) -> jax.Array:
        return self._classify(self._features(x))

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`greedy` of the logits, line by line: 18,710 classes of a batch are 36 MB, those of a line stay in the cache.

        On a CPU that takes 25 ms of 8 lines at 320 columns instead of 52 (tools/bench/lowering.py).
        """
        return jax.lax.map(lambda line: greedy(self._classify(line)), self._features(x))

    def _features(self, x: jax.Array) -> jax.Array:
        return self.guide_layer(x) if self.guide else x

    def features_and_logits(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """What the last matrix takes, [N, T, feature_channels], and the logits."""
        x = self._features(x)
        x = self.fc1(x) if self.split else x
        return x, (self.fc2 if self.split else self.fc)(x)

    def _classify(self, x: jax.Array) -> jax.Array:
        return self.fc2(self.fc1(x)) if self.split else self.fc(x)


class BeforeGTC(nn.Layer):
    """A row of features as the memory of the decoder: [N, H, T, C] -> [N, H * T, dims]."""

    def __init__(self, in_channels: int, dims: int) -> None:
        super().__init__()
        # Upstream's Sequential holds Flatten as 0 and this as 1.
        self.add_sublayer("1", nn.LayerDict({"fc": nn.Linear(in_channels, dims, bias_attr=False)}))

    def forward(self, x: jax.Array) -> jax.Array:
        return getattr(self, "1")["fc"](x.reshape(x.shape[0], -1, x.shape[-1]))


class MultiHead(nn.Layer):
    """The CTC branch and, with `gtc`, the guiding decoder that only training has.

    Without the decoder CTC trains the backbone, whatever `guided` of the encoder says.
    """

    def __init__(
        self,
        encoder: EncoderConfig,
        head: CTCHeadConfig,
        gtc: NRTRConfig | None,
        in_channels: int,
        num_classes: int,
        deploy: bool = False,
    ) -> None:
        super().__init__()
        gtc = None if deploy else gtc
        if gtc is None and not isinstance(encoder, ReshapeConfig):
            encoder = replace(encoder, guided=False)
        self.ctc_encoder = SequenceEncoder(encoder, in_channels, deploy)
        self.ctc_head = CTCHead(head, self.ctc_encoder.out_channels, num_classes, deploy)
        if gtc is not None:
            self.before_gtc = BeforeGTC(in_channels, gtc.dims)
            self.gtc_head = NRTRDecoder(gtc, num_classes)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.ctc_head(self.ctc_encoder(x))

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Best class and its probability for each column, see CTCHead.read."""
        return self.ctc_head.read(self.ctc_encoder(x))

    def features_and_logits(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of the CTC branch, see CTCHead.features_and_logits."""
        return self.ctc_head.features_and_logits(self.ctc_encoder(x))

    def guide(self, x: jax.Array, tokens: jax.Array) -> jax.Array:
        """Logits of the guiding decoder, see NRTRDecoder."""
        return self.gtc_head(self.before_gtc(x), tokens)

    def deploy_state(self) -> Arrays:
        return {
            **prefixed("ctc_encoder", deploy_state(self.ctc_encoder)),
            **prefixed("ctc_head", deploy_state(self.ctc_head)),
        }


def greedy(logits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The best class of each column and its probability: int32 [N, T] and float32 [N, T] from logits [N, T, C].

    The first of equal logits wins. A column with a NaN gives class 0, the blank, and the probability NaN.
    """
    peak = logits.max(-1, keepdims=True)
    classes = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    # jnp.argmax over thousands of classes takes 2 to 7 ms more on a CPU.
    indices = jnp.where(logits < peak, logits.shape[-1], classes).min(-1)
    return indices, 1.0 / jnp.exp(logits - peak).sum(-1)


def keep_apart(indices: jax.Array, probabilities: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Symbols [N, T], one a place, and their probabilities as `ctc_decode` takes them: [N, 2 T].

    Behind every symbol stands class 0, which keeps equal neighbours apart; behind the first 0, the end, nothing else.
    """
    indices = jnp.where(jnp.cumsum(indices == 0, axis=-1) > 0, 0, indices)
    apart = ((0, 0), (0, 0), (0, 1))
    indices = jnp.pad(indices[..., None], apart)
    probabilities = jnp.pad(probabilities[..., None], apart, constant_values=1.0)
    return indices.reshape(indices.shape[0], -1), probabilities.reshape(indices.shape[0], -1)
