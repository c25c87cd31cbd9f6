"""Weights of another framework or form as safetensors or .pdparams, and its graphs as artifacts.

oar convert resnet50.pth resnet50.safetensors -c resnet50
oar convert model.pdparams model.safetensors
oar convert model.onnx inference_model/model --shape image=n,3,32*h,32*w
oar convert inference.pdmodel inference_model/model --format onnx
oar convert inference.pdmodel model.onnx
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framework.commands.main import run
from framework.config.arguments import add_config, add_settings, read_overrides
from framework.core.errors import InputError

if TYPE_CHECKING:
    from framework.workflow.convert.graph import EngineTime


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar convert`."""
    made = argparse.ArgumentParser(
        prog="oar convert",
        description="Read .pdparams, Paddle's programs, ONNX, torch or safetensors, and write weights. With a config "
        "they are matched with its model and written under Paddle's names in Paddle's layouts; without one names and "
        "layouts stay those of the file. An ONNX model or a program of Paddle becomes an artifact where the "
        "output is a folder, and one ONNX file where it ends in .onnx.",
    )
    made.add_argument("weights", help="a file, a run's folder, or a name of `oar models`")
    made.add_argument(
        "output", help="a file to write: .safetensors or .pdparams; for a graph a folder or .onnx"
    )
    add_config(made, required=False)
    made.add_argument("--params", help="the parameter file of a Paddle program; default: the one beside it")
    made.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="INPUT=N,3,H,W",
        help="of a graph: sizes of an input, numbers or names; 32*h is any multiple of 32; once for each "
        "input. Default: those of the file",
    )
    made.add_argument(
        "--format",
        choices=["onnx"],
        help="onnx: the artifact holds an ONNX file, too; OpenVINO and ONNX Runtime, where they are installed, are "
        "compared with the graph and timed, and the fastest is the artifact's engine on CPUs",
    )
    add_settings(made, weights=False)
    return made


def _convert(args: argparse.Namespace) -> int:
    from framework.core.disk import check_place
    from framework.workflow.convert.graph import (
        GRAPHS,
        compare_with_graph,
        convert_graph,
        refuse_foreign,
        time_program,
    )
    from framework.workflow.convert.run import convert_weights

    refuse_foreign(args.weights)
    if Path(args.weights).suffix in GRAPHS and Path(args.output).suffix in ("", ".onnx"):
        check_place(Path(args.output))  # before it is read and compared
        shapes = dict(_shape(text) for texts in args.shape for text in texts.split())
        made = convert_graph(args.weights, args.params, shapes)
        difference = compare_with_graph(made)  # before anything is written
        times = made.write(args.output, with_onnx=args.format == "onnx")
        for name, spec in made.inputs.items():
            print(f"input {name}: [{', '.join(map(str, spec.shape))}] {spec.dtype}")
        if made.limits:
            print(f"sizes: {', '.join(made.limits)}")
        print(
            f"wrote {args.output}: largest difference from the graph {difference:.1e} of the largest value, "
            f"{time_program(made):.1f} ms a call"
        )
        for one in times:
            print(f"engine {one.engine}: {_describe(one)}")
        return 0
    if args.format:
        raise InputError(
            "--format is for a graph that becomes an artifact",
            received=f"{args.weights} to {args.output}",
            allowed=f"{', '.join(GRAPHS)}, and a folder as output",
        )
    count = convert_weights(args.weights, args.output, args.config, read_overrides(args), args.params)
    print(f"wrote {args.output}: {count} arrays")
    return 0


def _describe(measured: EngineTime) -> str:
    if measured.problem:
        return f"does not run it: {measured.problem}"
    what = "" if measured.agrees else ", which is another result: it is not chosen"
    return f"{measured.milliseconds:.1f} ms a call, {measured.difference:.1e} from the graph{what}"


def _shape(text: str) -> tuple[str, tuple[int | str, ...]]:
    """ "image=n,3,32*h" -> ("image", ("n", 3, "32*h")). Raises: InputError."""
    name, _, sizes = text.partition("=")
    if not name or not sizes:
        raise InputError(
            "--shape is a name and its sizes", received=text, allowed="--shape image=n,3,32*h,32*w"
        )
    listed = (size.strip() for size in sizes.split(","))
    return name, tuple(int(size) if size.isdecimal() else size for size in listed)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar convert`; returns the exit status."""
    return run(parser(), _convert, argv)
