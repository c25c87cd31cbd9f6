"""Markdown against OmniDocBench's truth: what is matched, what counts, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from framework.commands.eval import main
from framework.core.errors import FormatError, InputError
from ocr.documents.evaluation.markdown_blocks import MarkdownPart, read_markdown
from ocr.documents.evaluation.omnidocbench import TrueBlock, TruePage, read_pages
from ocr.documents.evaluation.scores import normalize_formula, normalize_text, score_documents, score_page
from ocr.formulas.cdm import can_draw

FIRST, SECOND, THIRD = (
    "The river runs through the old town and its harbour.",
    "Prices of bread were written on boards above every window.",
    "Nobody counted the boats that came back in the evening.",
)


def text(said: str, order: int | None = None, scored: bool = True) -> TrueBlock:
    return TrueBlock("text", said, order, scored)


def page(*blocks: TrueBlock) -> TruePage:
    return TruePage("p", blocks)


def texts(*said: str) -> list[MarkdownPart]:
    return [MarkdownPart("text", one) for one in said]


def edit(scores: Any) -> float:
    return sum(m.distance for m in scores.texts) / max(sum(m.longest for m in scores.texts), 1)


# -- Markdown ----------------------------------------------------------------------------------------------------------


def test_parts_of_markdown() -> None:
    said = """# A *title*

