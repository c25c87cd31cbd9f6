"""Activations of language models, by the names in upstream's `hidden_act`.

Reference: activations.py of transformers 5. Its functions with weights (prelu, xielu) are none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax

from framework.nn import functional as F


def _tanh_gelu(x: jax.Array) -> jax.Array:
    return F.gelu(x, approximate=True)


def _quick_gelu(x: jax.Array) -> jax.Array:
    """x * sigmoid(1.702 x), of CLIP."""
    return x * F.sigmoid(1.702 * x)


def _squared_relu(x: jax.Array) -> jax.Array:
    return F.relu(x) ** 2


ACTIVATIONS: Mapping[str, Callable[[jax.Array], jax.Array]] = {
    "silu": F.silu,
    "swish": F.silu,
    "gelu": F.gelu,
    "gelu_python": F.gelu,
    "gelu_new": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "gelu_python_tanh": _tanh_gelu,
    "gelu_accurate": _tanh_gelu,
    "gelu_fast": _tanh_gelu,
    "quick_gelu": _quick_gelu,
    "relu": F.relu,
    "relu2": _squared_relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "sigmoid": F.sigmoid,
    "tanh": F.tanh,
    "hardswish": F.hardswish,
    "mish": F.mish,
    "linear": lambda x: x,
}
