"""Synthetic lines and pages: the same from the same index, labels that fit what is drawn, and refusals."""

from __future__ import annotations

import logging
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ImageFont

from framework.core.errors import ConfigError, InputError
from framework.io import DataLoader
from framework.vision import image, polygons
from framework.vision.contours import cut_quads
from ocr.data.synthetic import fonts as fonts_module
from ocr.data.synthetic.backgrounds import draw_background, draw_text_colour, luma_of
from ocr.data.synthetic.fonts import FontSet
from ocr.data.synthetic.glyphs import draw_column, draw_line
from ocr.data.synthetic.ink import InkStyle, slant, wear, widen
from ocr.data.synthetic.layouts import Paper
from ocr.data.synthetic.lines import SyntheticTextLines, bend
from ocr.data.synthetic.pages import SyntheticPages
from ocr.data.synthetic.receipts import draw_receipt_text
from ocr.data.synthetic.style import TextStyle

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[5] / "shared"))
CLEAN = TextStyle(
    backgrounds=("plain",),
    **{name: 0.0 for name in vars(TextStyle()) if name.startswith("p_")},  # pyright: ignore[reportArgumentType]
)
CORPUS = "the quick brown fox jumps over the lazy dog\nSecond line, with a comma.\n\nx\n"


@pytest.fixture
def font(tmp_path: Path) -> Path:
    """Pillow's own font as a file: it has ASCII and no Chinese."""
    loaded: Any = ImageFont.load_default(20)
    (tmp_path / "fonts").mkdir()
    (tmp_path / "fonts" / "own.ttf").write_bytes(loaded.path.getvalue())
    return tmp_path / "fonts" / "own.ttf"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text(CORPUS, encoding="utf-8")
    return path


def lines(font: Path, **settings: Any) -> SyntheticTextLines:
    return SyntheticTextLines(**{"count": 40, "fonts": (font,), **settings})


def pages(font: Path, **settings: Any) -> SyntheticPages:
    sizes = {"height": (160, 240), "width": (200, 300), "text_height": (9, 20)}
    return SyntheticPages(**{"count": 12, "fonts": (font,), **sizes, **settings})


def same(one: Any, other: Any) -> bool:
    quads = zip(one.polygons or (), other.polygons or (), strict=True)
    return (
        np.array_equal(one.image, other.image)
        and one.text == other.text
        and all(np.array_equal(a, b) for a, b in quads)
    )


# -- what a sample depends on ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lines, pages])
def test_a_sample_depends_on_seed_and_index_alone(make: Any, font: Path, corpus: Path) -> None:
    dataset = make(font, corpus=(corpus,), receipts=0.3)
    backwards = {index: dataset[index] for index in reversed(range(6))}
    copy = pickle.loads(pickle.dumps(dataset))
    longer = make(font, corpus=(corpus,), receipts=0.3, count=1000)
    assert all(same(copy[index], sample) for index, sample in backwards.items())
    assert all(same(longer[index], sample) for index, sample in backwards.items())
    other = make(font, corpus=(corpus,), receipts=0.3, seed=1)
    assert not any(np.array_equal(other[index].image, sample.image) for index, sample in backwards.items())


@pytest.mark.parametrize("workers", [{"num_workers": 3}, {"num_workers": 2, "worker_mode": "process"}])
def test_workers_do_not_change_samples(workers: Any, font: Path, corpus: Path) -> None:
    dataset = lines(font, corpus=(corpus,), count=24)
    batches = DataLoader(dataset, batch_size=5, collate_fn=list, **workers)
    found = [sample for batch in batches for sample in batch]
    assert len(found) == 24 and all(same(sample, dataset[index]) for index, sample in enumerate(found))


# -- lines -------------------------------------------------------------------------------------------------------------


def test_lines_have_the_height_that_is_asked_for(font: Path, corpus: Path) -> None:
    heights = {lines(font, corpus=(corpus,), height=(32, 40))[index].size_hw[0] for index in range(40)}
    assert heights <= set(range(32, 41)) and len(heights) > 4


