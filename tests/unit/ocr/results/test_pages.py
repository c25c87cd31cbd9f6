import dataclasses
import json

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError, ShapeError
from ocr.results.lines import Char, Line, Word, as_polygon
from ocr.results.pages import Document, Page


def quad(left, top, right, bottom):
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def chars_of(text, left, top, width=10, height=20):
    return tuple(
        Char(char, 0.5, quad(left + width * i, top, left + width * (i + 1), top + height))
        for i, char in enumerate(text)
    )


def page():
    words = (
        Word("ab", 0.5, quad(0, 0, 20, 20), chars_of("ab", 0, 0)),
        Word("c", 0.987654, quad(40, 0, 50, 20)),
    )
    lines = (Line("ab  c ", 0.75, quad(0, 0, 50, 20), words), Line("中文", 1.0, quad(0.06, 30, 40, 50.44)))
    return Page(lines, 2, {"detect": 0.123456}, source="scan.png", width=60, height=80)


def test_text_keeps_spaces_and_joins_lines_and_pages():
    assert page().text == "ab  c \n中文"
    assert Document((page(), Page((), width=1, height=1), page())).text == "ab  c \n中文\f\fab  c \n中文"
    assert Document(()).text == "" and Page((), width=0, height=0).text == ""


def test_results_are_plain_comparable_and_hashable():
    line = Line(
        "a", np.float32(0.5), np.array(quad(0, 0, 1, 1), np.float32), [Word("a", 0.5, quad(0, 0, 1, 1))]
    )
    assert line == Line("a", 0.5, quad(0, 0, 1, 1), (Word("a", 0.5, quad(0, 0, 1, 1)),))
    assert type(line.score) is float and type(line.polygon[0][0]) is float and type(line.words) is tuple
    assert hash(page()) == hash(page()) and page() == page()
    assert page() != dataclasses.replace(page(), seconds={})
    with pytest.raises(dataclasses.FrozenInstanceError):
        line.text = "b"


def test_image_takes_no_part_in_comparison_or_repr():
    with_image = dataclasses.replace(page(), image=np.zeros((80, 60, 3), np.uint8))
    assert with_image == page() and "image" not in repr(with_image)


def test_image_of_another_size_is_refused():
    with pytest.raises(ShapeError, match=r"(?s)scan\.png.*\[60, 80, 3\].*\[80, 60, 3\]"):
        dataclasses.replace(page(), image=np.zeros((60, 80, 3), np.uint8))


@pytest.mark.parametrize("points", [np.zeros((4, 3)), np.zeros((3, 2)), np.zeros(8)])
def test_polygons_of_another_shape_are_refused(points):
    with pytest.raises(ShapeError, match="not a polygon"):
        as_polygon(points)


@pytest.mark.parametrize("values", [(np.nan, 0.0), (np.inf, 0.0), (np.inf, -np.inf)])
def test_values_that_are_not_finite_are_refused(values):
    for numbers in (values, tuple(map(np.float32, values))):  # Python's floats are looked at without numpy
        with pytest.raises(InputError, match="coordinate that is not finite"):
            Char("a", 1.0, ((0.0, 0.0), (1.0, 0.0), numbers, (0.0, 1.0)))
    with pytest.raises(InputError, match="score is not finite"):
        Char("a", float("nan"), quad(0, 0, 1, 1))


@pytest.mark.parametrize("turns", range(4))
def test_orientation_follows_from_the_polygon(turns):
    corners = quad(0, 0, 50, 20)  # of an upright line; the reader's top-left corner moves on clockwise
    turned = {0: corners, 1: ((20, 0), (20, 50), (0, 50), (0, 0)), 2: corners[2:] + corners[:2]}
    polygon = turned.get(turns, ((0, 50), (0, 0), (20, 0), (20, 50)))
    line = Line("text", 1.0, polygon)
    assert (line.orientation, line.vertical) == (90 * turns, False)


