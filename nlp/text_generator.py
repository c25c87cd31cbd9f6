"""Language models behind a server: chats and prompts in, texts of many clients at once out."""

from __future__ import annotations

import functools
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from framework import nn
from framework.core.errors import ConfigError, InputError, OarError
from framework.core.types import JSON
from framework.text.chat_answer import AnswerParser, find_tool_form
from framework.text.chat_template import ChatTemplate
from framework.text.plain_content import break_special, encode_broken
from framework.text.subwords import piece_bytes
from framework.text.tokenizer import Tokenizer
from framework.workflow.domain.text_generation import ChatPrompt, TextDelta, TokenScore
from nlp.evaluation.likelihood import Continuation, Scorer
from nlp.generation.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions, read_generation_settings
from nlp.generation.programs import DecoderFunctions
from nlp.generation.request import Chunk, Request
from nlp.generation.settings import TextGenerationOptions
from zoo.layers.decoder import Decoder

_BEAMS = ("num_beams", "early_stopping", "length_penalty", "num_return_sequences")
"""What generation_config.json says of beams, such as those of BART for summaries: a server searches none."""
_THINK = "<think>"
_PROBE = "an answer"
_CHARACTERS = 16  # of a token, about as many as any language has
_MARKED_CALLS = ("mistral", "llama3")  # whose marks of calls are special tokens
_MARK = re.compile(r"\s*(<[^<>\s]+>)")
_PLAIN = "plain_content"
_LENGTH = 8192  # tokens of a prompt and its text, where nobody says


class _Sizes(Protocol):
    @property
    def longest_text(self) -> int: ...

    @property
    def eos_ids(self) -> tuple[int, ...]: ...


def make_constraint(kind: str, value: JSON) -> Constraint:
    """A constraint of a request. Raises: InputError, where it is none."""
    if kind == "json_schema":
        return JsonSchema(value)
    if kind in ("regex", "grammar") and isinstance(value, str):
        return Regex(value) if kind == "regex" else Grammar(value)
    if kind == "choice" and isinstance(value, list):
        return Choice(tuple(value))  # type: ignore[arg-type]
    allowed = {"choice": "a list of texts", "regex": "a pattern", "grammar": "a grammar of Lark"}
    raise InputError(
        "this is no constraint", where=kind, received=repr(value)[:100], allowed=allowed.get(kind)
    )


