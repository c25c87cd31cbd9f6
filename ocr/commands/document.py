"""Read PDFs and scans into Markdown, HTML, JSON, text, Word, Excel, searchable PDF, hOCR, ALTO and TSV.

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

from framework.commands.infer import IGNORED, add_runtime, choose_runtime
from framework.commands.main import run
from framework.config.arguments import (
    BooleanFlag,
    add_ignored,
    read_overrides,
    settings,
)
from framework.core.errors import InputError
from framework.inference import keep_memory
from framework.workflow.domain.options import add_option_flags, make_options
from framework.workflow.files.documents import convert_documents
from framework.workflow.files.sources import open_sources
from ocr.commands.document_flags import (
    add_upstream_flags,
    check_upstream_flags,
    upstream_model,
    upstream_settings,
)
from ocr.documents.config import open_ocr_config, read_document_config
from ocr.documents.options import DocumentOptions
from ocr.exporters.files import parse_formats
from ocr.pipeline.options import DEFAULT_MODEL

# PaddleOCR's switches of formats, of predict_system.py and of its 3.x commands.
_FORMAT_FLAGS = {"recovery": "docx", "recovery_to_markdown": "md", "save_pdf": "pdf"}
_FORMAT_NAMES = {"markdown": "md", "word": "docx", "excel": "xlsx", "text": "txt"}
# Switches of a stage that is a network here, and the network that they stand for.
_NETWORKS = {
    "use_formula_recognition": ("formula_model", "PP-FormulaNet_plus-S"),
    "formula": ("formula_model", "PP-FormulaNet_plus-S"),
}
# Kept out of the records: they change nothing, or are no business of whoever reads the folder.
_UNRECORDED = ("password", "workers")


def parser() -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    """The arguments, and the names of the readers' options among them."""
    made = argparse.ArgumentParser(
        prog="oar document",
        description="Read PDFs and scans into Markdown, HTML, JSON, Word, Excel and searchable PDF. A folder that was "
        "begun goes on where it ended; a file or page that cannot be read does not stop the others.",
    )
    made.add_argument(
        "sources",
        nargs="*",
        metavar="FILE|FOLDER",
        help='PDFs, images, folders of them with their subfolders, patterns such as "*.tif", and - for standard input',
    )
    made.add_argument(
        *("-i", "--input", "--image_dir"), dest="input", nargs="+", metavar="FILE|FOLDER", help="the same"
    )
    made.add_argument(
        "--allow_url", action=BooleanFlag, default=False, help="fetch files whose address is named"
    )
    made.add_argument(
        *("--format", "--formats"),
        dest="formats",
        action="append",
        metavar="md,html,json,txt,docx,xlsx,pdf,hocr,alto,tsv,paddle",
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
    return made, add_option_flags(made, [DocumentOptions])


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
    flags = [ending for name, ending in _FORMAT_FLAGS.items() if getattr(args, name)]
    formats = parse_formats([*(args.formats or ()), *flags], known, _FORMAT_NAMES) or ("md",)
    return tuple(dict.fromkeys([*formats, *(["png"] if args.draw else [])]))


def _document(args: argparse.Namespace, names: Sequence[str]) -> int:
    from ocr.documents.convert import open_converter  # what only prints the help needs none of it

    given = read_overrides(args)
    values = vars(args)
    named = [*args.sources, *(args.input or ())]
    if not named:
        raise InputError(
            "there is nothing to read",
            where="oar document",
            allowed="PDFs, images, folders of them, or - for standard input",
        )
    check_upstream_flags(values)
    model, overrides = (
        upstream_model(values) or args.model_dir or args.config,
        settings(given, args.model_path),
    )
    options: dict[str, object] = {}
    file = None if args.config is None else open_ocr_config(args.config)
    if file is not None and (found := read_document_config(file, overrides)) is not None:
        model, overrides, options = found[0], tuple(found[1]), dict(found[2])
    overrides += upstream_settings(values)
    options |= {name: values[name] for name in names if values[name] is not None}
    for name, (option, network) in _NETWORKS.items():
        if values[name] is not None:
            options[option] = (options.get(option) or network) if values[name] else None
    if args.mode == "kie":
        options["fields"] = True
    chosen = make_options(DocumentOptions, options, "oar document")
    keep_memory()
    opened = file if file is not None and model == args.config else model or DEFAULT_MODEL  # it is read once
    converter = open_converter(opened, chosen, choose_runtime(args), overrides)
    formats = _choose_formats(args, converter.formats)
    kept = {name: value for name, value in dataclasses.asdict(chosen).items() if name not in _UNRECORDED}
    output_dir = Path(args.output_dir)
    with open_sources(named, converter.suffixes, output_dir=output_dir, allow_url=args.allow_url) as sources:
        report = convert_documents(
            converter,
            sources,
            output_dir,
            formats,
            {"model": model, "overrides": list(overrides), **kept},
            overwrite=args.overwrite,
        )
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar document`; returns the exit status."""
    made, names = parser()
    return run(made, lambda args: _document(args, names), argv, "stopped; what is read stays")
