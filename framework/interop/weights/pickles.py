"""A pickle reader that can build data and nothing else.

It reads the binary opcodes of protocols 2 to 4, which Paddle and torch write. A class or function that a pickle names
is looked up in the caller's allow-list and stands for a function of this package; whatever is not on the list is a
FormatError. No module is imported, no foreign code is called, no attribute is set.

Python's own `Unpickler` with an allow-list in `find_class` is not enough for files from strangers (tried on 3.11): nine
bytes (LONG_BINPUT with a large index) make it fill up to 64 GB of memory, 300 kB of nested tuples as a key of a dict
crash the process, and neither can be intercepted in a subclass. It also copies what are views of the file here.

Source: the opcode list in CPython's Lib/pickletools.py
"""

from __future__ import annotations

import pickle as op  # the names of the opcodes alone
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from framework.core.errors import FormatError
from framework.interop.source import Source

_MAX_INT_BYTES = 64
_MAX_NAME_BYTES = 512
_MAX_KEY_BYTES = 512  # each use of a byte string as a key copies it
_MAX_HANDED = 16 << 20  # values and bytes handed to functions, beyond eight for each byte of the file
_KEY_TYPES = (str, int, float, bool)  # hashing a deeply nested tuple would overflow the C stack

_CONSTANTS = {op.NONE: None, op.NEWTRUE: True, op.NEWFALSE: False}
_EMPTY: dict[bytes, Callable[[], object]] = {
    op.EMPTY_TUPLE: tuple,
    op.EMPTY_LIST: list,
    op.EMPTY_DICT: dict,
    op.EMPTY_SET: set,
}
_INTS = {op.BININT: (4, True), op.BININT1: (1, False), op.BININT2: (2, False)}  # bytes, signed
_LONGS = {op.LONG1: 1, op.LONG4: 4}  # bytes of the length; so on below
_TEXTS = {
    **{op.SHORT_BINUNICODE: (1, "utf-8"), op.BINUNICODE: (4, "utf-8"), op.BINUNICODE8: (8, "utf-8")},
    **{op.SHORT_BINSTRING: (1, "latin-1"), op.BINSTRING: (4, "latin-1")},  # of Python 2
}
_BYTES = {op.SHORT_BINBYTES: 1, op.BINBYTES: 4, op.BINBYTES8: 8}
_TUPLES = {op.TUPLE1: 1, op.TUPLE2: 2, op.TUPLE3: 3}
_PUT = {op.BINPUT: 1, op.LONG_BINPUT: 4}
_GET = {op.BINGET: 1, op.LONG_BINGET: 4}
ContainerT = TypeVar("ContainerT", list, dict, set)


@dataclass(frozen=True)
class Global:
    """A class or function that a pickle names; `call` is what stands for it, None when it is only a marker."""

    module: str
    name: str
    call: Callable[..., object] | None = None

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def check_key(key: object) -> str | bytes | int | float | None:
    """The key of a dict or the item of a set. Raises TypeError when it is no number, text or short byte string."""
    if key is None or (isinstance(key, (str, int, float)) and type(key) in _KEY_TYPES):
        return key
    if isinstance(key, memoryview) and len(key) <= _MAX_KEY_BYTES:
        return bytes(key)
    raise TypeError(
        f"a {type(key).__name__} is used as a key; text, short byte strings and numbers are allowed"
    )


AllowList = Mapping[tuple[str, str], Callable[..., object] | None]


