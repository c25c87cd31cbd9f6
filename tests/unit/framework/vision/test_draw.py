"""framework.vision.draw and fonts: where pixels change and where not, sizes, glyphs, errors."""

import os
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import InputError, ShapeError
from framework.vision import draw, fonts, masks

GREY = np.full((200, 300, 3), 100, np.uint8)
SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).parents[5] / "shared"))


@pytest.fixture(autouse=True)
def no_own_font(monkeypatch):
    monkeypatch.delenv(fonts.FONT_VARIABLE, raising=False)
    fonts.text_alpha.cache_clear()
    yield
    fonts.text_alpha.cache_clear()


def changed(out: np.ndarray, before: np.ndarray = GREY) -> np.ndarray:
    return (out != before).any(axis=-1)


def test_nothing_to_draw_gives_a_copy():
    for out in (
        draw.boxes(GREY, np.zeros((0, 4)), labels=[]),
        draw.polygons(GREY, []),
        draw.masks(GREY, np.zeros((0, 200, 300), bool)),
        draw.masks(GREY, np.zeros((2, 200, 300), bool)),
        draw.keypoints(GREY, np.zeros((0, 5, 3))),
        draw.classes(GREY, np.full((200, 300), 255, np.uint8)),
    ):
        assert out is not GREY and not np.shares_memory(out, GREY)
        np.testing.assert_array_equal(out, GREY)


def test_box_outline():
    out = draw.boxes(GREY, np.array([[10, 20, 60, 50]]), ids=[3])
    assert draw.line_width((200, 300)) == 1
    rows, columns = np.nonzero(changed(out))
    # Right and bottom are exclusive: the last pixels inside are 59 and 49.
    assert (columns.min(), columns.max(), rows.min(), rows.max()) == (10, 59, 20, 49)
    assert changed(out).sum() == 2 * 50 + 2 * 28
    assert tuple(out[20, 30]) == masks.color(3)


def test_labels_stay_inside_and_leave_the_input_alone():
    before = GREY.copy()
    corners = np.array(
        [[0, 0, 20, 20], [290, 190, 400, 400], [280, 100, 299, 120], [-50, -50, -20, -20]], float
    )
    out = draw.boxes(GREY, corners, labels=["first", "second", "a third that is long", ""])
    np.testing.assert_array_equal(GREY, before)
    assert changed(out)[:25, :40].any() and changed(out)[-30:, -60:].any()


def test_label_stands_above_its_box_or_inside_at_the_top():
    size, height = draw.font_size((200, 300)), round(1.25 * draw.font_size((200, 300)))
    assert size == 11
    above = changed(draw.boxes(GREY, np.array([[50, 100, 150, 150]]), labels=["x"]))
    assert above[100 - height : 100, 50].all() and not above[100 - height - 1].any()
    inside = changed(draw.boxes(GREY, np.array([[50, 3, 150, 150]]), labels=["x"]))
    assert not inside[:3].any() and inside[4 : 4 + height, 50].all()


def test_contrast():
    for background, expected in (((255, 255, 0), 0), ((0, 0, 120), 255)):
        out = draw.text(GREY, "Hmm", (50, 100), background=background, scale=3)
        shown = out[changed(out)]
        assert (shown == expected).all(axis=-1).sum() > 10
        assert (shown == background).all(axis=-1).sum() > 50


def test_sizes_grow_with_the_image():
    assert draw.line_width((480, 640)) == 1 and draw.font_size((480, 640)) == 11
    assert draw.line_width((3000, 4000)) == 8 and draw.font_size((3000, 4000)) == 69
    assert draw.line_width((3000, 4000), 0.5) == 4 and draw.font_size((480, 640), 2) == 22
    assert draw.font_size((1, 1)) == 11 and draw.line_width((1, 1)) == 1
    small = draw.boxes(GREY, np.array([[50, 100, 150, 150]]), labels=["x"])
    large = draw.boxes(GREY, np.array([[50, 100, 150, 150]]), labels=["x"], scale=2)
    assert changed(large).sum() > 1.8 * changed(small).sum()


def test_polygons():
    square = np.array([[10.0, 10], [60, 10], [60, 60], [10, 60]])
    outline = changed(draw.polygons(GREY, [square]))
    assert not outline[20:50, 20:50].any() and outline[9:12, 30].any()
    filled = draw.polygons(GREY, [square], ids=[0], opacity=0.25)
    expected = np.rint(0.75 * 100 + 0.25 * np.array(masks.color(0)))
    np.testing.assert_array_equal(filled[30, 30], expected)
    opened = changed(draw.polygons(GREY, [square], closed=False))
    assert outline[30, 8:13].any() and not opened[30, 8:13].any()
    labelled = changed(draw.polygons(GREY, [square + 50], labels=["text"]))
    assert labelled[50:60, 60:70].any()


