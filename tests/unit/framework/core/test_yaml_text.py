"""YAML from outside: plain values, text on demand, and an error instead of a crash."""

from __future__ import annotations

import time

import pytest
import yaml

from framework.core.yaml_text import load_yaml


def test_values() -> None:
    text = "a: [1, 2.5, no, ~]\nb: {c: d}\n"
    assert load_yaml(text) == {"a": [1, 2.5, False, None], "b": {"c": "d"}}
    assert load_yaml(text, scalars=False) == {"a": ["1", "2.5", "no", "~"], "b": {"c": "d"}}
    assert load_yaml("") is None


def test_a_hundred_levels_are_read_and_more_are_refused() -> None:
    value = load_yaml("[" * 100 + "1" + "]" * 100)
    for _ in range(100):
        assert isinstance(value, list)
        (value,) = value
    assert value == 1
    assert load_yaml("[[1], [2]]\n") == [[1], [2]]  # siblings are no depth
    for text in ("[" * 101 + "1" + "]" * 101, "{a: " * 100_000, "- " * 100_000):
        with pytest.raises(yaml.YAMLError, match="nested more than 100 levels deep"):
            load_yaml(text)


@pytest.mark.parametrize("text", ["a: [1\n", "a: !!python/object:os.system {}\n", "\x00"])
def test_what_is_no_plain_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)


def test_aliases_of_aliases_are_refused_at_once() -> None:
    laughs = "a0: &a0 [1, 1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
    start = time.perf_counter()
    with pytest.raises(yaml.YAMLError, match="more than 1,000,000 values once its aliases are expanded"):
        load_yaml(laughs)
    assert time.perf_counter() - start < 1
    assert load_yaml("a: &a [1, 2]\nb: [*a, *a]\n") == {"a": [1, 2], "b": [[1, 2], [1, 2]]}


def test_numbers_that_take_minutes_to_compute_are_refused() -> None:
    for text in ("1:" * 5000 + "1", "9" * 5000):
        with pytest.raises(yaml.YAMLError, match="a number of"):
            load_yaml(f"a: {text}\n")
    with pytest.raises(yaml.YAMLError, match="cannot be made"):
        load_yaml("a: 2001-99-99\n")
