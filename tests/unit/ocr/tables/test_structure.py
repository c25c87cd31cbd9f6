"""Structures as tokens, numbers, cells on a grid, tables."""

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from ocr.tables.html import read_contents, read_structure
from ocr.tables.structure import (
    GridCell,
    TableDictionary,
    make_table,
    mark_empty,
    merge_cells,
    place_cells,
    split_cells,
    structure_html,
    structure_tokens,
    unmark_empty,
)

HEAD = (
    GridCell(0, 0, 2, 1, True),
    GridCell(0, 1, 1, 2, True),
    GridCell(1, 1, header=True),
    GridCell(1, 2, header=True),
)
BODY = GridCell(2, 0), GridCell(2, 1), GridCell(2, 2)
HTML = (
    '<table><thead><tr><td rowspan="2">a</td><td colspan="2">b</td></tr><tr><td>c</td><td>d</td></tr></thead>'
    "<tbody><tr><td>1</td><td>2 &lt; 3</td><td></td></tr></tbody></table>"
)


def test_cells_become_html_and_cells_again():
    tokens = structure_tokens([*BODY, *HEAD], 3)
    contents = ["a", "b", "c", "d", "1", "2 &lt; 3", ""]
    assert structure_html(tokens, contents) == HTML
    assert read_structure(HTML) == tokens
    assert ["".join(cell) for cell in read_contents(HTML)] == ["a", "b", "c", "d", "1", "2 < 3", ""]
    assert place_cells(tokens) == [*HEAD, *BODY]
    assert read_structure("no table") == read_contents("") == []


def test_dictionaries_are_upstreams():
    english, chinese = TableDictionary(), TableDictionary("ch")
    assert len(english.tokens) == 30 and len(chinese.tokens) == 50
    assert english.tokens[0] == "sos" and english.tokens[-2:] == ("<td></td>", "eos")
    assert "<td>" not in english.tokens and len(TableDictionary(merge=False).tokens) == 30
    tokens = structure_tokens([*HEAD, *BODY], 3)
    numbers = english.encode(tokens)
    assert numbers is not None and english.decode([0, *numbers, 29, 5]) == merge_cells(tokens)
    assert split_cells(merge_cells(tokens)) == tokens
    assert english.encode(["<td", ' colspan="77"', ">", "</td>"]) is None
    assert english.decode([99, -1]) == []


def test_table_masters_dictionary_has_tokens_of_empty_cells():
    dictionary = TableDictionary("table_master")
    assert len(dictionary.tokens) == 43 and dictionary.tokens[2] == "<td></td>"
    assert dictionary.tokens[38:] == ("<eb10></eb10>", "unknown", "sos", "eos", "padding")
    assert dictionary.padding == 42 and TableDictionary().padding == 0
    tokens = ["<tr>", "<td></td>", "<td", ' colspan="2"', ">", "</td>", "<td></td>", "<td></td>", "</tr>"]
    contents, shown = ["a", "<b> </b>", "", "odd"], [True, False, False, False]
    marked = mark_empty(tokens, contents, shown)
    empty = ["<eb2></eb2>", ' colspan="2"', ">", "</td>", "<eb></eb>", "<eb></eb>"]
    assert marked == ["<tr>", "<td></td>", *empty, "</tr>"]
    numbers = dictionary.encode(marked)
    assert numbers is not None and dictionary.decode([40, *numbers, 41, 42]) == marked
    assert unmark_empty(marked) == (tokens, [False, False, True, False, False, False, True, True, False])


def test_a_dictionary_of_ones_own(tmp_path):
    path = tmp_path / "tokens.txt"
    path.write_text("<tr>\n</tr>\n<td>\n</td>\n", encoding="utf-8")
    assert TableDictionary(file=path).tokens == ("sos", "<tr>", "</tr>", "</td>", "<td></td>", "eos")
    path.write_text("<tr>\n<td></td>\n</tr>\n", encoding="utf-8")
    assert TableDictionary("table_master", path).tokens[:4] == ("<tr>", "<td></td>", "</tr>", "unknown")
    path.write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no list of a table's tokens"):
        _ = TableDictionary(file=path).tokens
    with pytest.raises(ConfigError, match="cannot be read"):
        _ = TableDictionary(file=tmp_path / "none.txt").tokens


def test_tokens_out_of_place_give_a_grid_without_overlaps():
    rng = np.random.default_rng(5)
    tokens = TableDictionary().tokens
    for _ in range(200):
        drawn = [tokens[i] for i in rng.integers(0, len(tokens), 40)]
        cells = place_cells(split_cells(drawn))
        make_table(split_cells(drawn))  # raises where two cells lie on one place
        assert all(cell.rowspan > 0 and cell.colspan > 0 for cell in cells)
    assert place_cells([]) == [] and make_table([]).cells == ()


def test_tables_have_boxes_and_scores_of_their_cells():
    tokens = structure_tokens(BODY, 3)
    found = make_table(tokens, [(4, 3, 1, 2), None, (0, 0, 1, 1)], (0.5, 0.25, 1.0))
    assert [cell.bbox for cell in found.cells] == [(1, 2, 4, 3), None, (0, 0, 1, 1)]
    assert [cell.score for cell in found.cells] == [0.5, 0.25, 1.0]
    with pytest.raises(InputError, match="boxes and cells differ in number"):
        make_table(tokens, [(0, 0, 1, 1)])
