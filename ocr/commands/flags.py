"""Flags of reading text in commands that all domains share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from framework.core.errors import HubError, InputError
from framework.hub.index import Entry


def add_truth(parser: argparse.ArgumentParser, models: argparse._ActionsContainer) -> None:
    """`--truth` and `--predictions` of `oar eval`."""
    models.add_argument(
        "--truth", metavar="FILE", help="score documents instead: their truth in OmniDocBench's format"
    )
    parser.add_argument(
        "--predictions",
        metavar="FOLDER",
        help="of --truth: a Markdown file for each page, named as its image, such as `oar document` writes",
    )


def score_documents(args: argparse.Namespace) -> int | None:
    """Score what `--predictions` holds against `--truth`; None where neither is given.

    Raises:
        InputError: one is missing, or cannot be read.
    """
    if args.truth is None:
        if args.predictions is None:
            return None
        raise InputError(
            "predictions are scored against a truth",
            where="--predictions",
            received=args.predictions,
            fix="--truth OmniDocBench.json instead of -c",
        )
    if args.predictions is None:
        raise InputError(
            "documents are scored in a folder",
            where="--predictions",
            received="none",
            allowed="a folder with a Markdown file for each page",
            fix="oar document IMAGES --format md --output FOLDER",
        )
    from framework.workflow.files.documents import write_scores
    from ocr.documents.evaluation import scores as evaluation

    scores, pages = evaluation.score_documents(Path(args.truth), Path(args.predictions))
    print(json.dumps(scores, indent=1))
    if args.output_dir is not None:
        for path in write_scores(scores, pages, Path(args.output_dir)):
            print(f"wrote {path}")
    return 0


def add_language(parser: argparse.ArgumentParser, models: argparse._ActionsContainer) -> None:
    """`--lang` of `oar models list`."""
    parser.add_argument(
        "--lang", help="only what reads a language, such as ar, or every one of several: ru,en"
    )


def select_readers(args: argparse.Namespace, entries: Mapping[str, Entry]) -> Mapping[str, Entry]:
    """The entries of the index that read every language of `--lang`; all without it.

    Raises:
        InputError: a language that is not known. HubError: no entry reads them.
    """
    if not args.lang:
        return entries
    from ocr.text.language_codes import language_codes

    codes = language_codes(args.lang)
    reading = {name: item for name, item in entries.items() if set(codes) <= set(item.languages)}
    if reading:
        return reading
    near = [
        f"{name} lacks {item.lacks[c]} of {c}"
        for name, item in entries.items()
        for c in codes
        if c in item.lacks
    ]
    raise HubError(
        "no weights of the index read " + ("all of these languages" if len(codes) > 1 else "this language"),
        where="--lang",
        received=", ".join(codes),
        fix=f"the nearest: {'; '.join(near)}" if near else None,
    )