def test_a_clean_line_is_the_text_in_the_font(font: Path, corpus: Path) -> None:
    dataset = lines(font, corpus=(corpus,), style=CLEAN, padding=(0.0, 0.0), height=(48, 48))
    for index in range(8):
        sample = dataset[index]
        ink = draw_line(str(font), str(sample.text), 48)
        drawn = np.abs(sample.image.astype(int) - sample.image[0, 0]).sum(axis=2).astype(np.float32)
        if not sample.image[0, 0].any() and ink[0, 0]:
            continue  # the corner is ink
        wanted = image.resize(ink, drawn.shape).astype(np.float32)
        likeness = np.corrcoef(drawn.ravel(), wanted.ravel())[0, 1]
        assert abs(likeness) > 0.8, sample.text


def test_narrow_and_low_texts_survive_all_distortions(font: Path) -> None:
    strongest = {name: 1.0 for name in vars(TextStyle()) if name.startswith("p_")}
    style = TextStyle(perspective=0.24, curve=1.0, rotation=10.0, **strongest)  # pyright: ignore[reportArgumentType]
    dataset = lines(font, characters="|.-i", length=(1, 2), style=style, count=150)
    for index in range(150):
        sample = dataset[index]
        assert 32 <= sample.size_hw[0] <= 64 and sample.size_hw[1] < 400
    full = pages(font, characters="|.-i", style=style)
    assert sum(len(full[index].polygons or ()) for index in range(6)) > 10


def test_columns_are_turned_counter_clockwise(font: Path) -> None:
    dataset = lines(font, characters="L", length=(3, 3), vertical=1.0, style=CLEAN, padding=(0.0, 0.0))
    sample = dataset[0]
    height, width = sample.size_hw
    assert sample.text == "LLL" and width > 2 * height
    ink = image.rotate90(draw_column(str(font), "LLL", 60), -1)
    for turns, alike in ((0, True), (2, False)):
        wanted = image.rotate90(image.resize(ink, (height, width)), turns).ravel()
        likeness = abs(np.corrcoef(image.to_gray(sample.image).ravel(), wanted)[0, 1])
        assert (likeness > 0.7) == alike


def test_text_can_be_told_from_what_is_behind_it() -> None:
    rng = np.random.default_rng(0)
    style = TextStyle(min_contrast=70)
    for _ in range(200):
        behind = draw_background((30, 60), style, (), rng)
        colour = draw_text_colour(behind, style, rng)
        mean = float((behind.reshape(-1, 3) @ [0.299, 0.587, 0.114]).mean())
        assert abs(luma_of(colour) - mean) >= 69 or colour.tolist() in ([0, 0, 0], [255, 255, 255])
        assert (colour >= 0).all() and (colour <= 255).all()


def test_background_images_are_drawn_on(font: Path, tmp_path: Path) -> None:
    green = np.zeros((80, 300, 3), np.uint8)
    green[..., 1] = 200
    image.write(tmp_path / "behind" / "deep" / "green.png", green)
    style = replace(CLEAN, backgrounds=(), background_images=tmp_path / "behind")
    shown = lines(font, style=style)[0].image
    assert (shown == [0, 200, 0]).all(axis=2).mean() > 0.3


def test_bending_moves_the_middle_and_keeps_the_ink() -> None:
    bar = np.zeros((20, 100), np.uint8)
    bar[8:12] = 255
    up = bend(bar, 0.5)
    assert up.shape == (30, 100)
    places = [np.flatnonzero(up[:, x] > 127).mean() for x in (1, 50, 98)]
    assert places[1] + 8 < places[0] and places[1] + 8 < places[2]
    np.testing.assert_allclose(up.sum(), bar.sum(), rtol=0.02)
    assert bend(bar, 0.0) is bar


# -- ink ---------------------------------------------------------------------------------------------------------------

BAR = np.zeros((40, 200), np.uint8)
BAR[10:30, 20:180] = 255


def wear_with(seed: int = 0, **settings: Any) -> np.ndarray:
    return wear(BAR, InkStyle(**settings), np.random.default_rng(seed))


def test_ink_is_drawn_as_the_font_has_it_by_default() -> None:
    assert wear_with() is BAR and widen(BAR, 1.0) is BAR and slant(BAR, 0.0) is BAR
    assert {InkStyle().draw_stretch(np.random.default_rng(seed)) for seed in range(5)} == {1.0}


