"""Read PDFs and scans into Markdown, HTML, JSON, Word, Excel and searchable PDF.

oar document docs/images/receipt.png --format md,json --fields
oar document papers --format md,docx --output output/papers
oar document scan.pdf -c PP-StructureV3
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from framework.commands.document_flags import (
    add_upstream_flags,
    check_upstream_flags,
    upstream_model,
    upstream_settings,
)
from framework.commands.infer import IGNORED, add_runtime, choose_runtime
from framework.commands.main import run
from framework.config.arguments import (
    BooleanFlag,
    add_ignored,
    read_overrides,
    settings,
)
from framework.core.errors import InputError, did_you_mean
from framework.inference import keep_memory
from framework.workflow.domain.domain import Domain, document_domain
from framework.workflow.domain.options import add_option_flags, make_options
from framework.workflow.files.documents import convert_documents

# PaddleOCR's switches of formats, of predict_system.py and of its 3.x commands.
_FORMAT_FLAGS = {"recovery": "docx", "recovery_to_markdown": "md", "save_pdf": "pdf"}
_FORMAT_NAMES = {"markdown": "md", "word": "docx", "excel": "xlsx"}
# Switches of a stage that is a network here, and the network that they stand for.
_NETWORKS = {
    "use_formula_recognition": ("formula_model", "PP-FormulaNet_plus-S"),
    "formula": ("formula_model", "PP-FormulaNet_plus-S"),
}
# Kept out of the records: they change nothing, or are no business of whoever reads the folder.
_UNRECORDED = ("password", "workers")


def parser() -> tuple[argparse.ArgumentParser, Domain[Any], tuple[str, ...]]:
    """The arguments, the domain that reads documents, and the names of its options among them."""
    domain = document_domain()
    made = argparse.ArgumentParser(
        prog="oar document",
        description="Read PDFs and scans into Markdown, HTML, JSON, Word, Excel and searchable PDF. A folder that was "
        "begun goes on where it ended; a file or page that cannot be read does not stop the others.",
    )
    made.add_argument("source", nargs="?", metavar="FILE|FOLDER", help="a PDF, an image, or a folder of them")
    made.add_argument(*("-i", "--input", "--image_dir"), dest="input", metavar="FILE|FOLDER", help="the same")
    made.add_argument(
        *("--format", "--formats"),
        dest="formats",
        action="append",
        metavar="md,html,json,docx,xlsx,pdf,paddle",
        help="what to write, several apart by commas (default: md). paddle is PP-StructureV3's JSON",
    )
    made.add_argument(
        *("-o", "--output", "--output_dir", "--save_path"),
        dest="output_dir",
        default="output",
        help="default: output",
    )
    made.add_argument("--overwrite", action=BooleanFlag, default=False, help="read what is finished, too")
    made.add_argument(
        *("--draw", "--visualize"),
        action=BooleanFlag,
        default=False,
        help="draw the blocks of every page: png",
    )
    group = made.add_mutually_exclusive_group()
    group.add_argument(
        *("-c", "--config", "--paddlex_config"),
        dest="config",
        help="a config of documents, such as PP-StructureV3, or one of the recogniser of scans; "
        "flags go before what it says",
    )
    group.add_argument("--model_dir", help="an artifact's folder, of the recogniser of scans")
    made.add_argument("--mode", choices=("structure", "kie"), default="structure", help="kie: --fields True")
    for name, ending in _FORMAT_FLAGS.items():
        made.add_argument(f"--{name}", action=BooleanFlag, default=False, help=f"short for --format {ending}")
    for name, (option, network) in _NETWORKS.items():
        made.add_argument(f"--{name}", action=BooleanFlag, help=f"True: short for --{option} {network}")
    add_runtime(made)
    add_settings_long(made)
    add_upstream_flags(made)
    add_ignored(made, "XLA compiles the program for the device", IGNORED)
    assert domain.document_options is not None
    return made, domain, add_option_flags(made, [domain.document_options])


def add_settings_long(parser: argparse.ArgumentParser) -> None:
    """`--opt key=value` of the recogniser's config; `-o` is the output here, as in PaddleOCR's tools of documents."""
    add_settings_names = ("--opt", "--opts")
    parser.add_argument(
        *add_settings_names, dest="opt", nargs="+", action="extend", default=[], metavar="key=value",
        help="change settings of the config",
    )  # fmt: skip
    parser.add_argument("--model_path", metavar="WEIGHTS", help="short for --opt weights=WEIGHTS")


def _choose_formats(args: argparse.Namespace, known: Sequence[str]) -> tuple[str, ...]:
    """The formats, each once. Raises: InputError: there is no such one."""
    given: list[str] = [
        part.strip().lower().lstrip(".") for text in args.formats or () for part in text.split(",")
    ]
    given += [ending for name, ending in _FORMAT_FLAGS.items() if getattr(args, name)]
    given = [_FORMAT_NAMES.get(name, name) for name in given if name]
    for name in given:
        if name not in known:
            raise InputError(
                "there is no such format",
                where="--format",
                received=name,
                allowed=", ".join(known),
                fix=did_you_mean(name, known),
            )
    return tuple(dict.fromkeys([*(given or ["md"]), *(["png"] if args.draw else [])]))


def _document(args: argparse.Namespace, domain: Domain[Any], names: Sequence[str]) -> int:
    given = read_overrides(args)
    values = vars(args)
    source = args.source or args.input
    if source is None or (args.source and args.input):
        raise InputError(
            "there is one source",
            where="oar document",
            received="two" if source else "none",
            allowed="a PDF, an image, or a folder of them",
        )
    check_upstream_flags(values)
    model, overrides = (
        upstream_model(values) or args.model_dir or args.config,
        settings(given, args.model_path),
    )
    options: dict[str, Any] = {}
    if args.config is not None and (found := domain.read_document_config(args.config, overrides)) is not None:
        model, overrides, options = found[0], tuple(found[1]), dict(found[2])
    overrides += upstream_settings(values)
    options |= {name: values[name] for name in names if values[name] is not None}
    for name, (option, network) in _NETWORKS.items():
        if values[name] is not None:
            options[option] = (options.get(option) or network) if values[name] else None
    if args.mode == "kie":
        options["fields"] = True
    assert domain.document_options is not None
    chosen = make_options(domain.document_options, options, "oar document")
    keep_memory()
    converter = domain.open_documents(model, chosen, choose_runtime(args), overrides)
    formats = _choose_formats(args, converter.formats)
    kept = {name: value for name, value in dataclasses.asdict(chosen).items() if name not in _UNRECORDED}
    report = convert_documents(
        converter,
        Path(source),
        Path(args.output_dir),
        formats,
        {"model": model, "overrides": list(overrides), **kept},
        overwrite=args.overwrite,
    )
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar document`; returns the exit status."""
    made, domain, names = parser()
    return run(made, lambda args: _document(args, domain, names), argv, "stopped; what is read stays")
