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
        ("U-A U-A B-A L-A U-A", [(0, 1, "A"), (1, 2, "A"), (2, 4, "A"), (4, 5, "A")]),  # BILOU
        (
            "n-B n-I v-B O PER-B PER-I",
            [(0, 2, "n"), (2, 3, "v"), (4, 6, "PER")],
        ),  # PaddleNLP's lexical analysis
        ("B_A I_A B_B-C", [(0, 2, "A"), (2, 3, "B-C")]),
        ("B M E S S", [(0, 3, ""), (3, 4, ""), (4, 5, "")]),
        ("NN NN DT", [(0, 2, "NN"), (2, 3, "DT")]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_are_seqevals(tags: str, found: list) -> None:
    assert spans(tags.split()) == found
