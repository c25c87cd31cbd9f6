"""paddle.incubate.asp.utils: masks of structured sparsity for arrays of one to four axes."""

from __future__ import annotations

from enum import Enum

import numpy as np

from framework.nn import sparsity
from framework.nn.sparsity import density as calculate_density
from framework.nn.sparsity import is_sparse_1d as check_mask_1d
from framework.nn.sparsity import is_sparse_2d as check_mask_2d
from framework.nn.sparsity import mask_1d as get_mask_1d
from framework.nn.sparsity import mask_2d_best as get_mask_2d_best
from framework.nn.sparsity import mask_2d_greedy as get_mask_2d_greedy

__all__ = [
    "CheckMethod",
    "MaskAlgo",
    "calculate_density",
    "check_mask_1d",
    "check_mask_2d",
    "check_sparsity",
    "create_mask",
    "get_mask_1d",
    "get_mask_2d_best",
    "get_mask_2d_greedy",
]


class MaskAlgo(Enum):
    """How values to keep are chosen."""

    MASK_1D = "get_mask_1d"
    MASK_2D_GREEDY = "get_mask_2d_greedy"
    MASK_2D_BEST = "get_mask_2d_best"


class CheckMethod(Enum):
    """What pattern is looked for."""

    CHECK_1D = "check_mask_1d"
    CHECK_2D = "check_mask_2d"

    @staticmethod
    def get_checking_method(mask_algo: MaskAlgo) -> CheckMethod:
        """The pattern that an algorithm gives."""
        assert isinstance(mask_algo, MaskAlgo), "mask_algo should be MaskAlgo type"
        return CheckMethod.CHECK_1D if mask_algo is MaskAlgo.MASK_1D else CheckMethod.CHECK_2D


_MASKS = {
    MaskAlgo.MASK_1D: sparsity.mask_1d,
    MaskAlgo.MASK_2D_GREEDY: sparsity.mask_2d_greedy,
    MaskAlgo.MASK_2D_BEST: sparsity.mask_2d_best,
}
_CHECKS = {CheckMethod.CHECK_1D: sparsity.is_sparse_1d, CheckMethod.CHECK_2D: sparsity.is_sparse_2d}


def _as_rows(array: np.ndarray) -> np.ndarray:
    """A matrix whose rows are masked: the last axis, of four axes the third.

    Raises:
        ValueError: the array has no axis or more than four.
    """
    if array.ndim not in (1, 2, 3, 4):
        raise ValueError(
            f"The dimension of input tensor is not supported in create_mask, 1 to 4 are, but got {array.ndim}"
        )
    if array.ndim == 4:
        array = array.transpose(0, 1, 3, 2)
    return array.reshape(-1, array.shape[-1])


def create_mask(
    tensor: np.ndarray, func_name: MaskAlgo = MaskAlgo.MASK_1D, n: int = 2, m: int = 4
) -> np.ndarray:
    """The mask of an array: ones where values stay, of its shape and dtype."""
    assert isinstance(func_name, MaskAlgo), (
        f"func_name argumet of create_mask is only accepted as type MaskAlgo. But got {type(func_name)}"
    )
    mask = _MASKS[func_name](_as_rows(tensor.astype(float)), n, m)
    if tensor.ndim == 4:
        first, second, third, fourth = tensor.shape
        mask = mask.reshape(first, second, fourth, third).transpose(0, 1, 3, 2)
    return mask.reshape(tensor.shape).astype(tensor.dtype)


def check_sparsity(
    tensor: np.ndarray, func_name: CheckMethod = CheckMethod.CHECK_1D, n: int = 2, m: int = 4
) -> bool:
    """Whether an array has the pattern."""
    assert isinstance(func_name, CheckMethod), (
        f"func_name argumet of check_sparsity is only accepted as type CheckMethod. But got {type(func_name)}"
    )
    return _CHECKS[func_name](_as_rows(tensor.astype(float)), n, m)
