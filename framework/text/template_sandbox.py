"""Runs the chat templates of strangers: Jinja in a sandbox, as transformers runs them, that also ends.

A template is a program. Jinja's sandbox keeps it from what Python is made of, but not from loops without end, from
texts of terabytes and from numbers of a billion digits. Here every turn of a loop, every call and every text that is
made is counted, and what is above the limits is stopped with an error.

Source: transformers 5.23, utils/chat_template_utils.py: the environment, its filters, globals and the tag `generation`.
Differs: `lipsum`, str.translate and str.maketrans are not there.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from framework.core.errors import FormatError, InputError, MissingExtraError, OarError

try:
    import jinja2
    from jinja2 import nodes
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.runtime import Context, Macro
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace
    from jinja2.visitor import NodeTransformer
except ImportError as error:
    raise MissingExtraError("jinja2", "llm", "chat templates") from error

SOURCE = 512 * 1024
"""Characters of a template."""
_OLDEST = (3, 1, 6)  # sandboxes before can be left
_LARGEST = 4_000_000  # characters of one text beside those of the messages
_TOTAL = 128_000_000  # characters of all texts that are made
_ENTRY = 56  # characters that an entry of a list counts as
_DIGITS = 20_000  # bits of a whole number
_WIDTH = 10_000  # of a column, an indent, a number of slices
_INDENT = 64
_WIDE = re.compile(r"\d{5,}|\*")
_NESTED = re.compile(r"[:!][^{}]*\{")
_FILLED = ("center", "ljust", "rjust", "zfill", "expandtabs")
_SIZED_FILTERS = ("center", "indent", "wordwrap", "slice", "batch", "round")


class TemplateStoppedError(FormatError):
    """A template took more than it may, or reached for what it must not."""


@dataclass
class _Budget:
    """What one rendering may still take."""

    ends: float
    largest: int
    left: int

    def tick(self) -> None:
        if time.thread_time() > self.ends:
            raise TemplateStoppedError(
                "the chat template was stopped: it takes too long", allowed="a template that ends in seconds"
            )

    def check(self, size: int) -> None:
        """Raises: TemplateStoppedError, where a text of so many characters is too large."""
        if size > self.largest:
            raise TemplateStoppedError(
                "the chat template was stopped: it makes too large a text",
                received=f"{size:,} characters",
                allowed=f"{self.largest:,}",
            )

    def charge(self, size: int) -> None:
        self.tick()
        self.check(size)
        self.left -= size
        if self.left < 0:
            raise TemplateStoppedError("the chat template was stopped: it makes too many texts")


class _Budgets(threading.local):
    current: _Budget | None = None


class _Sandbox(ImmutableSandboxedEnvironment):
    """Counts what templates do. Compiled templates are used by several threads, each with its own budget."""

    intercepted_binops = frozenset(["+", "*", "%", "**"])

    def __init__(self) -> None:
        self.budgets = _Budgets()
        self.tracked: threading.local = threading.local()
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # what is computed while compiling is not counted
            finalize=self.print_value,
            extensions=[_GenerationTag, loopcontrols],
        )
        self.filters["tojson"] = _to_json
        for name, function in list(self.filters.items()):
            self.filters[name] = self._guard(name, function)
        del self.globals["lipsum"]
        self.globals.update(
            raise_exception=_raise_exception,
            strftime_now=lambda format: datetime.now().strftime(format),
            dict=_TemplateDict(),
            namespace=_TemplateNamespace,
        )

    @property
    def budget(self) -> _Budget:
        budget = self.budgets.current
        if budget is None:
            raise TemplateStoppedError("the chat template runs outside of a rendering")
        return budget

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        return attr not in ("translate", "maketrans") and super().is_safe_attribute(obj, attr, value)

    # -- what compiled templates call ----------------------------------------------------------------------------------

    def count_turn(self, size: int) -> bool:
        """A turn of a loop or a call of a macro begins, with so many characters of fixed text."""
        self.budget.charge(size + 1)
        return True

    def join_texts(self, *values: object) -> str:
        """`a ~ b`."""
        texts = [str(value) for value in values]
        self.budget.charge(sum(map(len, texts)))
        return "".join(texts)

    def cut(self, value: Sequence[object], start: int | None, stop: int | None, step: int | None) -> object:
        """`value[start:stop:step]`."""
        return self._charge_value(value[start:stop:step])

    @jinja2.pass_context
    def print_value(self, context: Context, value: object) -> object:
        """`{{ value }}`."""
        text = value if isinstance(value, str) else str(value)
        self.budget.charge(len(text))
        return text

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        budget = self.budget
        budget.tick()
        if isinstance(left, int) and isinstance(right, int):
            bits = {
                "**": left.bit_length() * max(right, 0),
                "*": left.bit_length() + right.bit_length(),
            }.get(operator, 0)
            if bits > _DIGITS:
                raise TemplateStoppedError(
                    "the chat template was stopped: it makes too large a number",
                    allowed=f"at most {_DIGITS:,} bits",
                )
        elif operator == "*":
            for value, count in ((left, right), (right, left)):
                if isinstance(value, str | bytes | list | tuple) and isinstance(count, int):
                    budget.check(_size(value) * max(count, 0))
        elif operator == "%" and isinstance(left, str | bytes):
            self._check_format(str(left), right if isinstance(right, tuple) else (right,))
        elif operator == "+":
            budget.check(_size(left) + _size(right))
        return self._charge_value(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: object, *args: object, **kwargs: object) -> object:
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        __self.budget.tick()
        if isinstance(owner, str | bytes):
            args = __self._check_method(owner, name, args, kwargs)
        elif isinstance(owner, int) and name == "to_bytes":
            __self._check_numbers(name, args, kwargs)
        return __self._charge_value(super().call(__context, __obj, *args, **kwargs))

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def _charge_value(self, value: object) -> object:
        self.budget.charge(_size(value))
        return value

    def _guard(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        """A filter that is counted."""
        position = 1 if hasattr(function, "jinja_pass_arg") else 0

        @functools.wraps(function)
        def guarded(*args: object, **kwargs: object) -> object:
            self.budget.tick()
            value, rest = (args[position] if len(args) > position else ""), args[position + 1 :]
            if name in _SIZED_FILTERS:
                self._check_numbers(name, rest, kwargs)
            if name == "indent":
                width = (*rest, kwargs.get("width", 4))[0]
                columns = width if isinstance(width, int) else _size(width)
                self.budget.check((str(value).count("\n") + 1) * columns + len(str(value)))
            elif name == "format":
                self._check_format(str(value), (*rest, *kwargs.values()))
            elif name == "replace":
                self._check_method(str(value), name, rest, kwargs)
            elif name == "join" and isinstance(value, list | tuple | str):
                between = (*rest, kwargs.get("d", ""))[0]
                self.budget.check(len(value) * _size(between) + sum(map(_size, value)))
            return self._charge_value(function(*args, **kwargs))

        return guarded

    def _check_method(
        self, owner: str | bytes, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[object, ...]:
        """The arguments of a method of a text, whose result is not too large."""
        if name in _FILLED:
            self._check_numbers(name, args, kwargs)
            if name == "expandtabs":
                size = (*args, kwargs.get("tabsize", 8))[0]
                self.budget.check(len(owner) * max(1, size if isinstance(size, int) else 8))
        elif name == "replace":
            old, new = (*args, *kwargs.values(), "", "")[:2]
            if isinstance(old, type(owner)) and isinstance(new, type(owner)):
                self.budget.check(len(owner) + owner.count(old) * len(new))  # type: ignore[arg-type]
        elif name == "join" and args and isinstance(args[0], Iterable):
            items = list(args[0])
            args = (items, *args[1:])
            self.budget.check(len(items) * len(owner) + sum(map(_size, items)))
        elif name in ("format", "format_map"):
            self._check_format(str(owner), (*args, *kwargs.values()))
        return args

    def _check_numbers(self, name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        for value in (*args, *kwargs.values()):
            if isinstance(value, int) and abs(value) > _WIDTH:
                raise TemplateStoppedError(
                    f"the chat template was stopped: too large a number for {name}",
                    received=f"{value:.3g}" if value.bit_length() < 1000 else "a number of many digits",
                    allowed=f"at most {_WIDTH:,}",
                )

    def _check_format(self, text: str, values: Sequence[object]) -> None:
        """Widths such as `{:>100000000}` and `%100000000d` make texts of any size."""
        wide = _WIDE.search(text) or _NESTED.search(text)
        if wide and ("%" in text or ":" in text):
            raise TemplateStoppedError(
                "the chat template was stopped: too wide a format", received=wide[0][:20], allowed="4 digits"
            )
        sizes = [_size(value) if isinstance(value, str) else len(str(value)) for value in values]
        self.budget.check(len(text) + (text.count("{") + text.count("%")) * max(sizes, default=0))


def _size(value: object) -> int:
    """About the characters that a value takes."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list | tuple | dict | set | frozenset):
        return _ENTRY * len(value)
    return 1