def test_orientation_of_a_little_skew_and_of_curved_text():
    assert Line("a", 1.0, ((0, 10), (50, 0), (54, 20), (4, 30))).orientation == 0
    assert Line("a", 1.0, ((0, 10), (50, 0), (100, 10), (100, 30), (50, 20), (0, 30))).orientation == 0


def test_vertical_follows_from_characters_or_from_the_shape():
    tall = quad(0, 0, 20, 60)
    assert Line("縦書き", 1.0, tall).vertical and not Line("I", 1.0, tall).vertical
    assert not Line("ab", 1.0, quad(0, 0, 20, 30)).vertical
    stacked = tuple(Char(char, 1.0, quad(0, 20 * i, 20, 20 * i + 20)) for i, char in enumerate("abc"))
    assert Line("abc", 1.0, tall, (Word("abc", 1.0, tall, stacked),)).vertical
    # Narrow letters side by side in a tall box.
    beside = chars_of("ll", 0, 0, 8, 30)
    assert not Line("ll", 1.0, quad(0, 0, 16, 30), (Word("ll", 1.0, quad(0, 0, 16, 30), beside),)).vertical
    assert Line("縦書き", 1.0, tall, vertical=False).vertical is False
    assert Line("abc", 1.0, quad(0, 0, 60, 20), orientation=90).orientation == 90


def test_to_dict_has_exactly_the_documented_keys_and_rounding():
    assert page().to_dict() == {
        "source": "scan.png",
        "width": 60,
        "height": 80,
        "page": 2,
        "lines": [
            {
                "text": "ab  c ",
                "score": 0.75,
                "polygon": [[0, 0], [50, 0], [50, 20], [0, 20]],
                "words": [
                    {
                        "text": "ab",
                        "score": 0.5,
                        "polygon": [[0, 0], [20, 0], [20, 20], [0, 20]],
                        "chars": [
                            {"text": "a", "score": 0.5, "polygon": [[0, 0], [10, 0], [10, 20], [0, 20]]},
                            {"text": "b", "score": 0.5, "polygon": [[10, 0], [20, 0], [20, 20], [10, 20]]},
                        ],
                    },
                    {
                        "text": "c",
                        "score": 0.9877,
                        "polygon": [[40, 0], [50, 0], [50, 20], [40, 20]],
                        "chars": [],
                    },
                ],
            },
            {
                "text": "中文",
                "score": 1.0,
                "polygon": [[0.1, 30], [40, 30], [40, 50.4], [0.1, 50.4]],
                "words": [],
            },
        ],
        "seconds": {"detect": 0.1235},
    }


def test_json_round_trip():
    document = Document((page(), Page((), width=3, height=4)), "scan.pdf")
    data = document.to_dict()
    assert json.loads(document.to_json()) == data
    back = Document.from_dict(json.loads(document.to_json(indent=1)))
    assert back.to_dict() == data and Document.from_dict(back.to_dict()) == back
    assert Page.from_dict(page().to_dict()).text == page().text


def test_json_round_trip_keeps_direction():
    lines = (Line("縦書き", 1.0, quad(0, 0, 20, 60)), Line("up", 1.0, ((50, 20), (0, 20), (0, 0), (50, 0))))
    before = Page(lines, width=60, height=60)
    assert Page.from_dict(before.to_dict()) == before
    assert [(line.vertical, line.orientation) for line in lines] == [(True, 0), (False, 180)]


def test_json_of_unusual_characters():
    text = '"\\\x00\u2028\U0001f600\ud800'
    document = Document((Page((Line(text, 1.0, quad(0, 0, 9, 9)),), width=9, height=9),))
    written = document.to_json()
    assert "\U0001f600" in written
    assert json.loads(written.encode("utf-8"))["pages"][0]["lines"][0]["text"] == text