class PickleReader:
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
        persistent: Callable[[object], object] | None = None,
        fix: str,
    ) -> None:
        self.source, self.allowed, self.persistent, self.fix = source, allowed, persistent, fix
        self.at = self._begin = start
        self._stack: list[Any] = []
        self._marks: list[list[object]] = []
        self._memo: dict[int, object] = {}
        self._handed = 0

    def run(self) -> tuple[object, int]:
        """The pickled object and the position after it."""
        while True:
            self._begin = self.at
            code = bytes(self._take(1))
            try:
                if code == op.STOP:
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
                    received=f"opcode {code[0]:#04x}: {type(error).__name__}: {str(error)[:200]}",
                    allowed="tensors, containers, text and numbers",
                ) from None

    def error(self, problem: str, *, received: object = None, allowed: object = None) -> FormatError:
        return self.source.error(problem, self._begin, received=received, allowed=allowed, fix=self.fix)

    def _step(self, code: bytes) -> None:
        stack = self._stack
        if code in _CONSTANTS:
            stack.append(_CONSTANTS[code])
        elif code in _EMPTY:
            stack.append(_EMPTY[code]())
        elif code in _INTS:
            size, signed = _INTS[code]
            stack.append(self._number(size, signed=signed))
        elif code in _LONGS:
            stack.append(self._long(self._number(_LONGS[code])))
        elif code in _TEXTS:
            size, encoding = _TEXTS[code]
            stack.append(str(self._take(self._number(size)), encoding))
        elif code in _BYTES:
            stack.append(self._take(self._number(_BYTES[code])))
        elif code in _TUPLES:
            items = [stack.pop() for _ in range(_TUPLES[code])]
            stack.append(tuple(reversed(items)))
        elif code in _PUT:
            self._memo[self._number(_PUT[code])] = stack[-1]
        elif code in _GET:
            stack.append(self._memo[self._number(_GET[code])])
        else:
            self._change(code)

    def _change(self, code: bytes) -> None:
        """The opcodes that work on what is on the stack."""
        match code:
            case op.PROTO:
                version = self._number(1)
                if not 2 <= version <= 4:
                    raise self.error("unknown pickle protocol", received=version, allowed="2 to 4")
            case op.FRAME:
                self._number(8)
            case op.MARK:
                self._marks.append(self._stack)
                self._stack = []
            case op.POP:
                self._stack.pop()
            case op.POP_MARK:
                self._pop_mark()
            case op.DUP:
                self._stack.append(self._stack[-1])
            case op.MEMOIZE:
                self._memo[len(self._memo)] = self._stack[-1]
            case op.BINFLOAT:
                self._stack.append(struct.unpack(">d", self._take(8))[0])
            case op.TUPLE:
                items = self._pop_mark()
                self._stack.append(tuple(items))
            case op.LIST:
                items = self._pop_mark()
                self._stack.append(items)
            case op.APPEND:
                item = self._stack.pop()
                self._top(list).append(item)
            case op.APPENDS:
                items = self._pop_mark()
                self._top(list).extend(items)
            case op.SETITEM:
                value, key = self._stack.pop(), self._stack.pop()
                self._top(dict)[check_key(key)] = value
            case op.SETITEMS:
                items = self._pop_mark()
                target = self._top(dict)
                for key, value in zip(items[::2], items[1::2], strict=True):
                    target[check_key(key)] = value
            case op.ADDITEMS:
                items = self._pop_mark()
                self._top(set).update(check_key(item) for item in items)
            case op.GLOBAL:
                module = self._line()
                self._stack.append(self._global(module, self._line()))
            case op.STACK_GLOBAL:
                name, module = self._stack.pop(), self._stack.pop()
                self._stack.append(self._global(module, name))
            case op.REDUCE:
                arguments, function = self._stack.pop(), self._stack.pop()
                if not isinstance(function, Global) or function.call is None:
                    raise TypeError("something is called that is not a function")
                self._count(arguments)
                self._stack.append(function.call(*arguments))
            case op.BUILD:
                state, target = self._stack.pop(), self._stack[-1]
                if not isinstance(target, dict):
                    self._count(state)
                    target.build(state)
            case op.BINPERSID:
                if self.persistent is None:
                    raise self.error("the pickle refers to data outside of itself")
                self._stack.append(self.persistent(self._stack.pop()))
            case _:
                raise self.error(
                    "a pickle opcode that no weight file needs",
                    received=f"opcode {code[0]:#04x}",
                    allowed="the binary opcodes of protocols 2 to 4 that build data",
                )

    def _count(self, arguments: object) -> None:
        """One list or text that is handed over and over is copied as often: a file of 100 kB would fill the memory."""
        for argument in arguments if isinstance(arguments, (tuple, list)) else (arguments,):
            if isinstance(argument, (str, memoryview, list, tuple, dict, set)):
                self._handed += len(argument)
        limit = _MAX_HANDED + 8 * len(self.source.data)
        if self._handed > limit:
            raise self.error(
                "the pickle hands the same data to functions over and over",
                received=f"more than {limit:,} values and bytes of a file of {len(self.source.data):,} bytes",
                allowed="each about once",
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
                "a number in the pickle is too long",
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

    def _pop_mark(self) -> list[object]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _top(self, kind: type[ContainerT]) -> ContainerT:
        top = self._stack[-1]
        if type(top) is not kind:
            raise TypeError(f"a {type(top).__name__} is used as a {kind.__name__}")
        return top

    def _global(self, module: object, name: object) -> Global:
        if type(module) is not str or type(name) is not str:
            raise TypeError("the name of a class or function is not text")
        if (module, name) not in self.allowed:
            raise self.error(
                "the pickle names a class or function that a weight file does not need; it was not touched",
                received=f"{module}.{name}"[:200],
                allowed=", ".join(sorted({f"{m}.{n}" for m, n in self.allowed})),
            )
        return Global(module, name, self.allowed[module, name])
