"""Files, bases and overrides: what is read, what wins, and what every refusal says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from framework.config import load, resolved
from framework.config import tree as tree_module
from framework.core.errors import ConfigError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def message(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, overrides)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("5.0e-4", 5e-4),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("3.", 3.0),
        ("-.inf", float("-inf")),
        ("+7", 7),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-31", "2024-01-31"),
        ("'1e-4'", "1e-4"),
        ("!!str 12", "12"),
        ("你好", "你好"),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_scalars_follow_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    plain = load(write(tmp_path / "a.yml", f"x: {text}\n")).plain()["x"]
    assert plain == value
    assert type(plain) is type(value)


def test_nan_is_a_float(tmp_path: Path) -> None:
    value = load(write(tmp_path / "a.yml", "x: .nan\n")).plain()["x"]
    assert isinstance(value, float)
    assert value != value


def test_keys_are_text_and_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_bytes(b"\xef\xbb\xbf0: cat\r\ntrue: dog\r\n")
    assert load(path).plain() == {"0": "cat", "true": "dog"}


def test_every_value_remembers_file_line_and_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "model:\n  type: X\n  sizes:\n    - 1\n    - 2\n")
    model = load(path).value["model"]
    assert str(model.where) == f"{path}:1:1"
    assert str(model.value["type"].where) == f"{path}:2:3"
    assert str(model.value["sizes"].value[1].where) == f"{path}:5:7"


def test_a_path_below_the_working_directory_is_shown_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "configs" / "a.yml", "x: 1\n")
    monkeypatch.chdir(tmp_path)
    assert str(load("configs/a.yml").value["x"].where) == f"{Path('configs/a.yml')}:1:1"


def test_later_bases_win_then_the_file_then_the_overrides(tmp_path: Path) -> None:
    write(tmp_path / "base" / "one.yml", "a: 1\nb: 1\nc: 1\nd: 1\ndeep: {x: 1, y: 1, z: [1, 2, 3]}\n")
    write(tmp_path / "base" / "two.yml", "b: 2\nc: 2\nd: 2\n")
    path = write(
        tmp_path / "run" / "a.yml",
        "_base_: [../base/one.yml, ../base/two.yml]\nc: 3\nd: 3\ndeep: {y: 3, z: [9]}\n",
    )
    tree = load(path, ["d=4", "deep.x=4"])
    assert tree.plain() == {"a": 1, "b": 2, "c": 3, "d": 4, "deep": {"x": 4, "y": 3, "z": [9]}}
    assert str(tree.value["b"].where) == f"{tmp_path / 'base' / 'two.yml'}:1:1"
    assert str(tree.value["deep"].where) == f"{path}:4:1"
    assert str(tree.value["deep"].value["x"].where) == "command line -o deep.x=4"


def test_a_base_has_its_own_bases_and_may_be_reached_twice(tmp_path: Path) -> None:
    write(tmp_path / "root.yml", "a: 0\nb: 0\n")
    write(tmp_path / "left.yml", "_base_: root.yml\na: 1\n")
    write(tmp_path / "right.yml", "_base_: root.yml\nb: 2\n")
    # right.yml comes after left.yml together with its own base, so `a` is 0 again
    assert load(write(tmp_path / "a.yml", "_base_: [left.yml, right.yml]\n")).plain() == {"a": 0, "b": 2}


def test_inherited_false_drops_what_earlier_files_put_there(tmp_path: Path) -> None:
    write(tmp_path / "one.yml", "model: {type: A, depth: 50}\nkeep: 1\n")
    write(tmp_path / "two.yml", "_base_: one.yml\nmodel: {_inherited_: false, type: B}\n")
    assert load(tmp_path / "two.yml").plain() == {"model": {"type": "B"}, "keep": 1}
    # also between two bases of one file, and from the command line
    write(tmp_path / "mark.yml", "model: {_inherited_: false, width: 1}\n")
    path = write(tmp_path / "three.yml", "_base_: [one.yml, mark.yml]\nmodel: {type: C}\n")
    assert load(path).plain() == {"model": {"width": 1, "type": "C"}, "keep": 1}
    assert load(path, ["model={_inherited_: false, type: D}"]).plain()["model"] == {"type": "D"}


def test_anchors_and_aliases(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "x: &size [512, 512]\ny: {crop: *size}\n")
    assert load(path).plain() == {"x": [512, 512], "y": {"crop": [512, 512]}}


def test_overrides_reach_list_items_and_make_mappings(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "ops: [{type: A, p: 0.5}, {type: B}]\nnothing:\n")
    tree = load(path, ["ops.0.p=1e-1", "ops.-1.scale=[0.5, 1.0]", "new.a.b=on", "nothing.x=", "text=a=b"])
    assert tree.plain() == {
        "ops": [{"type": "A", "p": 0.1}, {"type": "B", "scale": [0.5, 1.0]}],
        "nothing": {"x": None},
        "new": {"a": {"b": "on"}},
        "text": "a=b",
    }


def test_two_loads_do_not_touch(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "a: {b: [1, 2]}\n")
    first = load(path)
    load(path, ["a.b.0=9", "a.c=1"])
    assert first.plain() == load(path).plain() == {"a": {"b": [1, 2]}}


def test_resolved_text_loads_to_an_equal_tree(tmp_path: Path) -> None:
    write(tmp_path / "base.yml", "a: {x: 1e-4, y: '1e-4', z: on, n: '~', t: 'true'}\n")
    tree = load(write(tmp_path / "a.yml", "_base_: base.yml\nlist: [1, 2.0, 汉字, {k: .inf}]\n"))
    text = resolved(tree)
    assert load(write(tmp_path / "b.yml", text)) == tree
    assert (
        text
        == "a: {x: 0.0001, y: '1e-4', z: on, n: '~', t: 'true'}\nlist:\n- 1\n- 2.0\n- 汉字\n- {k: .inf}\n"
    )


def test_a_duplicate_key_names_both_places(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "model:\n  depth: 1\n  width: 2\n  depth: 3\n")
    assert message(path) == f"{path}:4:3: duplicate key 'depth'\n  received: 'depth', already at {path}:2:3"


def test_a_circle_of_bases_is_shown(tmp_path: Path) -> None:
    one = write(tmp_path / "one.yml", "_base_: two.yml\n")
    two = write(tmp_path / "two.yml", "a: 1\n_base_: [one.yml]\n")
    assert message(one) == f"{two}:2:10: '_base_' goes in a circle\n  received: {one} -> {two} -> {one}"


def test_a_missing_base_names_the_nearest_file(tmp_path: Path) -> None:
    near = write(tmp_path / "runtime.yml", "a: 1\n")
    path = write(tmp_path / "a.yml", "# the base is misspelt\n_base_: runtme.yml\n")
    text = message(path)
    assert text.startswith(f"{path}:2:1: there is no such base file\n")
    assert text.endswith(f"  received: {tmp_path / 'runtme.yml'}\n  what to do: did you mean {near}?")


def test_a_missing_file_and_a_missing_folder(tmp_path: Path) -> None:
    assert message(tmp_path / "a.yml").startswith("there is no such configuration\n")
    assert f"received: {tmp_path / 'none' / 'a.yml'}\n" in message(tmp_path / "none" / "a.yml")


@pytest.mark.parametrize("value", ["3", "[[a.yml]]", "''", ""])
def test_a_base_must_be_a_path(tmp_path: Path, value: str) -> None:
    text = message(write(tmp_path / "a.yml", f"_base_: {value}\n"))
    assert ":1:" in text
    assert "'_base_' does not name a file" in text
    assert "allowed: a path or a list of paths, relative to this file" in text


@pytest.mark.parametrize("text", ["", "# only a comment\n", "~\n"])
def test_an_empty_file(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "a.yml", text)
    assert message(path) == f"{path}:1:1: the file is empty\n  allowed: a mapping of sections"


@pytest.mark.parametrize(("text", "received"), [("- 1\n", "a list"), ("42\n", "a single value")])
def test_the_top_level_must_be_a_mapping(tmp_path: Path, text: str, received: str) -> None:
    path = write(tmp_path / "a.yml", text)
    assert message(path) == (
        f"{path}:1:1: the top level is not a mapping\n  received: {received}\n"
        "  allowed: a mapping of sections, such as `model: {...}`"
    )


def test_a_tab_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "a:\n\tb: 1\n")
    text = message(path)
    assert text.startswith(f"{path}:2:1: not valid YAML: found character '\\t'")
    assert "received: '\\tb: 1'" in text
    assert "what to do: indent with spaces" in text


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("a: 1\nb: [1, 2\n", ":3:1: not valid YAML", "expected ',' or ']'"),
        ("a: 1\n  b: 2\n", ":2:4: not valid YAML", "mapping values are not allowed here"),
        ("a: 1\n---\nb: 2\n", ":2:1: not valid YAML", "another document"),
        ("a: *none\n", ":1:4: not valid YAML", "undefined alias"),
        ("a: 1\nb: x\x01y\n", ":2:5: not valid YAML", "'\\x01'"),
        ("a: !!python/name:os.system\n", ":1:1: tags are not allowed", "received: !!python/name:os.system"),
        ("a: !!python/object/apply:os.getcwd []\n", ":1:1: tags are not allowed", "!!python/object/apply"),
        ("a: !Mine {b: 1}\n", ":1:1: tags are not allowed", "received: !Mine"),
        ("a: !!set {b}\n", ":1:1: tags are not allowed", "`type: Name`"),
        ("a: !!int abc\n", ":1:1: not a YAML int", "received: 'abc'"),
        ("a: !!bool on\n", ":1:1: not a YAML bool", "received: 'on'"),
        ("a:\n  ? [x]\n  : 1\n", ":2:5: a key must be text", "received: a list or a mapping"),
        ("a: &x [*x]\n", ":1:4: an alias stands inside", "the value that it names"),
        ("a: {_inherited_: true}\n", ":1:5: wrong value of '_inherited_'", "allowed: false"),
    ],
)
def test_what_yaml_refuses(tmp_path: Path, text: str, place: str, part: str) -> None:
    path = write(tmp_path / "a.yml", text)
    assert message(path).startswith(f"{path}{place}")
    assert part in message(path)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    assert message(path) == (
        f"{path}:2:4: the file is not UTF-8\n  received: the byte 0xff\n  what to do: save it as UTF-8"
    )


def test_hostile_files_end_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = write(tmp_path / "deep.yml", "a: " + "[" * 5000 + "]" * 5000 + "\n")
    assert message(deep).startswith(f"{deep}:1:103: not valid YAML: nested more than 100 levels deep")
    assert len(message(deep)) < 1000
    monkeypatch.setattr(tree_module, "MAX_VALUES", 1000)
    laughs = "a0: &a0 [1, 1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 30))
    text = message(write(tmp_path / "laughs.yml", laughs))
    assert "laughs.yml:8:" in text and "more than 1,000 values once its aliases are expanded" in text


@pytest.mark.skipif(os.name == "nt", reason="a device of POSIX")
def test_a_base_that_never_ends_and_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "_base_: /dev/zero\n")
    assert message(path).startswith(f"{path}:1:1: this is a device, not one base file\n  received: /dev/zero")
    with path.open("wb") as out:
        out.truncate(1 << 30)
    assert message(path).startswith("the configuration is too large")
    assert f"received: {path}: 1,073,741,824 bytes" in message(path)


def test_a_large_damaged_file_is_refused_quickly(tmp_path: Path) -> None:
    start = time.perf_counter()
    path = write(tmp_path / "a.yml", "a: [1, 2]\n" * 1 + "b: [1, 2, x]\n" * 30_000 + "c: ]")
    assert message(path).startswith(f"{path}:30002:4: not valid YAML")
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("override", ["a.b", "=1", "a..b=1", ""])
def test_what_is_not_an_override(tmp_path: Path, override: str) -> None:
    path = write(tmp_path / "a.yml", "a: 1\n")
    assert message(path, override) == (
        f"command line -o {override}: not an override\n  received: {override!r}\n  allowed: a.b.c=value"
    )


@pytest.mark.parametrize("index", ["2", "-3", "first", "²"])
def test_a_list_index_of_an_override(tmp_path: Path, index: str) -> None:
    path = write(tmp_path / "a.yml", "a: {ops: [1, 2]}\n")
    assert message(path, f"a.ops.{index}=3") == (
        f"command line -o a.ops.{index}=3: a.ops is a list of 2 items and has no item {index!r}\n"
        f"  received: {index}\n  allowed: 0 to 1, or -1 to -2 counted from the end"
    )
    empty = write(tmp_path / "b.yml", "a: []\n")
    assert message(empty, "a.0=3").endswith("allowed: no index: it is empty")


def test_an_override_does_not_go_below_a_single_value(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "task:\n  loss: Dice\n")
    assert message(path, "task.loss.weight=2") == (
        "command line -o task.loss.weight=2: task.loss has no key 'weight'\n"
        f"  received: task.loss: 'Dice', a single value from {path}:2:3\n"
        "  allowed: a mapping or a list\n"
        "  what to do: replace it as a whole: -o task.loss=..."
    )


def test_an_override_with_broken_yaml(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "a: 1\n")
    assert message(path, "a=[1").startswith("command line -o a=[1: not valid YAML: ")
    assert message(path, "a={x: 1, x: 2}").startswith("command line -o a={x: 1, x: 2}: duplicate key 'x'")


DETECTION = """domain: detection
data: {train: {dataset: {type: VocDetection, root: a, split: train, classes: [x, y]}}}
optim: {type: AdamW, learning_rate: 0.1, beta1: 0.8}
"""


def test_another_type_keeps_the_keys_that_fit_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """COCO's format in a recipe for VOC's, without a word about `_inherited_`."""
    path = write(tmp_path / "a.yml", DETECTION)
    tree = load(path, ["data.train.dataset.type=CocoDetection", "data.train.dataset.annotations=b.json"])
    assert tree.plain()["data"]["train"]["dataset"] == {
        "type": "CocoDetection",
        "root": "a",
        "annotations": "b.json",
    }
    line = (
        "data.train.dataset: the type is CocoDetection (command line -o data.train.dataset.type=CocoDetection); "
        f"left out, as they were meant for VocDetection: split ({path}:2:55), classes ({path}:2:69)"
    )
    assert caplog.messages == [line]
    assert load(write(tmp_path / "b.yml", resolved(tree))) == tree
    file = write(tmp_path / "c.yml", "_base_: a.yml\noptim: {type: SGD}\n")
    assert load(file).plain()["optim"] == {"type": "SGD", "learning_rate": 0.1}


@pytest.mark.parametrize("kind", ["AnnotatedMasks", "CvatMasks"])
def test_the_folder_of_a_recipe_is_not_that_of_another_format(tmp_path: Path, kind: str) -> None:
    text = "domain: segmentation\ndata: {train: {dataset: {type: MaskFolder, root: a, images: image, masks: label}}}\n"
    path = write(tmp_path / "a.yml", text)
    change = f"data.train.dataset.type={kind}"
    assert load(path, [change]).plain()["data"]["train"]["dataset"] == {"type": kind, "root": "a"}
    given = load(path, [change, "data.train.dataset.images=b"]).plain()["data"]["train"]["dataset"]
    assert given == {"type": kind, "root": "a", "images": "b"}


def test_a_key_of_the_command_line_is_not_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", DETECTION)
    for texts in (["optim.momentun=0.5", "optim.type=SGD"], ["optim.type=SGD", "optim.momentun=0.5"]):
        assert load(path, texts).plain()["optim"] == {"type": "SGD", "learning_rate": 0.1, "momentun": 0.5}


def test_an_unknown_type_or_domain_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", DETECTION)
    given = {"type": "Nothing", "learning_rate": 0.1, "beta1": 0.8}
    assert load(path, ["optim.type=Nothing"]).plain()["optim"] == given
    assert load(path, ["optim.type=Nothing", "domain=nowhere"]).plain()["optim"] == given


def test_an_empty_mapping_of_the_command_line_clears(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "a: {b: {c: 1}, d: [1, 2]}\n")
    assert load(path, ["a.b={}"]).plain() == {"a": {"b": {}, "d": [1, 2]}}
    assert load(path, ["a={}", "a.d=[]"]).plain() == {"a": {"d": []}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            (mark, mark)
            for mark in (",", "|", "#", ";", ":", "%", "@", "*", "&", ">", "-", "?", "!", "=", " ")
        ),
        (r"\t", "\t"),
        ("%d", "%d"),
        ("*.jpg", "*.jpg"),
        ("@file", "@file"),
        ("a: b: c", "a: b: c"),
        ("my data #2/train", "my data #2/train"),
        ("# all", "# all"),
        ("','", ","),
        ('","', ","),
        ("", None),
        ("~", None),
        ("1e-3", 0.001),
        ("[a, 'b, c']", ["a", "b, c"]),
        ("{a: 1}", {"a": 1}),
        ("a=b", "a=b"),
    ],
)
def test_a_value_that_is_no_yaml_is_text(tmp_path: Path, text: str, value: object) -> None:
    path = write(tmp_path / "a.yml", "a: 0\n")
    assert load(path, [f"b.c={text}"]).plain()["b"]["c"] == value


@pytest.mark.parametrize("text", ["[a", "{a", "'a", '"a', "[a]]"])
def test_a_list_or_a_quote_that_is_not_closed_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"not valid YAML(?s:.)*in quotes"):
        load(write(tmp_path / "a.yml", "a: 0\n"), [f"b={text}"])
