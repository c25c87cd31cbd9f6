"""Sizes that are free in a saved program: `x.shape[0]` where input_spec says None, and what is computed from it."""

from __future__ import annotations

from jax.export import is_symbolic_dim


def is_free_size(value: object) -> bool:
    """Whether it is such a size: no integer, and comparing it with one may have no answer."""
    return is_symbolic_dim(value)  # type: ignore[arg-type]