def test_polygon_partly_and_wholly_outside():
    square = np.array([[-20.0, -20], [20, -20], [20, 20], [-20, 20]])
    out = changed(draw.polygons(GREY, [square, square - 500, square + 1e9], opacity=0.5))
    assert out[:19, :19].all() and not out[25:].any() and not out[:, 25:].any()


def test_masks():
    many = np.zeros((2, 200, 300), bool)
    many[0, 50:100, 50:100] = many[1, 150:160, 10:20] = True
    out = draw.masks(GREY, many, ids=[4, 5], opacity=0.5)
    np.testing.assert_array_equal(out[75, 75], np.rint(50 + 0.5 * np.array(masks.color(4))))
    np.testing.assert_allclose(out[50, 75].astype(int), masks.color(4), atol=8)  # the outline is opaque
    assert not changed(out)[120:140].any() and changed(out)[155, 15]


def test_classes():
    class_map = np.zeros((200, 300), np.uint8)
    class_map[:, 100:] = 1
    class_map[:, 200:] = 255
    table = np.array([[0, 0, 0], [200, 100, 0]], np.uint8)
    out = draw.classes(GREY, class_map, colors=table, opacity=0.5)
    assert out[0, 0].tolist() == [50] * 3 and out[0, 150].tolist() == [150, 100, 50]
    assert out[0, 250].tolist() == [100] * 3
    shown = draw.classes(GREY, class_map, opacity=1, ignore=None)
    assert tuple(shown[0, 250]) == masks.color(255) and tuple(shown[0, 150]) == masks.color(1)
    many = draw.classes(GREY, class_map.astype(np.int64) * 300, opacity=1, ignore=255 * 300)
    assert tuple(many[0, 150]) == masks.color(300)


def test_keypoints():
    points = np.array([[[50.0, 50, 0.9], [150, 50, 0.8], [150, 150, 0.1], [np.nan, 5, 1]]])
    out = changed(draw.keypoints(GREY, points, skeleton=[(0, 1), (1, 2), (2, 3)]))
    assert out[50, 50] and out[50, 100] and out[50, 150]
    assert not out[150, 150] and not out[100, 150]
    assert changed(draw.keypoints(GREY, points[..., :2], skeleton=[(1, 2)]))[100, 149:152].any()


def test_what_is_not_finite_is_left_out():
    out = draw.boxes(GREY, np.array([[np.nan, 0, 5, 5], [0, 0, np.inf, 5]]), labels=["a", "b"])
    np.testing.assert_array_equal(out, GREY)
    np.testing.assert_array_equal(draw.polygons(GREY, [np.array([[0, np.nan]]), np.zeros((0, 2))]), GREY)


def test_one_pixel_images():
    one = np.zeros((1, 1, 3), np.uint8)
    draw.boxes(one, np.array([[0, 0, 1, 1]]), labels=["label"])
    draw.text(one, "中", (0, 0))
    assert draw.masks(one, np.ones((1, 1, 1), bool), ids=[1], opacity=1)[0, 0].tolist() == list(
        masks.color(1)
    )
    assert draw.keypoints(one, np.zeros((1, 1, 2))).shape == (1, 1, 3)


def test_errors():
    for wrong in (GREY.astype(float), GREY[..., 0], GREY[:0]):
        with pytest.raises(ShapeError, match="nothing can be drawn on this"):
            draw.boxes(wrong, np.zeros((0, 4)))
    with pytest.raises(ShapeError, match="labels and boxes do not belong together"):
        draw.boxes(GREY, np.zeros((2, 4)), labels=["a"])
    with pytest.raises(ShapeError, match="ids and polygons do not belong together"):
        draw.polygons(GREY, [], ids=[1])
    with pytest.raises(ShapeError, match="the masks do not fit the image"):
        draw.masks(GREY, np.zeros((1, 20, 30), bool))
    with pytest.raises(ShapeError, match="the class map does not fit the image"):
        draw.classes(GREY, np.zeros((20, 30), np.uint8))
    with pytest.raises(ShapeError, match=r"a class has no colour[\s\S]*7 to 7[\s\S]*0 to 2"):
        draw.classes(GREY, np.full((200, 300), 7, np.uint8), colors=np.zeros((3, 3), np.uint8))
    with pytest.raises(ShapeError, match="keypoints have the wrong shape"):
        draw.keypoints(GREY, np.zeros((3, 2)))


# ---- fonts ----


