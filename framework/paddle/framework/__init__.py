"""paddle.framework: flags, limits of types, and names that programs take from here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from framework.paddle._kernel.dtypes import dtype as dtype
from framework.paddle._kernel.dtypes import get_default_dtype as get_default_dtype
from framework.paddle._kernel.dtypes import set_default_dtype as set_default_dtype
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.random import seed as seed
from framework.paddle._kernel.tape import grad as grad
from framework.paddle._kernel.tape import no_grad as no_grad
from framework.paddle._kernel.tensor import Parameter as Parameter
from framework.paddle.device.places import CPUPlace as CPUPlace
from framework.paddle.device.places import CUDAPinnedPlace as CUDAPinnedPlace
from framework.paddle.device.places import CUDAPlace as CUDAPlace
from framework.paddle.device.places import CustomPlace as CustomPlace
from framework.paddle.framework.flags import get_flags as get_flags
from framework.paddle.framework.flags import set_flags as set_flags
from framework.paddle.framework.limits import finfo as finfo
from framework.paddle.framework.limits import iinfo as iinfo
from framework.paddle.nn.param_attr import ParamAttr as ParamAttr

EagerParamBase = Parameter
_ELSEWHERE = {
    **dict.fromkeys(("load", "save"), "files"),
    **dict.fromkeys(("disable_static", "enable_static", "in_dynamic_mode", "Program"), "static"),
}


def disable_signal_handler() -> None:
    """Nothing here catches signals; accepted."""


def check_shape(
    shape: object,
    op_name: str,
    expected_shape_type: object = (list, tuple),
    expected_element_type: object = (int,),
    expected_tensor_dtype: object = ("int32", "int64"),
) -> None:
    """Accepted: operations check their shapes themselves."""


if not TYPE_CHECKING:
    _resolve = _resolver(__name__)

    def __getattr__(name: str) -> object:
        if name in _ELSEWHERE:
            return getattr(importlib.import_module(f"framework.paddle.{_ELSEWHERE[name]}"), name)
        return _resolve(name)
