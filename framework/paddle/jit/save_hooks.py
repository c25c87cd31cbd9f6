"""What is called before a layer is saved by `paddle.jit.save`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from framework.paddle.jit.spec import InputSpec
    from framework.paddle.nn.layer import Layer

SaveHook: TypeAlias = "Callable[[Layer, Sequence[InputSpec] | None, Mapping[str, object]], object]"
_save_pre_hooks: list[SaveHook] = []


class _HookRemover:
    """Takes a hook out again."""

    def __init__(self, hook: SaveHook) -> None:
        self._hook = hook

    def remove(self) -> None:
        """Call it no more before a layer is saved."""
        if self._hook in _save_pre_hooks:
            _save_pre_hooks.remove(self._hook)


def _register_save_pre_hook(hook: SaveHook) -> _HookRemover:
    """Call `hook(layer, input_spec, configs)` before a layer is saved by `paddle.jit.save`, each hook once."""
    if hook not in _save_pre_hooks:
        _save_pre_hooks.append(hook)
    return _HookRemover(hook)


def _clear_save_pre_hooks() -> None:
    """Call no hooks any more."""
    _save_pre_hooks.clear()


def _run_save_pre_hooks(function: Callable[..., object]) -> Callable[..., object]:
    """`function(layer, path, input_spec, **configs)` with the hooks called before it."""

    @functools.wraps(function)
    def call(
        layer: Layer, path: str | Path, input_spec: Sequence[InputSpec] | None = None, **configs: object
    ) -> object:
        call_save_hooks(layer, input_spec, configs)
        return function(layer, path, input_spec, **configs)

    return call


def call_save_hooks(
    layer: Layer, input_spec: Sequence[InputSpec] | None, configs: Mapping[str, object]
) -> None:
    """Call all hooks."""
    for hook in list(_save_pre_hooks):
        hook(layer, input_spec, configs)
