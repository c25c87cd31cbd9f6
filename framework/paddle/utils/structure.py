"""Nested lists, tuples and dicts: flatten, rebuild, map. Dicts go in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any


def is_sequence(seq: object) -> bool:
    """Whether it is a list, tuple or dict; texts are not."""
    return isinstance(seq, list | tuple | dict)


def to_sequence(nest: object) -> object:
    """The list, tuple or dict; of something else the list of it."""
    return nest if is_sequence(nest) else [nest]


def _ordered(nest: Any) -> Iterable[object]:
    if isinstance(nest, dict):
        return (nest[key] for key in sorted(nest))
    return iter(nest)


def flatten(nest: object) -> list[Any]:
    """The leaves of nested lists, tuples and dicts."""
    if not is_sequence(nest):
        return [nest]
    return [leaf for part in _ordered(nest) for leaf in flatten(part)]


def _rebuild(structure: Any, leaves: Iterator[object]) -> Any:
    if not is_sequence(structure):
        return next(leaves)
    parts = [_rebuild(part, leaves) for part in _ordered(structure)]
    if isinstance(structure, dict):
        found = dict(zip(sorted(structure), parts, strict=True))
        return type(structure)((key, found[key]) for key in structure)
    if isinstance(structure, tuple) and type(structure) is not tuple:
        return type(structure)(*parts)
    return type(structure)(parts)


def pack_sequence_as(structure: object, flat_sequence: Sequence[object]) -> Any:
    """These leaves in the form of `structure`.

    Raises:
        ValueError: their number is another.
    """
    expected = len(flatten(structure))
    if len(flat_sequence) != expected:
        raise ValueError(f"the structure has {expected} elements, received {len(flat_sequence)}")
    return _rebuild(structure, iter(flat_sequence))


def map_structure(func: Callable[..., object], *structure: object) -> Any:
    """`func` of the leaves that stand at one place, in the form of the first structure."""
    columns = zip(*(flatten(part) for part in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in columns])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise ValueError where the forms differ, TypeError where the types of two sequences do."""
    if is_sequence(nest1) != is_sequence(nest2) or (is_sequence(nest1) and len(nest1) != len(nest2)):
        raise ValueError(f"the structures differ: {nest1!r} and {nest2!r}")
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"the types differ: {type(nest1).__name__} and {type(nest2).__name__}")
    if isinstance(nest1, dict) and set(nest1) != set(nest2):
        raise ValueError(f"the keys differ: {sorted(nest1)} and {sorted(nest2)}")
    for one, other in zip(_ordered(nest1), _ordered(nest2), strict=True):
        assert_same_structure(one, other, check_types)
