"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

from framework.paddle._kernel.mode import mode

_Function = Callable[..., Any]
_Steps = Generator[object, object, object]


class _DecoratorContextManager:
    """Lets a block be a decorator, too: of a generator, each of its steps runs inside. Packages derive from it."""

    def __call__(self: AbstractContextManager[object], function: _Function) -> _Function:
        if inspect.isgeneratorfunction(function):
            return _run_steps(self, function)

        @functools.wraps(function)
        def run(*args: object, **kwargs: object) -> object:
            with self:
                return function(*args, **kwargs)

        return run


def _run_steps(block: AbstractContextManager[object], function: Callable[..., _Steps]) -> _Function:
    """The generator function whose steps run inside of a block, and what it yields to outside of it."""

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> _Steps:
        steps = function(*args, **kwargs)
        advance: Callable[[], object] = functools.partial(next, steps)
        while True:
            with block:
                try:
                    result = advance()
                except StopIteration as end:
                    return end.value
            try:
                advance = functools.partial(steps.send, (yield result))
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                advance = functools.partial(steps.throw, error)

    return run


class _Switch:
    """Recording on or off within a block."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> object:
        self._before.append(mode.grad_enabled)
        mode.grad_enabled = self.enabled
        return self

    def __exit__(self, *error: object) -> None:
        if self._before:
            mode.grad_enabled = self._before.pop()


class no_grad(_DecoratorContextManager, _Switch):
    """Nothing inside is recorded: `with paddle.no_grad():`, or a decorator with or without brackets."""

    def __new__(cls, func: _Function | None = None) -> Any:
        return super().__new__(cls) if func is None else cls()(func)

    def __init__(self, func: None = None) -> None:
        super().__init__(False)


class enable_grad(_DecoratorContextManager, _Switch):
    """Operations inside are recorded, within `no_grad` too."""

    def __new__(cls, func: _Function | None = None) -> Any:
        return super().__new__(cls) if func is None else cls()(func)

    def __init__(self, func: None = None) -> None:
        super().__init__(True)


class set_grad_enabled(_DecoratorContextManager, _Switch):
    """Record operations or not, from here on or for a block."""

    def __init__(self, mode_: bool = True, **named: bool) -> None:
        super().__init__(bool(named.get("mode", mode_)))
        self._before.append(mode.grad_enabled)
        mode.grad_enabled = self.enabled

    def __enter__(self) -> object:
        mode.grad_enabled = self.enabled
        return self


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded."""
    return mode.grad_enabled
