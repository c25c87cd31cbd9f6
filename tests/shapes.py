"""What a model gives for an image of some size, without computing it."""

from __future__ import annotations

import jax
import numpy as np

from framework import nn


def shapes(model: nn.Layer, image: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of all arrays that the model gives in inference."""
    graphdef, params, buffers = nn.abstract(model.eval())
    x = jax.ShapeDtypeStruct(image, np.float32)
    out = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0], params, buffers, x)
    return [leaf.shape for leaf in jax.tree.leaves(out)]
