"""Convert a data set, split it, draw its samples, measure them; and what domains add to `oar data`.

oar data labelme boxes data/boxes
oar data split photos data/photos
oar data show -c pp_lcnet_x0_25_clothing --data data/photos
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import get_args

from framework.commands.main import run
from framework.commands.train import open_data_config
from framework.config.arguments import (
    OUTPUT,
    add_config,
    add_data,
    add_settings,
    read_overrides,
)
from framework.config.command_line import find_verbs
from framework.vision.annotations.format_names import Format


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar data`; the verbs of domains are named, and have parsers of their own."""
    made = argparse.ArgumentParser(
        prog="oar data",
        description="Convert a data set, split it, draw its samples, measure them.",
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
    split.add_argument(
        "--group_by",
        help="what belongs together goes into one part: folder, a regular expression with the group in parentheses, "
        "searched in the paths of images; of a table a column",
    )
    split.add_argument(
        "--stratify", action="store_true", help="divide the samples of each class by the share"
    )
    split.add_argument(
        "--label", help="the column of a table with the class, for --stratify (default: the last)"
    )
    labelme = commands.add_parser("labelme", help="put annotations of labelme into COCO's format")
    labelme.add_argument("source", help="a folder of images, each with a .json of labelme")
    labelme.add_argument("output", help="the folder to write: annotations.json and images")
    parquet = commands.add_parser(
        "parquet", help="write the images of Parquet files of Hugging Face as files"
    )
    parquet.add_argument("source", help="a .parquet file, or a folder of some, each of which is of a split")
    parquet.add_argument("output", help="the folder to write, with a folder for each split")
    convert = commands.add_parser(
        "convert",
        help="put annotations of YOLO, CVAT, COCO, VOC, labelme or a table of boxes into another format",
    )
    convert.add_argument(
        "source",
        help="a data.yaml, .ndjson or folder of YOLO, an .xml of CVAT, a .json of COCO (panoptic too), VIA, "
        "Label Studio, Datumaro, VoTT, Create ML, BDD100K, FiftyOne, V7 or Labelbox (.ndjson too), a folder of VOC, "
        "labelme, DOTA, KITTI, WIDER FACE, MOTChallenge, VisDrone, Supervisely or V7, an .odgt of CrowdHuman, a .csv "
        "of boxes or VIA, or a folder with one a split",
    )
    convert.add_argument("output", help="the folder to write: annotations and copies of the images")
    convert.add_argument(
        "--to", required=True, choices=("yolo", "cvat", "coco", "voc"), help="the format to write"
    )
    convert.add_argument(
        "--from",
        dest="source_format",
        choices=get_args(Format),
        help="the format of the source, where it is not plain",
    )
    convert.add_argument(
        "--images",
        help="the folder of the images of a file, or the video that CVAT's tracks are of; default: images beside it",
    )
    convert.add_argument("--boxes_only", action="store_true", help="write no outlines in YOLO's format")
    show = commands.add_parser("show", help="draw samples with their labels, after all transforms")
    show.add_argument("--count", type=int, default=8, help="how many (default 8)")
    show.add_argument(*OUTPUT, default="output/samples", help="default: output/samples")
    for name, verb in find_verbs("data").items():
        commands.add_parser(name, help=verb.help)
    stats = commands.add_parser("stats", help="sizes, colours and lengths of the samples as they are stored")
    for command in (show, stats):
        add_config(command)
        add_data(command)
        command.add_argument("--part", choices=("train", "eval"), default="train", help="default: train")
        add_settings(command, weights=False)
    return made


def _data(args: argparse.Namespace) -> int:
    from framework.workflow.data.commands import draw_samples, measure_data, split_data

    if args.command == "split":
        more = {"group_by": args.group_by, "stratify": args.stratify, "label": args.label}
        print(split_data(args.source, args.output, args.share, args.seed, args.header, **more))
        return 0
    if args.command == "labelme":
        from framework.workflow.data.labelme import convert_labelme

        print(convert_labelme(args.source, args.output))
        return 0
    if args.command == "parquet":
        from framework.workflow.data.parquet import unpack_parquet

        print(unpack_parquet(args.source, args.output))
        return 0
    if args.command == "convert":
        from framework.workflow.data.convert import convert_data

        print(
            convert_data(
                args.source,
                args.output,
                args.to,
                source_format=args.source_format,
                images=args.images,
                boxes_only=args.boxes_only,
            )
        )
        return 0
    config = open_data_config(args, read_overrides(args))
    if args.command == "show":
        for path in draw_samples(config, args.output_dir, part=args.part, count=args.count):
            print(path)
    else:
        print(measure_data(config, part=args.part))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar data`; returns the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    verb = find_verbs("data").get(given[0]) if given else None
    if verb is not None:
        return importlib.import_module(verb.module).main(given[1:])
    return run(parser(), _data, given)
