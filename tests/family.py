"""One representative of a family in the default suite; the other variants are `slow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def family(values: Iterable[Any], of: Callable[[Any], object] = lambda value: None) -> list[Any]:
    """Parameters for `parametrize`: the first value of each family, which `of` tells, is no slow one."""
    seen: set[object] = set()
    params = []
    for value in values:
        marks = [pytest.mark.slow] if of(value) in seen else []
        seen.add(of(value))
        params.append(pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks))
    return params
