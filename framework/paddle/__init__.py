"""Programs written for Paddle run as they are: `from framework import paddle` instead of `import paddle`.

Tensors with `backward()`, channels first, int64, optimizers that hold parameters: what Paddle's eager mode has, each
operation a compiled program of jax. This room stands above the rest of the framework, which knows nothing of it.
`jnp.asarray(tensor)` is the jax.Array of a Tensor, `paddle.Tensor(array)` the way back.
"""

from __future__ import annotations

import importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING, Any

from framework.paddle import ops as _ops
from framework.paddle._kernel import methods as _methods
from framework.paddle._kernel import modules as _modules
from framework.paddle._kernel import tensor_methods as _tensor_methods
from framework.paddle._kernel.dtypes import bfloat16 as bfloat16
from framework.paddle._kernel.dtypes import bool_ as _bool
from framework.paddle._kernel.dtypes import complex64 as complex64
from framework.paddle._kernel.dtypes import complex128 as complex128
from framework.paddle._kernel.dtypes import dtype as dtype
from framework.paddle._kernel.dtypes import float16 as float16
from framework.paddle._kernel.dtypes import float32 as float32
from framework.paddle._kernel.dtypes import float64 as float64
from framework.paddle._kernel.dtypes import get_default_dtype as get_default_dtype
from framework.paddle._kernel.dtypes import int8 as int8
from framework.paddle._kernel.dtypes import int16 as int16
from framework.paddle._kernel.dtypes import int32 as int32
from framework.paddle._kernel.dtypes import int64 as int64
from framework.paddle._kernel.dtypes import set_default_dtype as set_default_dtype
from framework.paddle._kernel.dtypes import uint8 as uint8
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.printing import set_printoptions as set_printoptions
from framework.paddle._kernel.random import get_cuda_rng_state as get_cuda_rng_state
from framework.paddle._kernel.random import get_rng_state as get_rng_state
from framework.paddle._kernel.random import seed as seed
from framework.paddle._kernel.random import set_cuda_rng_state as set_cuda_rng_state
from framework.paddle._kernel.random import set_rng_state as set_rng_state
from framework.paddle._kernel.tape import enable_grad as enable_grad
from framework.paddle._kernel.tape import grad as grad
from framework.paddle._kernel.tape import is_grad_enabled as is_grad_enabled
from framework.paddle._kernel.tape import no_grad as no_grad
from framework.paddle._kernel.tape import set_grad_enabled as set_grad_enabled
from framework.paddle._kernel.tensor import Tensor as Tensor

if _os.environ.get("PADDLE_TRAINERS_NUM", "1") not in ("", "1"):
    # Beside other processes: they are joined before anything is computed, which programs may do before they ask.
    from framework.distributed import init_parallel_env as _init_parallel_env

    _init_parallel_env()

__git_commit__ = "oar"
__version__ = "2.6.2"  # of the Paddle whose names, arguments and results these are

# Loaded when they are first used: `from framework import paddle` stays fast.
_PACKAGES = (
    *(
        "amp",
        "audio",
        "autograd",
        "base",
        "callbacks",
        "device",
        "distributed",
        "distribution",
        "fft",
        "framework",
        "geometric",
        "hapi",
        "hub",
    ),
    *(
        "incubate",
        "inference",
        "io",
        "jit",
        "linalg",
        "metric",
        "nn",
        "onnx",
        "optimizer",
        "profiler",
        "quantization",
    ),
    *(
        "regularizer",
        "signal",
        "sparse",
        "static",
        "sysconfig",
        "tensor",
        "text",
        "utils",
        "version",
        "vision",
    ),
)
_WHERE = {
    **dict.fromkeys(("Model", "flops", "summary"), "hapi"),
    **dict.fromkeys(("load", "save"), "files"),
    **dict.fromkeys(("LazyGuard", "ParamAttr", "create_parameter"), "nn"),
    **dict.fromkeys(("disable_static", "enable_static", "in_dynamic_mode"), "static"),
    **dict.fromkeys(("DataParallel",), "distributed"),
    **dict.fromkeys(("batch",), "io"),
    **dict.fromkeys(("core_layer", "wrap"), "_kernel.bridges"),
    **dict.fromkeys(
        ("CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "CustomPlace", "get_device", "set_device"), "device"
    ),
    **dict.fromkeys(
        ("check_shape", "disable_signal_handler", "get_flags", "iinfo", "finfo", "set_flags"), "framework"
    ),
    **dict.fromkeys(
        ("is_compiled_with_cuda", "is_compiled_with_rocm", "is_compiled_with_xpu", "is_compiled_with_cinn"),
        "device",
    ),
    **dict.fromkeys(("is_compiled_with_custom_device", "is_compiled_with_distribute"), "device"),
    **dict.fromkeys(("get_cudnn_version", "is_compiled_with_ipu"), "device"),
}

_modules.install()
_resolve = _resolver(__name__)
_operations = _ops.discover()
globals().update(_operations)
globals().update(_methods.install(_operations, _ops.discover("METHODS_ONLY")))
globals()["bool"] = _bool
globals()["paddle"] = _sys.modules[__name__]  # Paddle's own imports leave it there: paddle.paddle.ones
_tensor_methods.install()

if TYPE_CHECKING:
    # Operations come by discovery, which a type checker does not follow.
    def __getattr__(name: str) -> Any: ...

else:

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            try:
                return importlib.import_module(f"framework.paddle.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"framework.paddle.{name}":
                    raise
        elif name in _WHERE:
            return getattr(importlib.import_module(f"framework.paddle.{_WHERE[name]}"), name)
        return _resolve(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_WHERE})
