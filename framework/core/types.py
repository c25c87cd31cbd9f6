"""Types that have no class of their own. Imports no jax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"
"""What JSON and plain YAML hold, as it is parsed and as it is written."""

PyTree: TypeAlias = Any
"""Arrays in containers that jax knows (tuples, lists, dicts, registered classes), or one array: jax names no type of
it. A value that is no tree of arrays is not annotated so."""
