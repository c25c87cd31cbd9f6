"""The section `parallel:` of a configuration, and the mesh of devices that it asks for.

parallel: {fsdp: 4, tensor: 2}        # of 8 devices; those that are left over divide the batch
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import jax
import numpy as np
from jax.sharding import Mesh

from framework.core.device import Device
from framework.core.errors import ConfigError

Axis = Literal["data", "pipeline", "fsdp", "sequence", "expert", "tensor"]
AXES: tuple[Axis, ...] = ("data", "pipeline", "fsdp", "sequence", "expert", "tensor")
"""From the outermost to the innermost: devices that lie next to each other share the last one."""
BATCH_AXES: tuple[Axis, ...] = ("data", "fsdp", "expert")
"""The axes over which the samples of a batch are divided."""


@dataclass(frozen=True)
class ParallelOptions:
    """How a model and its batches are divided among devices.

    Attributes:
        data: Devices that each have a part of the batch and all parameters. Without a number: those that the other axes
            leave.
        fsdp: Devices that each have a part of the batch and of the parameters, whose whole they gather where it is
            computed with (FSDP, ZeRO; sharding_degree of Paddle).
        tensor: Devices that each compute a part of every large matrix product (mp_degree of Paddle).
        sequence: Devices that each have a part of the tokens of every text; attention passes keys and values round
            among them (sep_degree of Paddle).
        expert: Devices that each have a part of the experts of every `nn.MoE`, and of the batch.
        pipeline: Devices that each have a part of the blocks of a model that is a chain of equal ones (pp_degree of
            Paddle); where they do not divide the blocks, the first devices have one more.
        micro_batches: Into how many equal ones a pipeline cuts a batch; None: twice as many as it has devices. The
            devices idle for (pipeline - 1) / (micro_batches + pipeline - 1) of the time.
        schedule: "gpipe" runs all micro batches forward, then all back; "1f1b" one back as soon as it can, so that a
            device keeps the inputs of at most 2 * pipeline - 1 micro batches, whose losses it averages.
        stage: What `fsdp` divides, as ZeRO counts: 1 the state of the optimizer, 2 the gradients besides, 3 the
            parameters too.
        rules: Regular expressions of parameter names, each with an axis (or null) for every dimension of the parameter.
            They go before what follows from the kinds of layers; an axis that does not divide a dimension is left out.
        smallest: Parameters of fewer numbers are whole on every device.
    """

    data: int | None = None
    fsdp: int = 1
    tensor: int = 1
    sequence: int = 1
    expert: int = 1
    pipeline: int = 1
    micro_batches: int | None = None
    schedule: Literal["gpipe", "1f1b"] = "gpipe"
    stage: Literal[1, 2, 3] = 3
    rules: dict[str, tuple[Axis | None, ...]] = field(default_factory=dict)
    smallest: int = 1024

    def __post_init__(self) -> None:
        for name in AXES:
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ConfigError(
                    "an axis of the mesh has devices",
                    where=f"parallel.{name}",
                    received=count,
                    allowed="1 or more",
                )
        if self.pipeline > 1 and (self.sequence > 1 or self.expert > 1):
            raise ConfigError(
                "a pipeline's blocks are not divided by tokens or experts too",
                where="parallel",
                received=f"pipeline {self.pipeline}, sequence {self.sequence}, expert {self.expert}",
                allowed="pipeline with data, fsdp and tensor; or sequence and expert without a pipeline",
            )
        if self.micro_batches is not None and (self.pipeline == 1 or self.micro_batches < 1):
            raise ConfigError(
                "micro batches are those of a pipeline",
                where="parallel.micro_batches",
                received=f"{self.micro_batches} of pipeline {self.pipeline}",
                allowed="1 or more, where pipeline is 2 or more",
            )
        for pattern in self.rules:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    "a pattern must be a regular expression",
                    where="parallel.rules",
                    received=pattern,
                    allowed=str(error),
                ) from None


def axis_sizes(options: ParallelOptions, devices: int) -> dict[str, int]:
    """How many devices each axis of `AXES` has; `data`, where it says nothing, what the others leave."""
    o = options
    sizes = dict(zip(AXES, (o.data, o.pipeline, o.fsdp, o.sequence, o.expert, o.tensor)))
    fixed = math.prod(size for size in sizes.values() if size is not None)
    return {str(name): max(1, devices // fixed) if size is None else size for name, size in sizes.items()}


def make_mesh(options: ParallelOptions, devices: Sequence[Device] | None = None) -> Mesh:
    """The mesh of these devices (default: all of all processes) with the axes of `AXES`.

    Raises:
        ConfigError: the axes do not take as many devices as there are.
    """
    available = list(devices or jax.devices())
    sizes = axis_sizes(options, len(available))
    if math.prod(sizes.values()) != len(available):
        named = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1) or "data 1"
        raise ConfigError(
            "the mesh does not take the devices that there are",
            where="parallel",
            received=f"{named}, {len(available)} devices",
            allowed=f"axes whose product is {len(available)}",
            fix="leave `data` out, which then takes what the others leave; JAX_NUM_CPU_DEVICES=8 makes eight devices "
            "of a CPU",
        )
    return Mesh(np.array(available).reshape(tuple(sizes.values())), AXES)
