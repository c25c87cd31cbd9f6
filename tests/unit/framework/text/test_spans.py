from __future__ import annotations

import pytest

from framework.text.spans import spans


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-A I-A O B-B", [(0, 2, "A"), (3, 4, "B")]),
        ("O I-A I-A I-B", [(1, 3, "A"), (3, 4, "B")]),
        ("B-A B-A I-A", [(0, 1, "A"), (1, 3, "A")]),
        ("B-A M-A E-A S-A E-A", [(0, 3, "A"), (3, 4, "A"), (4, 5, "A")]),
        ("B-A E-A I-A", [(0, 2, "A"), (2, 3, "A")]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_are_seqevals(tags: str, found: list) -> None:
    assert spans(tags.split()) == found