class _GenerationTag(Extension):
    """`{% generation %}` around what the assistant says: where it stands is noted while masks are made."""

    tags = {"generation"}  # noqa: RUF012  as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_note"), [], [], body).set_lineno(line)

    def _note(self, caller: Macro) -> str:
        text = caller()
        assert isinstance(self.environment, _Sandbox)
        if (spans := getattr(self.environment.tracked, "spans", None)) is not None:
            start = self.environment.tracked.length
            spans.append((start, start + len(text)))
        return text


class _TemplateDict:
    """`dict`, without the attributes of a class."""

    def __call__(self, *args: Mapping[str, object], **kwargs: object) -> Mapping[str, object]:
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Iterable[object], value: object = None) -> Mapping[object, object]:
        return dict.fromkeys(keys, value)


class _TemplateNamespace(Namespace):
    """`namespace`, which takes no name that begins with an underscore."""

    def __init__(*args: object, **kwargs: object) -> None:
        values = dict(*args[1:], **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(args[0], values)

    def __setitem__(self, name: str, value: object) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace takes no name that begins with an underscore: {name!r}")


def _raise_exception(message: object) -> None:
    raise jinja2.TemplateError(str(message))


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON: Jinja's own filter escapes HTML."""
    if (indent if isinstance(indent, int) else len(indent or "")) > _INDENT:
        raise TemplateStoppedError(
            "the chat template was stopped: too wide an indent", allowed=f"at most {_INDENT}"
        )
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class _Counting(NodeTransformer):
    """Puts the counting into the tree of a template."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        if node.test is not None:
            node.test = nodes.And(_call("count_turn", node, nodes.Const(0)), node.test).set_lineno(
                node.lineno
            )
        return self._count(node)

    def _count(self, node: nodes.For | nodes.Macro | nodes.CallBlock) -> nodes.Node:
        size = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        turn = _call("count_turn", node, nodes.Const(size))
        node.body.insert(0, nodes.ExprStmt(turn).set_lineno(node.lineno))
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        self.generic_visit(node)
        return self._count(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        self.generic_visit(node)
        return self._count(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call("join_texts", node, *node.nodes)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice) or node.ctx != "load":
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return _call("cut", node, node.node, *(bound or nodes.Const(None) for bound in bounds))


def _call(method: str, at: nodes.Node, *args: nodes.Expr) -> nodes.Expr:
    """A call of a method of the environment."""
    call = nodes.Call(nodes.EnvironmentAttribute(method), list(args), [], None, None)
    for node in (call, *call.find_all(nodes.EnvironmentAttribute), *args):
        node.set_lineno(at.lineno)
    return call


class SandboxedTemplate:
    """A compiled template. Safe to render in several threads.

    Args:
        source: Jinja.
        where: The file, for messages.

    Raises:
        FormatError: it is no template, or too long.
    """

    def __init__(self, source: str, where: object = "chat template", seconds: float = 5.0) -> None:
        self.source, self.where, self.seconds = source, where, seconds
        version = tuple(int(number) for number in re.findall(r"\d+", jinja2.__version__)[:3])
        if version < _OLDEST:
            raise MissingExtraError("jinja2", "llm", "chat templates (3.1.6 or newer)")
        if len(source) > SOURCE:
            raise FormatError(
                "the chat template is too long",
                where=where,
                received=f"{len(source):,} characters",
                allowed=f"{SOURCE:,}",
            )
        self._sandbox = _Sandbox()
        try:
            tree = _Counting().visit(self._sandbox.parse(source))
            tree.set_environment(self._sandbox)
            code = self._sandbox.compile(tree)
            self._template = jinja2.Template.from_code(
                self._sandbox, code, self._sandbox.make_globals(None), None
            )
        except (jinja2.TemplateError, SyntaxError, RecursionError, MemoryError, ValueError) as problem:
            line = getattr(problem, "lineno", None)
            raise FormatError(
                "this is no chat template",
                where=where if line is None else f"{where}, line {line}",
                received=f"{type(problem).__name__}: {problem}"[:300],
                allowed="a template of Jinja",
            ) from None

    def render(self, variables: Mapping[str, object], size: int) -> tuple[str, list[tuple[int, int]]]:
        """The text, and the spans of it that stand in `{% generation %}`.

        Args:
            variables: Plain values: texts, numbers, lists, mappings.
            size: Characters that they hold together.

        Raises:
            TemplateStoppedError: it takes more time or memory than it may, or reaches for what it must not.
            InputError: the template refuses the values, or fails with them.
        """
        sandbox, largest = self._sandbox, _LARGEST + 8 * size
        sandbox.budgets.current = _Budget(time.thread_time() + self.seconds, largest, _TOTAL + 64 * size)
        sandbox.tracked.spans, sandbox.tracked.length = [], 0
        try:
            return "".join(self._blocks(variables, largest)), sandbox.tracked.spans
        except OarError as problem:
            raise type(problem)(
                problem.problem, where=self.where, received=problem.received, allowed=problem.allowed
            ) from None
        except SecurityError as problem:
            raise TemplateStoppedError(
                "the chat template was stopped: it reaches for what it must not use",
                where=self.where,
                received=str(problem)[:300],
            ) from None
        except (RecursionError, MemoryError) as problem:
            raise TemplateStoppedError(
                "the chat template was stopped: it calls itself without end, or takes too much memory",
                where=self.where,
                received=type(problem).__name__,
            ) from None
        except Exception as problem:  # whatever an operation of the template raises
            refused = type(problem) is jinja2.TemplateError
            raise InputError(
                "the chat template refuses the messages"
                if refused
                else "the chat template fails with these messages",
                where=self.where,
                received=str(problem)[:500] if refused else f"{type(problem).__name__}: {problem}"[:500],
            ) from None
        finally:
            sandbox.budgets.current = None
            sandbox.tracked.spans = None

    def _blocks(self, variables: Mapping[str, object], largest: int) -> Iterator[str]:
        tracked, budget = self._sandbox.tracked, self._sandbox.budget
        for block in self._template.generate(**variables):
            tracked.length += len(block)
            budget.check(tracked.length)
            yield block
