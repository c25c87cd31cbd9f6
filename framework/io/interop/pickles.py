"""A pickle machine that can build data and nothing else.

It reads the binary opcodes of protocols 2 to 5 that Paddle and torch write. A class or function that a pickle names
is looked up in the caller's allow-list and stands for a function of this package; whatever is not on the list is a
FormatError. No module is imported, no foreign code is called, no attribute is set, and Python's own unpickler is not
involved.

Source: the opcode list in CPython's Lib/pickletools.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from framework.core.errors import FormatError
from framework.io.interop.source import Source

MAX_DEPTH = 64
_MAX_INT_BYTES = 64
_KEY_TYPES = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Global:
    """A class or function that a pickle names; `call` is what stands for it, None when it is only a marker."""

    module: str
    name: str
    call: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


AllowList = Mapping[tuple[str, str], Callable[..., Any] | None]


class Machine:
    """Runs one pickle. `allowed` maps (module, name) to the function that stands for it, or None for a marker.

    `persistent` receives the persistent ids (torch's references to storages). Objects that a pickle may BUILD have a
    method `build(state)`; the state given to a dict is dropped (torch keeps version notes there).
    """

    _op: ClassVar[dict[int, Callable[[Machine], None]]] = {}

    def __init__(
        self,
        source: Source,
        allowed: AllowList,
        *,
        start: int = 0,
        persistent: Callable[[Any], Any] | None = None,
        fix: str,
    ) -> None:
        self.source, self.allowed, self.persistent, self.fix = source, allowed, persistent, fix
        self.at = self._begin = start
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> tuple[Any, int]:
        """The pickled object and the position after it."""
        while True:
            self._begin = self.at
            code = self._number(1)
            try:
                if code == _STOP:
                    return self._stack.pop(), self.at
                self._op[code](self)
            except FormatError:
                raise
            except (LookupError, TypeError, ValueError, OverflowError, ArithmeticError, AttributeError) as error:
                known = code in self._op
                raise self.error(
                    "not a valid pickle of weights" if known else "a pickle opcode that no weight file needs",
                    received=f"{type(error).__name__}: {str(error)[:200]}" if known else f"opcode {code:#04x}",
                    allowed="pickle protocols 2 to 5 with tensors, containers, text and numbers",
                ) from None

    def error(self, problem: str, *, received: object = None, allowed: object = None) -> FormatError:
        return self.source.error(problem, self._begin, received=received, allowed=allowed, fix=self.fix)

    # Reading -----------------------------------------------------------------------------------------------------

    def _take(self, size: int) -> memoryview:
        view = self.source.view(self.at, size, "a pickle")
        self.at += size
        return view

    def _number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def _line(self) -> str:
        for end in range(self.at, min(self.at + 512, len(self.source.data))):
            if self.source.data[end] == 0x0A:
                text = str(self.source.data[self.at : end], "utf-8")
                self.at = end + 1
                return text
        raise self.error("a name in the pickle does not end", allowed="a line of at most 512 bytes")

    # Stack -------------------------------------------------------------------------------------------------------

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _tuple(self, size: int) -> None:
        if len(self._stack) < size:
            raise IndexError("the stack is empty")
        items = tuple(self._stack[len(self._stack) - size :])
        del self._stack[len(self._stack) - size :]
        self._push(items)

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise TypeError("items are set on something that is not a dict")
        for key, value in zip(items[::2], items[1::2]):
            target[self._key(key)] = value

    def _append(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], list):
            raise TypeError("items are appended to something that is not a list")
        self._stack[-1].extend(items)

    def _add(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], set):
            raise TypeError("items are added to something that is not a set")
        self._stack[-1].update(self._key(item) for item in items)

    def _key(self, key: Any) -> Any:
        if type(key) not in _KEY_TYPES:
            raise TypeError(f"a key is a {type(key).__name__}; text and numbers are allowed")
        return key

    def _set_memo(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    # Objects -----------------------------------------------------------------------------------------------------

    def _global(self, module: Any, name: Any) -> None:
        if (module, name) not in self.allowed:
            raise self.error(
                "the pickle names a class or function that a weight file does not need; it was not touched",
                received=f"{module}.{name}",
                allowed=", ".join(sorted({f"{m}.{n}" for m, n in self.allowed})),
            )
        self._push(Global(module, name, self.allowed[module, name]))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._global(module, name)

    def _reduce(self) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, Global) or function.call is None or not isinstance(arguments, tuple):
            raise TypeError(f"{str(function)[:80]} cannot be called")
        self._push(function.call(*arguments))

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if not isinstance(target, dict):
            target.build(state)

    def _persistent(self) -> None:
        if self.persistent is None:
            raise self.error("the pickle refers to data outside of itself", allowed="a pickle that is complete")
        self._push(self.persistent(self._stack.pop()))

    def _long(self, length_size: int) -> None:
        size = self._number(length_size)
        if size > _MAX_INT_BYTES:
            raise self.error(
                "a number in the pickle is absurdly long",
                received=f"{size} bytes",
                allowed=f"at most {_MAX_INT_BYTES} bytes",
            )
        self._push(self._number(size, signed=True))

    def _protocol(self) -> None:
        version = self._number(1)
        if not 2 <= version <= 5:
            raise self.error("unknown pickle protocol", received=version, allowed="2 to 5")


_STOP = ord(".")
Machine._op.update(
    {
        0x80: Machine._protocol,
        0x95: lambda m: (m._number(8), None)[1],  # FRAME only helps a reader that streams
        ord("("): lambda m: (m._marks.append(m._stack), setattr(m, "_stack", []))[1],
        ord("0"): lambda m: (m._stack.pop(), None)[1],
        ord("1"): lambda m: (m._pop_mark(), None)[1],
        ord("2"): lambda m: m._push(m._stack[-1]),
        ord("N"): lambda m: m._push(None),
        0x88: lambda m: m._push(True),
        0x89: lambda m: m._push(False),
        ord("J"): lambda m: m._push(m._number(4, signed=True)),
        ord("K"): lambda m: m._push(m._number(1)),
        ord("M"): lambda m: m._push(m._number(2)),
        0x8A: lambda m: m._long(1),
        0x8B: lambda m: m._long(4),
        ord("G"): lambda m: m._push(struct.unpack(">d", m._take(8))[0]),
        ord("X"): lambda m: m._push(str(m._take(m._number(4)), "utf-8")),
        0x8C: lambda m: m._push(str(m._take(m._number(1)), "utf-8")),
        0x8D: lambda m: m._push(str(m._take(m._number(8)), "utf-8")),
        ord("U"): lambda m: m._push(str(m._take(m._number(1)), "latin-1")),  # written by Python 2
        ord("T"): lambda m: m._push(str(m._take(m._number(4)), "latin-1")),
        ord("C"): lambda m: m._push(m._take(m._number(1))),
        ord("B"): lambda m: m._push(m._take(m._number(4))),
        0x8E: lambda m: m._push(m._take(m._number(8))),
        0x96: lambda m: m._push(m._take(m._number(8))),
        ord(")"): lambda m: m._push(()),
        ord("t"): lambda m: m._push(tuple(m._pop_mark())),
        0x85: lambda m: m._tuple(1),
        0x86: lambda m: m._tuple(2),
        0x87: lambda m: m._tuple(3),
        ord("]"): lambda m: m._push([]),
        ord("l"): lambda m: m._push(m._pop_mark()),
        ord("a"): lambda m: m._append([m._stack.pop()]),
        ord("e"): lambda m: m._append(m._pop_mark()),
        ord("}"): lambda m: m._push({}),
        ord("s"): lambda m: m._set_items([m._stack.pop(-2), m._stack.pop()]),
        ord("u"): lambda m: m._set_items(m._pop_mark()),
        0x8F: lambda m: m._push(set()),
        0x90: lambda m: m._add(m._pop_mark()),
        ord("c"): lambda m: m._global(m._line(), m._line()),
        0x93: Machine._stack_global,
        ord("R"): Machine._reduce,
        ord("b"): Machine._build,
        ord("Q"): Machine._persistent,
        ord("q"): lambda m: m._set_memo(m._number(1)),
        ord("r"): lambda m: m._set_memo(m._number(4)),
        0x94: lambda m: m._set_memo(len(m._memo)),
        ord("h"): lambda m: m._push(m._memo[m._number(1)]),
        ord("j"): lambda m: m._push(m._memo[m._number(4)]),
    }
)
