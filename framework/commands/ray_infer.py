"""`oar infer --ray`: its flags, and a batch on the workers of Ray Data."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from framework.core.errors import ConfigError
from framework.inference import Runtime

_FLAGS: dict[str, tuple[type, str]] = {
    "address": (str, "of a cluster: auto, HOST:6379, ray://HOST:10001; default: Ray is started here"),
    "workers": (int, "processes with the model; default: one for each node"),
    "worker_cpus": (float, "CPUs that each reserves; default: an equal share of its node"),
    "worker_gpus": (float, "GPUs that each reserves; default: 0"),
    "shard_size": (int, "files of one file of results, done again where a worker dies; default: 64"),
    "row_timeout": (float, "seconds without a row after which a worker is started again; default: none"),
    "column": (str, "of tables (.parquet): what is read; default: bytes, image, path or text"),
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """`--ray`, and the flags that go with it."""
    parser.add_argument(
        "--ray",
        action="store_true",
        help="a batch on workers of Ray (extra `ray`): a row for each file, in tables of --output_dir; FILE may be "
        "a list of paths (.txt) or a table (.parquet), and the same command goes on where it was stopped",
    )
    for name, (kind, help) in _FLAGS.items():
        parser.add_argument(f"--{name}", type=kind, help=f"--ray: {help}")
    parser.add_argument(
        "--retry_failed",
        action="store_true",
        default=None,
        help="--ray: files whose rows are errors are done again",
    )
    parser.add_argument(
        "--row_format", choices=("parquet", "jsonl"), help="--ray: of the files of rows; default: parquet"
    )


def check_flags(args: argparse.Namespace) -> None:
    """Raises: ConfigError, where a flag of --ray is there without it."""
    flags = [name for name in (*_FLAGS, "retry_failed", "row_format") if getattr(args, name) is not None]
    if flags and not args.ray:
        raise ConfigError(
            "this flag is of a batch on Ray",
            where=args.prog,
            received=", ".join(f"--{name}" for name in flags),
            fix="--ray as well, or leave it out",
        )


def run_batch(
    args: argparse.Namespace,
    files: Sequence[str],
    model: str,
    runtime: Runtime,
    overrides: Sequence[str],
    options: Mapping[str, object],
) -> int:
    """Run the batch that the arguments ask for; returns the exit status: 1 where a file cannot be read."""
    from framework.workflow.batch import ray_data

    names = {"worker_cpus": "cpus", "worker_gpus": "gpus", "row_timeout": "timeout"}
    values = {name: value for name in (*_FLAGS, "retry_failed") if (value := getattr(args, name)) is not None}
    batch = ray_data.BatchOptions(**{names.get(name, name): value for name, value in values.items()})
    here = os.path.abspath(model) if os.path.exists(model) else model  # workers have another current folder
    report = ray_data.run_batch(
        ray_data.BatchModel(here, runtime, tuple(overrides), options),
        files,
        Path(args.output_dir),
        args.row_format or "parquet",
        batch,
    )
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code