Some **bold** text with [a link](http://a.b) and 3 \\* 4 &lt; 13
over two lines.

- first
- second

![caption of a figure](<images/a b.png>)

$$
x^2 + y^2
$$

\\[ z \\]

| a | b \\| c |
|---|:-:|
| 1 | <i>2</i> |
after it

<table><tr><td>x</td></tr>

</table>

```python
# not a heading
print("a")
```
"""
    assert read_markdown(said) == [
        MarkdownPart("text", "A title"),
        MarkdownPart("text", "Some bold text with a link and 3 * 4 < 13\nover two lines."),
        MarkdownPart("text", "first\nsecond"),
        MarkdownPart("text", "caption of a figure"),
        MarkdownPart("formula", "x^2 + y^2"),
        MarkdownPart("formula", "z"),
        MarkdownPart(
            "table", "<table><tr><td>a</td><td>b | c</td></tr><tr><td>1</td><td>2</td></tr></table>"
        ),
        MarkdownPart("text", "after it"),
        MarkdownPart("table", "<table><tr><td>x</td></tr>\n\n</table>"),
        MarkdownPart("text", '# not a heading\nprint("a")'),
    ]
    assert read_markdown("") == read_markdown("\n \n") == read_markdown("![](a.png)") == []


def test_what_normalisation_takes_away() -> None:
    assert normalize_text("A sum of $x_1$, 12.50 €!") == "Asumofx11250"
    assert normalize_text("中文，标点。") == "中文标点"
    assert normalize_formula("\\left( a \\quad b \\right) \\tag{3}.") == "(ab)"
    for symbol in (
        r"a\leftarrow",
        r"a\rightarrow",
        r"\leftrightarrow",
        r"\rightharpoonup",
        r"\left\leftarrow",
    ):
        assert normalize_formula(f"{symbol} b") == symbol.replace(r"\left\l", r"\l") + "b"
    assert normalize_formula(r"\left[ a \right. \\, b") == r"[a.\\,b"


# -- texts and their order ---------------------------------------------------------------------------------------------


def test_equal_pages_have_no_distance() -> None:
    scores = score_page(page(text(FIRST, 1), text(SECOND, 2), text(THIRD, 3)), texts(FIRST, SECOND, THIRD))
    assert edit(scores) == 0 and scores.order == 0


def test_order_counts_by_places() -> None:
    blocks = page(text(FIRST, 1), text(SECOND, 2), text(THIRD, 3))
    assert score_page(blocks, texts(SECOND, THIRD, FIRST)).order == pytest.approx(2 / 3)
    assert score_page(blocks, texts(FIRST)).order is None


def test_pieces_are_joined_on_both_sides() -> None:
    one = score_page(page(text(FIRST + " " + SECOND, 1), text(THIRD, 2)), texts(FIRST, SECOND, THIRD))
    assert edit(one) == 0 and one.order == 0
    assert sorted(match.found for match in one.texts) == [(0, 1), (2,)]
    other = score_page(page(text(FIRST, 1), text(SECOND, 2), text(THIRD, 3)), texts(FIRST, SECOND + THIRD))
    assert edit(other) == 0
    assert sorted(match.truth for match in other.texts) == [(0,), (1, 2)]


def test_missing_and_additional_texts_count_whole() -> None:
    lengths = [len(normalize_text(said)) for said in (FIRST, SECOND)]
    missing = score_page(page(text(FIRST, 1), text(SECOND, 2)), texts(FIRST))
    assert edit(missing) == pytest.approx(lengths[1] / sum(lengths))
    more = score_page(page(text(FIRST, 1)), texts(FIRST, SECOND))
    assert edit(more) == pytest.approx(lengths[1] / sum(lengths))


def test_headers_and_captions_may_be_found_or_not() -> None:
    blocks = page(text(FIRST, 1), text("Journal of Harbours, page 7", None, scored=False))
    for found in (texts(FIRST), texts("Journal of Harbours, page 7", FIRST)):
        assert edit(score_page(blocks, found)) == 0


# -- tables and formulas -----------------------------------------------------------------------------------------------


def table(*rows: str) -> str:
    return (
        "<table>" + "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows) + "</table>"
    )


def test_tables_are_matched_by_what_they_say() -> None:
    blocks = page(TrueBlock("table", table("ab", "cd"), 1, True), TrueBlock("table", table("xyz"), 2, True))
    right = [MarkdownPart("table", table("xyz")), MarkdownPart("table", table("ab", "cd"))]
    assert score_page(blocks, right).tables == [(1, 1), (1, 1)]
    changed = score_page(blocks, [MarkdownPart("table", table("ab", "ce"))]).tables
    assert changed[0][1] == 1 and 0.8 < changed[0][0] < 1 and changed[1] == (0, 0)
    assert score_page(page(), [MarkdownPart("table", table("a"))]).tables == [(0, 0)]


def test_formulas() -> None:
    blocks = page(TrueBlock("formula", "a + b = c", 1, True))
    assert score_page(blocks, [MarkdownPart("formula", "a+b=c.")]).formulas[0].distance == 0
    assert score_page(blocks, []).formulas[0].distance == 5
    found = score_page(blocks, [MarkdownPart("formula", r"a+b=c\,."), MarkdownPart("formula", "zzzz")])
    assert found.drawn == [(r"a+b=c\,", "a + b = c"), ("zzzz", None)]


# -- files -------------------------------------------------------------------------------------------------------------


def entry(category: str, order: int | None, **more: Any) -> dict[str, Any]:
    return {"category_type": category, "order": order, "poly": [0] * 8, "ignore": False, "anno_id": 1, **more}


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    dets = [
        entry("text_block", 2, text=SECOND),
        entry("title", 1, text=FIRST),
        entry("table", 3, html=table("ab"), text=""),
        entry("equation_isolated", 4, latex="$$a+b$$"),
        entry("figure", None),
        entry("header", None, text="Head"),
        entry("text_block", 5, text="left out", ignore=True),
    ]
    pages = [
        {"layout_dets": dets, "page_info": {"image_path": "a/one.page.png"}, "extra": {"relation": []}},
        {"layout_dets": [entry("text_block", 1, text=THIRD)], "page_info": {"image_path": "two.jpg"}},
    ]
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(pages), encoding="utf-8")
    return path


def test_pages_of_a_file(truth: Path) -> None:
    one, two = read_pages(truth)
    assert one.name == "one.page" and two.blocks == (TrueBlock("text", THIRD, 1, True),)
    assert [(b.kind, b.order, b.scored) for b in one.blocks] == [
        ("text", 1, True),
        ("text", 2, True),
        ("table", 3, True),
        ("formula", 4, True),
        ("text", None, False),
    ]
    assert one.blocks[3].text == "a+b"


def test_scores_of_a_folder_by_the_command(
    truth: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    said = f"# {FIRST}\n\n{SECOND}\n\n{table('ab')}\n\n$$a + b$$\n"
    (folder / "one.page.md").write_text(said, encoding="utf-8")
    arguments = ["--truth", str(truth), "--predictions", str(folder), "--output_dir", str(tmp_path / "out")]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out.partition("\nwrote")[0])
    drawn = {"formula_cdm": 1, "formula_cdm_exp_rate": 1}
    drawn |= {"formula_cdm_truths_not_drawn": 0, "formula_cdm_found_not_drawn": 0}
    assert found == pytest.approx(
        {
            "overall": 100 * (1 + 0.5 + 1) / 3,
            "text_edit": 0.5,  # of two pages, one without a file
            "formula_edit": 0,
            "table_teds": 1,
            "table_teds_structure": 1,
            "order_edit": 0,
            "pages": 2,
            "missing_pages": 1,
            **(drawn if can_draw() else {}),
        }
    )
    rows = json.loads((tmp_path / "out" / "pages.json").read_text(encoding="utf-8"))
    assert [row["page"] for row in rows] == ["one.page", "two"] and rows[1]["text_edit"] == 1


_ORDER = (
    '[{"page_info": {"image_path": "a.png"}, '
    '"layout_dets": [{"category_type": "title", "text": "a", "order": 1e999}]}]'
)


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}', "[1]", '[{"layout_dets": [{}]}]', _ORDER])
def test_what_is_no_truth(content: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=r"truth\.json"):
        read_pages(path)


def test_two_pages_of_one_name(tmp_path: Path) -> None:
    page = {"layout_dets": [], "page_info": {"image_path": "a.png"}}
    (tmp_path / "truth.json").write_text(json.dumps([page, page]), encoding="utf-8")
    with pytest.raises(FormatError, match="two pages have one name"):
        read_pages(tmp_path / "truth.json")


def test_a_page_whose_name_no_file_can_have_lacks_its_file(tmp_path: Path) -> None:
    names = ["a.png", f"{'b' * 5000}.png"]
    pages = [{"layout_dets": [], "page_info": {"image_path": name}} for name in names]
    (tmp_path / "truth.json").write_text(json.dumps(pages), encoding="utf-8")
    (tmp_path / "a.md").write_text("a", encoding="utf-8")
    assert score_documents(tmp_path / "truth.json", tmp_path)[0]["missing_pages"] == 1


def test_a_folder_without_pages(truth: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"no page of the truth[\s\S]*one\.page\.md"):
        score_documents(truth, tmp_path / "nowhere")
    assert main(["--truth", str(truth)]) != 0
    assert "--predictions" in capsys.readouterr().err
    assert main(["-c", "lenet_mnist", "--predictions", str(tmp_path)]) != 0
    assert "--truth" in capsys.readouterr().err