def test_letters_become_wider_narrower_and_lean() -> None:
    style, widths = InkStyle(stretch=(0.5, 2.0), p_stretch=1.0), set()
    for seed in range(20):
        factor = style.draw_stretch(np.random.default_rng(seed))
        widths.add(widen(BAR, factor).shape)
        assert 0.5 <= factor <= 2 and widen(BAR, factor).shape == (40, round(200 * factor))
    assert len(widths) > 15
    for share in (-0.5, 0.5):
        leaning = slant(BAR, share)
        assert leaning.shape == (40, 220)
        top, bottom = (np.flatnonzero(leaning[row] > 127).mean() for row in (12, 28))
        assert (top > bottom) == (share > 0) and abs(top - bottom) == pytest.approx(8, abs=1)
        assert leaning.sum() == pytest.approx(BAR.sum(), rel=0.02)


def test_weight_changes_how_thick_strokes_are() -> None:
    thick, thin = (wear_with(weight=(gain, gain), p_weight=1.0) for gain in (0.6, -0.6))
    assert (thin > 127).sum() < (BAR > 127).sum() < (thick > 127).sum()


@pytest.mark.parametrize(
    "settings",
    [
        {"dots": (8.0, 8.0), "p_dots": 1.0},
        {"fade": (0.0, 0.3), "p_fade": 1.0},
        {"speckle": (0.2, 0.2), "p_speckle": 1.0},
    ],
    ids=["dots", "fade", "speckle"],
)
def test_printers_leave_out_ink_and_add_none(settings: dict[str, Any]) -> None:
    for seed in range(10):
        worn = wear_with(seed, **settings)
        assert worn.shape == BAR.shape and worn.dtype == np.uint8
        assert not worn[BAR == 0].any() and 0.2 * BAR.sum() < worn.sum() < 0.97 * BAR.sum()


def test_ink_out_of_range_is_refused() -> None:
    for settings in ({"p_dots": 1.5}, {"stretch": (0.1, 1.0)}, {"weight": (0.5, -0.5)}, {"slant": 3.0}):
        with pytest.raises(ConfigError):
            InkStyle(**settings)  # pyright: ignore[reportArgumentType]


# -- texts -------------------------------------------------------------------------------------------------------------


def test_texts_are_parts_of_the_corpus_at_words(font: Path, corpus: Path) -> None:
    dataset = lines(font, corpus=(corpus,), length=(4, 12), words=0.5, count=200)
    texts = [str(dataset[index].text) for index in range(200)]
    words = set(CORPUS.split())
    assert all(4 <= len(text) <= 12 and set(text.split()) <= words for text in texts)
    assert any(" " in text for text in texts) and any(" " not in text for text in texts)


def test_random_strings_have_the_characters_alone(font: Path, tmp_path: Path) -> None:
    texts = [str(lines(font, characters="ab 9", length=(2, 8))[index].text) for index in range(40)]
    assert set("".join(texts)) == set("ab 9") and all(text == text.strip() for text in texts)
    (tmp_path / "dict.txt").write_text("x\ny\nzz\n　\n", encoding="utf-8")
    texts = [str(lines(font, characters=str(tmp_path / "dict.txt"))[index].text) for index in range(20)]
    assert set("".join(texts)) == {"x", "y"}


def test_characters_filter_the_corpus(font: Path, corpus: Path) -> None:
    dataset = lines(font, corpus=(corpus,), characters="abcdefghijklmnopqrstuvwxyz")
    assert not set("S,.") & {char for index in range(40) for char in str(dataset[index].text)}


def test_shares_of_capitals_and_of_words_with_a_capital(font: Path, corpus: Path) -> None:
    settings: dict[str, Any] = {
        "corpus": (corpus,),
        "characters": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ",
    }

    def texts(**shares: float) -> list[str]:
        return [str(sample.text) for sample in lines(font, **settings, **shares)]

    assert all(text.isupper() for text in texts(upper=1.0))
    assert all(word[0].isupper() for text in texts(title=1.0) for word in text.split())
    mixed = texts(upper=0.5, title=0.5)
    assert 8 < sum(text.isupper() for text in mixed) < 32
    assert any(not word[0].isupper() for text in mixed for word in text.split())


