"""framework.vision.annotations.cvat_tracks: the shapes of a video's tracks on the frames that are there as images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.cvat import read_cvat

META = """<meta><task><size>12</size><labels><label><name>cat</name></label><label><name>dog</name></label></labels>
<original_size><width>100</width><height>50</height></original_size></task></meta>"""


def box(frame: int, x: float, **more: object) -> str:
    others = "".join(f' {key}="{value}"' for key, value in more.items())
    return (
        f'<box frame="{frame}" xtl="{x}" ytl="5" xbr="{x + 10}" ybr="15" occluded="0" keyframe="1"{others}/>'
    )


def track(number: int, label: str, *shapes: str) -> str:
    return f'<track id="{number}" label="{label}">{"".join(shapes)}</track>'


def video(
    folder: Path, *tracks: str, frames: int = 12, name: str = "frame_{:06d}.png", meta: str = META
) -> Path:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number in range(frames):
        image.write(folder / "images" / name.format(number), np.full((50, 100, 3), 90, np.uint8))
    file = folder / "annotations.xml"
    file.write_text(f"<annotations>{meta}{''.join(tracks)}</annotations>", encoding="utf-8")
    return file


def boxes(file: Path) -> dict[str, list[tuple[str, float]]]:
    return {
        one.name: [(shape.label, shape.box[0]) for shape in one.objects]
        for one in read_cvat(file).images
        if one.objects
    }


def test_shapes_move_between_keyframes_and_stay_behind_the_last(tmp_path: Path) -> None:
    file = video(
        tmp_path,
        track(0, "cat", box(1, 0), box(5, 40), box(7, 40, outside=1), box(10, 8)),
        track(4, "dog", box(10, 20), box(11, 20, outside=1)),
    )
    read = read_cvat(file)
    assert read.class_names == ("cat", "dog") and len(read.images) == 12 and not read.problems
    assert {one.size_hw for one in read.images} == {(50, 100)}
    expected = {1: 0, 2: 10, 3: 20, 4: 30, 5: 40, 6: 40, 10: 8, 11: 8}
    assert boxes(file) == {
        f"frame_{number:06d}.png": [("cat", x), *([("dog", 20)] if number == 10 else [])]
        for number, x in expected.items()
    }
    assert [dict(one.attributes) for one in read.images[10].objects] == [{"track_id": "0"}, {"track_id": "4"}]


def test_polygons_ellipses_and_turns(tmp_path: Path) -> None:
    polygons = [
        '<polygon frame="0" points="0,0;10,0;10,10"/>',
        '<polygon frame="2" points="20,0;30,0;30,10"/>',
        '<polygon frame="4" points="0,0;10,0;10,10;0,10" outside="1"/>',
    ]
    ellipses = [
        f'<ellipse frame="{at}" cx="{x}" cy="20" rx="10" ry="{ry}" rotation="0"/>'
        for at, x, ry in ((0, 20, 5), (4, 60, 9))
    ]
    turned = [box(0, 10, rotation=350), box(2, 10, rotation=10)]
    read = read_cvat(
        video(tmp_path, track(0, "cat", *polygons), track(1, "dog", *ellipses), track(2, "dog", *turned))
    )
    polygon, ellipse, upright = read.images[1].objects
    assert polygon.outlines[0].tolist() == [[10, 0], [20, 0], [20, 10]]
    assert ellipse.box == pytest.approx((20, 14, 40, 26), abs=0.1)
    assert upright.box == pytest.approx((10, 5, 20, 15)), "half way from 350 to 10 degrees is 0"
    assert read.images[3].objects[0].outlines[0].tolist() == [[20, 0], [30, 0], [30, 10]], (
        "another polygon follows"
    )
    assert [len(one.objects) for one in read.images[4:6]] == [2, 2], "outside"


def test_frames_are_found_by_number_or_place(tmp_path: Path) -> None:
    shapes = track(0, "cat", box(2, 5), box(3, 5, outside=1))
    named = [video(tmp_path / "a", shapes, name=name) for name in ("cam_{:d}_x.jpg",)]
    assert boxes(named[0]) == {"cam_2_x.jpg": [("cat", 5)]}
    letters = video(tmp_path / "b", shapes, frames=0)
    for number in range(12):
        image.write(tmp_path / "b/images" / f"{chr(97 + number)}.png", np.zeros((50, 100, 3), np.uint8))
    assert boxes(letters) == {"c.png": [("cat", 5)]}
    (tmp_path / "b/images/a.png").unlink()
    with pytest.raises(
        InputError, match=r"not plain which image is which frame(?s:.)*as many images as frames: 12"
    ):
        read_cvat(letters)
    few = video(tmp_path / "c", track(0, "cat", box(1, 0), box(6, 50)), frames=4)
    read = read_cvat(few)
    assert [one.box[0] for one in read.images[3].objects] == [20]
    assert "1 frames with shapes have no image" in read.problems[0] and "6" in read.problems[0]


def test_what_is_no_video_of_cvat(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="a shape of a track has no frame"):
        read_cvat(video(tmp_path / "a", track(0, "cat", "<box/>")))
    with pytest.raises(InputError, match="no images of its frames"):
        read_cvat(video(tmp_path / "b", track(0, "cat", box(0, 5)), frames=0))
    read = read_cvat(video(tmp_path / "c", track(0, "cat", box(0, 5), '<box frame="4" xtl="a"/>'), meta=""))
    assert read.class_names == ("cat",) and [len(one.objects) for one in read.images[:5]] == [1, 1, 1, 1, 0]
    assert "is no number of pixels" in read.problems[0]
