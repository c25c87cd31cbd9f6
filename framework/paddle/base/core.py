"""paddle.base.core: what programs read from Paddle's C++ module: places, type codes, how it was built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.device import is_compiled_with_cinn as is_compiled_with_cinn
from framework.paddle.device import is_compiled_with_cuda as is_compiled_with_cuda
from framework.paddle.device import is_compiled_with_custom_device as is_compiled_with_custom_device
from framework.paddle.device import is_compiled_with_distribute as is_compiled_with_dist
from framework.paddle.device import is_compiled_with_ipu as is_compiled_with_ipu
from framework.paddle.device import is_compiled_with_rocm as is_compiled_with_rocm
from framework.paddle.device import is_compiled_with_xpu as is_compiled_with_xpu
from framework.paddle.device.cuda import device_count as get_cuda_device_count
from framework.paddle.device.places import Place as Place
from framework.paddle.static import Scope as Scope
from framework.paddle.static.program import Program

__all__ = ["get_cuda_device_count", "is_compiled_with_dist"]
ProgramDesc = Program


class EOFException(Exception):
    """A reader of a static program has no more data."""


# What a variable is besides a type of values, by name.
_KINDS = (
    *("LOD_TENSOR", "SELECTED_ROWS", "FEED_MINIBATCH", "FETCH_LIST", "STEP_SCOPES", "LOD_TENSOR_ARRAY"),
    *("LOD_RANK_TABLE", "PLACE_LIST", "READER", "RAW", "STRING", "STRINGS", "VOCAB", "FEED_LIST"),
)
_CODES = {"float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64"}


class VarDesc:
    """What a variable is. `VarType.FP32` is `paddle.float32`, and the class of both is one, as in Paddle."""

    VarType = types.dtype


for _kind in types.ALL:
    setattr(types.dtype, _CODES.get(_kind.name, _kind.name.upper()), _kind)
for _name in _KINDS:
    setattr(types.dtype, _name, _name)


class eager:
    """Where Paddle keeps the class of its Tensors."""

    Tensor = Tensor


def is_compiled_with_mkldnn() -> bool:
    """False: XLA computes."""
    return False


is_compiled_with_brpc = is_compiled_with_nccl = is_compiled_with_mpi = is_compiled_with_mkldnn


def is_bfloat16_supported(place: Place) -> bool:
    """True: XLA computes bfloat16 on every device."""
    return True


is_float16_supported = is_bfloat16_supported


def grad_var_suffix() -> str:
    """The end of the names of gradients."""
    return "@GRAD"


def supports_bfloat16() -> bool:
    """False: it asks for kernels of oneDNN."""
    return False


def _set_eager_deletion_mode(threshold: float, fraction: float, fast: bool) -> None:
    """Accepted: XLA frees arrays that nothing uses any more."""


def set_prim_eager_enabled(enabled: bool) -> None:
    """Accepted: operations are made of primitives that XLA differentiates, always."""


_set_prim_all_enabled = _set_prim_forward_enabled = _set_prim_backward_enabled = set_prim_eager_enabled


def _is_fwd_prim_enabled() -> bool:
    """False: operations are not taken apart before they are recorded."""
    return False


_is_bwd_prim_enabled = _is_eager_prim_enabled = _is_all_prim_enabled = _is_fwd_prim_enabled

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
