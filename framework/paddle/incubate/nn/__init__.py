"""paddle.incubate.nn: the layers that Paddle fuses by hand, as the plain mathematics (functional.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.incubate.nn import functional as functional
from framework.paddle.nn import initializer
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from framework.paddle.nn.param_attr import AttrLike

_ONES = initializer.Constant(1.0)


class _Fused(Layer):
    """Base: weights that cannot be left out."""

    def _weight(self, shape: list[int], attr: AttrLike) -> Parameter:
        weight = self.create_parameter(shape, attr)
        if weight is None:
            raise ShapeError("a weight cannot be left out", where=type(self).__name__, received="attr False")
        return weight


class FusedLinear(_Fused):
    """As `paddle.nn.Linear`; the weight is [out, in] with `transpose_weight`."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        transpose_weight: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        shape = [out_features, in_features] if transpose_weight else [in_features, out_features]
        self.transpose_weight, self.name = transpose_weight, name
        self.weight = self._weight(shape, weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return functional.fused_linear(input, self.weight, self.bias, self.transpose_weight)


class FusedDropoutAdd(Layer):
    """dropout(x) + y."""

    def __init__(self, p: float = 0.5, mode: str = "upscale_in_train", name: str | None = None) -> None:
        super().__init__()
        self.p, self.mode, self.name = p, mode, name

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.fused_dropout_add(x, y, self.p, self.training, self.mode)


class FusedBiasDropoutResidualLayerNorm(Layer):
    """layer_norm(residual + dropout(x + bias)) over `embed_dim` features."""

    def __init__(
        self,
        embed_dim: int,
        dropout_rate: float = 0.5,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        epsilon: float = 1e-5,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.embed_dim, self.dropout_rate, self._epsilon, self.name = embed_dim, dropout_rate, epsilon, name
        self.linear_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)
        self.ln_scale = self.create_parameter([embed_dim], weight_attr, default_initializer=_ONES)
        self.ln_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return functional.fused_bias_dropout_residual_layer_norm(
            x,
            residual,
            self.linear_bias,
            self.ln_scale,
            self.ln_bias,
            self.dropout_rate,
            self._epsilon,
            self.training,
        )


class FusedMultiHeadAttention(_Fused):
    """Self-attention with norm, dropouts and residual; `functional.fused_multi_head_attention` is the formula."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout_rate: float = 0.5,
        attn_dropout_rate: float = 0.5,
        kdim: int | None = None,
        vdim: int | None = None,
        normalize_before: bool = False,
        need_weights: bool = False,
        qkv_weight_attr: AttrLike = None,
        qkv_bias_attr: AttrLike = None,
        linear_weight_attr: AttrLike = None,
        linear_bias_attr: AttrLike = None,
        pre_ln_scale_attr: AttrLike = None,
        pre_ln_bias_attr: AttrLike = None,
        ln_scale_attr: AttrLike = None,
        ln_bias_attr: AttrLike = None,
        epsilon: float = 1e-5,
        nranks: int = 1,
        ring_id: int = -1,
        transpose_qkv_wb: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads or need_weights or nranks != 1:
            raise ShapeError(
                "the heads divide the width, weights are not returned, and one process computes",
                where="FusedMultiHeadAttention",
                received=f"embed_dim {embed_dim}, num_heads {num_heads}, need_weights {need_weights}, nranks {nranks}",
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.normalize_before, self.transpose_qkv_wb, self._epsilon = (
            normalize_before,
            transpose_qkv_wb,
            epsilon,
        )
        self.dropout_rate, self.attn_dropout_rate, self.name = dropout_rate, attn_dropout_rate, name
        heads = [3, num_heads, self.head_dim]
        weight, bias = (
            ([embed_dim, 3 * embed_dim], [3 * embed_dim])
            if transpose_qkv_wb
            else ([*heads, embed_dim], heads)
        )
        self.qkv_weight = self._weight(weight, qkv_weight_attr)
        self.qkv_bias = self.create_parameter(bias, qkv_bias_attr, is_bias=True)
        self.linear_weight = self._weight([embed_dim, embed_dim], linear_weight_attr)
        self.linear_bias = self.create_parameter([embed_dim], linear_bias_attr, is_bias=True)
        before = normalize_before
        scale, shift = (pre_ln_scale_attr, pre_ln_bias_attr) if before else (ln_scale_attr, ln_bias_attr)
        norm = (
            self.create_parameter([embed_dim], scale, default_initializer=_ONES),
            self.create_parameter([embed_dim], shift, is_bias=True),
        )
        self.pre_ln_scale, self.pre_ln_bias = norm if before else (None, None)
        self.ln_scale, self.ln_bias = (None, None) if before else norm

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        return functional.fused_multi_head_attention(
            query,
            self.qkv_weight,
            self.linear_weight,
            self.normalize_before,
            self.pre_ln_scale,
            self.pre_ln_bias,
            self.ln_scale,
            self.ln_bias,
            self._epsilon,
            self.qkv_bias,
            self.linear_bias,
            cache,
            attn_mask,
            self.dropout_rate,
            self.attn_dropout_rate,
            self._epsilon,
            self.training,
            num_heads=self.num_heads,
            transpose_qkv_wb=self.transpose_qkv_wb,
        )


class FusedFeedForward(_Fused):
    """The feed-forward part of a Transformer layer; `functional.fused_feedforward` is the formula."""

    def __init__(
        self,
        d_model: int,
        dim_feedforward: int,
        dropout_rate: float = 0.1,
        epsilon: float = 1e-5,
        activation: str = "relu",
        act_dropout_rate: float | None = None,
        normalize_before: bool = False,
        linear1_weight_attr: AttrLike = None,
        linear1_bias_attr: AttrLike = None,
        linear2_weight_attr: AttrLike = None,
        linear2_bias_attr: AttrLike = None,
        ln1_scale_attr: AttrLike = None,
        ln1_bias_attr: AttrLike = None,
        ln2_scale_attr: AttrLike = None,
        ln2_bias_attr: AttrLike = None,
        nranks: int = 1,
        ring_id: int = -1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._dropout_rate, self._epsilon, self._act_method, self.name = (
            dropout_rate,
            epsilon,
            activation,
            name,
        )
        self._act_dropout_rate = dropout_rate if act_dropout_rate is None else act_dropout_rate
        self._normalize_before = normalize_before
        self._linear1_weight = self._weight([d_model, dim_feedforward], linear1_weight_attr)
        self._linear1_bias = self.create_parameter([dim_feedforward], linear1_bias_attr, is_bias=True)
        self._linear2_weight = self._weight([dim_feedforward, d_model], linear2_weight_attr)
        self._linear2_bias = self.create_parameter([d_model], linear2_bias_attr, is_bias=True)
        before = normalize_before
        scale, shift = (ln1_scale_attr, ln1_bias_attr) if before else (ln2_scale_attr, ln2_bias_attr)
        norm = (
            self.create_parameter([d_model], scale, default_initializer=_ONES),
            self.create_parameter([d_model], shift, is_bias=True),
        )
        self._ln1_scale, self._ln1_bias = norm if before else (None, None)
        self._ln2_scale, self._ln2_bias = (None, None) if before else norm

    def forward(self, src: Tensor, cache: object = None) -> Tensor:
        return functional.fused_feedforward(
            src,
            self._linear1_weight,
            self._linear2_weight,
            self._linear1_bias,
            self._linear2_bias,
            self._ln1_scale,
            self._ln1_bias,
            self._ln2_scale,
            self._ln2_bias,
            self._act_dropout_rate,
            self._dropout_rate,
            self._act_method,
            self._epsilon,
            self._epsilon,
            self._normalize_before,
            self.training,
        )


class FusedTransformerEncoderLayer(Layer):
    """Self-attention and feed-forward, as `paddle.nn.TransformerEncoderLayer` with the parameters of the two above."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout_rate: float = 0.1,
        activation: str = "relu",
        attn_dropout_rate: float | None = None,
        act_dropout_rate: float | None = None,
        normalize_before: bool = False,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        weights = weight_attr if isinstance(weight_attr, list | tuple) else [weight_attr] * 2
        biases = bias_attr if isinstance(bias_attr, list | tuple) else [bias_attr] * 2
        self.fused_attn = FusedMultiHeadAttention(
            d_model,
            nhead,
            dropout_rate,
            dropout_rate if attn_dropout_rate is None else attn_dropout_rate,
            normalize_before=normalize_before,
            qkv_weight_attr=weights[0],
            qkv_bias_attr=biases[0],
            linear_weight_attr=weights[0],
            linear_bias_attr=biases[0],
            pre_ln_scale_attr=weights[0],
            pre_ln_bias_attr=biases[0],
            ln_scale_attr=weights[0],
            ln_bias_attr=biases[0],
        )
        self.ffn = FusedFeedForward(
            d_model,
            dim_feedforward,
            dropout_rate,
            activation=activation,
            act_dropout_rate=act_dropout_rate,
            normalize_before=normalize_before,
            linear1_weight_attr=weights[1],
            linear1_bias_attr=biases[1],
            linear2_weight_attr=weights[1],
            linear2_bias_attr=biases[1],
        )

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Tensor | None = None) -> object:
        out = self.fused_attn(src, attn_mask=src_mask, cache=cache)
        if cache is None:
            return self.ffn(out)
        return self.ffn(out[0]), out[1]


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