def test_text_alpha():
    alpha = fonts.text_alpha("Oar 12", 20)
    assert (
        alpha.shape[0] == 25 and alpha.dtype == np.uint8 and alpha.max() == 255 and not alpha.flags.writeable
    )
    assert fonts.text_alpha("Oar 12", 40).shape[1] == pytest.approx(2 * alpha.shape[1], rel=0.1)
    assert fonts.text_alpha("", 20).shape == (25, 1) and fonts.text_alpha(" ", 20).max() == 0
    np.testing.assert_array_equal(fonts.text_alpha("a\nb\tc", 20), fonts.text_alpha("a b c", 20))


def test_long_text_is_cut():
    full, cut = (
        fonts.text_alpha("a very long label " * 9, 16),
        fonts.text_alpha("a very long label " * 9, 16, 120),
    )
    assert full.shape[1] > 120 >= cut.shape[1] > 60
    assert fonts.text_alpha("wide", 16, 3).shape[1] == 3


def test_characters_without_a_glyph_become_boxes(monkeypatch):
    monkeypatch.setattr(fonts, "_system_fonts", lambda: ())
    boxes = fonts.text_alpha("中文", 32)
    assert boxes.shape[1] == 39  # 0.6 of the size each
    half = boxes[:, :19] > 0
    assert half.any() and not half[15:25, 6:12].any()  # hollow
    mixed = fonts.text_alpha("a中b", 32)
    assert mixed.shape[1] > boxes.shape[1]


def test_a_missing_script_is_said_once_with_what_to_do(monkeypatch, caplog):
    monkeypatch.setattr(fonts, "_system_fonts", lambda: ())
    fonts._warn_missing.cache_clear()
    for text in ("中文", "日本語のテキスト", "한국어", "中", "plain"):
        fonts.text_alpha(text, 31)
    (said,) = (record.getMessage() for record in caplog.records)
    assert "Chinese, Japanese or Korean" in said and "fonts-noto-cjk" in said and "OAR_FONT" in said
    fonts.text_alpha("नमस्ते", 31)
    assert len(caplog.records) == 2 and "Devanagari" in caplog.records[1].getMessage()
    fonts._warn_missing.cache_clear()


def test_the_folders_of_fonts(monkeypatch, tmp_path):
    monkeypatch.setattr(fonts.sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_DIRS", f"{tmp_path}/a:/usr/share")
    assert fonts._font_folders()[:2] == [tmp_path / "a" / "fonts", Path("/usr/share/fonts")]


def test_system_fonts_are_asked_only_when_needed(monkeypatch):
    def fail():
        raise AssertionError("the folders were searched")

    monkeypatch.setattr(fonts, "_system_fonts", fail)
    fonts.text_alpha("plain", 21)
    with pytest.raises(AssertionError):
        fonts.text_alpha("中", 21)


def test_system_fonts_that_are_found(monkeypatch, tmp_path):
    source = SHARED / "data" / "fonts"
    if not source.is_dir():
        pytest.skip(f"{source} is not here (OAR_SHARED)")
    chinese = (source / "ZCOOLKuaiLe-Regular.ttf").read_bytes()
    (tmp_path / "deep").mkdir()
    for name in ("deep/NotoSansCJK-Regular.ttc", "NotoSansCJK-Black.ttc", "unknown.ttf"):
        (tmp_path / name).write_bytes(chinese)
    (tmp_path / "msyh.ttc").write_bytes(b"broken")
    monkeypatch.setattr(fonts, "_font_folders", lambda: [tmp_path, tmp_path / "gone"])
    fonts._system_fonts.cache_clear()
    try:
        assert fonts._system_fonts() == (str(tmp_path / "deep" / "NotoSansCJK-Regular.ttc"),)
        assert fonts.text_alpha("中文", 32).shape[1] > 45  # full-width glyphs, no boxes of 0.6
    finally:
        fonts._system_fonts.cache_clear()


def test_own_font(monkeypatch):
    path = SHARED / "data" / "fonts" / "ZCOOLKuaiLe-Regular.ttf"
    if not path.is_file():
        pytest.skip(f"{path} is not here (OAR_SHARED)")
    plain = fonts.text_alpha("Oar", 30)
    monkeypatch.setenv(fonts.FONT_VARIABLE, str(path))
    fonts.text_alpha.cache_clear()
    own = fonts.text_alpha("Oar", 30)
    assert own.shape != plain.shape or not np.array_equal(own, plain)
    assert fonts.text_alpha("中文", 30).shape[1] > 45


def test_own_font_that_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv(fonts.FONT_VARIABLE, str(tmp_path / "gone.ttf"))
    with pytest.raises(InputError, match=r"OAR_FONT: the file is not a font[\s\S]*gone.ttf"):
        draw.text(GREY, "unseen text", (9, 9))


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_font_folders_of_each_system(monkeypatch, platform):
    monkeypatch.setattr(fonts.sys, "platform", platform)
    assert any("onts" in str(folder) for folder in fonts._font_folders())
