"""What a text has to be, token by token: a JSON schema, a regular expression, one of some choices, or a grammar.

The work is that of `llguidance` (extra `llm`): a parser that says which tokens may follow. Its limits bound time and
memory, so that a hostile schema ends in an error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from framework.core.errors import InputError, MissingExtraError
from framework.core.types import JSON

if TYPE_CHECKING:
    import llguidance

    from framework.text.tokenizer import Tokenizer

_LARGEST = 256 * 1024  # characters of a schema, pattern or grammar
_DEEPEST = 64  # levels of a schema
_CHOICES = 10_000
_FORMATS = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "unknown"]
)  # that llguidance follows
_VALUES = ("const", "enum", "default", "example", "examples")  # hold texts, not schemas
_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_WHITESPACE = r"[ \t\n\r]{0,40}"  # bounded: small models write spaces for ever where they may


@dataclass(frozen=True)
class Constraint:
    """Base of what a text is held to."""

    def grammar(self) -> str:
        """The grammar as llguidance takes it. Raises: InputError, where it is none."""
        raise NotImplementedError(f"{type(self).__name__}.grammar")


@dataclass(frozen=True)
class JsonSchema(Constraint):
    """JSON that is valid by a schema; by default any object.

    Args:
        schema: JSON Schema as data or text.
        whitespace: Whether the text may have spaces and line breaks between items, as models are used to.

    "oneOf" is taken for "anyOf", and a "format" that is not followed ("int64", "url", "password") says nothing.
    """

    schema: JSON = field(default_factory=lambda: {"type": "object"})
    whitespace: bool = True

    def grammar(self) -> str:
        schema = self.schema
        if isinstance(schema, str):
            _check_size("schema", schema)
            try:
                schema = json.loads(schema)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    "the schema is no JSON", where="constraint", received=str(error)[:200]
                ) from error
        if not isinstance(schema, dict | bool):
            raise InputError(
                "a schema is an object",
                where="constraint",
                received=type(schema).__name__,
                allowed='{"type": …}, or true',
            )
        _check_depth(schema)
        text = json.dumps({} if schema is True else _without_other_formats(schema))
        _check_size("schema", text)
        options = {"whitespace_pattern": _WHITESPACE} if self.whitespace else {"whitespace_flexible": False}
        try:
            options = {**options, "coerce_one_of": True}
            return _library().LLMatcher.grammar_from_json_schema(text, options)  # pyright: ignore[reportArgumentType]
        except ValueError as error:
            raise _refused("schema", str(error)) from error


@dataclass(frozen=True)
class Regex(Constraint):
    """A text that a regular expression matches as a whole (syntax of Rust's crate regex, without look-around)."""

    pattern: str

    def grammar(self) -> str:
        _check_size("pattern", self.pattern)
        return _library().LLMatcher.grammar_from_regex(self.pattern)


@dataclass(frozen=True)
class Choice(Constraint):
    """One of some texts."""

    choices: tuple[str, ...]

    def grammar(self) -> str:
        choices = self.choices
        texts = isinstance(choices, list | tuple) and all(isinstance(one, str) and one for one in choices)
        if not texts or not 0 < len(choices) <= _CHOICES:
            raise InputError(
                "these are no choices",
                where="constraint",
                received=repr(choices)[:100],
                allowed=f"1 to {_CHOICES:,} texts of one character or more",
            )
        rule = " | ".join(json.dumps(one, ensure_ascii=False) for one in choices)
        _check_size("choices", rule)
        return _library().LLMatcher.grammar_from_lark(f"start: {rule}")


@dataclass(frozen=True)
class Grammar(Constraint):
    """A context-free grammar in llguidance's form of Lark; its first rule is `start`."""

    text: str

    def grammar(self) -> str:
        _check_size("grammar", self.text)
        return _library().LLMatcher.grammar_from_lark(self.text)


def _library() -> ModuleType:
    """The module `llguidance`. Raises: MissingExtraError."""
    try:
        import llguidance
    except ImportError as error:
        raise MissingExtraError("llguidance", "llm", "texts held to a schema or a pattern") from error
    return llguidance


def _check_size(name: str, text: str) -> None:
    if not isinstance(text, str) or not text or len(text) > _LARGEST:
        raise InputError(
            f"the {name} cannot be used",
            where="constraint",
            received=f"{len(text):,} characters" if isinstance(text, str) else type(text).__name__,
            allowed=f"1 to {_LARGEST:,} characters",
        )


def _check_depth(schema: JSON) -> None:
    """Without recursion, so that the depth of a hostile schema is counted and not followed."""
    level: list[JSON] = [schema]
    for _ in range(_DEEPEST):
        level = [
            value
            for item in level
            if isinstance(item, dict | list)
            for value in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise InputError(
        "the schema is too deep",
        where="constraint",
        received=f"more than {_DEEPEST} levels",
        allowed=f"at most {_DEEPEST}",
        fix='name what repeats in "$defs" and refer to it',
    )


def _without_other_formats(schema: JSON) -> JSON:
    """The schema without formats that llguidance refuses. Others than it knows are annotations.

    Source: JSON Schema 2020-12, validation, 7.2.1.
    """
    if isinstance(schema, list):
        return [_without_other_formats(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result: dict[str, JSON] = {}
    for key, value in schema.items():
        if key in _VALUES:
            result[key] = value
        elif key in _SCHEMAS_BY_NAME and isinstance(value, dict):
            result[key] = {name: _without_other_formats(one) for name, one in value.items()}
        elif key != "format" or not isinstance(value, str) or value in _FORMATS:
            result[key] = _without_other_formats(value)
    return result


def _refused(name: str, reason: str) -> InputError:
    reason = " ".join(reason.replace("<non-verbose/>", "").split())[:300]
    if reason.startswith("NoExtension"):
        reason = "no text satisfies it"
    return InputError(
        f"the {name} cannot be followed",
        where="constraint",
        received=reason,
        fix="simplify it, or drop the keyword that is named",
    )


class ConstraintVocabulary:
    """A tokenizer as llguidance needs it, made once for a model.

    Args:
        vocab_size: Of the model's scores; larger than the tokenizer's where the table is padded.
        end_tokens: What ends a text.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, end_tokens: Sequence[int]) -> None:
        self._library = _library()
        self.words = -(-vocab_size // 32)
        self._tokens = self._make(tokenizer, vocab_size, end_tokens)

    def _make(
        self, tokenizer: Tokenizer, vocab_size: int, end_tokens: Sequence[int]
    ) -> llguidance.LLTokenizer:
        core = getattr(tokenizer.segmenter, "core", None)
        if core is None or not end_tokens:
            raise InputError(
                "a constraint needs a tokenizer.json and a token that ends the text",
                where="constraint",
                received=type(tokenizer.segmenter).__name__ if end_tokens else "no eos_token_id",
                fix="save the model with tokenizer.json and an eos_token_id",
            )
        size = max(vocab_size, tokenizer.vocab_size)
        self.words = -(-size // 32)
        return self._library.LLTokenizer(core.to_str(), n_vocab=size, eos_token=list(end_tokens))

    def matcher(self, constraint: Constraint) -> TokenMatcher:
        """A fresh parser of a text. Raises: InputError, where the constraint cannot be followed."""
        limits = self._library.LLParserLimits(
            initial_lexer_fuel=500_000,
            step_lexer_fuel=200_000,
            step_max_items=50_000,
            max_lexer_states=50_000,
            max_grammar_size=200_000,
            verbose_errors=False,
        )
        matcher = self._library.LLMatcher(self._tokens, constraint.grammar(), log_level=0, limits=limits)
        result = TokenMatcher(matcher, self.words, type(constraint).__name__)
        if not result.allowed().any():
            raise _refused(type(constraint).__name__, "NoExtension")
        return result


class TokenMatcher:
    """The parser of one text."""

    def __init__(self, matcher: llguidance.LLMatcher, words: int, name: str) -> None:
        self._matcher, self._words, self._name = matcher, words, name

    def allowed(self) -> np.ndarray:
        """[words] int32, a bit for each token that may follow.

        Raises:
            InputError: the limits of time and memory are reached, or nothing may follow.
        """
        mask = np.zeros((1, self._words), np.int32)
        self._check()
        self._matcher.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
        self._check()
        return mask[0]

    def add(self, token: int) -> bool:
        """Takes a token of the text; whether more may follow. Raises: as `allowed`."""
        if not self._matcher.is_stopped():
            self._matcher.consume_token(token)
            self._check()
        return not self._matcher.is_stopped()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise _refused(self._name, self._matcher.get_error())
