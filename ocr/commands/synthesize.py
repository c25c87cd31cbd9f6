"""Draw images of text with their labels.

oar data synthesize lines data/lines --count 10000 --corpus texts.txt
oar data synthesize documents data/pages --count 3000 -o classes=publaynet
oar data synthesize tables data/tables --count 10000
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from framework.commands.main import run
from framework.config.arguments import add_settings, setting

_DATASETS = {
    "lines": "SyntheticTextLines",
    "pages": "SyntheticPages",
    "documents": "SyntheticDocuments",
    "tables": "SyntheticTables",
}


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar data synthesize`."""
    made = argparse.ArgumentParser(prog="oar data synthesize")
    made.add_argument(
        "kind",
        choices=tuple(_DATASETS),
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
    return made


def _synthesize(args: argparse.Namespace) -> int:
    from ocr.data.synthesize import synthesize

    given = ("count", "seed", "fonts", "corpus", "characters")
    settings = [text for name in given for text in setting(name, getattr(args, name))]
    settings += setting("skip_missing", args.skip_missing or None)
    settings += setting("style.background_images", args.background_images)
    settings += args.opt
    print(synthesize(_DATASETS[args.kind], args.output, settings, suffix=args.suffix, workers=args.workers))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar data synthesize`; returns the exit status."""
    return run(parser(), _synthesize, argv)
