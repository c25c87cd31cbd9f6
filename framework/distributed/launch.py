"""Run a script, or a command of `oar`, on chosen devices and in several processes: paddle.distributed.launch.

python -m framework.distributed.launch --gpus 0,1 tools/train.py -c lenet_mnist
oar launch --nproc_per_node 2 train -c lenet_mnist
oar launch --nnodes 2 --rank 0 --master 10.0.0.1:12361 train -c lenet_mnist

One process drives all of its devices, so on GPUs and TPUs one a machine is enough, and nothing is started beside this
one. Of several, each has its log; where one fails, all end, and are started again from the last checkpoint.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from framework.core.errors import ConfigError, InputError
from framework.distributed.supervisor import Supervisor

# Of paddle.distributed.launch and torchrun, about what jax knows itself or about parameter servers.
_IGNORED = ("job_id", "run_mode", "log_level", "elastic_level", "elastic_timeout", "backend")


def parser(prog: str = "python -m framework.distributed.launch") -> argparse.ArgumentParser:
    """The arguments of Paddle's launcher, and what is to be run."""
    made = argparse.ArgumentParser(
        prog=prog, description="Run a script or a command of oar on chosen devices and in several processes."
    )
    made.add_argument(
        "--gpus", "--devices", "--selected_gpus", dest="gpus", help="such as 0,1; default: all that are there"
    )
    made.add_argument(
        *_spellings("nproc_per_node"), type=int, default=1, help="processes on this machine; default: 1"
    )
    made.add_argument("--nnodes", default="1", help="machines; each runs this command with its own --rank")
    made.add_argument(
        "--rank", *_spellings("node_rank"), type=int, default=0, help="the number of this machine, from 0"
    )
    made.add_argument(
        "--master", help="where the processes meet, such as 10.0.0.1:12361; on one machine a free port"
    )
    made.add_argument(*_spellings("master_addr"), help="of --master, as torchrun has it")
    made.add_argument(*_spellings("master_port"), type=int, help="of --master, as torchrun has it")
    made.add_argument(
        *_spellings("log_dir"), default="log", help="of workerlog.0, workerlog.1, …; default: log"
    )
    made.add_argument(
        *_spellings("max_restart"),
        type=int,
        default=3,
        help="how often all are started again where one fails",
    )
    made.add_argument(
        *_spellings("hang_timeout"),
        type=float,
        default=1800.0,
        help="seconds without a step until a process counts as hung",
    )
    made.add_argument("--standalone", action="store_true", help=argparse.SUPPRESS)  # of torchrun: one machine
    for name in ("ips", *_IGNORED):
        made.add_argument(*_spellings(name), help=argparse.SUPPRESS)
    made.add_argument("script", help="a Python file, or a command of oar such as train")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script takes")
    return made


def _spellings(name: str) -> tuple[str, ...]:
    """An option with underscores, as Paddle has it, and with dashes, as torchrun and accelerate have it too."""
    return tuple(dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}")))


def launch(args: argparse.Namespace) -> int:
    """Run what the arguments of `parser` say; the exit status. A single process, which must not have used jax yet, runs
    the script itself and raises SystemExit as the script does.

    Raises:
        ConfigError: numbers that contradict one another. InputError: there is no such script.
    """
    nodes = _count_nodes(args.nnodes)
    if args.nproc_per_node < 1:
        raise ConfigError(
            "a machine runs processes",
            where="--nproc_per_node",
            received=args.nproc_per_node,
            allowed="1 or more",
        )
    if not 0 <= args.rank < nodes:
        raise ConfigError(
            "the number of a machine is smaller than their number",
            where="--rank",
            received=f"{args.rank} of {nodes}",
            allowed=f"0 to {nodes - 1}",
        )
    addresses = [one.strip() for one in (args.ips or "").split(",") if one.strip()]
    if len(addresses) > nodes:
        raise ConfigError(
            "machines are counted, and not listed",
            where="--ips",
            received=args.ips,
            allowed=f"--nnodes {len(addresses)} --master {addresses[0]}:12361, and --rank 0, 1, … on each",
        )
    master = _find_master(args, nodes)
    if nodes > 1 and master is None:
        raise ConfigError(
            "machines must know where to meet",
            where="--master",
            received="nothing",
            allowed="address and port of the machine with --rank 0, such as 10.0.0.1:12361",
        )
    _choose_devices(args.gpus)
    if args.script.endswith(".py") and not Path(args.script).is_file():
        raise InputError("there is no such script", where=args.script, fix="check the path")
    if nodes * args.nproc_per_node > 1:
        return Supervisor(
            [sys.executable, "-u", "-m", "framework", *_words(args.script, args.arguments)],
            args.nproc_per_node,
            nodes,
            args.rank,
            master,
            Path(args.log_dir),
            args.max_restart,
            args.hang_timeout,
        ).run()
    sys.argv = ["oar", *_words(args.script, args.arguments)]
    runpy.run_module("framework", run_name="__main__", alter_sys=True)
    return 0


def _find_master(args: argparse.Namespace, nodes: int) -> str | None:
    """Address and port, by whichever options name them."""
    address = args.master_addr or ("127.0.0.1" if nodes == 1 and args.master_port is not None else None)
    if args.master is not None or address is None:
        return args.master
    return f"{address}:{args.master_port or 12361}"


def _count_nodes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(
            "the number of machines must be a number", where="--nnodes", received=text, allowed="such as 2"
        )
    return int(text)


def _choose_devices(gpus: str | None) -> None:
    if gpus is None:
        return
    if not all(number.strip().isdecimal() for number in gpus.split(",")):
        raise ConfigError(
            "devices must be named by numbers", where="--gpus", received=gpus, allowed="numbers, such as 0,1"
        )
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        os.environ[variable] = gpus


def _words(script: str, arguments: Sequence[str]) -> list[str]:
    """A command of oar; a script is one of `oar run`, in which `import paddle` means Oar."""
    return [*(["run"] if script.endswith(".py") else []), script, *arguments]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the launcher with these arguments (default: those of this process)."""
    return launch(parser().parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
