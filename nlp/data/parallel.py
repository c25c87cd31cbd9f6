"""Sentences and their translations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import FormatError
from framework.text.lines import read_lines
from framework.text.sample import TextSample
from nlp.data.texts import TextDataset, leave_out_blank


@register("dataset")
@dataclass(frozen=True)
class ParallelText(TextDataset):
    """Two files of the same number of lines: line i of `target` is the translation of line i of `source`.

    Pairs of which one line is blank are left out, and counted in the log.

    Raises:
        InputError: at the first use, a file is missing. FormatError: the files differ in their number of lines.
    """

    source: Path
    target: Path

    @cached_property
    def samples(self) -> list[TextSample]:  # pyright: ignore[reportIncompatibleMethodOverride]
        source, target = read_lines(self.source), read_lines(self.target)
        if len(source) != len(target):
            raise FormatError(
                "the files are no translations of one another",
                where=f"{self.source} and {self.target}",
                received=f"{len(source)} and {len(target)} lines",
                allowed="the same number of lines",
            )
        samples = [
            TextSample(a, target=b, id=f"{self.source}, line {number}")
            for number, (a, b) in enumerate(zip(source, target), start=1)
        ]
        return leave_out_blank(samples, self.source)
