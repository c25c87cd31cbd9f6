"""What a model that writes can do, for a server that knows no domain: a capability, and the protocols behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from framework.core.types import JSON
from framework.text.chat_answer import AnswerParser

FinishReason = Literal["stop", "length", "cancelled"]


class TokenScore(NamedTuple):
    """A token as text, its UTF-8 bytes, and the natural logarithm of its probability."""

    text: str
    data: bytes
    logprob: float
    top: tuple[TokenScore, ...] = ()
    """The most probable tokens, where they are asked for"""


class TextDelta(NamedTuple):
    """What a step adds to a text."""

    text: str = ""
    tokens: int = 0
    scores: tuple[TokenScore, ...] = ()
    finish_reason: FinishReason | None = None
    """In the last one"""


class TextRequest(Protocol):
    """A text that is being written."""

    @property
    def warnings(self) -> Sequence[str]: ...

    @property
    def cached_tokens(self) -> int:
        """Of the prompt, that did not have to be read again; known once the text has begun."""
        ...

    def next_delta(self) -> TextDelta | None:
        """Waits for the next one; None behind the last. Raises: OarError, which ended the text."""
        ...

    def listen(self, function: Callable[[object], None]) -> None:
        """Calls a function with what `read` takes for each delta, in the place of `next_delta`: in a thread of the
        model, so it must not wait. An error that ends the text is given to it, too."""
        ...

    def read(self, item: object) -> TextDelta:
        """What `listen` gave, as a delta."""
        ...

    def cancel(self) -> None:
        """Ends it where it is; may be called by any thread."""
        ...


@dataclass(frozen=True)
class ChatPrompt:
    """A chat as its model reads it.

    Attributes:
        ids: Tokens. text: The same, with the marks of the template.
        stop: Texts that end an answer, besides those of the request.
        special: Whether special tokens belong to an answer: they mark the calls of some models.
    """

    ids: tuple[int, ...]
    text: str
    stop: tuple[str, ...] = ()
    special: bool = False

    def with_stop(self, options: Mapping[str, object]) -> dict[str, object]:
        """Options whose `stop` has these texts, too, unless they ignore what ends a text; and which leave the marks of
        calls in the text."""
        if self.special:
            options = {"skip_special_tokens": False, **options}
        stop = options.get("stop", ())
        texts = [stop] if isinstance(stop, str) else stop
        if not self.stop or options.get("ignore_eos") or not isinstance(texts, list | tuple):
            return dict(options)
        return {**options, "stop": [*texts, *self.stop]}


class TextGenerator(Protocol):
    """A model that writes several texts at once, for several threads.

    Attributes:
        max_length: Tokens of a prompt and its text. slots: Texts at once; others wait.
        has_template: Whether it knows how chats are written.
    """

    @property
    def max_length(self) -> int: ...

    @property
    def slots(self) -> int: ...

    @property
    def has_template(self) -> bool: ...

    @property
    def running(self) -> int: ...

    @property
    def waiting(self) -> int: ...

    def room(self, prompt: int) -> int:
        """Tokens that the text of a prompt of so many can have, at least 1; what an encoder reads takes none."""
        ...

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a text to go on with."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens. Raises: InputError, where one is none."""
        ...

    def score_prompt(self, ids: Sequence[int], top: int) -> Sequence[TokenScore]:
        """Each token of a prompt with `top` alternatives. The first one has no context, its logarithm is nan.

        Raises: ConfigError: the model cannot. InputError: the prompt is empty or too long, or a token is none.
        """
        ...

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None,
        settings: Mapping[str, JSON],
    ) -> ChatPrompt:
        """A chat, with the beginning of an answer. `settings` are of the template.

        Raises: InputError, FormatError: there is no template, or it refuses the messages.
        """
        ...

    def make_parser(self, prompt: ChatPrompt, tools: Sequence[Mapping[str, JSON]]) -> AnswerParser:
        """What takes the answer apart; without tools it is searched for thoughts alone."""
        ...

    def start(
        self, ids: Sequence[int], options: Mapping[str, object], constraint: tuple[str, JSON] | None = None
    ) -> Sequence[TextRequest]:
        """Begins to write.

        Args:
            options: By the names of transformers, vLLM or OpenAI; `n` texts are written.
            constraint: What the text has to be: ("json_schema", a schema), ("regex", a pattern), ("choice", a list of
                texts) or ("grammar", a grammar).

        Raises: InputError, ConfigError: an option is unknown or out of range, or the prompt is too long.
        """
        ...

    def close(self) -> None:
        """Ends what is not done."""
        ...


@dataclass(frozen=True)
class TextGeneration:
    """Models that write.

    Attributes:
        options: The frozen dataclass of a served model's settings, such as `slots`.
        accepts: Whether a name or a folder is such a model. Opens nothing.
        open: The model. Takes the source and an instance of `options`. Raises: OarError.
    """

    options: type
    accepts: Callable[[str], bool]
    open: Callable[[str, object], TextGenerator]
