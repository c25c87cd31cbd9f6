"""What `nlp.predictor` gives: answers one question on texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from framework.core.errors import InputError, OarError
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
from framework.workflow import LanguagePredictor, TextResult
from framework.workflow.domain.capabilities import EmbeddingBatch, PairScores
from framework.workflow.domain.predictor import Text
from framework.workflow.runners.text_predictor import TextPredictor
from nlp.results import Similarity, Tagged, TextLabels, TextVector

# What a task's name makes of the typed result; None leaves it as it is.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "words": lambda result: _tagged(result).words,
    "pairs": lambda result: tuple((span.text, span.label) for span in _tagged(result).spans),
}


@dataclass(frozen=True)
class EmbeddingSettings:
    """What an artifact says of its embeddings.

    Attributes:
        size: D.
        normalized: They have length 1.
        prompts: What stands before texts, by name; `default_prompt` is the name of one of them.
        pooling: How vectors of tokens become one; empty: it is not known.
    """

    size: int
    normalized: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    pooling: str = ""

    def prompt(self, text: str | None, name: str | None) -> str:
        """What stands before texts. Raises: InputError, where there is no prompt of this name."""
        if text is not None:
            return text
        name = self.default_prompt if name is None else name
        if name is None:
            return ""
        if name not in self.prompts:
            raise InputError(
                "the model has no prompt of this name",
                where="prompt_name",
                received=repr(name)[:80],
                allowed=", ".join(self.prompts) or "none: give the text as `prompt`",
            )
        return self.prompts[name]


def _tagged(result: TextResult) -> Tagged:
    assert isinstance(result, Tagged)
    return result


class TextAnalyzer(LanguagePredictor[Any]):
    """A call takes a text, a pair of texts as a tuple, or a list of them, which gives a list.

    Made by `predictor`. Safe to call from several threads. Of a model that embeds texts `embed` gives arrays, of one
    that scores pairs `rerank` orders documents (the protocols TextEmbedding and TextReranking).

    Args:
        model: Gives the typed results of nlp/results.py.
        view: One of VIEWS, or None.
        embedding: Of a model that embeds texts.
        prompt: Stands before each text of a call: one of the model's prompts by its name, else the text itself.
        reranks: The model gives each pair one number.
        are_probabilities: That number is one, in [0, 1].
        tokenize: What makes tokens of its texts as they are; None: something else comes before it.
    """

    def __init__(
        self,
        model: TextPredictor[Any],
        view: str | None = None,
        embedding: EmbeddingSettings | None = None,
        prompt: str | None = None,
        reranks: bool = False,
        are_probabilities: bool = True,
        tokenize: Tokenize | None = None,
    ) -> None:
        self.model, self.view, self.embedding, self.reranks = model, view, embedding, reranks
        self.are_probabilities, self._tokenize = are_probabilities, tokenize
        if prompt is not None and embedding is None:
            raise InputError(
                "the model takes no prompt", where="prompt", received=repr(prompt)[:80], allowed="none"
            )
        self.prompt = ""
        if embedding is not None:
            named = prompt if prompt in embedding.prompts else None
            self.prompt = embedding.prompt(None if named else prompt, named)

    @property
    def pairs(self) -> bool:
        return self.model.pairs

    @property
    def embedding_size(self) -> int | None:
        """D of `embed`; None: the model gives no embeddings."""
        return None if self.embedding is None else self.embedding.size

    @property
    def pooling(self) -> str:
        """How vectors of tokens become one; empty: it is not known."""
        return "" if self.embedding is None else self.embedding.pooling

    @property
    def tokenizer(self) -> Tokenizer | None:
        """See `framework.workflow.domain.capabilities.TextTokenization`, as of the next two."""
        return None if self._tokenize is None else self._tokenize.source()

    @property
    def max_tokens(self) -> int:
        return 0 if self._tokenize is None else self._tokenize.max_length

    def add_prompt(self, text: str, prompt_name: str | None = None) -> str:
        if prompt_name is None:
            return self.prompt + text
        return (self.embedding or EmbeddingSettings(0)).prompt(None, prompt_name) + text

    def count_tokens(self, text: Text) -> int:
        return self.model.count_tokens(_lead(self.prompt, text))

    def predict_stream(self, items: Iterable[Text]) -> Iterator[Any]:
        for attempt in self.predict_attempts(items):
            if isinstance(attempt, OarError):
                raise attempt
            yield attempt if self.view is None else VIEWS[self.view](attempt)

    def predict_attempts(self, texts: Iterable[Text]) -> Iterator[TextResult | OarError]:
        """The typed results, whatever the task's name makes of them."""
        if not self.prompt:
            yield from self.model.predict_attempts(texts)
            return
        size = len(self.prompt)
        for attempt in self.model.predict_attempts(_lead(self.prompt, text) for text in texts):
            if isinstance(attempt, TextVector):
                attempt = cast(TextResult, replace(attempt, text=attempt.text[size:]))
            yield attempt

    def embed(
        self,
        texts: Sequence[str],
        prompt: str | None = None,
        prompt_name: str | None = None,
        dimensions: int | None = None,
    ) -> EmbeddingBatch:
        """The embeddings of texts: see `framework.workflow.domain.capabilities.TextEmbedding`."""
        if self.embedding is None:
            raise InputError("the model gives no embeddings of texts", where="embed")
        if isinstance(texts, str):
            raise InputError("texts come in a list", where="embed", received="str", allowed="list[str]")
        if dimensions is not None and not 1 <= dimensions <= self.embedding.size:
            raise InputError(
                "there are not so many dimensions",
                where="dimensions",
                received=dimensions,
                allowed=f"1 to {self.embedding.size}",
            )
        lead = (
            self.prompt
            if prompt is None and prompt_name is None
            else self.embedding.prompt(prompt, prompt_name)
        )
        vectors, counts = (
            np.zeros((len(texts), self.embedding.size), np.float32),
            np.zeros(len(texts), np.int32),
        )
        for row, result in enumerate(self.model.predict_stream(_lead(lead, text) for text in texts)):
            assert isinstance(result, TextVector)
            vectors[row], counts[row] = result.vector, result.token_count
        if dimensions is not None and dimensions < self.embedding.size:
            vectors = np.ascontiguousarray(vectors[:, :dimensions])
            if self.embedding.normalized:
                vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return EmbeddingBatch(vectors, counts)

    def rerank(self, query: str, documents: Sequence[str], instruction: str | None = None) -> PairScores:
        """Scores of documents: see `framework.workflow.domain.capabilities.TextReranking`."""
        if not self.reranks:
            raise InputError("the model does not score pairs of texts", where="rerank")
        if instruction is not None:
            raise InputError(
                "the model reads no instruction", where="instruction", received=repr(instruction)[:80]
            )
        if isinstance(documents, str):
            raise InputError("documents come in a list", where="rerank", received="str", allowed="list[str]")
        scores, counts = np.zeros(len(documents), np.float32), np.zeros(len(documents), np.int32)
        for row, result in enumerate(self.model.predict_stream((query, one) for one in documents)):
            assert isinstance(result, Similarity | TextLabels)
            scores[row] = result.score
            counts[row] = result.token_count
        return PairScores(scores, counts, self.are_probabilities)


def _lead(prompt: str, text: Text) -> Text:
    """The text behind a prompt; of a pair, the first one. What is no text is left for the predictor to refuse."""
    if isinstance(text, tuple) and text and isinstance(text[0], str):
        return (prompt + text[0], *text[1:])  # type: ignore[return-value]
    return prompt + text if isinstance(text, str) else text
