"""paddle.base.core: what programs read from Paddle's C++ module: places, type codes, how it was built."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import jax

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.random import Generator, default_generator
from framework.paddle._kernel.refused import refused
from framework.paddle._kernel.scalar import Scalar as Scalar
from framework.paddle._kernel.selected_rows import SelectedRows as SelectedRows
from framework.paddle._kernel.tape import add_backward_final_hook
from framework.paddle._kernel.tensor import Tensor as _EagerTensor
from framework.paddle.base.cost_model import CostData as CostData
from framework.paddle.base.cost_model import CostModel as CostModel
from framework.paddle.base.lod_tensor import LoDTensor as LoDTensor
from framework.paddle.base.lod_tensor import LoDTensorArray as LoDTensorArray
from framework.paddle.base.operator_prototypes import get_all_op_protos as get_all_op_protos
from framework.paddle.base.operator_prototypes import get_attrtibute_type as get_attrtibute_type
from framework.paddle.base.operator_prototypes import get_op_extra_attrs as get_op_extra_attrs
from framework.paddle.base.predictor import create_paddle_predictor as create_paddle_predictor
from framework.paddle.base.property import Property as Property
from framework.paddle.base.registered import _get_all_register_op_kernels as _get_all_register_op_kernels
from framework.paddle.base.registered import get_all_op_names as get_all_op_names
from framework.paddle.base.scope_operator import Operator as Operator
from framework.paddle.device import is_compiled_with_cinn as is_compiled_with_cinn
from framework.paddle.device import is_compiled_with_cuda as is_compiled_with_cuda
from framework.paddle.device import is_compiled_with_custom_device as is_compiled_with_custom_device
from framework.paddle.device import is_compiled_with_distribute as is_compiled_with_dist
from framework.paddle.device import is_compiled_with_ipu as is_compiled_with_ipu
from framework.paddle.device import is_compiled_with_rocm as is_compiled_with_rocm
from framework.paddle.device import is_compiled_with_xpu as is_compiled_with_xpu
from framework.paddle.device.cuda import device_count as get_cuda_device_count
from framework.paddle.device.places import CustomPlace as CustomPlace
from framework.paddle.device.places import Place as Place
from framework.paddle.device.places import place_of
from framework.paddle.framework.flags import GlobalFlags
from framework.paddle.static import Scope as Scope
from framework.paddle.static.descriptions import AttrType as AttrType
from framework.paddle.static.descriptions import BlockDesc as BlockDesc
from framework.paddle.static.descriptions import OpDesc as OpDesc
from framework.paddle.static.descriptions import VarDesc as VarDesc
from framework.paddle.static.program_description import ProgramDesc as ProgramDesc
from framework.paddle.utils.dlpack import from_dlpack as _read_capsule

__all__ = ["get_cuda_device_count", "is_compiled_with_dist"]
Tensor = LoDTensor


class EOFException(Exception):
    """A reader of a static program has no more data."""


# What a variable is besides a type of values, by name.
_KINDS = (
    *("LOD_TENSOR", "SELECTED_ROWS", "FEED_MINIBATCH", "FETCH_LIST", "STEP_SCOPES", "LOD_TENSOR_ARRAY"),
    *("LOD_RANK_TABLE", "PLACE_LIST", "READER", "RAW", "STRING", "STRINGS", "VOCAB", "FEED_LIST"),
)
_CODES = {"float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64"}


# `VarDesc.VarType.FP32` is `paddle.float32`, and the class of both is one, as in Paddle.
for _kind in types.ALL:
    setattr(types.dtype, _CODES.get(_kind.name, _kind.name.upper()), _kind)
for _name in _KINDS:
    setattr(types.dtype, _name, f"VarType.{_name}")


def _scale(
    x: _EagerTensor, scale: float, bias: float, bias_after_scale: bool, trace_backward: bool
) -> _EagerTensor:
    """x * scale + bias, or (x + bias) * scale; without `trace_backward` there is no way back."""
    result = x * scale + bias if bias_after_scale else (x + bias) * scale
    return result if trace_backward else result.detach()


class AmpLevel(IntEnum):
    """How `auto_cast` casts the inputs of operations."""

    O0 = 0
    O1 = 1
    O2 = 2
    O3 = 3
    OD = 4


class _Operations:
    """Operations by the names of Paddle's kernels, and by those of older programs."""

    @property
    def legacy(self) -> ModuleType:
        """`paddle._legacy_C_ops`."""
        from framework.paddle import _legacy_C_ops

        return _legacy_C_ops

    def __getattr__(self, name: str) -> object:
        from framework.paddle import _C_ops

        return getattr(_C_ops, name)


