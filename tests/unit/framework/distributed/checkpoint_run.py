"""Writes and reads checkpoints of a divided state: `python -m …checkpoint_run save|resume|damage FOLDER OPTIONS`.

OPTIONS are those of `parallel:` in JSON; null is one device. DEVICES in the environment says how many devices the
process has. Prints a JSON line: the losses, and whether what was read has the bits of what was written.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={os.environ.get('DEVICES', '8')}"

import jax
import numpy as np

from framework.core.errors import OarError
from framework.distributed import ParallelOptions, init_parallel_env
from framework.io.checkpoint import flatten, load_checkpoint
from tests.unit.framework.distributed.axes_run import STEPS, make

LAST = f"step_{STEPS - 1:08d}"
"""The checkpoint that runs go on from: one step is left."""


def main(action: str, folder: str, text: str) -> None:
    init_parallel_env()
    options = json.loads(text)
    trainer, losses = make(
        None if options is None else ParallelOptions(**options, smallest=16),
        Path(folder) if action == "save" else None,
        dropout=0.1,
    )
    if action == "save":
        trainer.fit()
        print(json.dumps({"losses": losses}), flush=True)
        return
    checkpoint = Path(folder) / "checkpoints" / LAST
    try:
        trainer.resume(checkpoint)
    except OarError as error:
        print(json.dumps({"process": jax.process_index(), "error": str(error)}), flush=True)
        return
    state = trainer.state
    saved = load_checkpoint(checkpoint)
    equal = True
    expected = {**saved.model, **saved.train}
    for name, value in {**state.params, **state.buffers, **flatten({"optimizer": state.optimizer})}.items():
        for shard in value.addressable_shards:
            equal &= np.array_equal(np.asarray(shard.data), expected[name][shard.index])
    trainer.fit()
    print(json.dumps({"process": jax.process_index(), "losses": losses, "equal": bool(equal)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
