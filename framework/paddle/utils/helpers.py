"""Small helpers of paddle.utils: imports that may be missing, versions, deprecation, a self-check."""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from framework.paddle.version import full_version


def try_import(module_name: str, err_msg: str | None = None) -> ModuleType:
    """The module, or an ImportError that says how to get it."""
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        text = err_msg or f"{module_name} is not installed: pip install {module_name}"
        raise ImportError(text) from error


def _numbers(version: object, name: str) -> tuple[int, ...]:
    if not isinstance(version, str):
        raise TypeError(f"{name} should be a text such as '2.6.0', received {type(version).__name__}")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", version):
        raise ValueError(f"{name} should be like '2.6.0', received {version!r}")
    return (*map(int, version.split(".")), 0, 0, 0)[:4]


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raise unless the version of Paddle that is spoken here (2.6.2) lies between the two.

    Raises:
        TypeError, ValueError: a version is no version.
        RuntimeError: another one is needed.
    """
    low = _numbers(min_version, "min_version")
    high = None if max_version is None else _numbers(max_version, "max_version")
    here = _numbers(full_version, "version")
    if here < low or (high is not None and here > high):
        wanted = f"{min_version} or higher" if high is None else f"{min_version} to {max_version}"
        raise RuntimeError(
            f"VersionError: PaddlePaddle {wanted} is required, programs for {full_version} run here"
        )


def deprecated(
    update_to: str = "", since: str = "", reason: str = "", level: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of an old function: level 0 only marks its docstring, 1 warns, 2 raises RuntimeError."""

    def decorate(function: Callable[..., object]) -> Callable[..., Any]:
        parts = [
            f"{function.__module__}.{function.__name__} is deprecated",
            f" since {since}" if since else "",
            f", use {update_to} instead" if update_to else "",
            f": {reason}" if reason else "",
        ]
        message = "".join(parts)

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            if level == 2:
                raise RuntimeError(message)
            if level == 1:
                warnings.warn(message, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        call.__doc__ = f"Warning: {message}\n\n{function.__doc__ or ''}"
        return call

    return decorate


def run_check() -> None:
    """Train a small layer on this device and print whether it works."""
    import numpy as np

    from framework import paddle

    print("Running verify PaddlePaddle program ... ")
    x = paddle.Tensor(np.ones((2, 3), np.float32))
    w = paddle.Tensor(np.full((3, 2), 0.5, np.float32), stop_gradient=False)
    paddle.matmul(x, w).backward()
    assert w.grad is not None and float(w.grad.numpy().sum()) == 12.0
    kind = paddle.device.get_device().partition(":")[0].upper()
    print(f"PaddlePaddle works well on 1 {kind}.")
    print("PaddlePaddle is installed successfully! Let's start deep learning with PaddlePaddle now.")
