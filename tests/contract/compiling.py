"""What the contract tests of images share: fast compilation, comparison, and the names of a test's parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from framework import nn
from framework.core.compilation import quick_compile_options


@contextlib.contextmanager
def part(name: str) -> Iterator[None]:
    """Names a part of a test: one test computes all that is said of a model, so that it compiles once."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the part: {name}")
        raise


def images(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.RandomState(0).standard_normal(shape).astype(np.float32)


def compile_call(layer: nn.Layer, x: np.ndarray, method: str = "__call__") -> Any:
    """A compiled (params, buffers, x) -> (outputs, buffers after the call)."""
    graphdef, params, buffers = nn.split(layer)
    call = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x, method=method))
    return call.lower(params, buffers, x).compile(compiler_options=quick_compile_options())


def run(layer: nn.Layer, x: np.ndarray, method: str = "__call__") -> tuple[list[np.ndarray], dict[str, Any]]:
    """(leaves of the outputs, buffers after the call) of one compiled call."""
    _, params, buffers = nn.split(layer)
    out, after = compile_call(layer, x, method)(params, buffers, x)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(out)], after


def check_close(ours: Any, want: list[np.ndarray], tolerance: float = 1e-5, spread: float = 1e-3) -> None:
    for a, b in zip(jax.tree.leaves(ours), want, strict=True):
        assert b.std() > spread, "the outputs hardly depend on the image: choose another gain"
        limit = tolerance * max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(np.asarray(a), b, rtol=0, atol=limit)


def check_state(layer: nn.Layer, other: nn.Layer) -> None:
    """Equal names in one order, and equal values and dtypes."""
    ours, theirs = layer.state_dict(), other.state_dict()
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype and np.array_equal(value, theirs[name]), name


def normalised_biases(layer: nn.Layer) -> set[str]:
    """Biases of convolutions that stand right before a normalisation of the batch, which takes them out again."""
    found = set()
    for path, owner in layer.named_sublayers(include_self=True):
        children = list(owner.named_children())
        for (name, conv), (_, norm) in pairwise(children):
            if not isinstance(conv, nn.Conv2D | nn.Conv2DTranspose) or not isinstance(norm, nn.BatchNorm):
                continue
            if (
                conv.bias is not None
                and conv.out_channels == norm.weight.shape[0]
                and not norm.use_global_stats
            ):
                found.add(f"{path}.{name}.bias" if path else f"{name}.bias")
    return found
