"""What layers ask while a program for several devices is traced: a scope that the training step opens, so that models
say nothing of devices. Without it, and on one device, layers compute as they are written.

The implementations are in framework/distributed; here is what the layers call.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import jax
from jax.sharding import NamedSharding

if TYPE_CHECKING:
    from framework.nn.layer import Layer
    from framework.nn.moe import Experts


class Gathered(NamedTuple):
    """Of a parameter that is divided among devices."""

    whole: NamedSharding
    """Where layers have it while they compute"""
    divided: NamedSharding
    """Where it lies between two steps, and its gradient is summed"""


def _gather(value: jax.Array, where: Gathered) -> jax.Array:
    return jax.lax.with_sharding_constraint(value, where.whole)


_gather_divided = jax.custom_vjp(_gather, nondiff_argnums=(1,))
# The transpose of a constraint is the same one: every device would sum the gradient of all of the parameter.
_gather_divided.defvjp(
    lambda value, where: (_gather(value, where), None),
    lambda where, _, cotangent: (jax.lax.with_sharding_constraint(cotangent, where.divided),),
)


def gather(value: jax.Array, where: Gathered) -> jax.Array:
    """A divided parameter, whole on every device. Its gradient is summed and divided in one (reduce-scatter)."""
    return _gather_divided(value, where)


class SequenceAttention(Protocol):
    """Attention over tokens that are divided among devices."""

    def __call__(
        self,
        query: jax.Array,
        key: jax.Array,
        value: jax.Array,
        attn_mask: jax.Array | None,
        dropout_p: float,
        is_causal: bool,
        training: bool,
        /,
    ) -> jax.Array:
        """As `functional.scaled_dot_product_attention`."""
        ...


class ExpertExchange(Protocol):
    """Experts that are divided among devices."""

    def __call__(
        self, experts: Experts, x: jax.Array, selected: jax.Array, weights: jax.Array, /
    ) -> tuple[jax.Array, jax.Array]:
        """As `Experts.forward`."""
        ...


class BlockPipeline(Protocol):
    """Equal blocks that are divided among devices."""

    def __call__(self, blocks: Sequence[Layer], x: jax.Array, arguments: tuple, /) -> jax.Array:
        """As `run_blocks`."""
        ...


class MeshScope(Protocol):
    """How layers compute on a mesh; None where an axis has one device."""

    @property
    def attention(self) -> SequenceAttention | None: ...

    @property
    def experts(self) -> ExpertExchange | None: ...

    @property
    def blocks(self) -> BlockPipeline | None: ...

    def has_whole_heads(self, count: int) -> bool:
        """Whether each device computes attention for some of `count` heads of keys, each of which it has whole."""
        ...


_scope: contextvars.ContextVar[MeshScope | None] = contextvars.ContextVar("oar_mesh", default=None)


@contextlib.contextmanager
def mesh_scope(scope: MeshScope | None) -> Iterator[None]:
    """Within the block layers compute as `scope` says."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)


def current_mesh() -> MeshScope | None:
    """The scope that the code runs in, where there is one."""
    return _scope.get()
