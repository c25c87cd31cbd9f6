"""Names with counters: `linear_0`, `linear_1`, …"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator

from framework.core.process_state import state

Counters = defaultdict[str, int]


def generate(key: str) -> str:
    """`key` with the number of times that it was asked for."""
    number = state.name_counters[key]
    state.name_counters[key] += 1
    return f"{state.name_prefix}{key}_{number}"


def generate_with_ignorable_key(key: str) -> str:
    """As `generate`: names of Tensors that nobody named."""
    return generate(key)


class UniqueNameGenerator:
    """Names with counters of its own: `prefix`, the key and how often it was asked for."""

    def __init__(self, prefix: str | None = None) -> None:
        self.ids: Counters = defaultdict(int)
        self.prefix = prefix or ""

    def __call__(self, key: str) -> str:
        number = self.ids[key]
        self.ids[key] += 1
        return f"{self.prefix}{key}_{number}"


@contextlib.contextmanager
def layer_scope(kind: str, name: str | None = None) -> Iterator[str]:
    """Within the block parameters and results are called after one layer: `name`, or `kind` with a number."""
    before, state.layer_name = state.layer_name, name or generate(kind)
    try:
        yield state.layer_name
    finally:
        state.layer_name = before


def generate_layer(kind: str) -> str:
    """The name of a new layer: that of `layer_scope`, or `kind` with a number."""
    return state.layer_name or generate(kind)


def generate_result(operation: str) -> str:
    """The name of a new result: after the layer of `layer_scope`, or after its operation."""
    return generate(f"{state.layer_name}.tmp") if state.layer_name else f"{generate(operation)}.tmp_0"


def claim(name: str) -> None:
    """Give a parameter a name of the user's.

    Raises:
        ValueError: another parameter has it.
    """
    if name in state.names_taken:
        raise ValueError(
            f"the parameter name {name!r} is taken: ParamAttr(name=…) gives each parameter its own"
        )
    state.names_taken.add(name)


class _NameChecker:
    """The names of parameters that are in use, as programs of Paddle reset them."""

    @property
    def _name_set(self) -> set[str]:
        return state.names_taken

    @_name_set.setter
    def _name_set(self, names: set[str]) -> None:
        state.names_taken = names


dygraph_parameter_name_checker = _NameChecker()


def switch(
    new_generator: Counters | None = None, new_para_name_checker: set[str] | None = None
) -> tuple[Counters, set[str]]:
    """Start counting anew, or go on with these counters and names in use; returns the ones before."""
    before = state.name_counters, state.names_taken
    state.name_counters = defaultdict(int) if new_generator is None else new_generator
    state.names_taken = set() if new_para_name_checker is None else new_para_name_checker
    return before


@contextlib.contextmanager
def guard(new_generator: str | bytes | Counters | None = None) -> Iterator[None]:
    """Count from 0 within the block; a text goes before all names."""
    prefix = new_generator.decode() if isinstance(new_generator, bytes) else new_generator
    before, text = switch(prefix if isinstance(prefix, defaultdict) else None), state.name_prefix
    state.name_prefix = prefix if isinstance(prefix, str) else ""
    try:
        yield
    finally:
        switch(*before)
        state.name_prefix = text
