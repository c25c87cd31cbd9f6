"""Check a file of texts, make a tokenizer from texts, or divide texts into tokens for pre-training.

python -m nlp.data check train.tsv --format table
python -m nlp.data tokenizer --kind unigram --vocab_size 8000 --input train.en train.de --output tokenizer.json
python -m nlp.data tokens --tokenizer tokenizer.json --input corpus.jsonl more.parquet --output data/corpus
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from framework.core.errors import FormatError, OarError
from framework.io.data_check import Report, print_reports
from framework.text.json_entries import is_json
from framework.text.lines import read_lines
from framework.text.segmenter import Kind
from framework.text.tokenizer import Tokenizer
from nlp.data.check import Columns, Format, validate
from nlp.data.corpora import Division, write_tokens
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
    check.add_argument("--label_separator", help="between the classes of a text that may have several")
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
    tokens = commands.add_parser("tokens", help="write x.idx and x.bin, as Megatron and PaddleNLP read them")
    tokens.add_argument("--tokenizer", required=True, help="tokenizer.json, or the folder of a model")
    tokens.add_argument(
        "--input", type=Path, nargs="+", required=True, help=".txt, .jsonl, .parquet, or folders"
    )
    tokens.add_argument("--output", type=Path, required=True, help="x of x.idx and x.bin")
    tokens.add_argument(
        "--division", choices=get_args(Division), default="file", help="of .txt: what is a text"
    )
    tokens.add_argument("--column", default="text", help="JSON key, or column, of the text (default: text)")
    tokens.add_argument("--end", help="the token behind each text; default: what the tokenizer calls its end")
    options = parser.parse_args(arguments)
    if options.command == "check":
        return print_reports(_reports(options))
    try:
        if options.command == "tokens":
            file = write_tokens(
                tuple(options.input),
                options.output,
                options.tokenizer,
                options.division,
                options.column,
                options.end,
            )
            print(f"{file.path}: {len(file)} texts, {len(file.tokens)} tokens of {file.tokens.dtype}")
            return 0
        texts = _texts(options.input, options.column)
        tokenizer = Tokenizer.train(options.kind, texts, options.vocab_size, options.lower)
        print(f"{tokenizer.save(options.output)}: {tokenizer.vocab_size} tokens")
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _reports(options: argparse.Namespace) -> Iterator[tuple[str, Report]]:
    columns = Columns(
        options.text,
        options.label,
        options.word,
        options.tag,
        options.separator,
        options.header,
        options.label_separator,
    )
    yield "", validate(options.path, options.format, columns)


def _column(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def _texts(paths: Sequence[Path], name: int | str | None) -> Iterator[str | list[str]]:
    for path in paths:
        if name is None and not is_json(path):
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
