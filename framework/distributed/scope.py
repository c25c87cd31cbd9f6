"""How layers compute on a mesh: what a training step opens as `nn.mesh_scope` while it is traced."""

from __future__ import annotations

from dataclasses import dataclass

from framework.core.errors import ConfigError
from framework.distributed.experts import ExpertParallel
from framework.distributed.one_f_one_b import OneForwardOneBackward
from framework.distributed.ring import RingAttention
from framework.nn.mesh_scope import BlockPipeline


@dataclass(frozen=True, eq=False)
class StepScope:
    """See `nn.mesh_scope.MeshScope`; None where the axis has one device.

    Attributes:
        schedule: Computes losses and gradients itself, in place of jax.grad.
        tensor: Devices among which large products, and with them heads, are divided.
    """

    attention: RingAttention | None
    experts: ExpertParallel | None
    blocks: BlockPipeline | None
    schedule: OneForwardOneBackward | None
    tensor: int = 1

    def has_whole_heads(self, count: int) -> bool:
        """See `nn.mesh_scope.MeshScope`. Within a pipeline the compiler does not divide heads itself."""
        return self.blocks is None and self.schedule is None and count % self.tensor == 0

    def check_use(self) -> None:
        """Called after a trace. Raises: ConfigError, where an axis has divided nothing."""
        if self.attention is not None and not self.attention.calls:
            raise ConfigError(
                "the model has no tokens to divide",
                where="parallel.sequence",
                received="a model that calls no functional.scaled_dot_product_attention",
                allowed="models with attention, such as those of zoo.text",
                fix="use data, fsdp or tensor in its place",
            )
