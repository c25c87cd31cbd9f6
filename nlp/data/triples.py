"""Queries with a text that fits and one that fits less."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import FormatError
from framework.text.sample import TextSample
from nlp.data.texts import Column, TextDataset, leave_out_blank, read_columns


@register("dataset")
@dataclass(frozen=True)
class TextTriples(TextDataset):
    """Three texts a line, in columns between separators, or in JSON lines (.jsonl): what a model learns to rank from.

    Attributes:
        text, pair, negative: The query, what fits it, and what fits it less: columns counted from 0, names in the first
            line, or keys of JSON. Lines that lack one of the texts are left out, and counted in the log.
        header: Leave out the first line, also where columns are numbers.

    Raises:
        InputError: at the first use, the file is missing.
        FormatError: it is not UTF-8, a column is missing, or a text is none.
    """

    path: Path
    text: Column = 0
    pair: Column = 1
    negative: Column = 2
    separator: str = "\t"
    header: bool = False

    @cached_property
    def samples(self) -> list[TextSample]:  # pyright: ignore[reportIncompatibleMethodOverride]
        samples = []
        columns = (self.text, self.pair, self.negative)
        for where, texts in read_columns(self.path, self.separator, self.header, columns):
            texts = ["" if text is None else text for text in texts]  # null of JSON, which is left out
            if wrong := [text for text in texts if not isinstance(text, str)]:
                raise FormatError(
                    "an entry must be a text", where=where, received=repr(wrong[0])[:80], allowed="a text"
                )
            query, pair, negative = map(str, texts)
            worse = TextSample(query, pair=negative, id=where)
            samples.append(TextSample(query, pair=pair, negative=worse, id=where))
        return leave_out_blank(samples, self.path)
