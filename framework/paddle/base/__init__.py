"""Names of Paddle's older interface that programs still import: flags, places, `dygraph.guard`, `to_variable`."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.base import dygraph as dygraph
from framework.paddle.base.data_feeder import DataFeeder as DataFeeder
from framework.paddle.device import CPUPlace as CPUPlace
from framework.paddle.device import CUDAPinnedPlace as CUDAPinnedPlace
from framework.paddle.device import CUDAPlace as CUDAPlace
from framework.paddle.device import is_compiled_with_cuda as is_compiled_with_cuda
from framework.paddle.framework import get_flags as get_flags
from framework.paddle.framework import set_flags as set_flags
from framework.paddle.static import Scope as Scope

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
