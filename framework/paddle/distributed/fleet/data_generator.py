"""Generators of MultiSlot text, which run as the `pipe_command` of a dataset: `len v v … len v …` a line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from framework.core.errors import InputError
from framework.paddle._kernel.modules import complete as _complete

Samples = Callable[[], Iterable[object]]
"""A function that yields samples: [(name, [values]), …], a list, a tuple or a zip."""


class DataGenerator:
    """Base of the generators: a program defines `generate_sample`, and `generate_batch` where it needs several."""

    def __init__(self) -> None:
        self._proto_info: list[tuple[str, str]] | None = None
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """Samples that `generate_batch` gets."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: str | None) -> Samples:
        """A function that yields the samples of a line: [(name, [values]), …]."""
        raise InputError(
            "a generator defines generate_sample",
            where=type(self).__name__,
            allowed="def generate_sample(self, line): a function that yields [(name, [values]), …]",
        )

    def generate_batch(self, samples: list[object]) -> Samples:
        """A function that yields the samples of a batch; those that are given."""
        return lambda: iter(samples)

    def run_from_stdin(self) -> None:
        """Write the samples of the lines of the standard input to the standard output."""
        self._write(sample for line in sys.stdin for sample in self.generate_sample(line)())

    def run_from_memory(self) -> None:
        """Write what `generate_sample(None)` yields."""
        self._write(self.generate_sample(None)())

    def _write(self, samples: Iterable[object]) -> None:
        for batch in self._batches(samples):
            for sample in self.generate_batch(batch)():
                sys.stdout.write(self._gen_str(sample))

    def _batches(self, samples: Iterable[object]) -> Iterator[list[object]]:
        batch: list[object] = []
        for sample in samples:
            if sample is None:
                continue
            batch.append(sample)
            if len(batch) == self.batch_size_:
                yield batch
                batch = []
        if batch:
            yield batch

    def _gen_str(self, line: object) -> str:
        raise InputError(
            "a generator says how values are written",
            where=type(self).__name__,
            allowed="a class of MultiSlotDataGenerator or MultiSlotStringDataGenerator",
        )


def _fields(line: object) -> list[tuple[str, list[object]]]:
    if isinstance(line, zip):
        line = list(line)
    if not isinstance(line, list | tuple):
        raise ValueError(
            f"a sample is a list or tuple such as [('words', [1926, 8, 17]), ('label', [1])], received {line!r}"
        )
    return cast("list[tuple[str, list[object]]]", list(line))


class MultiSlotStringDataGenerator(DataGenerator):
    """Of values that are texts already; nothing is checked."""

    def _gen_str(self, line: object) -> str:
        return (
            " ".join(" ".join([str(len(values)), *cast("list[str]", values)]) for _, values in _fields(line))
            + "\n"
        )


class MultiSlotDataGenerator(DataGenerator):
    """Of numbers: each line has the same names in the same order, none without values. A slot is uint64 until a float
    is met in it."""

    def _gen_str(self, line: object) -> str:
        """Raises: ValueError, where the slots of a line are not those of the lines before, or have no numbers."""
        fields = _fields(line)
        first = self._proto_info is None
        kinds = self._proto_info = [] if self._proto_info is None else self._proto_info
        if not first and len(fields) != len(kinds):
            raise ValueError(f"a line has {len(fields)} slots, the first one had {len(kinds)}")
        text = []
        for number, (name, values) in enumerate(fields):
            if not isinstance(name, str):
                raise ValueError(f"the name of a slot is a text, received {type(name)}")
            if not isinstance(values, list):
                raise ValueError(f"the values of slot {name} are a list, received {type(values)}")
            if not values:
                raise ValueError(f"slot {name} has no values: fill it up in generate_sample")
            if first:
                kinds.append((name, "uint64"))
            elif name != kinds[number][0]:
                raise ValueError(f"slot {number} was {kinds[number][0]} in the first line, and is {name} now")
            for value in values:
                if isinstance(value, float):
                    kinds[number] = (name, "float")
                elif not isinstance(value, int) and kinds[number][1] != "float":
                    raise ValueError(f"a value of slot {name} is an int or a float, received {type(value)}")
            text.append(" ".join(map(str, [len(values), *values])))
        return " ".join(text) + "\n"


_complete(__name__)
