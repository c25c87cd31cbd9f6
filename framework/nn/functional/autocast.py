"""Low precision of operations: one table, and the wrapper that applies it to every function of `functional`.

`amp.auto_cast` opens the scope; without it a call passes through untouched. Inside it

* WHITE operations, which are mostly products, cast their float inputs to the low type and return it (attention takes
  its softmax in float32 in between);
* BLACK operations, which sum many terms or take exponents, cast low inputs to float32 and return that;
* all others compute in the type of their inputs. Normalisation is among them: it takes its statistics in float32 and
  returns the type of its input, and so do resizing and sampling.

Operations of jax.numpy that models call themselves follow their inputs, too: low with float32 gives float32.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from framework.core.dtypes import Autocast, autocast
from framework.core.errors import ConfigError, did_you_mean

P = ParamSpec("P")
T = TypeVar("T")

# fmt: off
WHITE = frozenset((
    "attention_with_weights", "scaled_dot_product_attention", "linear", "matmul", "rnn_cell", "rnn_scan",
    "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "bilinear",
))
BLACK = frozenset((
    "gumbel_softmax", "log_sigmoid", "log_softmax", "softmax", "softplus",
    "cosine_similarity", "label_smooth", "normalize", "spectral_norm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "ctc_loss",
    "dice_loss", "kl_div", "l1_loss", "log_loss", "margin_ranking_loss", "mse_loss", "nll_loss", "sigmoid_focal_loss",
    "smooth_l1_loss", "softmax_with_cross_entropy", "square_error_cost", "triplet_margin_loss",
    "adaptive_log_softmax", "adaptive_log_softmax_with_loss", "gaussian_nll_loss", "hinge_embedding_loss",
    "hsigmoid_loss", "local_response_norm", "margin_cross_entropy", "multi_label_margin_loss",
    "multi_label_soft_margin_loss", "multi_margin_loss", "npair_loss", "pairwise_distance", "poisson_nll_loss",
    "rnnt_loss", "soft_margin_loss", "triplet_margin_with_distance_loss",
))
# fmt: on
# Additive masks hold -1e9, which float16 has not; running statistics are kept from call to call.
_AS_THEY_ARE = frozenset({"attn_mask", "running_mean", "running_var"})
_LOW = (jnp.bfloat16, jnp.float16)
_ARRAYS = (jax.Array, np.ndarray)
_known: set[str] = set()


def _cast(tree: T, dtype: DTypeLike, only: tuple[DTypeLike, ...]) -> T:
    def one(leaf: object) -> object:
        return jnp.asarray(leaf, dtype) if isinstance(leaf, _ARRAYS) and leaf.dtype in only else leaf

    return jax.tree.map(one, tree)


def _target(name: str, policy: Autocast) -> tuple[DTypeLike, tuple[DTypeLike, ...]] | None:
    """The type to cast to and the types that are cast, or None."""
    if name in policy.black or (name in BLACK and name not in policy.white):
        return jnp.float32, _LOW
    if name in policy.white or name in WHITE:
        return jnp.dtype(policy.dtype), (jnp.float32, *_LOW)
    return None


def under_autocast(function: Callable[P, T], name: str) -> Callable[P, T]:
    """`function` with its inputs cast as the policy of the surrounding scope says for `name`."""
    _known.add(name)
    exempt = {i for i, word in enumerate(inspect.signature(function).parameters) if word in _AS_THEY_ARE}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        policy = autocast()
        target = None if policy is None else _target(name, policy)
        if target is None:
            return function(*args, **kwargs)
        uncast: Callable[..., T] = function
        low = (arg if i in exempt else _cast(arg, *target) for i, arg in enumerate(args))
        named = {k: arg if k in _AS_THEY_ARE else _cast(arg, *target) for k, arg in kwargs.items()}
        return uncast(*low, **named)

    return call


def check_names(names: frozenset[str], where: str) -> None:
    """Refuse names of operations that do not exist.

    Raises:
        ConfigError: with the nearest name that does.
    """
    for name in sorted(names - _known):
        raise ConfigError(
            "unknown operation",
            where=where,
            received=repr(name),
            allowed="names of functions of framework.nn.functional, such as conv2d, matmul, softmax",
            fix=did_you_mean(name, _known),
        )
