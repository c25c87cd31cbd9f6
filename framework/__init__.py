"""Oar's framework: layers, data, training, export and inference on JAX/XLA.

The names below are loaded when they are first used: `import framework` alone brings in neither jax nor numpy.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework import amp as amp
    from framework import autograd as autograd
    from framework import config as config
    from framework import distributed as distributed
    from framework import engine as engine
    from framework import export as export
    from framework import inference as inference
    from framework import io as io
    from framework import jit as jit
    from framework import metric as metric
    from framework import nn as nn
    from framework import optimizer as optimizer
    from framework import paddle as paddle
    from framework import vision as vision
    from framework.core.device import device_list as device_list
    from framework.core.device import get_device as get_device
    from framework.core.device import set_device as set_device
    from framework.core.dtypes import enable_x64 as enable_x64
    from framework.core.rng import rng_scope as rng_scope
    from framework.core.rng import seed as seed
    from framework.engine.model import Model as Model
    from framework.install_check import run_check as run_check
    from framework.io.state import load as load
    from framework.io.state import save as save
    from framework.nn.flops import flops as flops
    from framework.nn.summary import summary as summary

_PACKAGES = (
    "amp",
    "autograd",
    "config",
    "distributed",
    "engine",
    "export",
    "inference",
    "io",
    "jit",
    "metric",
    "nn",
    "optimizer",
    "paddle",
    "vision",
)
_WHERE = {
    **dict.fromkeys(("device_list", "get_device", "set_device"), "framework.core.device"),
    **dict.fromkeys(("rng_scope", "seed"), "framework.core.rng"),
    **dict.fromkeys(("load", "save"), "framework.io.state"),
    "Model": "framework.engine.model",
    "enable_x64": "framework.core.dtypes",
    "flops": "framework.nn.flops",
    "run_check": "framework.install_check",
    "summary": "framework.nn.summary",
}


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return importlib.import_module(f"framework.{name}")
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    from framework.core.foreign_names import foreign_name

    raise foreign_name("framework", name, "framework") or AttributeError(
        f"module 'framework' has no attribute {name!r}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_WHERE})
