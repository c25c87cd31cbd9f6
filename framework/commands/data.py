"""Convert a data set, split it, draw its samples, measure them; make images of text, cut lines of pages.

oar data synthesize lines data/lines --count 10000 --corpus texts.txt
oar data synthesize documents data/pages --count 3000 -o classes=publaynet
oar data synthesize tables data/tables --count 10000
oar data labelme boxes data/boxes
oar data lines receipts/images data/lines --labels receipts/boxes
oar data split photos data/photos
oar data show -c pp_lcnet_x0_25_clothing --data data/photos
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

from framework.commands.main import run
from framework.commands.train import data_settings
from framework.config.arguments import (
    OUTPUT,
    add_config,
    add_data,
    add_settings,
    read_overrides,
    setting,
    settings,
)

_DRAWN = {
    "lines": "SyntheticTextLines",
    "pages": "SyntheticPages",
    "documents": "SyntheticDocuments",
    "tables": "SyntheticTables",
}


def parser(whole: bool = True) -> argparse.ArgumentParser:
    """The arguments of `oar data`; unless `whole` without those of `lines`, which load what runs models."""
    made = argparse.ArgumentParser(
        prog="oar data",
        description="Convert a data set, split it, draw its samples, measure them; make images of text, cut lines of "
        "pages.",
    )
    commands = made.add_subparsers(dest="command", required=True)
    split = commands.add_parser("split", help="divide data into a part to train on and one to evaluate")
    split.add_argument("source", help="a folder of class folders, a COCO file, or a file of lines")
    split.add_argument("output", help="the folder to write")
    split.add_argument("--share", type=float, default=0.2, help="of the part to evaluate (default 0.2)")
    split.add_argument("--seed", type=int, default=0)
    split.add_argument(
        "--header", action="store_true", help="the first line names columns, and stays in both parts"
    )
    labelme = commands.add_parser("labelme", help="put annotations of labelme into COCO's format")
    labelme.add_argument("source", help="a folder of images, each with a .json of labelme")
    labelme.add_argument("output", help="the folder to write: annotations.json and images")
    show = commands.add_parser("show", help="draw samples with their labels, after all transforms")
    show.add_argument("--count", type=int, default=8, help="how many (default 8)")
    show.add_argument(*OUTPUT, default="output/samples", help="default: output/samples")
    _add_synthesize(commands)
    _add_lines(commands, whole)
    stats = commands.add_parser("stats", help="sizes, colours and lengths of the samples as they are stored")
    for command in (show, stats):
        add_config(command)
        add_data(command)
        command.add_argument("--part", choices=("train", "eval"), default="train", help="default: train")
        add_settings(command, weights=False)
    return made


def _add_synthesize(commands: Any) -> None:
    made = commands.add_parser(
        "synthesize", help="draw images of text, with labels in PaddleOCR's, COCO's or PubTabNet's formats"
    )
    made.add_argument(
        "kind",
        choices=tuple(_DRAWN),
        help="lines to recognise, pages to detect lines on, documents with boxes of their blocks, or tables",
    )
    made.add_argument("output", help="the folder to write, or to go on with after an interruption")
    made.add_argument("--count", type=int, default=1000, help="how many images (default 1000)")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--fonts", nargs="+", help="font files or folders (default: those of this machine)")
    made.add_argument("--corpus", nargs="+", help="files of texts, one a line (default: random strings)")
    made.add_argument("--characters", help="a dictionary, one character a line, or the characters themselves")
    made.add_argument(
        "--skip_missing",
        action="store_true",
        help="leave out characters that no font has, instead of stopping",
    )
    made.add_argument("--background_images", help="a folder of images to draw on, among other backgrounds")
    made.add_argument(
        "--suffix", choices=(".jpg", ".png"), default=".jpg", help="of the images (default .jpg)"
    )
    made.add_argument("--workers", type=int, default=2, help="threads (default 2)")
    add_settings(made, weights=False)


def _add_lines(commands: Any, whole: bool) -> None:
    made = commands.add_parser(
        "lines", help="cut lines of pages as the reader cuts them, with texts of labels or with its readings"
    )
    if not whole:
        return
    from framework.commands.infer import add_runtime
    from framework.workflow.data.lines import LineOptions
    from framework.workflow.domain.options import add_option_flags

    made.add_argument("source", help="a folder of pages; with --cropped of images of lines")
    made.add_argument("output", help="the folder to write: labels.txt, misread.txt, readings.tsv and images")
    model = made.add_mutually_exclusive_group()
    model.add_argument("-c", "--config", help="what reads, by name or file (default: pp_ocrv6_small)")
    model.add_argument("--model_dir", help="what reads, as an artifact's folder")
    made.add_argument(
        "--overwrite", action="store_true", help="replace what this command wrote into the output before"
    )
    add_runtime(made)
    add_settings(made)
    add_option_flags(made, [LineOptions])


def _lines(args: argparse.Namespace) -> int:
    from framework.commands.infer import choose_runtime
    from framework.inference import keep_memory
    from framework.workflow.data.lines import LineOptions, write_lines
    from framework.workflow.domain.options import make_options

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


def _synthesize(args: argparse.Namespace) -> int:
    from framework.workflow.data.synthesize import synthesize

    given = ("count", "seed", "fonts", "corpus", "characters")
    settings = [text for name in given for text in setting(name, getattr(args, name))]
    settings += setting("skip_missing", args.skip_missing or None)
    settings += setting("style.background_images", args.background_images)
    print(
        synthesize(
            _DRAWN[args.kind], args.output, (*settings, *args.opt), suffix=args.suffix, workers=args.workers
        )
    )
    return 0


def _data(args: argparse.Namespace) -> int:
    if args.command == "synthesize":
        return _synthesize(args)
    if args.command == "lines":
        return _lines(args)
    from framework.workflow.data.commands import draw_samples, measure_data, split_data

    if args.command == "split":
        print(split_data(args.source, args.output, args.share, args.seed, args.header))
        return 0
    if args.command == "labelme":
        from framework.workflow.data.labelme import convert_labelme

        print(convert_labelme(args.source, args.output))
        return 0
    given = read_overrides(args)
    changes = (*given, *data_settings(args, given))
    if args.command == "show":
        for path in draw_samples(args.config, args.output_dir, changes, args.part, args.count):
            print(path)
    else:
        print(measure_data(args.config, changes, args.part))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar data`; returns the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    return run(parser(whole=given[:1] == ["lines"]), _data, given)
