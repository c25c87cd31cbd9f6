from __future__ import annotations

import numpy as np

from nlp.results import Label, Similarity, Span, Tagged, TextLabels, labelled, marks_spans, tagged

OFFSETS = np.array([[0, 2], [3, 5], [6, 9]])
SCORES = np.array([0.9, 0.5, 0.8])


def test_spans_of_a_text() -> None:
    found = tagged("ab cd efg", OFFSETS, ["B-X", "I-X", "O"], SCORES, joined=True)
    assert found == (Span("ab cd", "X", 0, 5, 0.5),)
    single = tagged("ab cd efg", OFFSETS, ["N", "V", "N"], SCORES, joined=False)
    assert [(span.text, span.label, span.start, span.end) for span in single] == [
        ("ab", "N", 0, 2),
        ("cd", "V", 3, 5),
        ("efg", "N", 6, 9),
    ]
    assert tagged("", OFFSETS[:0], [], SCORES[:0], joined=True) == ()


def test_which_tags_mark_spans() -> None:
    assert marks_spans(("O", "B-A", "I-A")) and marks_spans(("S-N", "E-N", "M-N"))
    assert (
        marks_spans(("O", "n-B", "n-I")) and marks_spans(("B", "M", "E", "S")) and marks_spans(("O", "U-A"))
    )
    assert not marks_spans(("NOUN", "VERB")) and not marks_spans(("I", "E", "O"))


def test_results_are_plain_data() -> None:
    result = Tagged("ab", (Span("ab", "N", 0, 2, 0.123456),))
    assert result.words == ("ab",) and result.tags == ("N",)
    assert result.to_dict() == {
        "text": "ab",
        "spans": [{"text": "ab", "label": "N", "start": 0, "end": 2, "score": 0.1235}],
    }
    classes = labelled(np.array([0.2, 0.5, 0.3]), ("a", "b"), 2)
    assert classes == (Label("b", 1, 0.5), Label("2", 2, 0.3))
    text = TextLabels("x", classes, "y")
    assert text.label == "b" and text.score == 0.5
    assert text.to_dict()["pair"] == "y" and text.to_dict()["classes"][0]["category_id"] == 1
    assert Similarity("a", "b", 0.12345678).to_dict() == {"text": "a", "pair": "b", "score": 0.123457}
