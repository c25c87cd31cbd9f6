"""What every model of language takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from framework.workflow.domain.result import TextResult
from framework.workflow.runners.text_predictor import TextProcessor

State = TypeVar("State")

if TYPE_CHECKING:
    import jax

    from framework.engine.task import Metric
    from nlp.processors import ProcessorContext


class Tokens(NamedTuple):
    """N texts, padded to T tokens; the real ones come first."""

    ids: jax.Array
    """[N, T] int32; [N, T, K] where K features of each token are added up"""
    mask: jax.Array
    """[N, T] bool: False is padding"""
    type_ids: jax.Array | None = None
    """[N, T] int32: 0 for the first text of a pair and 1 for the second"""


class TextClassifier(Protocol):
    """A Layer. `forward` gives logits [N, num_classes] float32. What is padded does not change a text's result."""

    def forward(self, tokens: Tokens) -> jax.Array: ...


class Tagger(Protocol):
    """A Layer that gives each token one of L tags. One whose loss is a mean over tokens says `mean_over = "tokens"`, so
    that gradients of several batches are averaged as those of one large batch (`optim.accumulate`)."""

    def loss(self, tokens: Tokens, tags: jax.Array) -> jax.Array:
        """A float32 scalar, the mean over texts or tokens; `tags` [N, T] int32, below 0 where a token has none."""
        ...

    def tag(self, tokens: Tokens) -> tuple[jax.Array, jax.Array]:
        """The tags [N, T] int32 and how probable each is, [N, T] float32 in [0, 1]."""
        ...


@runtime_checkable
class Matcher(Protocol):
    """A Layer that judges two texts, each in a row of tokens of its own. What is padded changes no pair's result.

    Others, such as SequenceClassifier, read both in one row and have no `pair`.
    """

    apart: ClassVar[bool] = True

    def forward(self, tokens: Tokens, pair: Tokens) -> jax.Array:
        """Logits [N, 2] float32, of texts that do not match and of those that do; or [N] float32, which is the larger
        the better they match."""
        ...


@runtime_checkable
class TextEmbedder(Protocol):
    """A Layer that gives each text an embedding."""

    def embed(self, tokens: Tokens) -> jax.Array:
        """[N, D] float32, each of length 1: the product of two is their cosine."""
        ...


Step = Callable[["jax.Array", "jax.Array", State], tuple["jax.Array", State]]
"""(tokens [B] int32, their position [] int32, state) -> (logits [B, V] of the next tokens, the new state).

Each array of a state has B rows, which belong to the tokens."""


class SequenceToSequence(Protocol[State]):
    """A Layer that generates one text from another. Its config has `pad_id`, `bos_id`, `eos_id` and `max_length`."""

    def forward(self, tokens: Tokens, target: Tokens) -> jax.Array:
        """Logits [N, S, V] float32 of what follows each token of `target`; none sees the tokens behind it."""
        ...

    def start(self, tokens: Tokens, beam_size: int, max_length: int) -> tuple[Step[State], State]:
        """What generates up to `max_length` tokens for each text, `beam_size` times: N * beam_size rows, in this order,
        and the state before the first token, which is `bos_id` at position 0."""
        ...


class MetricConfig(Protocol):
    """What is registered as a metric: `start` gives a fresh one for the classes of an evaluation."""

    def start(self, labels: tuple[str, ...]) -> Metric: ...


class TextTask(Protocol):
    """A task on texts, as its artifact is opened by `nlp.predictor`."""

    padding: ClassVar[Mapping[str, int]]
    """What pads the arrays of the program's inputs, by name"""

    def processor(self, context: ProcessorContext) -> TextProcessor[TextResult]:
        """What goes from a text to the program, and from its outputs to a result."""
        ...
