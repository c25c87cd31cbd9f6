"""A pickle machine that can build data and nothing else.

It reads the binary opcodes of protocols 2 to 4, which Paddle and torch write. A class or function that a pickle names
is looked up in the caller's allow-list and stands for a function of this package; whatever is not on the list is a
FormatError. No module is imported, no foreign code is called, no attribute is set, and Python's own unpickler is not
involved.

Source: the opcode list in CPython's Lib/pickletools.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from framework.core.errors import FormatError
from framework.io.interop.source import Source

_MAX_INT_BYTES = 64
_MAX_NAME_BYTES = 512
_KEY_TYPES = (str, int, float, bool, type(None))  # hashing a deeply nested tuple would overflow the C stack


class _Op:
    """Opcodes under their names in pickletools."""

    PROTO, FRAME, STOP = 0x80, 0x95, ord(".")
    MARK, POP, POP_MARK, DUP = ord("("), ord("0"), ord("1"), ord("2")
    NONE, NEWTRUE, NEWFALSE = ord("N"), 0x88, 0x89
    BININT, BININT1, BININT2, LONG1, LONG4 = ord("J"), ord("K"), ord("M"), 0x8A, 0x8B
    BINFLOAT = ord("G")
    BINUNICODE, SHORT_BINUNICODE, BINUNICODE8 = ord("X"), 0x8C, 0x8D
    SHORT_BINSTRING, BINSTRING = ord("U"), ord("T")
    SHORT_BINBYTES, BINBYTES, BINBYTES8 = ord("C"), ord("B"), 0x8E
    EMPTY_TUPLE, TUPLE, TUPLE1, TUPLE2, TUPLE3 = ord(")"), ord("t"), 0x85, 0x86, 0x87
    EMPTY_LIST, LIST, APPEND, APPENDS = ord("]"), ord("l"), ord("a"), ord("e")
    EMPTY_DICT, SETITEM, SETITEMS = ord("}"), ord("s"), ord("u")
    EMPTY_SET, ADDITEMS = 0x8F, 0x90
    GLOBAL, STACK_GLOBAL, REDUCE, BUILD, BINPERSID = ord("c"), 0x93, ord("R"), ord("b"), ord("Q")
    BINPUT, LONG_BINPUT, MEMOIZE, BINGET, LONG_BINGET = ord("q"), ord("r"), 0x94, ord("h"), ord("j")


@dataclass(frozen=True)
class Global:
    """A class or function that a pickle names; `call` is what stands for it, None when it is only a marker."""

    module: str
    name: str
    call: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def check_key(key: Any) -> Any:
    """The key of a dict or the item of a set. Raises TypeError when it is neither text nor a number."""
    if type(key) not in _KEY_TYPES:
        raise TypeError(f"a {type(key).__name__} is used as a key; text and numbers are allowed")
    return key


AllowList = Mapping[tuple[str, str], Callable[..., Any] | None]


class Machine:
    """Runs one pickle that starts at byte `start`. `fix` is the advice its errors give.

    `allowed` maps (module, name) to the function that stands for it, or to None for a mere marker. `persistent`
    receives persistent ids (torch's references to storages). Objects that a pickle may BUILD have a method
    `build(state)`; the state given to a dict is dropped (torch keeps version notes there). Byte strings become views.
    """

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
                if code == _Op.STOP:
                    return self._stack.pop(), self.at
                self._step(code)
            except FormatError:
                raise
            except (
                LookupError,
                TypeError,
                ValueError,
                OverflowError,
                AttributeError,
                RecursionError,
            ) as error:
                raise self.error(
                    "not a valid pickle of weights",
                    received=f"opcode {code:#04x}: {type(error).__name__}: {str(error)[:200]}",
                    allowed="tensors, containers, text and numbers",
                ) from None

    def error(self, problem: str, *, received: object = None, allowed: object = None) -> FormatError:
        return self.source.error(problem, self._begin, received=received, allowed=allowed, fix=self.fix)

    def _step(self, code: int) -> None:
        push = self._stack.append
        match code:
            case _Op.PROTO:
                version = self._number(1)
                if not 2 <= version <= 4:
                    raise self.error("unknown pickle protocol", received=version, allowed="2 to 4")
            case _Op.FRAME:
                self._number(8)
            case _Op.MARK:
                self._marks.append(self._stack)
                self._stack = []
            case _Op.POP:
                self._stack.pop()
            case _Op.POP_MARK:
                self._pop_mark()
            case _Op.DUP:
                push(self._stack[-1])
            case _Op.NONE:
                push(None)
            case _Op.NEWTRUE:
                push(True)
            case _Op.NEWFALSE:
                push(False)
            case _Op.BININT:
                push(self._number(4, signed=True))
            case _Op.BININT1:
                push(self._number(1))
            case _Op.BININT2:
                push(self._number(2))
            case _Op.LONG1:
                push(self._long(self._number(1)))
            case _Op.LONG4:
                push(self._long(self._number(4)))
            case _Op.BINFLOAT:
                push(struct.unpack(">d", self._take(8))[0])
            case _Op.BINUNICODE:
                push(str(self._take(self._number(4)), "utf-8"))
            case _Op.SHORT_BINUNICODE:
                push(str(self._take(self._number(1)), "utf-8"))
            case _Op.BINUNICODE8:
                push(str(self._take(self._number(8)), "utf-8"))
            case _Op.SHORT_BINSTRING:  # text of Python 2
                push(str(self._take(self._number(1)), "latin-1"))
            case _Op.BINSTRING:
                push(str(self._take(self._number(4)), "latin-1"))
            case _Op.SHORT_BINBYTES:
                push(self._take(self._number(1)))
            case _Op.BINBYTES:
                push(self._take(self._number(4)))
            case _Op.BINBYTES8:
                push(self._take(self._number(8)))
            case _Op.EMPTY_TUPLE:
                push(())
            case _Op.TUPLE:
                items = self._pop_mark()
                self._stack.append(tuple(items))
            case _Op.TUPLE1 | _Op.TUPLE2 | _Op.TUPLE3:
                size = code - _Op.TUPLE1 + 1
                items = [self._stack.pop() for _ in range(size)]
                push(tuple(reversed(items)))
            case _Op.EMPTY_LIST:
                push([])
            case _Op.LIST:
                items = self._pop_mark()
                self._stack.append(items)
            case _Op.APPEND:
                item = self._stack.pop()
                self._top(list).append(item)
            case _Op.APPENDS:
                items = self._pop_mark()
                self._top(list).extend(items)
            case _Op.EMPTY_DICT:
                push({})
            case _Op.SETITEM:
                value, key = self._stack.pop(), self._stack.pop()
                self._top(dict)[check_key(key)] = value
            case _Op.SETITEMS:
                items = self._pop_mark()
                target = self._top(dict)
                for key, value in zip(items[::2], items[1::2], strict=True):
                    target[check_key(key)] = value
            case _Op.EMPTY_SET:
                push(set())
            case _Op.ADDITEMS:
                items = self._pop_mark()
                self._top(set).update(check_key(item) for item in items)
            case _Op.GLOBAL:
                module = self._line()
                push(self._global(module, self._line()))
            case _Op.STACK_GLOBAL:
                name, module = self._stack.pop(), self._stack.pop()
                push(self._global(module, name))
            case _Op.REDUCE:
                arguments, function = self._stack.pop(), self._stack.pop()
                if not isinstance(function, Global) or function.call is None:
                    raise TypeError("something is called that is not a function")
                push(function.call(*arguments))
            case _Op.BUILD:
                state, target = self._stack.pop(), self._stack[-1]
                if not isinstance(target, dict):
                    target.build(state)
            case _Op.BINPERSID:
                if self.persistent is None:
                    raise self.error("the pickle refers to data outside of itself")
                push(self.persistent(self._stack.pop()))
            case _Op.BINPUT:
                self._memo[self._number(1)] = self._stack[-1]
            case _Op.LONG_BINPUT:
                self._memo[self._number(4)] = self._stack[-1]
            case _Op.MEMOIZE:
                self._memo[len(self._memo)] = self._stack[-1]
            case _Op.BINGET:
                push(self._memo[self._number(1)])
            case _Op.LONG_BINGET:
                push(self._memo[self._number(4)])
            case _:
                raise self.error(
                    "a pickle opcode that no weight file needs",
                    received=f"opcode {code:#04x}",
                    allowed="the binary opcodes of protocols 2 to 4 that build data",
                )

    def _take(self, size: int) -> memoryview:
        view = self.source.view(self.at, size, "a pickle")
        self.at += size
        return view

    def _number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def _long(self, size: int) -> int:
        if size > _MAX_INT_BYTES:
            raise self.error(
                "a number in the pickle is absurdly long",
                received=f"{size} bytes",
                allowed=f"at most {_MAX_INT_BYTES} bytes",
            )
        return self._number(size, signed=True)

    def _line(self) -> str:
        for end in range(self.at, min(self.at + _MAX_NAME_BYTES, len(self.source.data))):
            if self.source.data[end] == 0x0A:
                text = str(self.source.data[self.at : end], "utf-8")
                self.at = end + 1
                return text
        raise self.error("a name in the pickle does not end", allowed=f"at most {_MAX_NAME_BYTES} bytes")

    def _pop_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _top(self, kind: type) -> Any:
        if type(self._stack[-1]) is not kind:
            raise TypeError(f"a {type(self._stack[-1]).__name__} is used as a {kind.__name__}")
        return self._stack[-1]

    def _global(self, module: Any, name: Any) -> Global:
        if type(module) is not str or type(name) is not str:
            raise TypeError("the name of a class or function is not text")
        if (module, name) not in self.allowed:
            raise self.error(
                "the pickle names a class or function that a weight file does not need; it was not touched",
                received=f"{module}.{name}"[:200],
                allowed=", ".join(sorted({f"{m}.{n}" for m, n in self.allowed})),
            )
        return Global(module, name, self.allowed[module, name])
