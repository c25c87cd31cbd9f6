"""Whether the axes of a mesh can divide a model: experts and chains of blocks, by their layers."""

from __future__ import annotations

from collections.abc import Mapping

from framework.core.errors import ConfigError
from framework.distributed.mesh import ParallelOptions
from framework.nn.block_chain import BlockChain, first_unequal
from framework.nn.layer import Layer
from framework.nn.moe import Experts


def check_experts(model: Layer, sizes: Mapping[str, int]) -> None:
    """Raises: ConfigError, where `expert` has several devices that cannot divide the experts of a model."""
    count = sizes["expert"]
    if count == 1:
        return
    experts = [
        (path, layer)
        for path, layer in model.named_sublayers(include_self=True)
        if isinstance(layer, Experts)
    ]
    if not experts:
        raise ConfigError(
            "the model has no experts to divide",
            where="parallel.expert",
            received=f"{type(model).__name__}, in which no layer is an nn.MoE",
            allowed="1, or a model with nn.MoE",
            fix="use data, fsdp or tensor in its place",
        )
    for path, layer in experts:
        if layer.num_experts % count:
            raise ConfigError(
                "the devices of the axis do not divide the experts",
                where="parallel.expert",
                received=f"{count} devices, {layer.num_experts} experts in {path}",
                allowed=f"a divisor of {layer.num_experts}",
            )


def find_blocks(model: Layer, options: ParallelOptions) -> tuple[str, ...]:
    """The paths of the blocks that `pipeline` divides, in their order; none where it has one device.

    Raises:
        ConfigError: the model is no chain of equal blocks, or has fewer than there are devices.
    """
    count = options.pipeline
    if count == 1:
        return ()
    layers = list(model.named_sublayers(include_self=True))
    chains = [(path, layer) for path, layer in layers if isinstance(layer, BlockChain)]

    def refuse(received: str, allowed: str, fix: str | None = None) -> ConfigError:
        return ConfigError(
            "the model cannot be a pipeline",
            where="parallel.pipeline",
            received=received,
            allowed=allowed,
            fix=fix,
        )

    if len(chains) != 1:
        received = ", ".join(path or type(model).__name__ for path, _ in chains) or "none"
        raise refuse(
            f"{type(model).__name__} with {len(chains)} chains of equal blocks: {received}",
            "a model with one chain, such as an encoder of zoo.text",
            "put its blocks into nn.PipelineStages, or use fsdp in place of pipeline",
        )
    path, chain = chains[0]
    blocks = chain.blocks()
    if (odd := first_unequal(blocks)) is not None:
        raise refuse(f"blocks of {path}, of which number {odd} differs from the first", "equal blocks")
    if len(blocks) < count:
        raise refuse(f"{count} devices for the {len(blocks)} blocks of {path}", f"at most {len(blocks)}")
    if any(True for block in blocks for _ in block.named_buffers()):
        raise refuse(
            f"blocks of {path} that have buffers, such as statistics of batches",
            "blocks that change nothing but what they give",
        )
    if options.schedule == "1f1b" and any(True for _ in model.named_buffers()):
        raise refuse(
            f"{type(model).__name__} with buffers, such as statistics of batches",
            "with schedule 1f1b a model without them; gpipe allows them outside of the blocks",
        )
    names = {id(layer): name for name, layer in layers}
    return tuple(names[id(block)] for block in blocks)
