"""Doubled letters of condensed text are read, though PDFium leaves them out; those drawn twice to look bold are not."""

from __future__ import annotations

import numpy as np
import pytest

from framework.workflow.files.pdf import PdfReader
from framework.workflow.files.pdf_content import PageContent
from framework.workflow.files.pdf_doubles import find_doubles

pytest.importorskip("pypdfium2")

LETTER_L = 0.222  # its advance in Helvetica, in sizes


def page(*operators: str, form: bool = False, turn: int = 0) -> str:
    """What is read of a page whose content is some operators, within a form or not, without spaces."""
    return "".join(content_of(*operators, form=form, turn=turn).text.text).replace(" ", "")


def content_of(*operators: str, form: bool = False, turn: int = 0) -> PageContent:
    content = "\n".join(operators).encode()
    font = b"/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>"
    drawn = b"q .5 0 0 .5 20 30 cm /X Do Q" if form else content
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/Rotate %d/MediaBox[0 0 595 842]/Contents 4 0 R%s>>" % (turn, font),
        b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/XObject/Subtype/Form/BBox[0 0 595 842]%s/Length %d>>stream\n%s\nendstream"
        % (font, len(content), content),
    ]
    bodies = [b"%d 0 obj\n%s\nendobj\n" % item for item in enumerate(objects, 1)]
    data = b"%PDF-1.7\n" + b"".join(bodies) + b"trailer\n<</Size 7/Root 1 0 R>>\n%%EOF"
    with PdfReader(data, dpi=144) as reader:
        return reader.content(0)


def line(text: str, condensed: float, *, size: float = 12, matrix: str = "1 0 0 1 40 700") -> str:
    """Text of which each letter stands nearer to the next one than it is wide, in multiples of the size."""
    return f"BT /F {size} Tf {-condensed * size:.3f} Tc {matrix} Tm ({text}) Tj ET"


@pytest.mark.parametrize("condensed", [0.155, 0.17, 0.19, 0.2])
@pytest.mark.parametrize(
    "text", ["following small hills", "all", "ill.", "the bill shall be filled", "Hawaii skiing trolley"]
)
def test_doubled_letters_of_condensed_text_are_read(text: str, condensed: float) -> None:
    assert page(line(text, condensed)) == text.replace(" ", "")


@pytest.mark.parametrize("size", [6, 40])
@pytest.mark.parametrize(
    "matrix", ["1 0 0 1 40 500", "0 1 -1 0 300 100", "-1 0 0 -1 500 500", "0 -1 1 0 300 700"]
)
def test_they_are_read_at_any_size_and_turned(size: float, matrix: str) -> None:
    assert page(line("will follow", 0.18, size=size, matrix=matrix)) == "willfollow"


@pytest.mark.parametrize("turn", [90, 180])
def test_they_are_read_on_pages_that_are_turned(turn: int) -> None:
    assert page(line("will follow tall", 0.18), turn=turn) == "willfollowtall"


def test_they_are_read_in_forms() -> None:
    assert page(line("will follow tall", 0.18), form=True) == "willfollowtall"


def test_letters_that_overlap_backwards_are_read() -> None:
    """The second of two letters stands left of the first one."""
    assert page(line("rolling hills", LETTER_L + 0.03)) == "rollinghills"


@pytest.mark.parametrize("condensed", [0, 0.05, 0.1, 0.17])
def test_a_line_that_is_drawn_twice_gains_nothing(condensed: float) -> None:
    twice = [line("still tall", condensed, matrix=f"1 0 0 1 {x} 700") for x in (40, 40.3)]
    assert page(*twice) in ("stilltall", "stilltallstilltall")


@pytest.mark.parametrize("closer", [0, 60, 100])
def test_letters_that_are_drawn_twice_in_one_string_are_read_once(closer: int) -> None:
    widths = {"w": 722, "i": 222, "l": 222, "t": 278, "a": 556}
    shown = "".join(f"({c}) {widths[c] - 30} ({c}) {30 + closer} " for c in "willtall")
    assert page(f"BT /F 12 Tf 40 700 Td [{shown}] TJ ET") == "willtall"


def test_kerning_and_wide_letters_add_nothing() -> None:
    assert (
        page("BT /F 12 Tf 40 700 Td [(fi) 40 (l) -60 (l) 30 (i) -45 (l) 80 (T) 100 (ill)] TJ ET")
        == "fillilTill"
    )
    assert page(line("will follow", -0.2)) == "willfollow"


def test_letters_on_the_place_of_the_next_one_are_said() -> None:
    """Nothing tells an l that stands on another one from one that is drawn twice; "l" and "i" are as wide."""
    content = content_of(line("some rolling stones", LETTER_L))
    assert [warning for warning in content.warnings if "2 letters" in warning and "read once" in warning]
    for condensed in (0.0, 0.1, 0.18):
        assert not content_of(line("some rolling stones", condensed)).warnings
    assert content_of(line("a tall", LETTER_L + 0.04)).warnings


def test_letters_of_a_ligature_stand_at_one_place_and_are_no_condensed_text() -> None:
    count = 3
    nothing = find_doubles(
        np.zeros(count, int),
        np.full(count, 10.0),
        np.tile([40.0, 710.0, 48.3, 698.0], (count, 1)),
        np.tile([40.0, 700.0, 48.0, 708.0], (count, 1)),
        np.tile([40.0, 700.0], (count, 1)),
        np.zeros(count, bool),
        np.zeros(count, bool),
        lambda number: None,
    )
    assert not nothing.doubtful and not len(nothing.after)


def letters(text: str, pitch: float, *, twice: float = 0.0) -> list[str]:
    """Each letter as a text object, `pitch` sizes from the next, and once more `twice` sizes away."""
    places = [40 + 12 * pitch * n for n in range(len(text))]
    return [
        f"BT /F 12 Tf 1 0 0 1 {x + 12 * shift:.3f} 700 Tm ({letter}) Tj ET"
        for x, letter in zip(places, text, strict=True)
        for shift in ([0.0, twice] if twice else [0.0])
    ]


@pytest.mark.parametrize("form", [False, True])
def test_letters_that_are_drawn_one_by_one_and_close_are_all_read(form: bool) -> None:
    assert page(*letters("commmiteessummit", 0.3), form=form) == "commmiteessummit"
    content = content_of(*letters("mmma", 0.3), form=form)
    steps = np.diff(content.text.origins[:, 0])
    assert steps == pytest.approx(np.full(3, steps[-1]), rel=0.02)


def test_letters_that_are_drawn_twice_one_by_one_are_read_once() -> None:
    assert page(*letters("summit", 0.9, twice=0.03)) == "summit"