def encode_marked(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """The tokens of a text that holds its special tokens itself, as rendered chats do: none are put around it."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no character
    return tuple(int(token) for token in tokenizer.segmenter.split(text).ids)


def chat_defaults(folder: Path | None) -> GenerationOptions:
    """What a request says that does not say how: generation_config.json, and beside it what OpenAI's API says."""
    settings: dict[str, JSON] = {"do_sample": True, "top_k": 0}
    path: object = "generation_config.json"
    if folder is not None:
        content, path = read_generation_settings(folder)
        settings |= {
            name: value
            for name, value in content.items()
            if value is not None and not name.startswith("max_") and name not in _BEAMS
        }
    return GenerationOptions.from_pretrained(settings, path)[0]


class TextUnderWay:
    """A text of the engine as a server reads it."""

    def __init__(self, request: Request, generator: EngineGenerator) -> None:
        self._request, self._generator = request, generator

    @property
    def warnings(self) -> Sequence[str]:
        return self._request.warnings

    @property
    def cached_tokens(self) -> int:
        return self._request.cached_tokens

    def next_delta(self, timeout: float | None = None) -> TextDelta | None:
        """Waits for the next one, `timeout` seconds at most. Raises: TimeoutError; OarError, which ended the text."""
        chunk = self._request.next_chunk(timeout)
        return None if chunk is None else self.read(chunk)

    def listen(self, function: Callable[[object], None]) -> None:
        self._request.listen(function)

    def read(self, item: object) -> TextDelta:
        assert isinstance(item, Chunk)
        chunk = item
        scores = tuple(
            TokenScore(
                *self._generator.name_token(one.token),
                one.logprob,
                tuple(TokenScore(*self._generator.name_token(token), log) for token, log in one.top),
            )
            for one in chunk.logprobs
        )
        return TextDelta(chunk.text, len(chunk.ids), scores, chunk.finish_reason)

    def cancel(self) -> None:
        self._request.cancel()


class EngineGenerator:
    """A `TextGenerator` of an engine.

    Args:
        template: How chats are written; None: the model only goes on with texts.
        defaults: Of requests.
        scorer: Of prompts; None: the model has none.
        plain_content: Whether special tokens in the messages of all chats are characters. Else they are those tokens,
            as in transformers, but in chats with the setting `plain_content`.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        defaults: GenerationOptions,
        scorer: Scorer | None = None,
        plain_content: bool = False,
    ) -> None:
        self.plain_content = plain_content
        self.engine, self.tokenizer, self.template, self.defaults = engine, tokenizer, template, defaults
        self._scorer, self._scoring = scorer, threading.Lock()

    @property
    def max_length(self) -> int:
        return self.engine.max_length

    def room(self, prompt: int) -> int:
        return self.engine.room(prompt)

    @property
    def slots(self) -> int:
        return self.engine.slots

    @property
    def has_template(self) -> bool:
        return self.template is not None

    @property
    def running(self) -> int:
        return self.engine.running

    @property
    def waiting(self) -> int:
        return self.engine.waiting

    def encode(self, text: str) -> tuple[int, ...]:
        self._check_size(text)
        return tuple(int(token) for token in self.tokenizer.encode(text).ids)

    def _check_size(self, text: str) -> None:
        """Raises: InputError, where the beginning of a long text has more tokens than fit: the rest is not looked at,
        as a text of millions of characters would take a minute."""
        size = _CHARACTERS * self.max_length
        if len(text) <= 2 * size:
            return
        count = len(encode_marked(self.tokenizer, text[:size]))
        if count > self.max_length + _CHARACTERS:
            raise InputError(
                "the prompt is too long for the model",
                where="prompt",
                received=f"{len(text):,} characters, of which the first {size:,} are {count:,} tokens",
                allowed=f"at most {self.max_length - 1:,} tokens",
            )

    def decode(self, ids: Sequence[int]) -> str:
        if beyond := [token for token in ids if not 0 <= token < self.tokenizer.vocab_size]:
            raise InputError("a token is not in the vocabulary", where="prompt", received=beyond[:10])
        return self.tokenizer.decode(ids, skip_special=False)

    def name_token(self, token: int, begins: bool = False) -> tuple[str, bytes]:
        """A token as text and as bytes. `begins`: it is the first one, whose space decoders may drop."""
        text = self.tokenizer.decode([token], skip_special=False)
        if "\ufffd" in text and (data := piece_bytes(self.tokenizer.token_of(token) or "")) is not None:
            return text, data
        if not begins:
            text = self.tokenizer.decode([token, token], skip_special=False)[len(text) :]
        return text, text.encode("utf-8", "replace")

    def score_prompt(self, ids: Sequence[int], top: int) -> list[TokenScore]:
        if self._scorer is None:
            raise ConfigError(
                "the probabilities of prompts are not computed by this model",
                where="echo",
                received="logprobs beside it",
                allowed="a decoder that is opened from its folder: no exported programs, no encoder-decoder",
            )
        if (
            not ids
            or len(ids) > self.max_length
            or any(not 0 <= token < self.tokenizer.vocab_size for token in ids)
        ):
            raise InputError(
                "the prompt cannot be scored",
                where="prompt",
                received=f"{len(ids):,} tokens",
                allowed=f"1 to {self.max_length:,}, each of the vocabulary",
            )
        result = [TokenScore(*self.name_token(ids[0], begins=True), math.nan)]
        with self._scoring:
            (score,) = self._scorer.score([Continuation(tuple(ids[:1]), tuple(ids[1:]))], top)
        best = [np.zeros((len(ids) - 1, 0))] * 2 if score.top is None else score.top
        columns = (score.log_likelihoods.tolist(), *(one.tolist() for one in best))
        for token, log, tokens, logs in zip(score.ids, *columns, strict=True):
            alternatives = (
                TokenScore(*self.name_token(one), value) for one, value in zip(tokens, logs, strict=True)
            )
            result.append(TokenScore(*self.name_token(token), log, tuple(alternatives)))
        return result

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None,
        settings: Mapping[str, JSON],
    ) -> ChatPrompt:
        if self.template is None:
            raise InputError(
                "the model has no chat template",
                where="messages",
                fix="use /v1/completions, or put a chat_template.jinja into the model's folder",
            )
        settings = {"add_generation_prompt": not settings.get("continue_final_message"), **settings}
        is_plain, values, mark = settings.pop(_PLAIN, False), (messages, tools, settings), ""
        if not isinstance(is_plain, bool):
            raise InputError(
                "the setting is no truth value",
                where=_PLAIN,
                received=repr(is_plain)[:100],
                allowed="true, false",
            )
        if is_plain or self.plain_content:
            values, mark = break_special(self.tokenizer, *values)
        text = self.template.render(values[0], values[1], **values[2])  # type: ignore[arg-type]
        self._check_size(text)
        special = bool(tools) and find_tool_form(self.template.source(True)) in _MARKED_CALLS
        if mark:
            ids = tuple(map(int, encode_broken(self.tokenizer, text, mark).ids))
        else:
            ids = encode_marked(self.tokenizer, text)
        return ChatPrompt(ids, text.replace(mark, "") if mark else text, self.turn_ends, special)

    @functools.cached_property
    def turn_ends(self) -> tuple[str, ...]:
        """The mark that the template puts behind an answer: vocabularies without it as a token spell it out, and
        config.json may name another end."""
        assert self.template is not None
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": _PROBE}]
        try:
            text = self.template.render(messages)
        except OarError:  # it takes no such chat
            return ()
        mark = _MARK.match(text.rpartition(_PROBE)[2])
        return () if mark is None else (mark[1],)

    def make_parser(self, prompt: ChatPrompt, tools: Sequence[Mapping[str, JSON]]) -> AnswerParser:
        form = find_tool_form(self.template.source(True)) if tools and self.template else None
        return AnswerParser(form, tools, thinking=prompt.text.rstrip().endswith(_THINK))

    def start(
        self, ids: Sequence[int], options: Mapping[str, object], constraint: tuple[str, JSON] | None = None
    ) -> list[TextUnderWay]:
        merged = self.defaults.merge(**options)
        if merged.num_beams > 1:
            raise ConfigError(
                "a server searches no beams", where="num_beams", received=merged.num_beams, allowed="1"
            )
        if constraint is not None:
            merged = merged.merge(constraint=make_constraint(*constraint))
        return [TextUnderWay(request, self) for request in self.engine.submit_all(ids, merged)]

    def close(self) -> None:
        self.engine.close()


def make_engine_generator(
    model: nn.Layer | DecoderFunctions,
    size: _Sizes,
    tokenizer: Tokenizer | None,
    folder: Path | None,
    template: ChatTemplate | None,
    options: TextGenerationOptions,
    engine: Engine | None = None,
) -> EngineGenerator:
    """What writes texts of a model by an engine; by default one of its own, as the options say.

    Raises: InputError, where there is no tokenizer.
    """
    if tokenizer is None:
        raise InputError(
            "the model has no tokenizer", where=str(folder), allowed="a folder with tokenizer.json"
        )
    if engine is None:
        longest = min(size.longest_text, _LENGTH) if options.max_length is None else options.max_length
        engine = Engine(
            model, tokenizer, options.slots, longest, chunk=options.chunk, prefix_tokens=options.prefix_tokens
        )
    defaults = chat_defaults(folder)
    if not defaults.eos_token_id:
        defaults = defaults.merge(eos_token_id=size.eos_ids)
    scorer = Scorer(model, engine.max_length, 1) if isinstance(model, Decoder) else None
    return EngineGenerator(engine, tokenizer, template, defaults, scorer, options.plain_content)
