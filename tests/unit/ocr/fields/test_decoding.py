"""Probabilities of tags to fields, and their scores."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.fields.field_decoding import FieldKind, decode_fields, label_names, label_probabilities, plain_text
from ocr.fields.form_decoding import RelationScores, pair_entities, vote_lines
from ocr.fields.scores import EntityScores, FieldScores, pack_page, scores_of, unpack_page
from ocr.fields.words import split_page

TAGS = ("O", "B-COMPANY", "I-COMPANY", "B-TOTAL", "I-TOTAL", "B-DATE", "I-DATE")
TEXTS = ["Corner Shop Ltd", "25/03/18", "Total 9.50", "Cash 9.50", "Change 0.50"]
BOXES = np.array([[0, 20 * row, 100, 20 * row + 10] for row in range(5)])
KINDS: dict[str, FieldKind] = {"total": "amount", "date": "date"}


def chances(**places: tuple[int, float]) -> np.ndarray:
    """[T, tags] with probability for the first tag of a label at the words' places; the rest is O."""
    words = split_page(TEXTS, BOXES)
    found = np.zeros((len(words), len(TAGS)), np.float32)
    for name, (place, value) in places.items():
        found[place, TAGS.index(f"B-{name.rstrip('0123456789').upper()}")] = value
    found[:, 0] = 1 - found.sum(axis=1)
    return found


def fields(probabilities: np.ndarray) -> dict[str, tuple[str, str]]:
    words = split_page(TEXTS, BOXES)
    return {
        one.name: (one.text, one.value) for one in decode_fields(probabilities, TAGS, words, TEXTS, KINDS)
    }


def test_labels_of_tags() -> None:
    assert label_names(TAGS) == ("COMPANY", "TOTAL", "DATE")
    shares = label_probabilities(np.array([[0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1]]), TAGS)
    np.testing.assert_allclose(shares, [[0.1, 0.5, 0.2, 0.2]])


def test_runs_of_words_are_texts() -> None:
    found = fields(chances(company=(0, 0.9), company2=(1, 0.9), company3=(5, 0.6)))
    assert found == {"company": ("Corner Shop", "Corner Shop")}
    assert fields(chances(company=(0, 0.1))) == {}


def test_dates_and_amounts_are_what_can_be_read_as_such() -> None:
    found = fields(chances(date=(3, 0.3), total=(0, 0.9), total2=(5, 0.2)))
    assert found["date"] == ("25/03/18", "2018-03-25")
    assert found["total"] == ("9.50", "9.50")  # and not the word that is more likely, but no amount
    # 9.50 stands twice: together it is more likely than 0.50
    found = fields(chances(total=(5, 0.3), total2=(7, 0.3), total3=(9, 0.5)))
    assert found["total"] == ("9.50", "9.50")
    assert "total" not in fields(chances(total=(5, 0.01)))


def test_letters_and_digits_are_compared() -> None:
    assert plain_text("Corner-Shop, Ltd.") == "CORNERSHOPLTD"


def test_entities_are_right_as_wholes() -> None:
    scores = EntityScores(TAGS)
    truth = np.array([[1, 2, 0, 3, -1], [0, 0, 5, -1, -1]])
    found = np.array([[1, 2, 0, 3, 3], [0, 5, 5, 5, 5]])
    scores.update({"scores": np.eye(len(TAGS))[found]}, {"tags": truth})
    # Two of the three wanted ones; the second page has two dates, one of them wrong.
    assert scores.result() == pytest.approx({"hmean": 6 / 7, "precision": 3 / 4, "recall": 1.0})
    assert scores_of(0, 0, 0) == {"hmean": 0.0, "precision": 0.0, "recall": 0.0}
    assert "COMPANY" in str(scores.details())


def test_fields_are_right_by_their_values() -> None:
    words = split_page(TEXTS, BOXES)
    truth = chances(company=(0, 1.0), company2=(1, 1.0), company3=(2, 1.0), total=(5, 1.0)).argmax(axis=1)
    scores = FieldScores(TAGS, KINDS)
    page = pack_page(words, TEXTS, truth)
    said = chances(
        company=(0, 0.9), company2=(1, 0.9), total=(7, 0.9)
    )  # the amount elsewhere, a word missing
    scores.update({"scores": said[None]}, {"page": page[None]})
    result = scores.result()
    assert result["exact_total"] == 1.0 and result["exact_company"] == 0.0
    assert result["exact"] == 0.5 and result["exact_date"] == 0.0  # no page has a date
    again, texts, tags = unpack_page(str(page))
    assert again.texts == words.texts and texts == TEXTS and tags.tolist() == truth.tolist()


def test_lines_vote_with_their_tokens() -> None:
    tags = np.array([1, 2, 3, 0, 0, 5, 3])
    segments = np.array([0, 0, 0, 1, 1, 1, 3])
    found = vote_lines(np.eye(len(TAGS))[tags], segments, 5, TAGS)
    assert [kind for kind, _ in found] == ["COMPANY", "O", "O", "TOTAL", "O"]
    assert [share for _, share in found] == pytest.approx([2 / 3, 2 / 3, 0, 1, 0])


def test_a_value_has_the_first_key() -> None:
    scores = np.zeros((4, 4), np.float32)
    scores[0, 2], scores[1, 2], scores[1, 3], scores[0, 3] = 0.6, 0.9, 0.7, 0.4
    assert pair_entities(scores) == [
        (0, 2, pytest.approx(0.6)),
        (1, 3, pytest.approx(0.7)),
    ]
    assert pair_entities(np.zeros((0, 0))) == []


def test_relations_are_counted_as_pairs() -> None:
    metric = RelationScores()
    scores, related = np.zeros((1, 3, 3)), np.zeros((1, 3, 3), int)
    scores[0, 0, 1], scores[0, 0, 2], related[0, 0, 1], related[0, 2, 1] = 0.9, 0.8, 1, 1
    metric.update({"scores": scores}, {"related": related})
    assert metric.result() == {"hmean": 0.5, "precision": 0.5, "recall": 0.5}
