"""paddle.incubate.nn.attn_bias: what is added to the scores of attention, made when its shape is asked for."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from framework.core.errors import OarError
from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.creation import to_tensor
from framework.paddle.ops.joining import concat, split


def _triangle(rows: int, columns: int, offset: int = 0) -> np.ndarray:
    """0 up to the diagonal, -inf above it."""
    return np.triu(np.full((rows, columns), -np.inf), 1 + offset)


class PaddedError(OarError, NotImplementedError):
    """Sequences that are padded are asked for what only others have."""


class AttentionBias(ABC):
    """Base of all."""

    @abstractmethod
    def materialize(self, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
        """The bias of this shape, [..., queries, keys]."""


class LowerTriangularMask(AttentionBias):
    """Each query sees the keys up to its own."""

    def materialize(self, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
        return to_tensor(np.broadcast_to(_triangle(shape[-2], shape[-1]), tuple(shape))).astype(dtype)

    def add_bias(self, bias: Tensor) -> LowerTriangularMaskWithTensorBias:
        """With a bias besides."""
        return LowerTriangularMaskWithTensorBias(bias)


class LowerTriangularMaskWithTensorBias(LowerTriangularMask):
    """`LowerTriangularMask` and a bias."""

    def __init__(self, bias: Tensor) -> None:
        self._bias = bias

    def materialize(self, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
        return super().materialize(shape, dtype) + self._bias


@dataclass
class SeqLenInfo:
    """Sequences one behind another: where each begins, and the end."""

    seqstart: Tensor
    max_seqlen: int
    seqstart_py: list[int]

    def intervals(self) -> Iterator[tuple[int, int]]:
        """(begin, end) of each."""
        yield from zip(self.seqstart_py, self.seqstart_py[1:])

    @classmethod
    def from_seqlens(cls, seqlens: Sequence[int]) -> SeqLenInfo:
        """Of their lengths."""
        starts = [0, *(int(end) for end in np.cumsum(seqlens))]
        return cls(to_tensor(starts, "int32"), max(seqlens, default=-1), starts)

    def split(self, x: Tensor, batch_sizes: Sequence[int] | None = None) -> list[Tensor]:
        """The sequences of x [1, all, ...]: each for itself, or as many as a batch has."""
        assert self.seqstart_py[-1] == x.shape[1] and x.shape[0] == 1, f"sequences do not fit x of {x.shape}"
        sizes = [1] * (len(self.seqstart_py) - 1) if batch_sizes is None else batch_sizes
        ends = np.cumsum([0, *sizes])
        lengths = [self.seqstart_py[b] - self.seqstart_py[a] for a, b in itertools.pairwise(ends)]
        chunks = split(x, lengths, 1)
        return [chunk.reshape([size, -1, *x.shape[2:]]) for size, chunk in zip(sizes, chunks, strict=True)]


@dataclass
class PaddedSeqLenInfo(SeqLenInfo):
    """Sequences that are padded to one length."""

    seqlen: Tensor
    seqlen_py: Sequence[int]

    def intervals(self) -> Iterator[tuple[int, int]]:
        """(begin, end without padding) of each."""
        for (start, _), length in zip(super().intervals(), self.seqlen_py):
            yield start, start + length

    @classmethod
    def from_seqlens(cls, seqlens: Sequence[int]) -> SeqLenInfo:
        """Refused. Raises: PaddedError."""
        raise PaddedError("PaddedSeqLenInfo is made by from_seqlens_padded", where="PaddedSeqLenInfo")

    @classmethod
    def from_seqlens_padded(cls, seqlens: Sequence[int], padding: int) -> PaddedSeqLenInfo:
        """Of their lengths and the length that they are padded to."""
        assert all(length <= padding for length in seqlens), f"a sequence is longer than {padding}"
        starts = list(range(0, len(seqlens) * padding + 1, padding))
        return cls(
            to_tensor(starts, "int32"), max(seqlens), starts, to_tensor(list(seqlens), "int32"), seqlens
        )

    def split(self, x: Tensor, batch_sizes: Sequence[int] | None = None) -> list[Tensor]:
        """Refused. Raises: PaddedError."""
        raise PaddedError("padded sequences are not split", where="PaddedSeqLenInfo")


class _Blocks(AttentionBias):
    """Each sequence of queries sees the keys of its own sequence."""

    q_seqinfo: SeqLenInfo
    k_seqinfo: SeqLenInfo

    def _block(self, index: int, rows: int, columns: int) -> np.ndarray:
        return np.zeros((rows, columns))

    def materialize(self, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
        assert shape[-1] == self.k_seqinfo.seqstart_py[-1], f"keys do not fit {list(shape)}"
        assert shape[-2] == self.q_seqinfo.seqstart_py[-1], f"queries do not fit {list(shape)}"
        mask = np.full(tuple(shape[-2:]), -np.inf)
        intervals = zip(self.q_seqinfo.intervals(), self.k_seqinfo.intervals())
        for index, ((q_start, q_end), (k_start, k_end)) in enumerate(intervals):
            mask[q_start:q_end, k_start:k_end] = self._block(index, q_end - q_start, k_end - k_start)
        return to_tensor(np.broadcast_to(mask, tuple(shape))).astype(dtype)


def _in_a_row(tensors: Sequence[Tensor]) -> Tensor:
    return concat([x.reshape([1, -1, *x.shape[2:]]) for x in tensors], 1)


def _lengths(tensors: Sequence[Tensor]) -> list[int]:
    return [x.shape[1] for x in tensors for _ in range(x.shape[0])]


@dataclass
class BlockDiagonalMask(_Blocks):
    """Each sequence of queries sees the keys of its own sequence."""

    q_seqinfo: SeqLenInfo
    k_seqinfo: SeqLenInfo
    _batch_sizes: Sequence[int] | None = None

    @classmethod
    def from_seqlens(cls, q_seqlen: Sequence[int], kv_seqlen: Sequence[int] | None = None) -> Self:
        """Of the lengths of queries and of keys (the same by default)."""
        assert kv_seqlen is None or len(q_seqlen) == len(kv_seqlen), "as many sequences of keys as of queries"
        queries = SeqLenInfo.from_seqlens(q_seqlen)
        same = kv_seqlen is None or list(q_seqlen) == list(kv_seqlen)
        return cls(queries, queries if same else SeqLenInfo.from_seqlens(kv_seqlen or ()))

    @classmethod
    def from_tensor_list(cls, tensors: Sequence[Tensor]) -> tuple[Self, Tensor]:
        """(mask, the sequences [1, all, ...]) of batches [N, T, ...]."""
        mask = cls.from_seqlens(_lengths(tensors))
        mask._batch_sizes = [x.shape[0] for x in tensors]
        return mask, _in_a_row(tensors)

    @classmethod
    def from_tensor_lists_qkv(
        cls,
        tensors_q: Sequence[Tensor],
        tensors_k: Sequence[Tensor],
        tensors_v: Sequence[Tensor] | None = None,
    ) -> tuple[Self, Tensor, Tensor, Tensor | None]:
        """(mask, queries, keys, values) of batches of each."""
        assert len(tensors_q) == len(tensors_k), "as many batches of keys as of queries"
        assert tensors_v is None or len(tensors_v) == len(tensors_q), (
            "as many batches of values as of queries"
        )
        mask = cls.from_seqlens(_lengths(tensors_q), _lengths(tensors_k))
        mask._batch_sizes = [x.shape[0] for x in tensors_q]
        values = None if tensors_v is None else _in_a_row(tensors_v)
        return mask, _in_a_row(tensors_q), _in_a_row(tensors_k), values

    def split_queries(self, tensor: Tensor) -> list[Tensor]:
        """The batches of queries."""
        return self.q_seqinfo.split(tensor, self._batch_sizes)

    def split_kv(self, tensor: Tensor) -> list[Tensor]:
        """The batches of keys or values."""
        return self.k_seqinfo.split(tensor, self._batch_sizes)

    def split(self, tensor: Tensor) -> list[Tensor]:
        """The batches, where queries and keys are the same sequences."""
        assert self.q_seqinfo is self.k_seqinfo, "queries and keys are different sequences"
        return self.q_seqinfo.split(tensor, self._batch_sizes)

    def make_causal(self) -> BlockDiagonalCausalMask:
        """With each query seeing the keys up to its own."""
        return BlockDiagonalCausalMask(self.q_seqinfo, self.k_seqinfo, self._batch_sizes)


@dataclass
class BlockDiagonalCausalMask(BlockDiagonalMask):
    """Each query sees the keys of its sequence up to its own."""

    def _block(self, index: int, rows: int, columns: int) -> np.ndarray:
        return _triangle(rows, columns)


@dataclass
class BlockDiagonalCausalWithOffsetPaddedKeysMask(_Blocks):
    """`BlockDiagonalCausalMask` for padded keys; `causal_diagonal` [N] moves the diagonal of each sequence."""

    q_seqinfo: SeqLenInfo
    k_seqinfo: SeqLenInfo
    causal_diagonal: Tensor | None = None

    def _block(self, index: int, rows: int, columns: int) -> np.ndarray:
        diagonal = self.causal_diagonal
        return _triangle(rows, columns, 0 if diagonal is None else int(diagonal.numpy().reshape(-1)[index]))

    @classmethod
    def from_seqlens(
        cls,
        q_seqlen: Sequence[int],
        kv_padding: int,
        kv_seqlen: Sequence[int],
        causal_diagonal: Tensor | None = None,
    ) -> Self:
        """Of the lengths of queries and keys, and the length that keys are padded to."""
        assert len(q_seqlen) == len(kv_seqlen), "as many sequences of keys as of queries"
        keys = PaddedSeqLenInfo.from_seqlens_padded(kv_seqlen, kv_padding)
        return cls(SeqLenInfo.from_seqlens(q_seqlen), keys, causal_diagonal)
