"""Questions that a model answers by writing: greedy texts up to a stop string, and how many are the expected ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from framework.core.errors import InputError
from framework.core.types import JSON
from framework.text.tokenizer import Tokenizer
from nlp.evaluation.likelihood import encode_text
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions


@dataclass(frozen=True)
class WritingTask:
    """A prompt and the texts that are right; what is written ends before the first string of `until`."""

    prompt: str
    answers: tuple[str, ...]
    until: tuple[str, ...] = ()
    max_new_tokens: int = 256

    @classmethod
    def from_dict(cls, row: Mapping[str, JSON], where: object) -> WritingTask:
        """{"prompt": "…", "answer": "…" or […], "until": ["\\n"], "max_new_tokens": 32}. Raises: InputError."""
        prompt, answer, until = row.get("prompt"), row.get("answer"), row.get("until", [])
        answers = answer if isinstance(answer, list) else [answer]
        stops = until if isinstance(until, list) else [until]
        count = row.get("max_new_tokens", 256)
        texts_fit = answers and all(isinstance(one, str) for one in (prompt, *answers))
        stops_fit = all(isinstance(one, str) and one for one in stops)
        if texts_fit and stops_fit and type(count) is int and count > 0:
            return cls(str(prompt), tuple(map(str, answers)), tuple(map(str, stops)), count)
        raise InputError(
            "a task has a prompt and an answer",
            where=where,
            received=str(dict(row))[:120],
            allowed='{"prompt": "…", "answer": "…", "until": ["\\n"], "max_new_tokens": 32}',
        )


def write_until(
    engine: Engine,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    stops: Sequence[Sequence[str]],
    counts: Sequence[int],
    options: Sequence[GenerationOptions] | None = None,
) -> list[str]:
    """What the model writes behind each prompt, without the stop string. Of a prompt that leaves no room the end is
    read.

    Args:
        stops: Of each prompt the strings that end the text; the eos of the tokenizer does, too.
        counts: Of each prompt the tokens that are written, at most.
        options: Of each prompt what else counts; by default the most probable token is taken each time.

    Raises:
        InputError: a prompt has no room for a token beside what is to be written.
    """
    requests = []
    base = GenerationOptions(do_sample=False)
    ends = () if tokenizer.eos_id is None else (tokenizer.eos_id,)
    for number, (prompt, stop, count) in enumerate(zip(prompts, stops, counts, strict=True)):
        room = engine.max_length - count
        if room < 1:
            raise InputError(
                "there is no room for the prompt beside what is to be written",
                where=f"prompt {number}",
                received=f"{count} new tokens of {engine.max_length}",
                allowed=f"below {engine.max_length}",
            )
        ids = encode_text(tokenizer, prompt)[-room:]
        own = replace(
            base if options is None else options[number],
            max_new_tokens=count,
            stop=tuple(stop),
            eos_token_id=ends,
        )
        requests.append(engine.submit(ids, own))
    # The tokens behind the prompt by themselves, as lm-eval reads them: a space that begins them may go.
    texts = [tokenizer.decode(request.result().ids) for request in requests]
    return [_cut(text, stop) for text, stop in zip(texts, stops)]


def _cut(text: str, stops: Sequence[str]) -> str:
    for stop in stops:
        text = text.split(stop)[0] if stop else text
    return text


def measure_writing(engine: Engine, tokenizer: Tokenizer, tasks: Sequence[WritingTask]) -> dict[str, float]:
    """{"exact_match", "contains", "tasks"}: shares of texts that are an answer, white space at the ends aside, and that
    have one in them.

    Raises:
        InputError: there is no task.
    """
    if not tasks:
        raise InputError("there is no task", where="writing", allowed="1 or more")
    texts = write_until(
        engine,
        tokenizer,
        [task.prompt for task in tasks],
        [task.until for task in tasks],
        [task.max_new_tokens for task in tasks],
    )
    equal = [text.strip() in {answer.strip() for answer in task.answers} for text, task in zip(texts, tasks)]
    inside = [any(answer.strip() in text for answer in task.answers) for text, task in zip(texts, tasks)]
    return {
        "exact_match": sum(equal) / len(tasks),
        "contains": sum(inside) / len(tasks),
        "tasks": float(len(tasks)),
    }
