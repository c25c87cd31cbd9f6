"""What every type hint takes and gives, and the text of every refusal."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest

from framework.config import Kind, bind, load, packages_of, register
from framework.core.errors import ConfigError, InputError

HERE = (__name__,)
AnyLoss = Annotated[Any, Kind("loss")]


class Mode(enum.Enum):
    NEAREST = "nearest"
    LINEAR = "linear"


@register("loss")
@dataclass(frozen=True)
class BindDice:
    weight: float = 1.0
    ignore: int | None = None


@register("loss")
@dataclass(frozen=True)
class BindOhem:
    min_kept: int
    threshold: float = 0.7
    inner: AnyLoss = None

    def __post_init__(self) -> None:
        if self.min_kept < 0:
            raise InputError("negative", where="min_kept")
        if not 0 < self.threshold <= 1:
            raise InputError(
                "threshold is not a probability",
                received=self.threshold,
                allowed="0 < threshold <= 1",
                fix="lower it",
            )


@dataclass(frozen=True)
class BindNetConfig:
    depth: Literal[18, 50] = 18


@register("backbone", config=BindNetConfig)
class BindNet:
    pass


@dataclass(frozen=True)
class Head:
    channels: int
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.channels < 1:
            raise ValueError("channels must be positive")


@dataclass(frozen=True)
class Root:
    num: int = 0
    rate: float = 0.0
    name: str = ""
    flag: bool = False
    nothing: None = None
    path: Path = Path()
    level: Literal["O1", "O2", 3] = "O1"
    mode: Mode = Mode.LINEAR
    many: tuple[int, ...] = ()
    pair: tuple[int, str] = (0, "")
    items: list[float] = field(default_factory=list)
    table: dict[str, float] = field(default_factory=dict)
    head: Head | None = None
    heads: tuple[Head, ...] = ()
    maybe: Optional[int] = None  # noqa: UP045
    mixed: int | tuple[int, int] | Literal["auto"] = 1
    loss: AnyLoss | None = None
    losses: dict[str, AnyLoss] = field(default_factory=dict)
    net: Annotated[Any, Kind("backbone")] = None


def message(value: Any, hint: Any = Root) -> str:
    with pytest.raises(ConfigError) as caught:
        bind(value, hint, HERE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "given", "bound"),
    [
        ("num", 3, 3),
        ("rate", 3, 3.0),
        ("rate", 1e-4, 1e-4),
        ("name", "on", "on"),
        ("flag", True, True),
        ("nothing", None, None),
        ("path", "a/b", Path("a/b")),
        ("level", "O2", "O2"),
        ("level", 3, 3),
        ("mode", "nearest", Mode.NEAREST),
        ("many", [], ()),
        ("many", [1, 2], (1, 2)),
        ("pair", [1, "x"], (1, "x")),
        ("items", [1, 0.5], (1.0, 0.5)),
        ("table", {"a": 1}, {"a": 1.0}),
        ("head", {"channels": 8}, Head(8)),
        ("head", None, None),
        ("heads", [{"channels": 1}, {"channels": 2, "dropout": 1}], (Head(1), Head(2, 1.0))),
        ("maybe", 4, 4),
        ("maybe", None, None),
        ("mixed", 2, 2),
        ("mixed", [2, 3], (2, 3)),
        ("mixed", "auto", "auto"),
        ("loss", "BindDice", BindDice()),
        ("loss", {"type": "BindDice", "weight": 2}, BindDice(2.0)),
        ("loss", {"type": "BindOhem", "min_kept": 5, "inner": "BindDice"}, BindOhem(5, 0.7, BindDice())),
        ("losses", {"main": "BindDice"}, {"main": BindDice()}),
        ("net", {"type": "BindNet", "depth": 50}, BindNetConfig(50)),
    ],
)
def test_what_a_hint_gives(key: str, given: Any, bound: Any) -> None:
    value = getattr(bind({key: given}, Root, HERE), key)
    assert value == bound
    assert type(value) is type(bound)


def test_a_hint_can_stand_at_the_top() -> None:
    assert bind(["BindDice", {"type": "BindOhem", "min_kept": 1}], tuple[AnyLoss, ...], HERE) == (
        BindDice(),
        BindOhem(1),
    )
    assert bind({"type": "BindDice"}, AnyLoss, HERE) == BindDice()


def test_a_registered_class_asked_for_directly_may_repeat_its_name() -> None:
    assert bind({"type": "BindDice", "weight": 2}, BindDice) == BindDice(2.0)
    assert bind({"type": "BindNet"}, BindNetConfig) == BindNetConfig()
    assert message({"type": "BindOhem"}, BindDice).startswith("<dict>: type: unknown key")


@pytest.mark.parametrize(
    ("key", "given", "received", "allowed"),
    [
        ("num", "3", "'3' (text)", "int"),
        ("num", 3.0, "3.0 (float)", "int"),
        ("num", True, "true", "int"),
        ("num", None, "null", "int"),
        ("rate", "1e-4", "'1e-4' (text)", "float"),
        ("rate", False, "false", "float"),
        ("flag", "on", "'on' (text)", "true or false"),
        ("flag", 1, "1 (int)", "true or false"),
        ("nothing", 0, "0 (int)", "null"),
        ("path", [], "a list of 0 items", "a path"),
        ("level", True, "true", "'O1' or 'O2' or 3"),
        ("mode", 1, "1 (int)", "'nearest' or 'linear'"),
        ("many", 1, "1 (int)", "a list of int"),
        ("many", {"a": 1}, "a mapping with the keys a", "a list of int"),
        ("pair", "x", "'x' (text)", "a list [int, text]"),
        ("table", [1], "a list of 1 items", "a mapping of names to float"),
        ("head", 1, "1 (int)", "a mapping (Head) or null"),
        ("heads", {}, "an empty mapping", "a list of a mapping (Head)"),
        ("mixed", 0.5, "0.5 (float)", "int or a list [int, int] or 'auto'"),
        ("net", 18, "18 (int)", "a backbone {type: Name, ...}"),
        ("loss", object, f"{object!r} (type)", "a loss {type: Name, ...} or null"),
    ],
)
def test_a_wrong_type(key: str, given: Any, received: str, allowed: str) -> None:
    assert message({key: given}) == f"<dict>: {key}: wrong type\n  received: {received}\n  allowed: {allowed}"


def test_a_number_for_text_is_told_to_be_quoted() -> None:
    assert message({"name": 50}) == (
        "<dict>: name: wrong type\n  received: 50 (int)\n  allowed: text\n"
        "  what to do: put it in quotes to make it text"
    )


@pytest.mark.parametrize(
    ("key", "given", "text"),
    [
        ("level", "o1", "level: wrong value\n  received: 'o1' (text)\n  allowed: 'O1' or 'O2' or 3"),
        ("level", 4, "level: wrong value\n  received: 4 (int)\n  allowed: 'O1' or 'O2' or 3"),
        ("pair", [1], "pair: wrong length\n  received: a list of 1 items\n  allowed: a list [int, text]"),
        ("pair", [1, 2], "pair.1: wrong type\n  received: 2 (int)\n  allowed: text"),
        ("many", [1, "x"], "many.1: wrong type\n  received: 'x' (text)\n  allowed: int"),
        ("table", {"a": "x"}, "table.a: wrong type\n  received: 'x' (text)\n  allowed: float"),
        (
            "mixed",
            [1, 2, 3],
            "mixed: wrong length\n  received: a list of 3 items\n  allowed: a list [int, int]",
        ),
        ("mixed", "atuo", "mixed: wrong value\n  received: 'atuo' (text)\n  allowed: 'auto'\n"),
    ],
)
def test_a_wrong_value(key: str, given: Any, text: str) -> None:
    assert message({key: given}).startswith(f"<dict>: {text}")


def test_the_nearest_choice_is_named() -> None:
    assert message({"mode": "linaer"}).endswith("what to do: did you mean 'linear'?")


@dataclass(frozen=True)
class Small:
    size: int
    scale: float


@dataclass(frozen=True)
class Choice:
    part: Head | Small
    word: Literal["auto"] | AnyLoss = "auto"


def test_a_colon_without_a_blank_is_told() -> None:
    """YAML reads `{size:1}` as a key without a value; so do `-o label_map={4:255}` and files."""

    @dataclass(frozen=True)
    class Mapped:
        label_map: dict[str, int]

    text = message({"label_map": {"4:255": None}}, Mapped)
    assert "label_map.4:255: wrong type" in text
    assert text.endswith("what to do: write a blank after the colon: {4: 255}")
    text = message({"size": 1, "scale:2.5": None, "scale": 1.0}, Small)
    assert "scale:2.5: unknown key" in text and text.endswith("after the colon: {scale: 2.5}")
    assert "blank" not in message({"size": 1, "scale:": None, "scale": 1.0}, Small)


def test_a_union_takes_the_first_that_fits_and_reports_the_closest() -> None:
    assert bind({"part": {"size": 1, "scale": 2}}, Choice).part == Small(1, 2.0)
    text = message({"part": {"channels": 1, "dropuot": 0.5}}, Choice)
    assert text.startswith("<dict>: part.dropuot: unknown key")
    text = message({"part": {"channels": 1}, "word": "none"}, Choice)
    assert (
        text
        == "<dict>: word: wrong value\n  received: 'none' (text)\n  allowed: 'auto' or BindDice, BindOhem"
    )


def test_errors_name_the_line_the_key_and_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("head:\n  channels: 8\n  dropuot: 0.1\n", encoding="utf-8")
    assert message(load(path)) == (
        f"{path}:3:3: head.dropuot: unknown key\n  received: dropuot: 0.1 (float)\n"
        "  allowed: channels, dropout\n  what to do: did you mean 'dropout'?"
    )


def test_a_missing_key_is_placed_at_its_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("num: 1\nheads:\n  - channels: 8\n  - dropout: 0.1\n", encoding="utf-8")
    assert message(load(path)) == (
        f"{path}:4:5: heads.1.channels: missing key\n  received: a mapping with the keys dropout\n  allowed: int"
    )


def test_an_unknown_component(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("loss: {weight: 1, type: BindDcie}\n", encoding="utf-8")
    assert message(load(path)) == (
        f"{path}:1:19: loss.type: unknown loss\n  received: 'BindDcie'\n  allowed: BindDice, BindOhem\n"
        "  what to do: did you mean 'BindDice'?"
    )
    assert message(load(path, ["loss=BindDcie"])).startswith(
        "command line -o loss=BindDcie: loss.type: unknown loss"
    )


def test_a_component_without_a_name() -> None:
    assert message({"loss": {"weight": 1}}) == (
        "<dict>: loss.type: the name of the loss is missing\n  received: a mapping with the keys weight\n"
        "  allowed: BindDice, BindOhem"
    )
    assert message({"loss": {"type": 3}}) == (
        "<dict>: loss.type: wrong type\n  received: 3 (int)\n  allowed: BindDice, BindOhem"
    )
    assert message({"loss": "BindOhem"}).startswith(
        "<dict>: loss.min_kept: missing key\n  received: 'BindOhem'"
    )


def test_a_key_that_a_base_left_behind_names_the_way_out(tmp_path: Path) -> None:
    base, path = tmp_path / "base.yml", tmp_path / "a.yml"
    base.write_text("loss: {type: BindOhem, min_kept: 5}\n", encoding="utf-8")
    path.write_text("_base_: base.yml\nloss: {type: BindDice}\n", encoding="utf-8")
    assert message(load(path)) == (
        f"{base}:1:24: loss.min_kept: unknown key\n  received: min_kept: 5 (int)\n  allowed: weight, ignore\n"
        f"  what to do: if it was meant for another type: it comes from {base}:1:24, the type from {path}:2:8; "
        "`_inherited_: false` beside the type drops what the bases put there"
    )


def test_what_a_dataclass_refuses_gets_the_place_of_its_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("num: 1\nhead:\n  channels: 0\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        bind(load(path), Root)
    assert str(caught.value) == f"{path}:2:1: head (Head): channels must be positive"
    assert isinstance(caught.value.__cause__, ValueError)
    assert message({"channels": 0}, Head) == "<dict>: top level (Head): channels must be positive"
    assert (
        message({"loss": {"type": "BindOhem", "min_kept": -1}})
        == "<dict>: loss (BindOhem): min_kept: negative"
    )
    # the parts of our own errors stay apart
    assert message({"loss": {"type": "BindOhem", "min_kept": 1, "threshold": 2}}) == (
        "<dict>: loss (BindOhem): threshold is not a probability\n  received: 2.0\n"
        "  allowed: 0 < threshold <= 1\n  what to do: lower it"
    )


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(
        "num: x\nhead: {dropout: no, widht: 1}\nlosses:\n  a: Nothing\n  b: {type: BindDice, weight: y}\nzzz: 1\n",
        encoding="utf-8",
    )
    lines = message(load(path)).splitlines()
    assert lines[0] == "7 errors in the configuration"
    assert [line for line in lines[1:] if not line.startswith("  ")] == [
        f"{path}:1:1: num: wrong type",
        f"{path}:2:8: head.dropout: wrong type",
        f"{path}:2:21: head.widht: unknown key",
        f"{path}:2:1: head.channels: missing key",
        f"{path}:4:3: losses.a.type: unknown loss",
        f"{path}:5:23: losses.b.weight: wrong type",
        f"{path}:6:1: zzz: unknown key",
    ]


@pytest.mark.parametrize("hint", [set[int], tuple, dict[int, str], Any, bytes, Ellipsis])
def test_a_hint_that_cannot_be_bound(hint: Any) -> None:
    assert message(1, hint) == (
        f"<dict>: top level: a configuration cannot be bound to this type hint\n  received: {hint!r}\n"
        "  allowed: the hints listed in framework/config/bind.py"
    )


@dataclass(frozen=True)
class Empty:
    made: int = field(default=1, init=False)


def test_a_dataclass_without_keys() -> None:
    assert bind({}, Empty) == Empty()
    assert message({"made": 2}, Empty) == (
        "<dict>: made: unknown key\n  received: made: 2 (int)\n  allowed: no keys"
    )


def test_the_packages_of_a_file_come_from_its_domain(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("domain: ocr\n", encoding="utf-8")
    assert packages_of(load(path)) == ("ocr", "zoo", "framework")
    assert packages_of(load(path, ["domain=classification"])) == ("zoo.classification", "zoo", "framework")
    with pytest.raises(ConfigError, match="domain: unknown domain") as caught:
        packages_of(load(path, ["domain=ocrr"]))
    assert "did you mean 'ocr'?" in str(caught.value)
    path.write_text("model: {}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="domain: missing key"):
        packages_of(load(path))