class eager:
    """Where Paddle keeps the class of its Tensors."""

    ops = _Operations()

    Tensor = _EagerTensor
    scale = staticmethod(_scale)
    _add_backward_final_hook = staticmethod(add_backward_final_hook)
    _run_custom_op = refused("paddle.base.core.eager._run_custom_op")


def default_cpu_generator() -> Generator:
    """The stream of keys that random operations take, on every device."""
    return default_generator


def default_cuda_generator(device_id: int = 0) -> Generator:
    """As `default_cpu_generator`: keys are not drawn on a device."""
    return default_generator


def default_xpu_generator(device_id: int = 0) -> Generator:
    """As `default_cpu_generator`: keys are not drawn on a device."""
    return default_generator


def default_custom_device_generator(place: Place) -> Generator:
    """As `default_cpu_generator`: keys are not drawn on a device."""
    return default_generator


def get_custom_device_count(device_type: str) -> int:
    """How many devices of another kind than CPU and GPU there are ("tpu")."""
    kinds = [place_of(one).kind for one in jax.local_devices()]
    return kinds.count(device_type) if device_type not in ("cpu", "gpu") else 0


def _memory_stat(stat_type: str, device_id: int, peak: bool) -> int:
    """Bytes of a device that are allocated or reserved. Raises: ValueError: there is no such number."""
    keys = {"Allocated": ("bytes_in_use", "peak_bytes_in_use"), "Reserved": ("pool_bytes", "peak_pool_bytes")}
    if stat_type not in keys:
        raise ValueError(f"device_memory_stat: Allocated or Reserved, received {stat_type!r}")
    return int((jax.local_devices()[device_id].memory_stats() or {}).get(keys[stat_type][peak], 0))


def device_memory_stat_current_value(stat_type: str, device_id: int) -> int:
    """Bytes of a device now ("Allocated", "Reserved"). Raises: ValueError: there is no such number."""
    return _memory_stat(stat_type, device_id, False)


def device_memory_stat_peak_value(stat_type: str, device_id: int) -> int:
    """The most bytes of a device so far. Raises: ValueError: there is no such number."""
    return _memory_stat(stat_type, device_id, True)


