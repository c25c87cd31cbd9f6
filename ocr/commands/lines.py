"""Cut lines of pages, as images with labels to train a recogniser on.

oar data lines receipts/images data/lines --labels receipts/boxes
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence

from framework.commands.infer import add_runtime, choose_runtime
from framework.commands.main import run
from framework.config.arguments import add_settings, read_overrides, settings
from framework.inference import keep_memory
from framework.workflow.domain.options import add_option_flags, make_options
from ocr.pipeline.line_files import LineOptions, write_lines
from ocr.pipeline.options import DEFAULT_MODEL


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar data lines`."""
    made = argparse.ArgumentParser(prog="oar data lines")
    made.add_argument("source", help="a folder of pages; with --cropped of images of lines")
    made.add_argument("output", help="the folder to write: labels.txt, misread.txt, readings.tsv and images")
    model = made.add_mutually_exclusive_group()
    model.add_argument("-c", "--config", help=f"what reads, by name or file (default: {DEFAULT_MODEL})")
    model.add_argument("--model_dir", help="what reads, as an artifact's folder")
    made.add_argument(
        "--overwrite", action="store_true", help="replace what this command wrote into the output before"
    )
    add_runtime(made)
    add_settings(made)
    add_option_flags(made, [LineOptions])
    return made


def _lines(args: argparse.Namespace) -> int:
    keep_memory()
    given, values = settings(read_overrides(args), args.model_path), vars(args)
    options = {field.name: values[field.name] for field in dataclasses.fields(LineOptions)}
    report = write_lines(
        args.source,
        args.output,
        make_options(LineOptions, options, "oar data lines"),
        model=args.model_dir or args.config,
        runtime=choose_runtime(args),
        overrides=given,
        overwrite=args.overwrite,
    )
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar data lines`; returns the exit status."""
    return run(parser(), _lines, argv)
