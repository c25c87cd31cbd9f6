"""Texts alone, for models that learn from nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.text.lines import read_lines
from framework.text.sample import TextSample
from framework.text.words import pieces
from nlp.data.texts import TextDataset


@register("dataset")
@dataclass(frozen=True)
class TextLines(TextDataset):
    """A text a line; blank lines are left out.

    Attributes:
        block: The lines of a document, which ends at a blank line, are joined by spaces to texts of at most so many
            characters, and a longer line is divided between its sentences; None: each line is a text.
        words: Spaces in a line divide words, which are kept; not with `block`.
        joint: What stands between the words of the text: "" in Chinese that somebody divided.

    Raises:
        ConfigError: `block` is below 1, or stands beside `words`.
        InputError: at the first use, the file is missing. FormatError: it is not UTF-8, or has no text.
    """

    path: Path
    block: int | None = None
    words: bool = False
    joint: str = " "

    def __post_init__(self) -> None:
        if self.block is not None and (self.block < 1 or self.words):
            raise ConfigError(
                "texts cannot be put together so",
                where="TextLines",
                received=f"block {self.block}, words {self.words}",
                allowed="block from 1, or words",
            )

    @cached_property
    def samples(self) -> list[TextSample]:  # pyright: ignore[reportIncompatibleMethodOverride]
        lines = [(number, line.strip()) for number, line in enumerate(read_lines(self.path), start=1)]
        samples = []
        for number, text in lines if self.block is None else self._blocks(lines, self.block):
            if not text:
                continue
            words = tuple(text.split()) if self.words else None
            text = text if words is None else self.joint.join(words)
            samples.append(TextSample(text, words=words, id=f"{self.path}, line {number}"))
        if not samples:
            raise FormatError("there is no text in the file", where=self.path)
        return samples

    def _blocks(self, lines: list[tuple[int, str]], size: int) -> Iterator[tuple[int, str]]:
        """(line in which it begins, text) of each block."""
        first, block = 1, ""
        for number, line in [*lines, (0, "")]:
            if not line:
                yield first, block
                block = ""
            for _, chunk in pieces(line, size):
                if block and len(block) + 1 + len(chunk.strip()) > size:
                    yield first, block
                    block = ""
                first = first if block else number
                block = f"{block} {chunk.strip()}" if block else chunk.strip()
