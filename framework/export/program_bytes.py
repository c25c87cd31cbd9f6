"""A program as its bytes: jax reads it when it is first lowered, and not at all where its executables are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from framework.core.lazy import LazyModule
from framework.core.types import PyTree

if TYPE_CHECKING:
    from jax import export
    from jax.core import AbstractValue
else:
    export = LazyModule("jax.export")


class Program(Protocol):
    """What an artifact holds and an engine runs: `jax.export.Exported`, or its bytes."""

    @property
    def platforms(self) -> Sequence[str]: ...
    @property
    def in_tree(self) -> Any: ...
    @property
    def in_avals(self) -> Sequence[AbstractValue]: ...
    @property
    def out_tree(self) -> Any: ...
    @property
    def out_avals(self) -> Sequence[AbstractValue]: ...

    def call(self, *args: PyTree) -> PyTree:
        """The program as a function that can be traced."""
        ...

    def serialize(self) -> bytearray:
        """The bytes of a .jaxexp file."""
        ...


class StoredProgram:
    """A program of bytes that this jax can read. What is not in the bytes' description reads them: 35 ms for three.

    Args:
        data: The content of a .jaxexp file.
        platforms: Those it was lowered for.
        read: Reads the bytes. Raises: FormatError, where it cannot.
        file: Where they were read from, for messages.
    """

    def __init__(
        self,
        data: bytes,
        platforms: Sequence[str],
        read: Callable[[bytes], export.Exported],
        file: Path | None = None,
    ) -> None:
        self.data, self.platforms, self._read, self.file = data, tuple(platforms), read, file

    @cached_property
    def exported(self) -> export.Exported:
        return self._read(self.data)

    @property
    def in_tree(self) -> Any:
        return self.exported.in_tree

    @property
    def in_avals(self) -> Sequence[AbstractValue]:
        return self.exported.in_avals

    @property
    def out_tree(self) -> Any:
        return self.exported.out_tree

    @property
    def out_avals(self) -> Sequence[AbstractValue]:
        return self.exported.out_avals

    def call(self, *args: PyTree) -> PyTree:
        return self.exported.call(*args)

    def serialize(self) -> bytearray:
        return bytearray(self.data)


def program_digest(program: Program) -> str:
    """Names what a program computes: the sha256 of its file, written or not."""
    data = program.data if isinstance(program, StoredProgram) else program.serialize()
    return hashlib.sha256(data).hexdigest()