@pytest.mark.parametrize(
    ("change", "received"),
    [
        (lambda data: data.pop("lines"), "no key 'lines'"),
        (lambda data: data.update(size=[1]), "not enough values"),  # the key of before width and height
        (lambda data: data.update(width="wide"), "wide"),
        (lambda data: data.pop("height"), "no key 'height'"),
        (lambda data: data.update(lines=[{"text": 5, "score": 1, "polygon": [], "words": []}]), "text is 5"),
        (lambda data: data["lines"][0].update(polygon=[[0, 0]]), "not a polygon"),
        (lambda data: data["lines"][0].update(score="high"), "high"),
    ],
)
def test_data_that_is_no_page_is_refused(change, received):
    data = page().to_dict()
    change(data)
    with pytest.raises(FormatError, match=f"(?s)no OCR result.*received: .*{received}.*a page: source"):
        Page.from_dict(data)
    with pytest.raises(FormatError, match="a document: source, pages"):
        Document.from_dict({"source": "", "pages": [data]})
    with pytest.raises(FormatError, match="a page"):
        Page.from_dict([])  # type: ignore[arg-type]


def test_a_word_without_the_key_chars_is_read():
    data = page().to_dict()
    del data["lines"][0]["words"][0]["chars"]
    assert Page.from_dict(data).lines[0].words[0].chars == ()


def test_files_of_before_are_read():
    """Their keys were `input` and `size`, (width, height)."""
    data = page().to_dict()
    before = {"input": data.pop("source"), "size": [data.pop("width"), data.pop("height")], **data}
    assert Page.from_dict(before) == Page.from_dict(page().to_dict())
    document = Document.from_dict({"input": "scan.pdf", "pages": [before]})
    assert document.source == document.input == "scan.pdf"
    (found,) = document.pages
    assert (found.size, found.input) == ((60, 80), "scan.png") == ((found.width, found.height), found.source)


def test_v2_structure():
    assert Document((page(), Page((), width=1, height=1))).to_v2() == [
        [
            [[[0, 0], [50, 0], [50, 20], [0, 20]], ("ab  c ", 0.75)],
            [[[0.06, 30], [40, 30], [40, 50.44], [0.06, 50.44]], ("中文", 1.0)],
        ],
        [],
    ]


def test_predict_dict():
    upside_down = Line("u", 0.5, ((50, 70), (0, 70), (0, 55), (50, 55)))
    result = dataclasses.replace(page(), lines=(*page().lines, upside_down)).to_predict_dict()
    assert (result["input_path"], result["page_index"], result["text_type"]) == ("scan.png", 1, "general")
    assert result["rec_texts"] == ["ab  c ", "中文", "u"] and result["rec_scores"] == [0.75, 1.0, 0.5]
    assert result["textline_orientation_angles"] == [0, 0, 1]
    assert result["rec_boxes"].tolist() == [[0, 0, 50, 20], [0, 30, 40, 50], [0, 55, 50, 70]]
    assert result["rec_polys"][2].tolist() == [[50, 70], [0, 70], [0, 55], [50, 55]]
    assert all((a == b).all() for a, b in zip(result["dt_polys"], result["rec_polys"], strict=True))
    assert result["text_word"] == [["ab", "c"], [], []]
    assert result["text_word_boxes"][0].tolist() == [[0, 0, 20, 20], [40, 0, 50, 20]]
    assert result["text_word_boxes"][1].shape == (0, 4)
    empty = Document((Page((), width=1, height=1),)).to_predict_dict()[0]
    assert empty["rec_boxes"].shape == (0, 4) and empty["rec_texts"] == [] and empty["dt_polys"] == []


def test_predict_dict_keeps_curved_polygons():
    arc = ((0, 10), (50, 0), (100, 10), (100, 30), (50, 20), (0, 30))
    result = Page((Line("arc", 1.0, arc),), width=100, height=40).to_predict_dict()
    assert result["text_type"] == "seal" and result["rec_polys"][0].shape == (6, 2)
    assert result["rec_boxes"].tolist() == [[0, 0, 100, 30]]