def test_receipts_have_prices_dates_and_numbers_with_spaces(font: Path, corpus: Path) -> None:
    dataset = lines(font, corpus=(corpus,), receipts=1.0, length=(1, 40), count=60)
    texts = [str(dataset[index].text) for index in range(60)]
    assert sum(any(char.isdigit() for char in text) for text in texts) > 40
    assert any(" " in text and text.replace(" ", "").isalnum() for text in texts)
    found = {draw_receipt_text(np.random.default_rng(seed)) for seed in range(300)}
    assert len(found) > 250 and any("€" in text for text in found)


def test_a_font_is_chosen_that_has_all_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    have = {"latin": "ab", "greek": "αβ", "both": "aα"}
    monkeypatch.setattr(fonts_module, "has_ink", lambda font, char: char in have[font])
    chooser, rng = FontSet(tuple(have)), np.random.default_rng(0)
    assert {chooser.choose("a", rng)[0] for _ in range(50)} == {"latin", "both"}
    assert chooser.choose("a α", rng) == ("both", "a α")
    assert chooser.choose("ab αβ", rng) == ("latin", "ab")  # no font has all: what one has of it
    assert {chooser.choose("a", rng, "both")[0] for _ in range(20)} == {"both"}
    assert chooser.choose("b", rng, "both") == ("latin", "b")
    assert chooser.find_missing("aαγ ") == ["γ"]


def test_scripts_that_are_shaped_need_raqm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts_module, "has_ink", lambda font, char: True)
    for able, missing in ((True, []), (False, ["ع"])):
        monkeypatch.setattr(fonts_module, "can_shape", lambda able=able: able)
        assert FontSet(("any",)).find_missing("aع") == missing


def test_official_texts_and_fonts_are_drawn() -> None:
    folder = SHARED / "data"
    if not (folder / "fonts").is_dir():
        pytest.skip("needs shared/data/fonts")
    zcool = folder / "fonts" / "ZCOOLKuaiLe-Regular.ttf"
    dataset = lines(folder / "fonts", characters="汉字识别 мир abc", vertical=0.3)
    for index in range(20):
        sample = dataset[index]
        assert float(sample.image.std()) > 5
        text = str(sample.text)
        if set(text) & set("汉字识别"):
            assert not FontSet((str(zcool),)).find_missing(text)


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["scattered", "page", "receipt"])
def test_all_ink_lies_in_polygons(layout: Any, font: Path, corpus: Path) -> None:
    """On a page of one colour whatever differs from it is ink; a receipt has a strip of another one."""
    dataset = pages(font, corpus=(corpus,), layouts=(layout,), style=CLEAN, receipts=0.3)
    for index in range(8):
        sample = dataset[index]
        assert sample.polygons and sample.text is not None and len(sample.text) == len(sample.polygons)
        inside = polygons.fill(sample.polygons, sample.size_hw)
        colours, counts = np.unique(sample.image[~inside].reshape(-1, 3), axis=0, return_counts=True)
        assert len(colours) <= (2 if layout == "receipt" else 1), colours[np.argsort(counts)]
        for polygon in sample.polygons:
            shown = sample.image[polygons.fill([polygon], sample.size_hw)].astype(int)
            assert np.abs(shown - np.median(shown, axis=0)).sum(axis=1).max() > 50  # there is ink
            edges = np.roll(polygon, -1, axis=0) - polygon
            turns = (
                edges[:, 0] * np.roll(edges, -1, axis=0)[:, 1]
                - edges[:, 1] * np.roll(edges, -1, axis=0)[:, 0]
            )
            assert (turns > 0).all()  # clockwise, as y points down


def test_polygons_follow_perspective_and_rotation(font: Path, corpus: Path) -> None:
    style = replace(CLEAN, p_perspective=1.0, p_rotation=1.0)
    dataset = pages(font, corpus=(corpus,), style=style, layouts=("page",), lines=(8, 8))
    seen = 0
    for index in range(12):
        sample = dataset[index]
        assert sample.polygons is not None and sample.valid is not None and sample.text is not None
        readable = [polygon for polygon, valid in zip(sample.polygons, sample.valid) if valid]
        for crop in cut_quads(sample.image, np.array(readable)) if readable else ():
            seen += 1
            grey = image.to_gray(crop).astype(int)
            behind = np.median(grey)
            ink = np.abs(grey - behind) > 40
            assert ink.any()
            assert ink[0].mean() < 0.2 and ink[-1].mean() < 0.2  # the margin around the ink
    assert seen > 20


