"""Fields of entries of JSON: what each reader takes, and its message for everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from framework.core.errors import InputError
from framework.core.fields import (
    is_number,
    read_flag,
    read_integer,
    read_list,
    read_number,
    read_text,
    shorten,
)

ODD: tuple[Any, ...] = (True, 1.5, 7, "x", "", [], {}, float("nan"), float("inf"), 10**400)


@pytest.mark.parametrize(
    ("read", "taken", "allowed"),
    [
        (read_text, ("x",), "a text that is not empty"),
        (read_integer, (7,), "a whole number"),
        (read_number, (1.5, 7), "a finite number"),
        (read_list, ([],), "a list"),
    ],
)
def test_what_is_taken_and_what_is_refused(
    read: Callable[..., Any], taken: tuple[Any, ...], allowed: str
) -> None:
    for value in ODD:
        if any(type(value) is type(one) and value == one for one in taken):
            assert read({"a": value}, "a", "f.json") == value
            continue
        with pytest.raises(InputError) as caught:
            read({"a": value}, "a", "f.json")
        assert str(caught.value) == (
            f"f.json: the field 'a' is of the wrong type\n  received: {shorten(value)}\n  allowed: {allowed}"
        )


def test_a_field_that_is_missing_or_null() -> None:
    assert read_text({}, "a", "f.json", None) is None and read_number({"a": None}, "a", "f.json", 3) == 3
    with pytest.raises(
        InputError, match=r"f\.json: the field 'a' is missing\n  received: an entry with 'b'\n"
    ):
        read_text({"b": 1}, "a", "f.json")
    with pytest.raises(InputError, match="an entry with no field"):
        read_list({}, "a", "f.json")


def test_flags() -> None:
    assert [read_flag({"a": value}, "a", "f") for value in (0, 1, True, False, None)] == [0, 1, 1, 0, 0]
    assert read_flag({}, "a", "f") is False
    for value in (2, "1", []):
        with pytest.raises(InputError, match=r"allowed: 0 or 1"):
            read_flag({"a": value}, "a", "f")


def test_numbers() -> None:
    assert all(map(is_number, (0, -1.5, 2**60))) and not any(map(is_number, (True, None, "1", 10**400)))
    assert len(shorten("x" * 500)) == 80 and shorten("x" * 500).endswith("...")
