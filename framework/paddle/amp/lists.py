"""Which operations AMP computes in 16 bits, which in 32: by the names that operations have here."""

from __future__ import annotations

from collections.abc import Iterable

# Paddle's own name of an operation -> ours, for the lists that programs give.
_OURS = {
    **{f"elementwise_{a}": b for a, b in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"))},
    **{"elementwise_div": "divide", "elementwise_pow": "pow", "elementwise_max": "maximum"},
    **{"elementwise_min": "minimum", "matmul_v2": "matmul", "mul": "matmul", "depthwise_conv2d": "conv2d"},
    **{f"reduce_{name}": name for name in ("sum", "mean", "prod", "max", "min", "any", "all")},
    **{"p_norm": "norm", "pnorm": "norm", "frobenius_norm": "norm", "tanh_shrink": "tanhshrink"},
    **{"lookup_table": "embedding", "lookup_table_v2": "embedding", "cos_sim": "cosine_similarity"},
    **{"softmax_with_cross_entropy": "cross_entropy", "huber_loss": "smooth_l1_loss"},
    **{"sigmoid_cross_entropy_with_logits": "binary_cross_entropy_with_logits"},
    **{
        f"{kind}_interp{version}": "interpolate"
        for kind in ("linear", "nearest", "bilinear", "bicubic", "trilinear")
        for version in ("", "_v2")
    },
}

WHITE = frozenset(
    (
        *("conv1d", "conv2d", "conv3d", "einsum", "linear", "matmul", "mm"),
        *("scaled_dot_product_attention",),
    )
)
# Beyond this, 16 bits lose too much: sums, norms, exponentials, losses.
_SENSITIVE = frozenset(
    (
        *("tan", "acos", "asin", "sinh", "cosh", "atanh", "tanhshrink", "cosine_similarity", "erfinv"),
        *("exp", "expm1", "log", "log10", "log2", "reciprocal", "rsqrt", "pow", "square"),
        *("sum", "mean", "prod", "cumprod", "cumsum", "dist", "norm", "renorm"),
        *("group_norm", "layer_norm", "softmax", "softmin", "softplus", "log_softmax"),
        *("cross_entropy", "softmax_with_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss"),
        *("smooth_l1_loss", "triplet_margin_loss", "log_loss", "hsigmoid_loss", "margin_cross_entropy"),
    )
)
_UNFIT = frozenset(("interpolate", "embedding", "scatter"))  # slow or wrong in 16 bits
BLACK = _SENSITIVE | _UNFIT
BLACK_O2 = _UNFIT
# These keep 32-bit parameters and statistics beside inputs of any type.
UNTOUCHED = frozenset(("batch_norm", "instance_norm", "cast", "assign"))


def our_names(names: Iterable[str] | None) -> frozenset[str]:
    """The operations that a program's list means."""
    return frozenset(_OURS.get(name, name) for name in names or ())


def white_list() -> dict[str, dict[str, set[str]]]:
    """What is computed in 16 bits, by type and level."""
    return {kind: {level: set(WHITE) for level in ("O1", "O2")} for kind in ("float16", "bfloat16")}


def black_list() -> dict[str, dict[str, set[str]]]:
    """What is computed in 32 bits, by type and level."""
    return {kind: {"O1": set(BLACK), "O2": set(BLACK_O2)} for kind in ("float16", "bfloat16")}
