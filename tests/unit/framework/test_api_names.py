"""Every public name of Paddle's core modules exists here or says what to write, as docs/paddle_api.md has it."""

from __future__ import annotations

import pytest

from tools.docs import api_names

NAMES = api_names.paddle_names()


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_there_or_has_a_hint(module: str) -> None:
    missing = api_names.missing_names(module, NAMES[module])
    assert all(missing.values()) and len(missing) < len(NAMES[module])


def test_a_name_without_a_hint_is_found() -> None:
    with pytest.raises(KeyError, match=r"paddle\.nn\.Convolution9D"):
        api_names.missing_names("nn", ["Linear", "Convolution9D"])


def test_the_tables_have_every_missing_name() -> None:
    names, words = api_names.names_table(), api_names.words_table()
    assert "| `nn` | 179 |" in names and "`class_center_sample`: " in names and "`Conv2d`: nn.Conv2D" in names
    assert "| layer | `load_state_dict` | layer.set_state_dict(state)" in words
