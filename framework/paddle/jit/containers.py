"""Lists and dicts that branches and loops of a compiled program change: each branch is traced on what they held before,
and what the program chooses is put into them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import jax

from framework.core.errors import TraceError

Container: TypeAlias = "list[object] | dict[object, object]"
Read: TypeAlias = Callable[[], object]


class Containers:
    """The lists and dicts among what some expressions mean now, with what they hold."""

    def __init__(self, reads: Iterable[Read]) -> None:
        self._roots: list[Container] = []
        for read in reads:
            try:
                value = read()
            except (NameError, AttributeError, LookupError, TypeError):
                continue  # it has no value yet
            if type(value) in (list, dict) and not any(value is root for root in self._roots):
                self._roots.append(value)  # type: ignore[arg-type]
        self._before: list[tuple[Container, Container]] = []
        for root in self._roots:
            self._keep(root)

    def __bool__(self) -> bool:
        return bool(self._roots)

    def _keep(self, container: Container) -> None:
        if any(container is one for one, _ in self._before):
            return
        self._before.append((container, container.copy()))
        for inner in container.values() if isinstance(container, dict) else container:
            if type(inner) in (list, dict):
                self._keep(inner)  # type: ignore[arg-type]

    def restore(self) -> None:
        """Let them hold what they held at first."""
        for container, held in self._before:
            _fill(container, held)

    def contents(self) -> list[object]:
        """What they hold now, in lists and dicts of its own."""
        return [_copy(root) for root in self._roots]

    def fill(self, contents: Sequence[object]) -> None:
        """Let them hold this, which `contents` gave; inner ones stay the same objects where they are in place."""
        for root, content in zip(self._roots, contents, strict=True):
            _refill(root, content)  # type: ignore[arg-type]

    def leaves(self) -> list[object]:
        """What they hold now, one after the other."""
        return jax.tree_util.tree_flatten(self.contents(), _is_none)[0]

    def fill_leaves(self, leaves: Sequence[object], structure: Any) -> None:
        """Let them hold this, in the structure that `structure` gave."""
        self.fill(jax.tree_util.tree_unflatten(structure, leaves))

    def structure(self) -> Any:
        """How what they hold is nested."""
        return jax.tree_util.tree_structure(self.contents(), _is_none)

    def check_structure(self, structure: Any) -> None:
        """Raises: TraceError: a list or dict has grown or shrunk."""
        if self.structure() != structure:
            raise TraceError(
                "a list or dict changes its size in a loop that depends on a Tensor",
                fix="make it of its last size before the loop and set its items, or loop over a Python range",
            )


def _is_none(value: object) -> bool:
    return value is None


def _copy(value: object) -> object:
    if type(value) is dict:
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if type(value) is list else value


def _fill(container: Container, held: Container) -> None:
    if isinstance(container, dict) and isinstance(held, dict):
        container.clear()
        container.update(held)
    elif isinstance(container, list):
        container[:] = held


def _refill(container: Container, content: Container) -> None:
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        known = isinstance(container, dict) or key < len(container)  # type: ignore[operator]
        inner = (container.get(key) if isinstance(container, dict) else container[key]) if known else None  # type: ignore[index]
        if type(inner) in (list, dict) and type(inner) is type(value):
            _refill(inner, value)  # type: ignore[arg-type]
            content[key] = inner  # type: ignore[index]
    _fill(container, content)
