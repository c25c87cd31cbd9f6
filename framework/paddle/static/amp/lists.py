"""Which operators of a program compute in 16 bits, by Paddle's names of them, and a user's changes of these lists."""

from __future__ import annotations

from collections.abc import Iterable


def _names(text: str) -> set[str]:
    return set(text.split())


white_list = _names(
    "conv2d einsum fake_quantize_dequantize_abs_max fake_quantize_dequantize_moving_average_abs_max fused_attention "
    "fused_feedforward fused_gemm_epilogue matmul matmul_v2 max_pool2d_with_index mul"
)
black_list = _names(
    "acos asin atanh c_softmax_with_cross_entropy cosh cross_entropy cross_entropy2 cumprod cumsum dist erfinv exp "
    "expm1 frobenius_norm group_norm hsigmoid_loss huber_loss layer_norm log log10 log2 log_loss log_softmax "
    "margin_cross_entropy mean nll_loss pnorm pow reciprocal reduce_mean reduce_prod reduce_sum renorm rsqrt "
    "sigmoid_cross_entropy_with_logits sinh softmax softmax_with_cross_entropy softmin softplus square tan "
    "tanh_shrink triplet_margin_loss"
)
gray_list = _names(
    "batch_norm c_allreduce_sum c_concat c_identity cast concat dropout elementwise_add elementwise_div "
    "elementwise_floordiv elementwise_max elementwise_min elementwise_mod elementwise_mul elementwise_pow "
    "elementwise_sub fill_constant flatten2 fused_attention fused_bn_add_activation fused_feedforward "
    "fused_multi_transformer gather gaussian_random get_tensor_from_selected_rows layer_norm leaky_relu pool2d pool3d "
    "rank relu relu6 reshape2 scale sigmoid sign slice soft_relu split stack tanh top_k transpose2 uniform_random "
    "uniform_random_batch_size_like unstack"
)
"""These compute in the type of what they get."""
_extra_black_list = {
    *(f"{kind}_interp_v2" for kind in ("linear", "nearest", "bilinear", "bicubic", "trilinear")),
    *("lookup_table", "lookup_table_v2", "scatter"),
}
_only_supported_fp16_list = {"resnet_unit", "fused_bn_add_activation"}
bf16_list = white_list - {
    *("fake_quantize_dequantize_abs_max", "fake_quantize_dequantize_moving_average_abs_max"),
    *("fused_attention", "fused_feedforward"),
}
fp32_list = (black_list | white_list) - bf16_list - gray_list


def _check_apart(first: Iterable[str], second: Iterable[str], message: str) -> None:
    """Raises: ValueError: an operator is in both."""
    common = sorted(set(first) & set(second))
    if common:
        raise ValueError(f"{message} with < {common[0]} >!")


def _move(names: Iterable[str], target: set[str], *others: set[str]) -> None:
    """Put operators into one list and take them out of the others."""
    for name in names:
        source = next((other for other in others if name in other), None)
        if source is not None:
            source.remove(name)
        target.add(name)


class AutoMixedPrecisionLists:
    """Paddle's lists of operators with a user's own.

    Attributes:
        white_list: Those that compute in the low precision.
        black_list: Those that compute in float32.
        gray_list: Those that compute in the type of what they get.
        black_varnames: Variables whose operators compute in float32.
        amp_dtype: The low precision.

    Raises:
        ValueError: an operator is in both lists, or `dtype` is no low precision.
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
        dtype: str = "float16",
    ) -> None:
        if dtype not in ("float16", "bfloat16"):
            raise ValueError(
                f"If enable AMP, dtype should be 'float16' or 'bfloat16', but got {dtype!r} of mixed precision lists"
            )
        self.amp_dtype = dtype
        white, black = list(custom_white_list or ()), list(custom_black_list or ())
        _check_apart(white, black, "The given custom_white_list overlaps custom_black_list")
        self.white_list = white_list | (_only_supported_fp16_list if dtype == "float16" else set())
        self.black_list, self.gray_list = black_list | _extra_black_list, set(gray_list)
        self.black_varnames = None if custom_black_varnames is None else set(custom_black_varnames)
        self.custom_white, self.custom_black = frozenset(white), frozenset(black)
        _move(white, self.white_list, self.black_list, self.gray_list)
        _move(black, self.black_list, self.white_list, self.gray_list)


class AutoMixedPrecisionListsBF16:
    """The same of bfloat16, by older names.

    Raises:
        ValueError: an operator is in both lists.
    """

    def __init__(
        self,
        custom_bf16_list: Iterable[str] | None = None,
        custom_fp32_list: Iterable[str] | None = None,
        custom_fp32_varnames: Iterable[str] | None = None,
    ) -> None:
        low, full = list(custom_bf16_list or ()), list(custom_fp32_list or ())
        _check_apart(low, full, "Custom bf16 list overlap custom fp32 list")
        self.bf16_list, self.fp32_list, self.gray_list = set(bf16_list), set(fp32_list), set(gray_list)
        self.fp32_varnames = None if custom_fp32_varnames is None else set(custom_fp32_varnames)
        self.custom_white, self.custom_black = frozenset(low), frozenset(full)
        _move(low, self.bf16_list, self.fp32_list, self.gray_list)
        _move(full, self.fp32_list, self.bf16_list, self.gray_list)
