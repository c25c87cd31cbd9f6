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

AXES = ("data", "fsdp", "tensor")
"""From the outermost to the innermost: devices that lie next to each other share the last one."""
BATCH_AXES = ("data", "fsdp")
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
        stage: What `fsdp` divides, as ZeRO counts: 1 the state of the optimizer, 2 the gradients besides, 3 the
            parameters too.
        rules: Regular expressions of parameter names, each with an axis (or null) for every dimension of the parameter.
            They go before what follows from the kinds of layers; an axis that does not divide a dimension is left out.
        smallest: Parameters of fewer numbers are whole on every device.
    """

    data: int | None = None
    fsdp: int = 1
    tensor: int = 1
    stage: Literal[1, 2, 3] = 3
    rules: dict[str, tuple[Literal["data", "fsdp", "tensor"] | None, ...]] = field(default_factory=dict)
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


def make_mesh(options: ParallelOptions, devices: Sequence[Device] | None = None) -> Mesh:
    """The mesh of these devices (default: all of all processes) with the axes of `AXES`.

    Raises:
        ConfigError: the axes do not take as many devices as there are.
    """
    available = list(devices or jax.devices())
    fixed = options.fsdp * options.tensor
    data = options.data if options.data is not None else max(1, len(available) // fixed)
    sizes = data, options.fsdp, options.tensor
    if math.prod(sizes) != len(available):
        raise ConfigError(
            "the mesh does not take the devices that there are",
            where="parallel",
            received=f"{' x '.join(f'{name} {size}' for name, size in zip(AXES, sizes))}, {len(available)} devices",
            allowed=f"axes whose product is {len(available)}",
            fix="leave `data` out, which then takes what the others leave; JAX_NUM_CPU_DEVICES=8 makes eight devices "
            "of a CPU",
        )
    return Mesh(np.array(available).reshape(sizes), AXES)
