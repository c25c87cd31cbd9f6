"""Words of pages, TB-YX, features: numbers worked out by hand."""

from __future__ import annotations

import numpy as np

from ocr.fields.features import NUM_FEATURES, NUM_PLACES, word_features, word_places
from ocr.fields.words import rows_of_boxes, split_page, tb_yx_order, text_of


def test_words_have_the_share_of_their_lines_box() -> None:
    words = split_page(["TOTAL 9.00", "Shop"], np.array([[100, 50, 200, 60], [10, 10, 50, 20]]))
    assert words.texts == ("Shop", "TOTAL", "9.00")
    np.testing.assert_allclose(words.boxes, [[10, 10, 50, 20], [100, 50, 150, 60], [160, 50, 200, 60]])
    assert words.lines.tolist() == [1, 0, 0] and words.rows.tolist() == [0, 1, 1]
    assert words.spans.tolist() == [[0, 4], [0, 5], [6, 10]]
    assert words.extent == (10, 10, 200, 60)
    assert words.first(1).texts == ("Shop",)


def test_what_recognisers_join_is_apart() -> None:
    words = split_page(["Date:20-06-2018 12:30 RM148.50 日本x"], np.array([[0, 0, 100, 10]]))
    assert words.texts == ("Date:", "20-06-2018", "12:30", "RM", "148.50", "日", "本", "x")


def test_a_page_without_words() -> None:
    for texts in ([], ["  "]):
        words = split_page(texts, np.zeros((len(texts), 4)))
        assert len(words) == 0 and words.boxes.shape == (0, 4) and words.extent == (0, 0, 1, 1)
        assert word_features(words, 64).shape == (0, NUM_FEATURES)
        assert word_places(words).shape == (0, NUM_PLACES)


def test_rows_are_boxes_that_overlap_in_height() -> None:
    boxes = np.array([[50, 2, 60, 12], [0, 0, 10, 10], [0, 20, 10, 30], [30, 8, 40, 18]], np.float32)
    assert rows_of_boxes(boxes) == [[1, 0], [3], [2]]


def test_tb_yx_puts_the_left_of_neighbours_first() -> None:
    boxes = [[0, 0, 9, 9], [300, 100, 310, 110], [200, 110, 210, 120], [100, 119, 110, 129], [0, 140, 9, 150]]
    assert tb_yx_order(np.array(boxes)) == [0, 3, 2, 1, 4]
    # The first two stay as their tops say, as upstream's loop has it.
    assert tb_yx_order(np.array([[50, 0, 60, 9], [0, 10, 9, 19]])) == [0, 1]
    assert tb_yx_order(np.zeros((0, 4))) == []


def test_texts_of_words_keep_what_stands_between() -> None:
    texts = ["No. 5, High  Street", "Town"]
    words = split_page(texts, np.array([[0, 0, 100, 10], [0, 20, 40, 30]]))
    assert text_of(words, texts, [0, 1, 2, 3, 4]) == "No. 5, High  Street Town"
    assert text_of(words, texts, [2, 4]) == "High Town"
    assert text_of(words, texts, []) == ""


def test_features_depend_on_the_page_and_not_on_digits() -> None:
    boxes = np.array([[0, 0, 40, 10], [60, 0, 100, 10], [0, 20, 40, 30], [60, 20, 100, 30]])
    one = word_features(split_page(["Total", "12.50", "Cash", "20.00"], boxes), 4096)
    other = word_features(split_page(["TOTAL", "13.75", "CASH", "20.00"], boxes), 4096)
    np.testing.assert_array_equal(one, other)
    larger = word_features(split_page(["Total", "32.50", "Cash", "20.00"], boxes), 4096)
    assert (one[1] != larger[1]).any()  # it is the largest amount now
    assert one.min() >= 0 and one.max() < 4096 and (one[:, 0] > 0).all()
    # The word beside, not the one of another row, is told.
    moved = word_features(split_page(["Total", "12.50", "Change", "20.00"], boxes), 4096)
    assert (one[3] != moved[3]).any() and (one[0] != moved[0]).sum() <= 3


def test_places_are_shares_of_what_words_cover() -> None:
    boxes = np.array([[100, 100, 200, 110], [200, 300, 300, 320]])
    places = word_places(split_page(["a", "b"], boxes))
    np.testing.assert_allclose(places[0, :4], [0, 0, 0.5, 10 / 220], atol=1e-6)
    np.testing.assert_allclose(places[1, :4], [0.5, 200 / 220, 1, 1], atol=1e-6)
    moved = word_places(split_page(["a", "b"], boxes + 50))
    np.testing.assert_allclose(places, moved, atol=1e-6)
    assert np.isfinite(places).all() and np.abs(places).max() <= 4
