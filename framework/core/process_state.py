"""What a whole process shares and can change: seeds, the folder of compiled programs, and the switches and names of
programs written for Paddle. `reset()` makes it as it was at the start; caches of what was computed are elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass
class ProcessState:
    """One object for the process; whoever changes a field from several threads holds a lock of its own.

    Attributes:
        key_stream: The stream of random keys outside of any scope; None: that of seed 0.
        initializer_seed: The seed and the number of generators drawn for parameters so far.
        program_seed: The seed that every parameter starts from (Paddle's seed of a program); 0: there is none.
        host_rng: The generator of host transforms outside of any scope; None: that of seed 0.
        cache_ready: Whether jax keeps compiled programs already.
        cache_folder: The folder of compiled programs that a caller named.
        lazy_parameters: Whether parameters are made without values (paddle.LazyGuard).
        to_static: Whether functions under paddle.jit.to_static are compiled.
        parallel_started: Whether paddle.distributed.init_parallel_env was called.
        stream: The current stream of paddle.device; None: the one of the start.
        name_counters: How often paddle.utils.unique_name gave each key.
        name_prefix: What it puts before every name.
        layer_name: The layer of paddle.static.nn that parameters and results are called after just now.
        names_taken: The parameter names that users gave.
        image_backend: What data sets of images give that are not told: "pil" or "cv2".
        image_tensors: Whether paddle.vision.image_load gives Tensors.
        engines: What runs the artifacts that were opened, a line each: engine, why, and precision.
        slow_engines: Of these what is slower than it need be, a line each, which results carry as a warning.
        hybrid_groups: The groups of processes that fleet.init of framework.paddle has made.
        backward_watchers: References to what is called after each backward of framework.paddle.
        rpc_worker: What paddle.distributed.rpc.init_rpc has made.
        timers: What the timers of paddle.distributed.fleet have measured.
        auto_mesh: The mesh that paddle.distributed.fleet.auto.create_mesh has made.
        flags: Paddle's flags that differ from those of the start.
    """

    key_stream: Any = None
    initializer_seed: tuple[int, int] = (0, 0)
    program_seed: int = 0
    host_rng: Any = None
    cache_ready: bool = False
    cache_folder: Path | None = None
    lazy_parameters: bool = False
    to_static: bool = True
    parallel_started: bool = False
    stream: Any = None
    name_counters: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    name_prefix: str = ""
    layer_name: str | None = None
    names_taken: set[str] = field(default_factory=set)
    image_backend: str = "pil"
    image_tensors: bool = False
    engines: list[str] = field(default_factory=list)
    slow_engines: list[str] = field(default_factory=list)
    hybrid_groups: object = None
    backward_watchers: list[Callable[[], object]] = field(default_factory=list)
    rpc_worker: object = None
    timers: object = None
    auto_mesh: object = None
    flags: dict[str, bool | int | float | str] = field(default_factory=dict)


state = ProcessState()


def reset() -> None:
    """Make the state what it was when the process started."""
    fresh = ProcessState()
    for item in fields(ProcessState):
        setattr(state, item.name, getattr(fresh, item.name))
