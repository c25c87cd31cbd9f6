"""The models by name, and their weights: list, show, pull, verify.

oar models names "*lcnet*"
oar models pull pp_ocrv6_small_det
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Sequence

from framework.commands.main import run
from framework.hub import commands


def _names(args: argparse.Namespace) -> int:
    from framework.workflow.domain.domain import all_domains, config_names

    found = 0
    for domain in all_domains():
        for name, path in config_names(domain.name).items():
            if fnmatch.fnmatch(name, args.pattern):
                found += 1
                print(f"{name}\t{domain.name}\t{path.relative_to(domain.configs.parent).as_posix()}")
    if not found:
        print(f"error: no name matches {args.pattern!r}", file=sys.stderr)
    return 0 if found else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar models`; without a subcommand it lists the weights. Returns the exit status."""
    given = list(argv or ["list"])
    if given[0] == "names":
        made = argparse.ArgumentParser(
            prog="oar models names", description="The configs that every command takes by name."
        )
        made.add_argument("pattern", nargs="?", default="*", help='such as "*lcnet*"')
        return run(made, _names, given[1:])
    if given[0] in ("-h", "--help"):
        print("oar models names [PATTERN]: the configs that every command takes by name\n")
    return commands.main(given, "oar models")
