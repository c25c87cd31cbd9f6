"""`paddle.base.core.ProgramDesc`: a program as data."""

from __future__ import annotations

import hashlib

from framework.paddle.static.description_format import program_bytes, read_program
from framework.paddle.static.descriptions import BlockDesc


class ProgramDesc:
    """A program as data: its blocks, the first of which runs."""

    def __init__(self, other: ProgramDesc | None = None) -> None:
        self.blocks = [BlockDesc(self, 0, -1)]
        self.version = 2006002
        self._unchanged: bytes | None = None  # what it was when it was last flushed
        if other is not None:
            self._take(other.serialize_to_string())

    def block(self, number: int) -> BlockDesc:
        """A block. Raises: IndexError: there are not so many."""
        return self.blocks[number]

    def num_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.blocks)

    def append_block(self, parent: BlockDesc) -> BlockDesc:
        """A new block within another."""
        self.blocks.append(BlockDesc(self, len(self.blocks), parent.id))
        return self.blocks[-1]

    def _version(self) -> int:
        return self.version

    def _set_version(self, version: int = 2006002) -> None:
        self.version = version

    def serialize_to_string(self) -> bytes:
        """The bytes of a `.pdmodel`."""
        return program_bytes(self)

    def parse_from_string(self, data: bytes) -> None:
        """Be what these bytes of a `.pdmodel` say. Raises: ValueError: they are none."""
        self._take(data)

    def _take(self, data: bytes) -> None:
        read_program(self, data)

    def need_update(self) -> bool:
        """Whether it changed since it was last flushed."""
        return self._unchanged != self.serialize_to_string()

    def flush(self) -> None:
        """Take it for unchanged from here on."""
        self._unchanged = self.serialize_to_string()

    def cached_hash_str(self) -> str:
        """A text that is equal for equal programs; flushes."""
        self.flush()
        return hashlib.sha256(self._unchanged or b"").hexdigest()

    def get_feed_target_names(self) -> list[str]:
        """The names of what operators named "feed" give."""
        return [
            name for op in self.blocks[0].operators if op.type() == "feed" for name in op.output_arg_names()
        ]

    def get_fetch_target_names(self) -> list[str]:
        """The names of what operators named "fetch" take."""
        return [
            name for op in self.blocks[0].operators if op.type() == "fetch" for name in op.input_arg_names()
        ]
