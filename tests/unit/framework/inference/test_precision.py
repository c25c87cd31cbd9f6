from __future__ import annotations

import pytest

from framework.core.errors import InputError
from framework.inference import choose_precision, runtime

BOTH = ("float32", "bfloat16")


@pytest.mark.parametrize(
    ("choice", "available", "holds", "fast", "expected"),
    [
        ("auto", BOTH, True, True, "bfloat16"),
        ("auto", BOTH, True, False, "float32"),
        ("auto", BOTH, False, True, "float32"),
        ("auto", ("float32",), True, True, "float32"),
        ("auto", ("bfloat16",), False, False, "bfloat16"),  # there is nothing else
        ("float32", BOTH, True, True, "float32"),
        ("bfloat16", BOTH, False, False, "bfloat16"),  # asked for by name: the user knows
    ],
)
def test_the_choice(choice, available, holds, fast, expected, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runtime, "bfloat16_is_fast", lambda device: fast)
    assert choose_precision(choice, object(), iter(available), holds) == expected  # type: ignore[arg-type]


def test_what_is_not_there():
    with pytest.raises(
        InputError, match=r"received: 'bfloat16'\n  allowed: auto, float32\n  what to do: export the"
    ):
        choose_precision("bfloat16", object(), ["float32"], True)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"received: 'int8'\n  allowed: auto, float32, bfloat16$"):
        choose_precision("int8", object(), BOTH, True)  # type: ignore[arg-type]
