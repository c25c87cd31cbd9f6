from __future__ import annotations

import pytest

from framework.core.errors import ShapeError
from framework.text.sample import TextSample


def test_tags_are_those_of_words() -> None:
    sample = TextSample("a b", words=("a", "b"), tags=(0, 1))
    assert sample.replace(label=3).tags == (0, 1)
    with pytest.raises(ShapeError, match=r"(?s)'line 3'.*3 tags, 2 words"):
        TextSample("a b", words=("a", "b"), tags=(0, 1, 2), id="line 3")
