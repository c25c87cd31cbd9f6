"""TEDS by hand, against a plain recursion, against PubTabNet's own values, and on damaged HTML."""

import functools
import json
import random
import time

import numpy as np
import pytest

from framework.core.errors import InputError
from ocr.tables.html import MOST_NODES, read_table
from ocr.tables.teds import TableScores, teds, token_distances
from ocr.tables.tree_distance import PostOrder, tree_distance
from ocr.text.scores import edit_distance, order_edit_distance, text_edit_distance


def html(*rows: str) -> str:
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row.split("|")) + "</tr>" for row in rows)
    return f"<table>{body}</table>"


def test_equal_tables_have_1_and_no_table_has_0():
    assert teds(html("a|b"), f"<html><body>{html('a|b')}</body></html>") == 1.0
    assert teds("", html("a")) == teds("<p>text</p>", html("a")) == teds(html("a"), "<td>a</td>") == 0.0
    assert teds("<table></table>", "<table/>") == 1.0


def test_a_lost_cell_costs_1_of_all_elements():
    assert teds(html("a|b|c"), html("a|b")) == pytest.approx(1 - 1 / 4)
    assert teds(html("a|b|c"), html("a|b"), divisor="nodes") == pytest.approx(1 - 1 / 5)


def test_other_text_costs_its_normalised_distance_but_not_in_structure():
    assert teds(html("ab"), html("ax")) == pytest.approx(1 - 0.5 / 2)
    assert teds(html("ab"), html("ax"), structure_only=True) == 1.0
    # An inline element is a token at each end, and an element that the size counts.
    assert teds(html("<b>ab</b>"), html("ab")) == pytest.approx(1 - 0.5 / 3)


def test_other_spans_and_tags_cost_1():
    assert teds("<table><tr><td colspan=2>a</table>", html("a")) == pytest.approx(0.5)
    assert teds("<table><tr><th colspan='x'>a</th></table>", html("a")) == 1.0
    wrapped = "<table><thead><tr><td>a</td></tr></thead></table>"
    assert teds(wrapped, html("a")) == pytest.approx(1 - 1 / 3)


def test_open_tags_are_read_as_browsers_do():
    assert teds("<table><tr><td>a<td>b<tr><td>c<td>d</table>", html("a|b", "c|d")) == 1.0
    tree = read_table("<table><tr><td><i>a<td>b</i></table><table><tr><td>c</table>")
    assert tree is not None and tree.elements == 4
    assert [cell.tokens for cell in tree.root.children[0].children] == [["<i>", "a", "</i>"], ["b"]]
    assert tree.root.children[0].children[0].text == "a"


@pytest.mark.parametrize(
    "text",
    [
        "<table" * 50,
        "<table>" * 3000,
        "<table>" + "<tr><td>" * 6000,
        "<table>" + "<div>" * 3000,
        "<table><tr><td>" + "<b>" * 3000,
        "<table><tr><td colspan='99999999999999999999'>&#x110000;&bogus;</td></tr></td></table></table>",
        "</table><table></td></tr><td rowspan=-3></thead><![CDATA[<!-- <table><?php",
        "<table><tr><td>\x00\ud800</td>",
    ],
    ids=range(8),
)
def test_damaged_html_gives_a_score(text):
    assert 0.0 <= teds(text, html("a")) <= 1.0
    tree = read_table(text)
    assert tree is None or tree.elements <= MOST_NODES + 3000


def test_distance_is_that_of_a_plain_recursion():
    rng = random.Random(7)

    def forest(nodes: int) -> tuple:
        trees = []
        while nodes > 0:
            below = rng.randint(0, nodes - 1)
            trees.append((rng.choice("abc"), forest(below)))
            nodes -= below + 1
        return tuple(trees)

    @functools.cache
    def plain(one: tuple, other: tuple) -> float:
        if not one or not other:
            return sum(1 + plain(below, ()) for _, below in one or other)
        (label, below), (tag, inner) = one[-1], other[-1]
        return min(
            plain(one[:-1] + below, other) + 1,
            plain(one, other[:-1] + inner) + 1,
            plain(one[:-1], other[:-1]) + plain(below, inner) + (0 if label == tag else 0.75),
        )

    def number(tree: tuple, labels: list, children: list) -> int:
        below = [number(child, labels, children) for child in tree[1]]
        labels.append(tree[0])
        children.append(below)
        return len(labels) - 1

    for _ in range(60):
        trees = [("r", forest(rng.randint(0, 9))) for _ in range(2)]
        labels, orders = [], []
        for tree in trees:
            names: list[str] = []
            children: list[list[int]] = []
            number(tree, names, children)
            labels.append(np.array(names))
            orders.append(PostOrder(children))
        rename = np.where(labels[0][:, None] == labels[1][None], 0.0, 0.75)
        assert tree_distance(orders[0], orders[1], rename) == pytest.approx(
            plain((trees[0],), (trees[1],)), abs=1e-12
        )


def test_token_distances_are_edit_distances_over_the_longer_length():
    rng = random.Random(3)
    lengths = (0, 1, 3, 63, 64, 65, 90)
    items = [[["ab", "c", "d"][rng.randint(0, 2)] for _ in range(n)] for n in lengths]
    table = token_distances(items, items[::-1])
    for i, one in enumerate(items):
        for j, other in enumerate(items[::-1]):
            assert table[i, j] == pytest.approx(edit_distance(one, other) / max(len(one), len(other), 1))


def test_scores_report_simple_and_complex_tables_apart():
    scores = TableScores()
    assert scores.result() == {}
    scores.add(html("a"), html("a"))
    assert set(scores.result()) == {"teds", "teds_structure"}
    scores.add("no table", "<table><tr><td colspan=2>a</table>")
    assert scores.result() == {
        "teds": 0.5, "teds_structure": 0.5, "teds_simple": 1.0, "teds_complex": 0.0
    }  # fmt: skip
    with pytest.raises(InputError, match="the label holds no table"):
        scores.add(html("a"), "text")


def test_unknown_divisor_is_refused():
    with pytest.raises(InputError, match=r"(?s)no such divisor.*elements, nodes"):
        teds(html("a"), html("a"), divisor="rows")  # type: ignore[arg-type]


def test_published_scores_of_pubtabnet(shared):
    """Their 20 predictions, to the last digit, and not slower than a fifth of a second a table."""
    folder = shared / "data" / "pubtabnet_samples" / "mini_val"
    wanted, found, expected = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("sample_gt.json", "sample_pred.json", "expected_teds.json")
    )
    started = time.process_time()
    scores = {name: teds(found[name], wanted[name]["html"]) for name in expected}
    assert time.process_time() - started < 20
    assert scores == pytest.approx(expected, abs=1e-12)
    pairs = [(found[name], wanted[name]["html"]) for name in expected]
    means = [
        np.mean([teds(*pair, structure_only=True, divisor=d) for pair in pairs])
        for d in ("elements", "nodes")
    ]
    assert means == pytest.approx([0.9361, 0.9309], abs=5e-5)


def test_edit_distances_of_pages():
    assert text_edit_distance("a  b\nc", " a b c ") == 0.0
    assert text_edit_distance("abcd", "abxd") == 0.25
    assert text_edit_distance("", "") == 0.0
    assert order_edit_distance([0, 1, 2], [0, 1, 2]) == order_edit_distance([], []) == 0.0
    assert order_edit_distance([1, 0, 2, 3], [0, 1, 2, 3]) == 0.5
    assert order_edit_distance(["a"], ["a", "b"]) == 0.5
