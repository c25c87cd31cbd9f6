"""The operators of Paddle's programs by the names of our operations: programs look for them by `op.type`.

Source: what Paddle 2.6.2 records (paddle/phi/api/yaml/op_compat.yaml)
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from framework.paddle._kernel.tensor import Tensor

_REDUCED = ("sum", "mean", "max", "min", "prod", "all", "any", "amax", "amin")
_POOLED = ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")
_TABLE = MappingProxyType(
    {
        **{name: f"reduce_{name}" for name in _REDUCED},
        **{f"{name}{axes}d": f"pool{axes}d" for name in _POOLED for axes in (2, 3)},
        "add": "elementwise_add",
        "arange": "range",
        "argmax": "arg_max",
        "argmin": "arg_min",
        "binary_cross_entropy": "bce_loss",
        "binary_cross_entropy_with_logits": "sigmoid_cross_entropy_with_logits",
        "cross_entropy": "softmax_with_cross_entropy",
        "det": "determinant",
        "diag": "diag_v2",
        "divide": "elementwise_div",
        "embedding": "lookup_table_v2",
        "expand": "expand_v2",
        "expand_like": "expand_as_v2",
        "flatten": "flatten_contiguous_range",
        "floor_divide": "elementwise_floordiv",
        "fmax": "elementwise_fmax",
        "fmin": "elementwise_fmin",
        "full": "fill_constant",
        "getitem": "slice",
        "grid_sample": "grid_sampler",
        "hardshrink": "hard_shrink",
        "hardsigmoid": "hard_sigmoid",
        "hardswish": "hard_swish",
        "hardtanh": "brelu",
        "heaviside": "elementwise_heaviside",
        "inv": "inverse",
        "isfinite": "isfinite_v2",
        "isinf": "isinf_v2",
        "isnan": "isnan_v2",
        "kl_div": "kldiv_loss",
        "matmul": "matmul_v2",
        "maximum": "elementwise_max",
        "minimum": "elementwise_min",
        "mm": "matmul_v2",
        "multiply": "elementwise_mul",
        "neg": "scale",
        "nonzero": "where_index",
        "norm": "p_norm",
        "normal": "gaussian_random",
        "numel": "size",
        "one_hot": "one_hot_v2",
        "pad": "pad3d",
        "remainder": "elementwise_mod",
        "reshape": "reshape2",
        "slogdet": "slogdeterminant",
        "smooth_l1_loss": "huber_loss",
        "sort": "argsort",
        "squeeze": "squeeze2",
        "subtract": "elementwise_sub",
        "topk": "top_k_v2",
        "transpose": "transpose2",
        "tril": "tril_triu",
        "triu": "tril_triu",
        "unsqueeze": "unsqueeze2",
    }
)
_OPTIMIZERS = {
    "DGCMomentum": "dgc_momentum",
    "DecayedAdagrad": "decayed_adagrad",
    "LarsMomentum": "lars_momentum",
}
_WITH_NUMBERS = frozenset(
    ("add", "subtract", "multiply", "divide")
)  # Paddle scales where one operand is a number


def operator_name(operation: str, inputs: Sequence[object]) -> str:
    """The operator that Paddle records for an operation of this name; our name where there is no row of it."""
    tensors = [isinstance(one, Tensor) for one in inputs]
    if operation in _WITH_NUMBERS and not all(tensors) and (operation != "divide" or tensors[0]):
        return "scale"
    if operation == "spread":
        return "fill_any_like" if any(tensors) else "fill_constant"
    if operation == "pow":
        return "elementwise_pow" if all(tensors) else "pow"
    return _TABLE.get(operation, operation)


def optimizer_name(kind: type) -> str:
    """The operator by which an optimizer of this class moves parameters."""
    return _OPTIMIZERS.get(kind.__name__, kind.__name__.lower())
