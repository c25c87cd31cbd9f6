"""Search in texts by their meaning: embeddings, kept as an index, and the nearest to those of a query.

from nlp import predictor
from nlp.text_index import TextIndex

index = TextIndex(predictor("models/bge-small-en"), documents)
for hit in index.search("how do cats sleep", top=5):
    print(hit.score, hit.text)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from framework.inference.vector_index import VectorIndex
from framework.workflow.domain.capabilities import TextEmbedding, TextReranking


class Hit(NamedTuple):
    """A text that was found: its place among the texts of the index, and how near it is, the larger the nearer."""

    index: int
    score: float
    text: str


class TextIndex:
    """Embeds texts once and finds those nearest to a query, by inner products: cosines of a model whose embeddings have
    length 1.

    Args:
        embedder: What `nlp.predictor` gives of a model that embeds texts.
        texts: What is searched.
        prompt_name, query_prompt_name: The model's prompts for texts and for queries; None: "query" stands before
            queries where the model has it, and the model's default prompt before texts.

    Raises:
        InputError: the model gives no embeddings, or has no such prompt. ShapeError: there are no texts.
    """

    def __init__(
        self,
        embedder: TextEmbedding,
        texts: Sequence[str],
        prompt_name: str | None = None,
        query_prompt_name: str | None = None,
    ) -> None:
        self.embedder, self.texts = embedder, list(texts)
        prompts = getattr(getattr(embedder, "embedding", None), "prompts", {})
        self.query_prompt_name = (
            "query" if query_prompt_name is None and "query" in prompts else query_prompt_name
        )
        self.vectors = embedder.embed(self.texts, prompt_name=prompt_name).vectors
        self._index = VectorIndex(self.vectors)

    def search(self, query: str, top: int = 10, reranker: TextReranking | None = None) -> list[Hit]:
        """The `top` texts nearest to a query, best first.

        Args:
            reranker: Puts four times as many texts in order by reading each together with the query.
        """
        vector = self.embedder.embed([query], prompt_name=self.query_prompt_name).vectors
        scores, places = self._index.search(vector, top if reranker is None else 4 * top)
        hits = [
            Hit(int(place), float(score), self.texts[place])
            for score, place in zip(scores[0], places[0])
            if place >= 0
        ]
        if reranker is not None and hits:
            better = reranker.rerank(query, [hit.text for hit in hits]).scores
            order = np.argsort(-better, kind="stable")
            hits = [hits[one]._replace(score=float(better[one])) for one in order]
        return hits[:top]
