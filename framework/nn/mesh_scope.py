"""What layers ask while a program for several devices is traced: a scope that the training step opens, so that models
say nothing of devices. Without it, and on one device, layers compute as they are written.

The implementations are in framework/distributed; here is what the layers call.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import jax

if TYPE_CHECKING:
    from framework.nn.layer import Layer
    from framework.nn.moe import Experts


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
