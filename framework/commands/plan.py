"""Say how to divide a training among devices that need not be here.

oar plan -c bert_base_sst2 --devices 64 --hardware h100
oar plan -c resnet50_imagenet --devices 8 --memory 24GB --compile 2
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.commands.main import run
from framework.commands.train import open_data_config
from framework.config.arguments import add_config, add_data, add_settings, read_overrides
from framework.core.errors import ConfigError

if TYPE_CHECKING:
    from framework.distributed import ParallelOptions

_MOST_VIRTUAL = 2048  # devices that jax makes of a CPU
_MEASURED = 16  # of them, on which their speed is measured


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar plan`."""
    arguments = argparse.ArgumentParser(
        prog="oar plan",
        description="Say how to divide a training among devices that need not be here: by memory and time.",
    )
    add_config(arguments)
    add_data(arguments)
    arguments.add_argument(
        "--devices", type=int, required=True, metavar="N", help="how many devices there are"
    )
    arguments.add_argument(
        "--hardware",
        default="h100",
        help="their kind: a100, h100, h200, tpu-v5p, …; cpu: devices that this machine's CPU is divided into, measured",
    )
    arguments.add_argument("--memory", help="of each device, such as 80GB; default: that of the kind")
    arguments.add_argument("--top", type=int, default=5, metavar="N", help="divisions that are shown")
    arguments.add_argument(
        "--compile",
        type=int,
        metavar="N",
        help="compile the N best ones, whose memory is then the compiler's: for these devices where jax's plugin for "
        "them is installed (jax[cuda13]), else for as many of a CPU. Those of --hardware cpu are run, too. Default: 5 "
        "for cpu, 1 with the plugin, else 0",
    )
    add_settings(arguments, weights=False)
    return arguments


def _plan(args: argparse.Namespace) -> int:
    import jax

    from framework.distributed.planning.calibration import calibrate
    from framework.distributed.planning.hardware import find_hardware, parse_memory, with_memory
    from framework.distributed.planning.topology import GPUS, absent_devices, has_compiler
    from framework.workflow.train.plan import plan

    is_virtual = not has_compiler(args.hardware)
    if args.compile is None:
        can_be_virtual = args.hardware == "cpu" and args.devices <= _MEASURED
        args.compile = 5 if can_be_virtual else 0 if is_virtual else 1
    if args.devices < 1 or args.top < 1 or args.compile < 0:
        raise ConfigError(
            "a plan is made for devices",
            where="oar plan",
            received=f"--devices {args.devices} --top {args.top} --compile {args.compile}",
            allowed="1 or more devices and rows, 0 or more to compile",
        )
    if args.compile and is_virtual and args.devices > _MOST_VIRTUAL:
        raise ConfigError(
            "so many devices cannot be made of a CPU",
            where="--compile",
            received=f"{args.devices} devices",
            allowed=f"up to {_MOST_VIRTUAL}",
            fix="plan without --compile, or for fewer devices",
        )
    # Of arrays there are none, so the devices of this machine do not matter.
    jax.config.update("jax_platforms", "cpu")
    measured = min(args.devices, _MEASURED) if args.hardware == "cpu" else 1
    virtual = args.devices if args.compile and is_virtual else measured
    if virtual > 1:
        jax.config.update("jax_num_cpu_devices", virtual)
    if args.hardware == "cpu":
        hardware = calibrate(jax.devices()[:measured])
        hardware = with_memory(hardware, hardware.memory * measured / args.devices)
    else:
        hardware = find_hardware(args.hardware)
    hardware = with_memory(hardware, parse_memory(args.memory) if args.memory else None)
    result = plan(
        open_data_config(args, read_overrides(args, training=True)).experiment, args.devices, hardware
    )
    if args.compile:
        devices = jax.devices() if is_virtual else absent_devices(args.hardware, args.devices)
        run = args.hardware == "cpu" and args.devices <= _MEASURED
        result = result.compiled(devices[: args.devices], args.compile, run=run)
        kind = "devices of a CPU" if is_virtual else GPUS[args.hardware].title
        print(f"compiled for {args.devices} {kind}")
    print(result.describe(args.top))
    if result.best is None:
        return 1
    print(f"-o {' '.join(_overrides(result.best.options, result.best.recompute))}")
    return 0


def _overrides(options: ParallelOptions, recompute: str | None) -> list[str]:
    """The changes of a config that a division is."""
    sizes = {"fsdp": options.fsdp, "tensor": options.tensor}
    changes = [f"parallel.{name}={size}" for name, size in sizes.items() if size > 1]
    if options.fsdp > 1:
        changes.append(f"parallel.stage={options.stage}")
    if recompute is not None:
        changes.append(f"train.recompute={json.dumps(recompute)}")
    return changes or ["parallel.fsdp=1"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar plan`; exit status 0 where a division fits, 1 where none does, 2 an error."""
    return run(parser(), _plan, argv)
