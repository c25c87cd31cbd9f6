"""Lists, dicts and attributes that branches and loops of a compiled program change: each branch is traced on what they
held before, and what the program chooses is put into them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import jax

from framework.core.errors import TraceError
from framework.paddle.jit.control import Undefined

Container: TypeAlias = "list[object] | dict[object, object]"
Read: TypeAlias = Callable[[], object]


class Containers:
    """The lists and dicts among what some expressions mean now, with what they hold. A pair of an object and a name is
    an attribute or a buffer of a layer, unless the class of the object says what setting it does."""

    def __init__(self, reads: Iterable[Read]) -> None:
        self._roots: list[Container] = []
        self._attributes: list[tuple[dict[str, object], str, object]] = []
        self._before: list[tuple[Container, Container]] = []
        for read in reads:
            try:
                value = read()
            except (NameError, AttributeError, LookupError, TypeError):
                continue  # it has no value yet
            if type(value) is tuple:
                self._add_attribute(*value)
                continue
            if type(value) in (list, dict) and not any(value is root for root in self._roots):
                self._roots.append(value)  # type: ignore[arg-type]
        for root in self._roots:
            self._keep(root)

    def _add_attribute(self, owner: object, name: str) -> None:
        held = getattr(owner, "__dict__", None)
        buffers = held.get("_buffers") if isinstance(held, dict) else None  # of a layer
        if isinstance(buffers, dict) and name in buffers:
            self._attributes.append((buffers, name, buffers[name]))
            return
        if (
            isinstance(held, dict)
            and not hasattr(type(owner), name)
            and (name in held or not hasattr(owner, name))
        ):
            value = held.get(name, Undefined(name))
            self._attributes.append((held, name, value))
            if type(value) in (list, dict):
                self._keep(value)  # type: ignore[arg-type]

    def _keep(self, container: Container) -> None:
        if any(container is one for one, _ in self._before):
            return
        self._before.append((container, container.copy()))
        for inner in container.values() if isinstance(container, dict) else container:
            if type(inner) in (list, dict):
                self._keep(inner)  # type: ignore[arg-type]

    def restore(self) -> None:
        """Let them hold what they held at first."""
        for held, name, value in self._attributes:
            _set(held, name, value)
        for container, content in self._before:
            _fill(container, content)

    def contents(self) -> list[object]:
        """What they hold now, in lists and dicts of its own."""
        values = [held.get(name, Undefined(name)) for held, name, _ in self._attributes]
        return [_copy(value) for value in (*self._roots, *values)]

    def fill(self, contents: Sequence[object]) -> None:
        """Let them hold this, which `contents` gave; inner ones stay the same objects where they are in place."""
        for root, content in zip(self._roots, contents):
            _refill(root, content)  # type: ignore[arg-type]
        for (held, name, _), content in zip(self._attributes, contents[len(self._roots) :], strict=True):
            value = held.get(name)
            if type(value) in (list, dict) and type(value) is type(content):
                _refill(value, content)  # type: ignore[arg-type]
            else:
                _set(held, name, content)

    def leaves(self) -> list[object]:
        """What they hold now, one after the other."""
        return jax.tree_util.tree_flatten(self.contents(), _is_none)[0]

    def fill_leaves(self, leaves: Sequence[object], like: list[object]) -> None:
        """Let them hold this, nested as `like`, which `contents` gave."""
        structure = jax.tree_util.tree_structure(like, _is_none)
        self.fill(jax.tree_util.tree_unflatten(structure, leaves))

    def check_sizes(self, before: list[object]) -> None:
        """Raises: TraceError: a list or dict has grown or shrunk since `contents` gave `before`."""
        now, then = (jax.tree_util.tree_structure(one, _is_none) for one in (self.contents(), before))
        if now != then:
            raise TraceError(
                "a list or dict changes its size in a loop that depends on a Tensor",
                fix="make it of its last size before the loop and set its items, or loop over a Python range",
            )


def _set(held: dict[str, object], name: str, value: object) -> None:
    if isinstance(value, Undefined):
        held.pop(name, None)
    else:
        held[name] = value


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
        present = isinstance(container, dict) or key < len(container)  # type: ignore[operator]
        inner = (container.get(key) if isinstance(container, dict) else container[key]) if present else None  # type: ignore[index]
        if type(inner) in (list, dict) and type(inner) is type(value):
            _refill(inner, value)  # type: ignore[arg-type]
            content[key] = inner  # type: ignore[index]
    _fill(container, content)
