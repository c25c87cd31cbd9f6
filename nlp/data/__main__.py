"""Check a file of texts, or make a tokenizer from texts.

python -m nlp.data check train.tsv --format table
python -m nlp.data tokenizer --kind unigram --vocab_size 8000 --input train.en train.de --output tokenizer.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from framework.core.errors import FormatError, OarError
from framework.io.data_check import Report, print_reports
from framework.text.lines import read_lines
from framework.text.segmenter import Kind
from framework.text.tokenizer import Tokenizer
from nlp.data.check import Columns, Format, validate
from nlp.data.texts import column, read_table


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: of a check that of `print_reports`; else 0, or 2 where a file cannot be read or used."""
    parser = argparse.ArgumentParser(
        prog="python -m nlp.data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="count the classes and find what is broken")
    check.add_argument("path", type=Path)
    check.add_argument("--format", choices=get_args(Format), help="by default what the file's ending says")
    check.add_argument("--text", type=_column, default=0, help="column or JSON key of the text (default 0)")
    check.add_argument("--label", type=_column, default=1, help="column or key of the class (default 1)")
    check.add_argument("--word", type=_column, default=0, help="column or key of a tagged word (default 0)")
    check.add_argument("--tag", type=_column, default=-1, help="column or key of its tag (default -1)")
    check.add_argument("--separator", default="\t", help="between columns (default: a tab)")
    check.add_argument("--header", action="store_true", help="the first line names the columns")
    train = commands.add_parser("tokenizer", help="make a tokenizer from texts")
    train.add_argument("--kind", choices=get_args(Kind), required=True)
    train.add_argument("--vocab_size", type=int, required=True, help="at most so many tokens")
    train.add_argument("--input", type=Path, nargs="+", required=True, help="UTF-8, a text a line, or .jsonl")
    train.add_argument("--column", type=_column, help="column between tabs, or JSON key, of the text")
    train.add_argument("--lower", action="store_true", help="put texts into lower case")
    train.add_argument("--output", type=Path, required=True, help="the tokenizer.json to write")
    options = parser.parse_args(arguments)
    if options.command == "check":
        return print_reports(_reports(options))
    try:
        texts = _texts(options.input, options.column)
        tokenizer = Tokenizer.train(options.kind, texts, options.vocab_size, options.lower)
        print(f"{tokenizer.save(options.output)}: {tokenizer.vocab_size} tokens")
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _reports(options: argparse.Namespace) -> Iterator[tuple[str, Report]]:
    columns = Columns(
        options.text, options.label, options.word, options.tag, options.separator, options.header
    )
    yield "", validate(options.path, options.format, columns)


def _column(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def _texts(paths: Sequence[Path], name: int | str | None) -> Iterator[str | list[str]]:
    for path in paths:
        if name is None and path.suffix != ".jsonl":
            yield from read_lines(path)
            continue
        for where, fields in read_table(path, "\t"):
            text = column(fields, "text" if name is None else name, where)
            if not isinstance(text, str | list):
                raise FormatError(
                    "an entry must be a text",
                    where=where,
                    received=repr(text)[:80],
                    allowed="a text, or a list of words",
                )
            yield text


if __name__ == "__main__":
    sys.exit(main())
