"""Functions compiled with the options of the device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from framework.core.compilation import CompileOptions, compile_options, operation_compile_options
from framework.paddle._kernel import program_store
from framework.paddle._kernel.ahead import Lowerable
from framework.paddle._kernel.compile_notice import announced
from framework.paddle._kernel.stored_function import StoredFunction


@functools.cache
def device_options(whole: bool) -> CompileOptions | None:
    """XLA's options for the device of this process, for a `whole` program or one of single operations; see
    framework/core/compilation.py."""
    device = jax.config.jax_default_device or jax.local_devices()[0]  # type: ignore[attr-defined]
    return (compile_options(device) if whole else operation_compile_options(device)) or None


class Program:
    """A function compiled with the options of the device. jax takes options for a whole program alone, so what is
    called while another program is traced is `inner`, without them. `in_place` writes into the memory of the inputs
    whose numbers are `replaced`, which are gone afterwards. `whole` is a program of many operations, which takes longer
    to compile and runs faster. `forms()` tells how many kinds of inputs it was compiled for, `count` how many it had
    when that was asked last. What has an `identity`, the same in every process, is stored under it, and `lowerable`
    compiles it beforehand."""

    __slots__ = ("count", "forms", "in_place", "inner", "is_new", "lowerable", "outer", "whole")

    def __init__(
        self,
        function: Callable[..., object],
        replaced: Sequence[int] = (),
        whole: bool = False,
        identity: str = "",
    ) -> None:
        self.count, self.whole, options = 0, whole, device_options(whole)
        self.is_new = whole  # its first call is announced
        self.inner = jax.jit(function)
        self.outer: jax.stages.Wrapped = jax.jit(function, compiler_options=options)
        self.lowerable: Lowerable = self.outer
        if identity and program_store.is_available():
            stored = StoredFunction(function, self.outer, f"{identity} {options}")
            self.outer, self.lowerable = stored.call, stored
        self.forms: Callable[[], int] = self.outer._cache_size  # type: ignore[attr-defined]
        self.in_place = self.outer
        if replaced:
            self.in_place = jax.jit(function, compiler_options=options, donate_argnums=replaced)

    def __call__(self, *values: object, in_place: bool = False) -> Any:
        if self.is_new:
            self.is_new = False
            with announced("a network or function as one program"):
                return self(*values, in_place=in_place)
        try:
            return (self.in_place if in_place else self.outer)(*values)
        except ValueError as error:
            if not is_nested(error):
                raise
            return self.inner(*values)


def is_nested(error: Exception) -> bool:
    """Whether jax refused the options because another program is traced."""
    return str(error).startswith("`compiler_options`")
