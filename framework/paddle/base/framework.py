"""paddle.base.framework: the modes of Paddle, its programs and parameters, as packages read them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.scalar import extract_plain_list as extract_plain_list
from framework.paddle._kernel.scalar import wrap_as_scalar as wrap_as_scalar
from framework.paddle._kernel.scalar import wrap_as_scalars as wrap_as_scalars
from framework.paddle._kernel.tensor import Parameter as Parameter
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.base.dygraph.tracer import Tracer
from framework.paddle.base.operator_prototypes import OpProtoHolder as OpProtoHolder
from framework.paddle.device import places, set_device
from framework.paddle.static.program import Block as Block
from framework.paddle.static.program import Program as Program
from framework.paddle.static.program import PublicVariable, disable_static, enable_static
from framework.paddle.static.program import in_dynamic_mode as in_dynamic_mode
from framework.paddle.static.program import switch_main_program as switch_main_program
from framework.paddle.static.program import switch_startup_program as switch_startup_program

if TYPE_CHECKING:
    from google.protobuf.message import Message

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
EagerParamBase = Parameter
Variable = PublicVariable
GRAD_VAR_SUFFIX, ZERO_VAR_SUFFIX, EMPTY_VAR_NAME, TEMP_VAR_NAME = "@GRAD", "@ZERO", "@EMPTY@", "@TEMP@"
CONTROL_DEP_VAR_PREFIX = "@DEPENDENCY"


def in_pir_mode() -> bool:
    """False: programs are recorded operations, not Paddle's second representation of them."""
    return False


use_pir_api = in_pir_mode


def in_dynamic_or_pir_mode() -> bool:
    """Whether operations run when they are called."""
    return in_dynamic_mode()


def grad_var_name(var_name: str) -> str:
    """The name of a variable's gradient."""
    return var_name + GRAD_VAR_SUFFIX


def convert_np_dtype_to_dtype_(np_dtype: object) -> types.dtype:
    """Paddle's type of a numpy type or of its name."""
    return types.of_numpy(types.to_numpy(np_dtype))


def _current_expected_place() -> places.Place:
    """The device on which Tensors are made."""
    return places.place_of(places.default_device())


_current_expected_place_ = _current_expected_place


def _create_tensor(
    type: object = None,
    name: str | None = None,
    shape: Sequence[int] | None = None,
    dtype: object = None,
    persistable: bool | None = None,
    **kwargs: object,
) -> Tensor:
    """A Tensor of zeros, of no axes by default."""
    kind = types.to_numpy_or(dtype, np.dtype(np.float32))
    tensor = wrap(as_array(np.zeros(tuple(shape or ()), kind), kind))
    if name is not None:
        tensor.name = name
    tensor.persistable = bool(persistable)
    return tensor


@contextlib.contextmanager
def _dygraph_place_guard(place: places.Place) -> Iterator[None]:
    """Accepted: Tensors are made on the device of `paddle.set_device`."""
    yield


def _dygraph_tracer() -> Tracer | None:
    """What says how operations run, in dynamic mode; None in static mode."""
    return Tracer() if in_dynamic_mode() else None


@contextlib.contextmanager
def _dygraph_guard(tracer: object | None) -> Iterator[None]:
    """Static mode for a block where the tracer is None, else dynamic mode."""
    was_dynamic = in_dynamic_mode()
    (enable_static if tracer is None else disable_static)()
    try:
        yield
    finally:
        (disable_static if was_dynamic else enable_static)()


def _set_expected_place(place: places.Place) -> None:
    """Make Tensors on this device."""
    set_device(place)


def _mode_only(
    dynamic: bool, words: str
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            if in_dynamic_mode() != dynamic:
                raise AssertionError(f"{function.__name__} is for {words} mode alone")
            return function(*args, **kwargs)

        return call

    return decorate


def get_all_op_protos() -> list[Message]:
    """The OpProto of each operator of Paddle 2.6.2. Raises: ImportError: protobuf is not installed."""
    return list(OpProtoHolder.instance().op_proto_map.values())


dygraph_only = _dygraph_only_ = _mode_only(True, "dynamic")
static_only = _static_only_ = _mode_only(False, "static")


@contextlib.contextmanager
def _no_check_dy2st_diff() -> Iterator[None]:
    """Accepted: nothing compares dynamic with static results here."""
    yield


_stride_in_no_check_dy2st_diff = _no_check_dy2st_diff

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
