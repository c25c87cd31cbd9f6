"""Documents ranked by a decoder that says yes or no, as Qwen3-Reranker.

from nlp import llm
from nlp.decoder_reranker import DecoderReranker

ranker = DecoderReranker(llm.load("models/qwen3-reranker-0.6b"))
print(ranker.rerank("how do cats sleep", documents).scores)

Paper: Zhang et al. 2025, https://arxiv.org/abs/2506.05176
Reference: the model card of Qwen/Qwen3-Reranker-0.6B: its texts around a query and a document, and its score
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.core.errors import InputError
from framework.nn import functional as F
from framework.workflow.domain.capabilities import PairScores
from nlp.evaluation.likelihood import model_parts
from nlp.llm import LanguageModel

INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
_BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
_BEHIND = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
_LONGEST = 8192  # tokens, of the model card
_SHORTEST = 16  # tokens of the first bucket


class DecoderReranker:
    """A TextReranking: the probability of "yes" against "no" as the next token.

    Args:
        yes, no: The tokens that are compared, as the vocabulary spells them.
        max_length: Tokens of a query with its document and all around them; documents are cut at their end. None: 8192,
            or what the model was made for.
        batch_size: Documents that run together.

    Raises:
        InputError: there is no tokenizer, it has no such tokens, or there is no room for a document.
    """

    reranks = True

    def __init__(
        self,
        model: LanguageModel,
        yes: str = "yes",
        no: str = "no",
        max_length: int | None = None,
        batch_size: int = 8,
    ) -> None:
        decoder, self._tokenizer = model_parts(model)
        answers = [self._tokenizer.id_of(token) for token in (no, yes)]
        if None in answers:
            raise InputError(
                "the vocabulary lacks an answer",
                where="DecoderReranker",
                received=f"{yes!r}, {no!r}",
                allowed="tokens of the vocabulary",
            )
        self._answers = np.array(answers, np.int32)
        self._before, self._behind = (self._encode(text) for text in (_BEFORE, _BEHIND))
        longest = min(_LONGEST, decoder.size.longest_text)
        self.max_length = longest if max_length is None else max_length
        self._room = self.max_length - len(self._before) - len(self._behind)
        self._batch_size = batch_size
        if self._room < 1:
            raise InputError(
                "there is no room for a document",
                where="max_length",
                received=self.max_length,
                allowed=f"above {self.max_length - self._room}",
            )
        self._graphdef, params, buffers = nn.split(decoder)
        self._state = (params, buffers)
        self._run = jax.jit(self._score)

    def _encode(self, text: str, parse_special: bool = True) -> list[int]:
        return self._tokenizer.encode(text, add_special=False, parse_special=parse_special).ids.tolist()

    def _score(self, state: tuple, ids: jax.Array, last: jax.Array) -> jax.Array:
        """[N] of ids [N, T] whose texts end at `last` [N]."""
        hidden = nn.apply(self._graphdef, *state, None, ids, method="hidden")[0]
        ends = jnp.take_along_axis(hidden, last[:, None, None], axis=1)[:, 0]  # [N, C]
        logits = nn.apply(self._graphdef, *state, None, ends, method="logits")[0]
        both = logits[:, self._answers].astype(jnp.float32)  # no, yes
        return F.sigmoid(both[:, 1] - both[:, 0])

    def rerank(self, query: str, documents: Sequence[str], instruction: str | None = None) -> PairScores:
        """Scores in [0, 1]: see `framework.workflow.domain.capabilities.TextReranking`.

        Marks of a chat that stand in the texts count as text, so that no document can end its turn and answer itself.
        """
        if isinstance(documents, str) or not all(isinstance(one, str) for one in (query, *documents)):
            raise InputError(
                "documents come as a list of texts", where="rerank", received=type(documents).__name__
            )
        lead = f"<Instruct>: {INSTRUCTION if instruction is None else instruction}\n<Query>: {query}\n<Document>: "
        rows = [
            self._before + self._encode(lead + one, parse_special=False)[: self._room] + self._behind
            for one in documents
        ]
        counts = np.array([len(row) for row in rows], np.int32)
        scores = np.zeros(len(rows), np.float32)
        order = np.argsort(-counts, kind="stable")
        for first in range(0, len(order), self._batch_size):
            batch = order[first : first + self._batch_size]
            longest = int(counts[batch[0]])
            length = min(max(_SHORTEST, 1 << (longest - 1).bit_length()), self.max_length)
            ids = np.zeros((self._batch_size, length), np.int32)
            last = np.zeros(self._batch_size, np.int32)
            for row, index in enumerate(batch):
                ids[row, : counts[index]] = rows[index]
                last[row] = counts[index] - 1
            scores[batch] = np.asarray(self._run(self._state, ids, last))[: len(batch)]
        return PairScores(scores, counts)
