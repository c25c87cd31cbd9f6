"""Keys and values of earlier prompts, by blocks of tokens, so that what begins alike is not read again.

A block is known by the hash of its tokens and of all before them. Blocks that were not used for longest go first.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence

import numpy as np

from framework.core.types import PyTree

BLOCK = 64


def block_keys(ids: Sequence[int], regime: int = 0) -> Iterator[bytes]:
    """The key of each whole block of tokens, in texts of one `RopeOptions.regime`."""
    key = str(regime).encode()
    tokens = np.asarray(ids, np.int32)
    for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
        key = hashlib.blake2b(key + tokens[start : start + BLOCK].tobytes(), digest_size=16).digest()
        yield key


class PrefixCache:
    """Blocks by key; for one thread.

    Args:
        tokens: The most tokens that are stored; 0 stores none.
    """

    def __init__(self, tokens: int) -> None:
        self._most = tokens // BLOCK
        self._blocks: OrderedDict[bytes, PyTree] = OrderedDict()
        self.hits = 0
        """Tokens that did not have to be read again"""

    def __len__(self) -> int:
        return len(self._blocks)

    def find(self, ids: Sequence[int], regime: int = 0) -> list[PyTree]:
        """The blocks with which the tokens begin; never all of the tokens, since the last one gives the scores."""
        blocks = []
        for key in block_keys(ids[:-1], regime):
            block = self._blocks.get(key)
            if block is None:
                break
            self._blocks.move_to_end(key)
            blocks.append(block)
        self.hits += len(blocks) * BLOCK
        return blocks

    def missing(self, ids: Sequence[int], regime: int = 0) -> list[tuple[bytes, int]]:
        """(key, first position) of the blocks of the tokens that are not stored and have room."""
        if not self._most:
            return []
        keys = list(block_keys(ids, regime))[: self._most]
        return [(key, number * BLOCK) for number, key in enumerate(keys) if key not in self._blocks]

    def add(self, key: bytes, block: PyTree) -> None:
        self._blocks[key] = block
        while len(self._blocks) > self._most:
            self._blocks.popitem(last=False)
