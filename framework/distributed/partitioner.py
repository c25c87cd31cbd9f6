"""Where the arrays of a training run lie: batches are divided over a mesh of devices, the state by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import ArrayLike

from framework.core.device import Device
from framework.core.errors import ConfigError

Tree = TypeVar("Tree")


class Partitioner:
    """A mesh with one axis, "data", over which batches are divided.

    Args:
        devices: Those of the mesh; None takes all of the default kind.
        rules: (regular expression of parameter names, PartitionSpec); the first that matches counts. What no rule
            matches is replicated. With jax, "data" on an axis of a parameter divides it over the devices (ZeRO-3).
    """

    def __init__(
        self, devices: Sequence[Device] | None = None, rules: Sequence[tuple[str, PartitionSpec]] = ()
    ) -> None:
        self.devices = tuple(devices or jax.devices())
        self.mesh = Mesh(np.array(self.devices), ("data",))
        self.rules = tuple((re.compile(pattern), spec) for pattern, spec in rules)
        self.replicated = NamedSharding(self.mesh, PartitionSpec())
        self.batch = NamedSharding(self.mesh, PartitionSpec("data"))

    def check_batch_size(self, count: int) -> None:
        """Raises: ConfigError, where a batch of `count` samples cannot be divided among the devices."""
        if not self.divides(count):
            raise ConfigError(
                "the batch cannot be divided among the devices",
                where="data.train.batch_size",
                received=f"{count} samples for {len(self.devices)} devices",
                allowed=f"a multiple of {len(self.devices)}",
            )

    def divides(self, count: int) -> bool:
        """Whether a batch of `count` samples can be divided among the devices."""
        return count % len(self.devices) == 0

    def place(self, tree: Tree, *, copy: bool = False) -> Tree:
        """A pytree of arrays on the mesh: mappings of named arrays by the rules, all else replicated.

        Args:
            copy: The arrays share no memory with those given, which stay when these are donated.
        """

        def place(path: tuple[object, ...], leaf: ArrayLike) -> jax.Array:
            names = [str(getattr(key, "key", "")) for key in path]
            spec = next((s for rule, s in self.rules for name in names if rule.search(name)), PartitionSpec())
            if len(spec) > np.ndim(leaf):  # a count or a factor beside the parameter of this name
                spec = PartitionSpec()
            # `may_alias=False` of device_put still aliases the part on the device where an array is already.
            leaf = jnp.array(leaf, copy=True) if copy else leaf
            return jax.device_put(leaf, NamedSharding(self.mesh, spec))

        return jax.tree_util.tree_map_with_path(place, tree)
