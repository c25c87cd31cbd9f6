"""What devices give: products a second, memory and its speed, and the links between them.

Numbers are those of the makers' data sheets: dense bfloat16 products with float32 sums, bytes a second in one
direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from framework.core.device import Device
from framework.core.errors import ConfigError, did_you_mean
from framework.distributed.mesh import AXES
from framework.distributed.planning.spread import Traffic

REACHED = 0.45
"""The share of the products of a data sheet that a training step reaches."""


@dataclass(frozen=True)
class Hardware:
    """One kind of device and what joins it to others.

    Attributes:
        products: Floating-point operations a second.
        memory: Bytes of a device.
        bandwidth: Bytes a second from and to its memory.
        link: Bytes a second and direction to devices of the same node.
        network: Those to devices of other nodes, for each device.
        per_node: Devices of a node, or of all that `link` joins.
        shared: All devices are one machine's, which does their work one after the other: virtual devices of a CPU.
        latency: Seconds that a device of such a machine takes to meet the others, for each collective.
    """

    products: float
    memory: float
    bandwidth: float
    link: float
    network: float
    per_node: int
    shared: bool = False
    latency: float = 0.0


_GB = 1e9
HARDWARE = {
    "v100": Hardware(125e12, 32 * _GB, 900 * _GB, 150 * _GB, 12.5 * _GB, 8),
    "a100": Hardware(312e12, 80 * _GB, 2039 * _GB, 300 * _GB, 25 * _GB, 8),
    "a100-40": Hardware(312e12, 40 * _GB, 1555 * _GB, 300 * _GB, 25 * _GB, 8),
    "l4": Hardware(121e12, 24 * _GB, 300 * _GB, 32 * _GB, 12.5 * _GB, 8),
    "rtx4090": Hardware(165e12, 24 * _GB, 1008 * _GB, 32 * _GB, 12.5 * _GB, 8),
    "h100": Hardware(989e12, 80 * _GB, 3350 * _GB, 450 * _GB, 50 * _GB, 8),
    "h200": Hardware(989e12, 141 * _GB, 4800 * _GB, 450 * _GB, 50 * _GB, 8),
    "tpu-v4": Hardware(275e12, 32 * _GB, 1228 * _GB, 100 * _GB, 6.25 * _GB, 4096),
    "tpu-v5e": Hardware(197e12, 16 * _GB, 819 * _GB, 100 * _GB, 6.25 * _GB, 256),
    "tpu-v5p": Hardware(459e12, 95 * _GB, 2765 * _GB, 200 * _GB, 6.25 * _GB, 8960),
    "tpu-v6e": Hardware(918e12, 32 * _GB, 1640 * _GB, 200 * _GB, 12.5 * _GB, 256),
}


def find_hardware(name: str) -> Hardware:
    """The device of this name.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in HARDWARE:
        near = did_you_mean(name, HARDWARE)
        raise ConfigError(
            "nothing is known of this device",
            received=name,
            allowed=", ".join(("cpu", *HARDWARE)),
            fix=near or "take the nearest one, with --memory of yours",
        )
    return HARDWARE[name]


def kind_of(device: Device) -> Hardware:
    """The kind of a device that is here, with its own memory; one that nothing is known of is taken for an A100."""
    words = device.device_kind.lower().replace(" ", "")
    names = sorted(HARDWARE, key=len, reverse=True)
    name = next((one for one in names if one.replace("-", "") in words.replace("-", "")), "a100")
    memory = (device.memory_stats() or {}).get("bytes_limit")
    return with_memory(HARDWARE[name], memory)


def parse_memory(text: str) -> float:
    """Bytes of a text such as "80GB", "40GiB" or "16e9".

    Raises:
        ConfigError: it is no size.
    """
    units = {"TIB": 2**40, "GIB": 2**30, "MIB": 2**20, "TB": 1e12, "GB": 1e9, "MB": 1e6, "G": 1e9, "M": 1e6}
    value = text.strip().upper()
    unit = next((one for one in units if value.endswith(one)), "")
    try:
        size = float(value.removesuffix(unit)) * units.get(unit, 1)
    except ValueError:
        size = 0.0
    if not 0 < size < math.inf:
        raise ConfigError("no size of memory", received=text, allowed="such as 80GB, 40GiB or 16e9")
    return size


def with_memory(hardware: Hardware, memory: float | None) -> Hardware:
    """The same with other memory."""
    return hardware if memory is None else replace(hardware, memory=memory)


def collective_seconds(traffic: Traffic, sizes: Sequence[int], hardware: Hardware) -> float:
    """How long one collective takes on a ring: hops and bytes (distributed_llm.md A5)."""
    axes = [axis for axis in range(len(AXES)) if traffic.bits >> axis & 1 and sizes[axis] > 1]
    count = math.prod(sizes[axis] for axis in axes)
    if count == 1:
        return 0.0
    if hardware.shared:  # whatever the groups, each device meets others, reads and writes
        rounds = 2 if traffic.kind == "all-reduce" else 1
        return math.prod(sizes) * (hardware.latency + rounds * traffic.bytes / hardware.link)
    # The innermost axes lie in a node: those that an axis spans are its own times all that are further in.
    span = math.prod(sizes[min(axes) :])
    within = span <= hardware.per_node
    speed, hop = (hardware.link, 8e-6) if within else (hardware.network, 20e-6)
    rounds = 2 if traffic.kind == "all-reduce" else 1
    return rounds * (traffic.bytes * (count - 1) / count / speed + hop * math.log2(count))
