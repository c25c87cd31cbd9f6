"""Functions of jax.jit that look for their programs on disk before they trace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import cast

import jax

from framework.core.signed_cache import bypassed
from framework.paddle._kernel import program_store

log = logging.getLogger("oar")
Function = Callable[..., object]


class StoredFunction:
    """A compiled function whose executables are stored under its `identity`.

    `call` is jax's own dispatch, which asks `_miss` for inputs of another kind than before: a call takes as long as
    through jax.jit. Under a trace, and where the store cannot help, it is the function of jax.jit.
    """

    __slots__ = ("_executables", "_identity", "_jitted", "call")

    def __init__(self, function: Function, jitted: Function, identity: str) -> None:
        from jax._src.interpreters.pxla import JitGlobalCppCacheKeys, cc_shard_arg
        from jax._src.lib import _jax  # type: ignore[attr-defined]
        from jax._src.tree_util import dispatch_registry

        self._jitted, self._identity = jitted, identity
        self._executables: dict[Path, program_store.Executable] = {}
        keys, name = JitGlobalCppCacheKeys(), function.__name__
        # `jitted` is what is called under jax.disable_jit, `_fun` where jax_debug_nans finds one.
        call = _jax.pjit(name, jitted, self._miss, [], [], keys, dispatch_registry, cc_shard_arg)
        call._fun = function
        self.call = cast("jax.stages.Wrapped", call)

    def lower(self, *inputs: object) -> Prepared:
        """What `compile()` makes ready for these inputs, which may be shapes and types alone."""
        return Prepared(self, inputs)

    def prepare(self, inputs: tuple[object, ...]) -> program_store.Executable | None:
        """The executable for these inputs, read or compiled; None where jax.jit has to be called."""
        path = program_store.path_of(self._identity, inputs)
        return None if path is None else self._executable(path, inputs)

    def _executable(self, path: Path, inputs: tuple[object, ...]) -> program_store.Executable:
        executable = self._executables.get(path) or program_store.read(path, inputs)
        if executable is None:
            lowered = self._jitted.lower(*inputs)  # type: ignore[attr-defined]
            with bypassed():
                executable = lowered.compile()
            program_store.write(path, lowered, executable)
        self._executables[path] = executable
        return executable

    def _miss(self, *inputs: object) -> tuple[object, object, bool]:
        """The results for inputs of a new kind, and how jax's dispatch computes them from now on."""
        path = program_store.path_of(self._identity, inputs)
        if path is None:
            return self._jitted(*inputs), None, False
        executable = self._executable(path, inputs)
        dispatch = executable._executable.create_cpp_call(executable._params)  # type: ignore[attr-defined]
        if dispatch is None:
            return executable(*inputs), None, False
        try:
            return dispatch._cache_miss(*inputs)
        except jax.errors.JaxRuntimeError as error:  # what was read does not run here
            log.warning("a kept program does not run, it is made again: %s (%s)", path, error)
            path.unlink(missing_ok=True)
            del self._executables[path]
            return self._jitted(*inputs), None, False


class Prepared:
    """Inputs of a function, to be compiled for."""

    def __init__(self, function: StoredFunction, inputs: tuple[object, ...]) -> None:
        self._function, self._inputs = function, inputs

    def compile(self) -> None:
        """Read or compile the program; where it cannot be stored, nothing is done."""
        self._function.prepare(self._inputs)
