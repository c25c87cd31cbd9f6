"""Prove that the installation works: a model trains, is exported and runs on the device."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from framework.commands.main import run, use_device
from framework.config.arguments import add_device


def _check(args: argparse.Namespace) -> int:
    from framework.install_check import run_check

    use_device(args)
    run_check()
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar run-check`; returns the exit status."""
    made = argparse.ArgumentParser(prog="oar run-check", description="Prove that the installation works.")
    add_device(made)
    return run(made, _check, argv)
