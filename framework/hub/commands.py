"""`python -m zoo list | show NAME | pull NAME | verify NAME`: the weights that Oar knows, and those on this machine.

Exit status: 0 done, 1 something is missing, damaged or cannot be had, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence

from framework.config.command_line import find_flags
from framework.core.errors import OarError
from framework.hub import store as hub
from framework.hub.index import known_domains


def main(argv: Sequence[str] | None = None, prog: str = "python -m zoo") -> int:
    """Runs one command and returns the exit status."""
    args = _parser(prog).parse_args(argv)
    try:
        status = args.run(args)
        sys.stdout.flush()
        return status
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; what was downloaded is kept, pull again to go on", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `… | head`: the reader has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description="The weights that Oar knows.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("list", help="all weights, and which are on this machine")
    command.add_argument("--domain", choices=known_domains())
    for flags in find_flags("models list"):
        flags.add(command, commands)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_list)
    command = commands.add_parser("show", help="one entry: sources, hashes, licence, scores")
    command.add_argument("name")
    command.set_defaults(run=_show)
    command = commands.add_parser("pull", help="download what is not on this machine yet")
    command.add_argument("name")
    command.add_argument("--all-files", action="store_true", help="the dictionary and other files too")
    command.set_defaults(run=_pull)
    command = commands.add_parser(
        "verify", help="read the files on this machine again, compare their hashes, and show what is pinned"
    )
    command.add_argument("name", nargs="?", help="default: all that are on this machine")
    command.set_defaults(run=_verify)
    return parser


def _list(args: argparse.Namespace) -> int:
    found: Mapping[str, hub.Entry] = hub.entries(args.domain)
    for flags in find_flags("models list"):
        found = flags.select(args, found)
    places = {name: hub.locate(name) for name in found}
    facts = {name: hub.file_facts(name) for name in found}
    if args.json:
        keys = ("family", "domain", "form", "licence")
        rows = [
            {
                "name": name,
                **{key: getattr(item, key) for key in keys},
                "path": str(places[name] or "") or None,
                "hash": facts[name].state,
                "sha256": facts[name].sha256,
                "size": facts[name].size,
            }
            for name, item in found.items()
        ]
        print(json.dumps(rows, indent=2))
        return 0
    table = [("name", "family", "form", "licence", "MB", "hash", "here")]
    for name, item in found.items():
        size = facts[name].size
        megabytes = f"{size / 1e6:.1f}" if size else "?"
        here = "yes" if places[name] else "-"
        table.append((name, item.family, item.form, item.licence, megabytes, facts[name].state, here))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return 0


def _show(args: argparse.Namespace) -> int:
    item = hub.entry(args.name)
    for key in ("name", "family", "domain", "form", "licence", "homepage"):
        print(f"{key}: {getattr(item, key)}")
    if item.languages:
        print(f"languages: {', '.join(item.languages)}")
    for code, letters in item.lacks.items():
        print(f"lacks of {code}: {letters}")
    for key in ("model", "preprocess", "precision"):
        if getattr(item, key):
            print(f"{key}: {json.dumps(getattr(item, key), ensure_ascii=True)}")
    for score in item.scores:
        print(f"score: {score['metric']} {score['value']} on {score['set']} ({score['source']})")
    for file in item.files.values():
        print(f"{file.name}: {hub.locate(item.name, file.name) or 'not on this machine'}")
        for source in file.sources:
            size = f"{source.size:,} bytes" if source.size else "size not known"
            sha256 = (
                f"SHA-256 {source.sha256}"
                if source.sha256
                else "no published hash: pinned at the first download"
            )
            print(f"  {source}\n    {size}, {sha256}")
    return 0


def _pull(args: argparse.Namespace) -> int:
    item = hub.entry(args.name)
    for name in item.files if args.all_files else ("weights",):
        print(f"{name}: {hub.fetch(args.name, name)}")
    return 0


def _verify(args: argparse.Namespace) -> int:
    if args.name is not None:
        return _verify_one(args.name)
    names = [
        name for name, item in hub.entries().items() if any(hub.is_here(name, file) for file in item.files)
    ]
    status = 0
    for name in names:
        print(f"{name}:")
        status = max(status, _verify_one(name, indent="  ", needs_weights=False))
    print(f"{len(names)} of {len(hub.entries())} entries have files on this machine")
    return status


def _verify_one(entry: str, indent: str = "", needs_weights: bool = True) -> int:
    """The files of one entry, each in a line. Exit status: 1 where one is damaged, or the weights are needed and not
    here."""
    status = 0
    for name, file in hub.entry(entry).files.items():
        path, misses = hub.look(entry, name, fresh=True)
        damaged = [miss for miss in misses if miss.found]
        note = (
            ""
            if all(source.sha256 for source in file.sources)
            else " (as first downloaded; no hash is published)"
        )
        print(
            f"{indent}{name}: "
            + (f"ok{note}, {path}" if path else "damaged" if damaged else "not on this machine")
        )
        facts = hub.file_facts(entry, name)
        if facts.state == "pinned":
            print(f"{indent}  pinned: SHA-256 {facts.sha256}")
        for miss in damaged:
            print(f"{indent}  {miss}")
        if damaged or (path is None and name == "weights" and needs_weights):
            status = 1
    return status
