"""Write a language model as compiled programs, which run without its code.

oar export-programs models/capitals --output_dir programs/capitals
oar serve programs/capitals
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from framework.commands.main import run


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar export-programs`."""
    flags = argparse.ArgumentParser(
        prog="oar export-programs",
        description="Write a language model as programs that run without its code.",
    )
    flags.add_argument("model", metavar="MODEL", help="a folder with config.json, weights and a tokenizer")
    flags.add_argument("--output_dir", required=True, help="the folder that is written")
    flags.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), help="default: that of the file"
    )
    flags.add_argument("--weights", choices=("int8", "int4"), help="quantise them; default: as in the file")
    return flags


def _export(args: argparse.Namespace) -> int:
    from nlp import llm
    from nlp.program_export import export_programs

    folder = export_programs(llm.load(args.model, args.dtype, args.weights), args.output_dir)
    print(f"wrote {folder}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar export-programs`; returns the exit status."""
    return run(parser(), _export, argv)