def host_memory_stat_peak_value(stat_type: str, device_id: int) -> int:
    """The most bytes of this process so far ("Allocated", "Reserved"); 0 on Windows, which does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def host_memory_stat_current_value(stat_type: str, device_id: int) -> int:
    """The bytes of this process now on Linux, elsewhere the most so far."""
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return host_memory_stat_peak_value(stat_type, device_id)


def op_support_gpu(op_type: str) -> bool:
    """True: XLA computes every operation on every device."""
    return True


def eager_assign_group_by_size(
    tensors: Sequence[_EagerTensor],
    is_sparse_gradient: Sequence[bool],
    group_size_limits: Sequence[int],
    tensor_indices: Sequence[int] | None = None,
) -> list[list[int]]:
    """Which gradients travel together: of one type, up to so many bytes each time; the last limit goes on. A sparse
    one travels alone."""
    numbers = list(tensor_indices or range(len(tensors)))
    closed: list[list[int]] = []
    opened: dict[str, tuple[list[int], int]] = {}
    used: dict[str, int] = {}
    for tensor, sparse, number in zip(tensors, is_sparse_gradient, numbers, strict=True):
        if sparse:
            closed.append([number])
            continue
        kind = tensor.dtype.name
        group, size = opened.get(kind, ([], 0))
        group, size = [*group, number], size + tensor.size * tensor.dtype.itemsize
        step = used.get(kind, 0)
        if size >= group_size_limits[min(step, len(group_size_limits) - 1)]:
            closed.append(group)
            used[kind] = step + 1
            opened.pop(kind, None)
        else:
            opened[kind] = (group, size)
    return sorted([*closed, *(group for group, _ in opened.values())], key=min)


class TracerEventType(IntEnum):
    """What a recorded event of the profiler is."""

    Operator = 0
    Dataloader = 1
    ProfileStep = 2
    CudaRuntime = 3
    Kernel = 4
    Memcpy = 5
    Memset = 6
    UserDefined = 7
    OperatorInner = 8
    Forward = 9
    Backward = 10
    Optimization = 11
    Communication = 12
    PythonOp = 13
    PythonUserDefined = 14


class DataType(IntEnum):
    """Types of values by the numbers of Paddle's kernels, which are not those of its files."""

    UNDEFINED = 0
    BOOL = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    UINT32 = 6
    INT32 = 7
    UINT64 = 8
    INT64 = 9
    FLOAT32 = 10
    FLOAT64 = 11
    COMPLEX64 = 12
    COMPLEX128 = 13
    FLOAT16 = 15
    BFLOAT16 = 16


class op_proto_and_checker_maker:
    """Where Paddle keeps what an operator of a program is for."""

    class OpRole(IntEnum):
        """What an operator is for; programs here record it by what they do."""

        Forward = 0
        Backward = 1
        Optimize = 2
        RPC = 4
        Dist = 8
        LRSched = 16
        Loss = 256

    @staticmethod
    def kOpRoleAttrName() -> str:
        """The attribute that says what an operator is for."""
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> str:
        """The attribute that names a parameter and its gradient."""
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName() -> str:
        """The attribute that has the scope of names."""
        return "op_namescope"

    @staticmethod
    def kOpDeviceAttrName() -> str:
        """The attribute that has the device."""
        return "op_device"

    @staticmethod
    def kOpCreationCallstackAttrName() -> str:
        """The attribute that has the lines of the program."""
        return "op_callstack"

    @staticmethod
    def kOpWithQuantAttrName() -> str:
        """The attribute that says whether an operator is quantised."""
        return "with_quant_attr"


def is_compiled_with_mkldnn() -> bool:
    """False: XLA computes."""
    return False


is_compiled_with_brpc = is_compiled_with_nccl = is_compiled_with_mpi = is_compiled_with_mkldnn


def is_bfloat16_supported(place: Place) -> bool:
    """True: XLA computes bfloat16 on every device."""
    return True


is_float16_supported = is_bfloat16_supported


def globals() -> GlobalFlags:
    """The flags by their names, which can be read and set."""
    return GlobalFlags()


def from_dlpack(dlpack: object) -> LoDTensor:
    """The values of a DLPack capsule, as scopes hold them; `paddle.utils.dlpack.from_dlpack` gives a Tensor."""
    values = LoDTensor()
    values.set(_read_capsule(dlpack).numpy(), None)
    return values


def set_feed_variable(scope: Scope, var: LoDTensor, var_name: str, index: int) -> None:
    """Put a Tensor at a place of a list of the scope. Raises: IndexError: the list is too short for it."""
    array = scope.var(var_name).get_lod_tensor_array()
    if index == len(array):
        array.append(var)
    else:
        array[index] = var


def get_fetch_variable(scope: Scope, var_name: str, index: int) -> LoDTensor:
    """A Tensor of a list of the scope. Raises: IndexError: there are not so many."""
    return scope.var(var_name).get_fetch_list()[index]


def grad_var_suffix() -> str:
    """The end of the names of gradients."""
    return "@GRAD"


def supports_bfloat16() -> bool:
    """True: operations take bfloat16 on every device."""
    return True


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
