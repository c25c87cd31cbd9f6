"""Perplexity, choices and written answers of a language model, as JSON.

python -m nlp.evaluation FOLDER --perplexity book.txt --choices questions.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from framework.core import bounded
from framework.core.errors import InputError, OarError
from framework.core.types import JSON
from nlp import llm
from nlp.evaluation.choices import Question, measure_choices
from nlp.evaluation.likelihood import Scorer, model_parts
from nlp.evaluation.perplexity import measure_perplexity
from nlp.evaluation.writing import WritingTask, measure_writing

_Row = TypeVar("_Row")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m nlp.evaluation", description=__doc__)
    parser.add_argument("model", help="a folder of a language model, or a .gguf file")
    parser.add_argument("--perplexity", nargs="+", metavar="FILE", default=[], help="texts, a file each")
    parser.add_argument("--form", choices=("rolling", "strided"), default="rolling", help="of perplexity")
    parser.add_argument("--stride", type=int, help="of strided perplexity; default: half the window")
    parser.add_argument("--choices", metavar="FILE", help='JSON lines {"context", "choices", "answer"}')
    parser.add_argument("--writing", metavar="FILE", help='JSON lines {"prompt", "answer", "until"}')
    parser.add_argument("--max_length", type=int, help="tokens of a window; default: the model's")
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--dtype", help="of weights: float32, bfloat16, float16")
    parser.add_argument("--weights", choices=("int8", "int4"), help="matrices in so many bits")
    parser.add_argument("--output", metavar="FILE", help="write the JSON there, too")
    return parser.parse_args(arguments)


def read_rows(path: str, make: Callable[[Mapping[str, JSON], object], _Row]) -> Iterable[_Row]:
    """Rows of a file of JSON lines. Raises: InputError, where one is no JSON object."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield make(bounded.check_mapping(bounded.parse_json(line, where, "task"), where, "task"), where)


def read_text(path: str) -> str:
    """A file as UTF-8, its lines ending as they do."""
    return bounded.decode(
        bounded.read_bytes(path, bounded.VOCABULARY, "text", InputError), Path(path), "text"
    )


def evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """What the arguments ask for, by name."""
    if not (args.perplexity or args.choices or args.writing):
        raise InputError(
            "there is nothing to measure", where="arguments", allowed="--perplexity, --choices, --writing"
        )
    model = llm.load(args.model, args.dtype, args.weights)
    decoder, tokenizer = model_parts(model)
    scorer = Scorer(decoder, args.max_length, args.batch_size)
    results: dict[str, Any] = {"model": str(args.model), "max_length": scorer.max_length}
    if args.perplexity:
        results["perplexity"] = {
            path: measure_perplexity(scorer, tokenizer, [read_text(path)], args.form, args.stride).to_dict()
            for path in args.perplexity
        }
    if args.choices:
        questions = list(read_rows(args.choices, Question.from_dict))
        results["choices"] = measure_choices(scorer, tokenizer, questions).to_dict()
    if args.writing:
        from nlp.generation.engine import Engine

        engine = Engine(decoder, tokenizer, args.batch_size, scorer.max_length)
        try:
            tasks = list(read_rows(args.writing, WritingTask.from_dict))
            results["writing"] = measure_writing(engine, tokenizer, tasks)
        finally:
            engine.close()
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    args = parse(arguments)
    try:
        text = json.dumps(evaluate(args), indent=2, ensure_ascii=False)
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(text)
    if args.output:
        Path(args.output).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
