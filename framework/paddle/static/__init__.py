"""paddle.static: programs that are recorded first and compiled when they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.errors import ArgumentTypeError, ModeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit.spec import InputSpec as InputSpec
from framework.paddle.static import nn as nn
from framework.paddle.static.annotations import device_guard as device_guard
from framework.paddle.static.annotations import name_scope as name_scope
from framework.paddle.static.average import ExponentialMovingAverage as ExponentialMovingAverage
from framework.paddle.static.backward import append_backward as append_backward
from framework.paddle.static.backward import gradients as gradients
from framework.paddle.static.executor import BuildStrategy as BuildStrategy
from framework.paddle.static.executor import CompiledProgram as CompiledProgram
from framework.paddle.static.executor import ExecutionStrategy as ExecutionStrategy
from framework.paddle.static.executor import Executor as Executor
from framework.paddle.static.io import deserialize_persistables as deserialize_persistables
from framework.paddle.static.io import deserialize_program as deserialize_program
from framework.paddle.static.io import load as load
from framework.paddle.static.io import load_from_file as load_from_file
from framework.paddle.static.io import load_inference_model as load_inference_model
from framework.paddle.static.io import load_program_state as load_program_state
from framework.paddle.static.io import normalize_program as normalize_program
from framework.paddle.static.io import save as save
from framework.paddle.static.io import save_inference_model as save_inference_model
from framework.paddle.static.io import save_to_file as save_to_file
from framework.paddle.static.io import serialize_persistables as serialize_persistables
from framework.paddle.static.io import serialize_program as serialize_program
from framework.paddle.static.io import set_program_state as set_program_state
from framework.paddle.static.metric import auc as auc
from framework.paddle.static.program import Program as Program
from framework.paddle.static.program import PublicVariable
from framework.paddle.static.program import create_global_var as create_global_var
from framework.paddle.static.program import create_parameter as create_parameter
from framework.paddle.static.program import declare as _declare
from framework.paddle.static.program import default_main_program as default_main_program
from framework.paddle.static.program import default_startup_program as default_startup_program
from framework.paddle.static.program import disable_static as disable_static
from framework.paddle.static.program import enable_static as enable_static
from framework.paddle.static.program import in_dynamic_mode as in_dynamic_mode
from framework.paddle.static.program import program_guard as program_guard
from framework.paddle.static.python_function import py_func as py_func
from framework.paddle.static.scope import Scope as Scope
from framework.paddle.static.scope import global_scope as global_scope
from framework.paddle.static.scope import scope_guard as scope_guard

if TYPE_CHECKING:
    from framework.paddle.device.places import Place
    from framework.paddle.static.program import Variable
else:
    Variable = PublicVariable


@checked
def data(name: str, shape: Any, dtype: Any = None, lod_level: int = 0) -> Variable:
    """A variable to feed; None and -1 are sizes that are known when the program runs. Operations take it in static mode
    alone."""
    from framework.paddle._kernel.dtypes import get_default_dtype

    if in_dynamic_mode():
        raise ModeError("paddle.static.data is for static mode", fix="call paddle.enable_static() before it")
    variable = _declare(name, shape, dtype or get_default_dtype())
    variable.lod_level = lod_level
    return variable


def cpu_places(device_count: int | None = None) -> list[Place]:
    """Places for a list of devices; one by default."""
    from framework import paddle

    return [paddle.CPUPlace()] * (device_count or 1)


def cuda_places(device_ids: Any = None) -> list[Place]:
    """Places for a list of GPUs; the first by default."""
    from framework import paddle

    ids = [0] if device_ids is None else [device_ids] if isinstance(device_ids, int) else device_ids
    return [paddle.CUDAPlace(number) for number in ids]


@checked
def accuracy(
    input: Tensor, label: Tensor, k: int = 1, correct: Tensor | None = None, total: Tensor | None = None
) -> Tensor:
    """The share of rows whose label is among the k greatest scores."""
    from framework import paddle

    return paddle.metric.accuracy(input, label, k, correct, total)


def _get_value(tensor: Tensor, scope: object = None) -> Tensor:
    """The Tensor itself, which holds its value."""
    return tensor


Tensor.get_value = _get_value  # type: ignore[attr-defined]


@checked
def Print(
    input: Tensor,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Tensor:
    """Print a variable whenever the program runs; returns it. Raises: ArgumentTypeError: it is no Tensor."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError("Print takes a Tensor", received=type(input).__name__)
    from framework.paddle.static.printing import printed

    return printed(input, message or "")


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