def test_a_quad_begins_at_the_texts_own_corner(font: Path) -> None:
    dataset = pages(font)
    material = dataset._material
    paper = Paper(np.full((200, 200, 3), 255, np.uint8), CLEAN, material, np.random.default_rng(0))
    ink = draw_line(str(font), "Text", 60)
    assert paper.put(ink, "Text", (10, 50), np.zeros(3), 180)
    assert not paper.put(ink, "Text", (55, 55), np.zeros(3))  # it is taken
    assert not paper.put(ink, "Text", (190, 190), np.zeros(3))  # it sticks out
    (line,) = paper.lines
    assert (line.quad[0] > line.quad[2]).all()  # upside down, its top left corner is at the lower right
    upright = cut_quads(paper.canvas, line.quad[None])[0][..., 0]
    wanted = image.resize(np.pad(ink, round(0.06 * len(ink))), upright.shape)
    assert np.corrcoef(upright.ravel(), wanted.ravel())[0, 1] < -0.8  # black on white


def test_what_is_too_small_or_cut_off_is_not_valid(font: Path, corpus: Path) -> None:
    small = pages(font, corpus=(corpus,), least_height=500.0)
    assert not any(small[index].valid.any() for index in range(4))
    clean = pages(font, corpus=(corpus,), style=CLEAN)
    assert all(clean[index].valid.all() for index in range(4))


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_what_cannot_be_drawn_with_is_refused(font: Path, corpus: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n", encoding="utf-8")
    (tmp_path / "nothing").mkdir()
    cases = [
        ({"fonts": (tmp_path / "absent.ttf",)}, "there is no such font"),
        ({"fonts": (tmp_path / "nothing",)}, "holds no fonts"),
        ({"fonts": (corpus,)}, "this is no font"),
        ({"corpus": (empty,)}, "the corpus has no text"),
        ({"corpus": (tmp_path / "absent.txt",)}, "no such"),
        ({"corpus": (corpus,), "characters": "漢"}, "none of the characters"),
        ({"characters": "ab漢字"}, "2 of 4 characters are in none of the fonts"),
        ({"characters": "漢", "skip_missing": True}, "1 of 1 characters"),
        ({"characters": str(tmp_path / "absent.txt")}, "absent.txt"),
        ({"characters": " "}, "no characters to draw"),
        ({"style": TextStyle(background_images=tmp_path / "nothing")}, "holds no image"),
    ]
    for settings, problem in cases:
        with pytest.raises(InputError, match=problem):
            len(lines(font, **settings))


def test_settings_out_of_range_are_refused() -> None:
    for settings in (
        {"count": 0},
        {"length": (5, 2)},
        {"words": 1.5},
        {"height": (2, 9)},
        {"characters": ""},
    ):
        with pytest.raises(ConfigError):
            SyntheticTextLines(**settings)  # pyright: ignore[reportArgumentType]
    for settings in ({"p_blur": 2.0}, {"jpeg": (0, 50)}, {"backgrounds": ()}, {"backgrounds": ("images",)}):
        with pytest.raises(ConfigError):
            TextStyle(**settings)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError):
        SyntheticPages(layouts=())


def test_missing_characters_are_left_out_when_that_is_asked_for(
    font: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = lines(font, characters="ab漢字", skip_missing=True)
    with caplog.at_level(logging.WARNING, "oar"):
        texts = [str(dataset[index].text) for index in range(20)]
    assert set("".join(texts)) == {"a", "b"}
    assert [record.args and record.args[0] for record in caplog.records] == [2]


def test_columns_and_lines_are_cut_to_their_ink(font: Path) -> None:
    line, column = draw_line(str(font), "AB", 40), draw_column(str(font), "AB", 40)
    for ink in (line, column):
        assert ink[0].any() and ink[-1].any() and ink[:, 0].any() and ink[:, -1].any()
    assert line.shape[1] > line.shape[0] and column.shape[0] > 1.7 * column.shape[1]
    assert draw_line(str(font), "AB", 40, 0.5).shape[1] == pytest.approx(line.shape[1] + 20, abs=2)
    dash = draw_line(str(font), "-", 40)
    assert len(dash) == 20 and not dash[-1].any()  # it stands above the baseline
