"""What the unit tests of architectures share. tests/contract has what all registered ones keep to: an unknown variant,
the published numbers of parameters, shapes, state, both forms, gradients, export. A unit test has what is the
architecture's own, by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
import pytest

from framework import nn


def family(values: Iterable[Any], of: Callable[[Any], object] = lambda value: None) -> list[Any]:
    """Parameters for `parametrize`: the first value of each family, which `of` tells, is no slow one."""
    seen: set[object] = set()
    params = []
    for value in values:
        marks = [pytest.mark.slow] if of(value) in seen else []
        seen.add(of(value))
        params.append(pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks))
    return params


def shapes(model: nn.Layer, images: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Those of the outputs for images of this shape, in the model's mode; nothing is computed."""
    graphdef, params, buffers = nn.abstract(model)
    x, key = jax.ShapeDtypeStruct(images, np.float32), jax.random.key(0)
    out = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, key, x)[0], params, buffers, x)
    return [leaf.shape for leaf in jax.tree.leaves(out)]


def eval_shapes(model: nn.Layer, images: tuple[int, ...]) -> list[tuple[int, ...]]:
    """`shapes` in evaluation, in which the model stays."""
    return shapes(model.eval(), images)
