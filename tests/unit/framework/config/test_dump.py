"""Text written from dataclasses: it binds back to an equal object, and help texts name every key."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import pytest

from framework.config import Kind, bind, dump, load, register, schema
from framework.core.errors import ConfigError

HERE = (__name__,)


class Mode(enum.Enum):
    FAST = "fast"
    EXACT = "exact"


@register("transform")
@dataclass(frozen=True)
class DumpResize:
    """Resizes the image.

    A second paragraph.
    """

    scale: tuple[float, float] = (0.5, 2.0)


@register("transform")
@dataclass(frozen=True)
class DumpFlip:
    pass


@dataclass(frozen=True)
class Inner:
    """What stands inside."""

    rate: float
    again: tuple[Inner, ...] = ()


@dataclass(frozen=True)
class Outer:
    inner: Inner
    text: str = "on"
    number: int = -1
    mode: Mode = Mode.FAST
    path: Path = Path("a/b")
    table: dict[str, float] = field(default_factory=dict)
    ops: tuple[Annotated[Any, Kind("transform")], ...] = (DumpFlip(),)
    size: int | tuple[int, int] | None = None
    level: Literal["O1", 2] = "O1"
    count: int = field(default=0, init=False)


FULL = Outer(
    inner=Inner(1e-4, (Inner(1e-05), Inner(float("inf")), Inner(1e22), Inner(3.0))),
    text="1e-4",
    mode=Mode.EXACT,
    path=Path("data") / "x",
    table={"a": 0.1, "1": 2.0, "true": 0.0},
    ops=(DumpResize((0.25, 1.0)), DumpFlip()),
    size=(3, 4),
    level=2,
)


@pytest.mark.parametrize("value", [FULL, Outer(Inner(0.0)), Outer(Inner(1.0), size=5)])
def test_a_dump_binds_back_to_an_equal_object(tmp_path: Path, value: Outer) -> None:
    path = tmp_path / "a.yml"
    path.write_text(dump(value), encoding="utf-8")
    back = bind(load(path), Outer, HERE)
    assert back == value
    assert dump(back) == dump(value)
    assert type(back.inner.rate) is float


@pytest.mark.parametrize(
    "text",
    [
        "",
        "~",
        "null",
        "on",
        "true",
        "1",
        "1.0",
        "1e-4",
        ".5",
        "0x1F",
        ".nan",
        "a: b",
        "# x",
        "- x",
        "两\n行",
        " x ",
        "'",
    ],
)
def test_every_text_survives(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yml"
    path.write_text(dump({"x": text}), encoding="utf-8")
    assert load(path).plain() == {"x": text}


@pytest.mark.parametrize(
    "number", [0.1, 1e-7, 1e16, 123456789.123456789, -0.0, 5e-324, 1.7976931348623157e308]
)
def test_every_float_survives(tmp_path: Path, number: float) -> None:
    path = tmp_path / "a.yml"
    path.write_text(dump({"x": number}), encoding="utf-8")
    back = load(path).plain()["x"]
    assert type(back) is float
    assert (back, math.copysign(1, back)) == (number, math.copysign(1, number))


def test_the_text_of_a_dump() -> None:
    assert dump(FULL.ops) == "- type: DumpResize\n  scale: [0.25, 1.0]\n- {type: DumpFlip}\n"
    assert dump(Outer(Inner(1e-5), table={"a": 1.0})) == (
        "inner:\n  rate: 1.0e-05\n  again: []\n"
        "text: on\nnumber: -1\nmode: fast\npath: a/b\ntable: {a: 1.0}\n"
        "ops:\n- {type: DumpFlip}\nsize: null\nlevel: O1\n"
    )
    assert dump(()) == "[]\n"
    assert dump(None) == "null\n"


def test_an_object_that_stands_twice_is_written_twice() -> None:
    inner = Inner(1.0)
    assert "&" not in dump((inner, inner))


@pytest.mark.parametrize("value", [b"x", {1, 2}, PurePosixPath("a"), Outer, 1j])
def test_what_cannot_be_written(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        dump({"a": [value]})
    assert str(caught.value) == (
        f"a.0: a configuration cannot hold this value\n  received: a value of type {type(value).__name__}\n"
        "  allowed: dataclasses, tuples, dicts, Enum, Path, null, bool, int, float and str"
    )


def test_schema_lists_keys_types_defaults_and_names() -> None:
    assert schema(Outer, HERE) == (
        "inner: a mapping (Inner) (required)\n"
        "  # What stands inside.\n"
        "  rate: float (required)\n"
        "  again: a list of a mapping (Inner) = []\n"
        "text: text = on\n"
        "number: int = -1\n"
        "mode: 'fast' or 'exact' = fast\n"
        "path: a path = a/b\n"
        "table: a mapping of names to float = {}\n"
        "ops: a list of a transform {type: Name, ...} = [{type: DumpFlip}]\n"
        "  type: DumpFlip | DumpResize\n"
        "size: int or a list [int, int] or null = null\n"
        "level: 'O1' or 2 = O1\n"
    )


def test_schema_of_one_component_and_of_a_kind() -> None:
    assert schema(DumpResize) == "# Resizes the image.\nscale: a list [float, float] = [0.5, 2.0]\n"
    assert schema(Annotated[Any, Kind("transform")], HERE) == "type: DumpFlip | DumpResize\n"
    assert schema(Annotated[Any, Kind("task")], HERE) == "type: (none registered)\n"
