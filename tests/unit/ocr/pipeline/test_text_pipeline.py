from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.export import Artifact
from framework.inference import Runtime
from framework.workflow import ImageItem
from ocr.domain import DOMAIN, OCROptions
from ocr.pipeline.text_pipeline import OCRPipeline
from ocr.results.pages import Page

HALF = {"mean": [0.5] * 3, "std": [0.5] * 3}
NAMES = "abcdef"


class FakeEngine:
    """Stands in for a network. Text is drawn by `line`: red 255, green says which letter, blue rises to the right."""

    compile_count, takes_any_shape = 0, False

    def __init__(self, answer: Callable) -> None:
        self.answer, self.calls = answer, 0

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.calls += 1
        return self.answer(**inputs)

    start = __call__

    def prepare(self, shapes) -> None:  # type: ignore[no-untyped-def]
        self.prepared = list(shapes)


def text_map(image: np.ndarray, size: np.ndarray) -> dict[str, np.ndarray]:
    return {"probability": (image[..., 0] > 127).astype(np.float32)}


def is_upright(line: np.ndarray, width: int) -> bool:
    middle = line[line.shape[0] // 2, :width, 2].astype(int)
    return middle[3 * width // 4] > middle[width // 4]


def orientation(image: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
    down = np.array([w > 0 and not is_upright(line, w) for line, w in zip(image, width)], np.float32)
    return {"probability": np.stack([1 - down, down], axis=1)}


def all_on_their_heads(image: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
    return {"probability": np.tile(np.float32([0, 1]), (len(image), 1))}


def words(image: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
    """The letter twice, at a quarter and at three quarters of the line; on its head it reads badly."""
    indices = np.zeros((len(image), image.shape[2] // 8), np.int32)
    probabilities = np.full(indices.shape, 0.25, np.float32)
    for row, (line, w) in enumerate(zip(image, width)):
        if w:
            letter = round(line[line.shape[0] // 2, w // 2, 1] / 40)
            for step in (w // 32, 3 * w // 32):
                indices[row, step] = letter
                probabilities[row, step] = 0.95 if is_upright(line, w) else 0.6
    return {"indices": indices, "probabilities": probabilities}


def artifact(characters: str = NAMES, right_to_left: bool = False, **options: object) -> Artifact:
    def stage(**config: object) -> Artifact:
        return Artifact({"name": "fake", **config})

    return Artifact(
        {"options": options},
        stages={
            "detector": stage(
                options={"normalize": HALF, "postprocess": {"unclip_ratio": 0.1}, "sides": [320]}
            ),
            "recognizer": stage(
                options={"normalize": HALF},
                characters=list(characters),
                space=True,
                right_to_left=right_to_left,
            ),
            "orientation": stage(options={"normalize": HALF, "batch": 4}),
        },
    )


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Callable[..., OCRPipeline]:
    """Makes the pipeline of an artifact whose `orient` stands in for the classifier; `changes` are options."""

    def make(of: Artifact | None = None, orient: Callable = orientation, **changes: Any) -> OCRPipeline:
        of = of or artifact()
        answers = {
            id(stage): {"detector": text_map, "orientation": orient}.get(name, words)
            for name, stage in of.stages.items()
        }
        monkeypatch.setattr(Runtime, "open", lambda self, stage: FakeEngine(answers[id(stage)]))
        return DOMAIN.open(of, OCROptions(**changes), Runtime("cpu")).pipeline

    return make


def line(letter: int, width: int = 120, height: int = 24) -> np.ndarray:
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[..., 0], pixels[..., 1], pixels[..., 2] = 255, 40 * letter, np.linspace(0, 255, width)
    return pixels


def page(*lines: tuple[int, int, np.ndarray], size: int = 320) -> np.ndarray:
    image = np.zeros((size, size, 3), np.uint8)
    for left, top, pixels in lines:
        image[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return image


def read_page(pipeline: OCRPipeline, image: np.ndarray) -> Page:
    return pipeline.predict_page(ImageItem(image))


THREE = page((20, 20, line(1)), (20, 80, line(2)), (20, 140, line(3)))


def test_lines_words_and_chars_in_the_geometry_of_the_page(pipeline):
    result = pipeline().predict_page(ImageItem(THREE, "scan.png", 7))
    assert result.text == "aa\nbb\ncc"
    assert (result.size_hw, result.source, result.page) == (
        (320, 320),
        "scan.png",
        7,
    ) and result.image is THREE
    assert {"detect", "crop", "orient", "recognize", "arrange", "total"} <= result.seconds.keys()
    first = result.lines[0]
    expected = [(20, 20), (140, 20), (140, 44), (20, 44)]
    assert np.abs(np.array(first.polygon) - expected).max() <= 4
    assert (first.orientation, first.vertical) == (0, False) and abs(first.score - 0.95) < 1e-6
    ((word,),) = [first.words]
    left, right = (np.mean(char.polygon, axis=0) for char in word.chars)
    assert abs(left[0] - 50) < 8 and abs(right[0] - 110) < 8 and abs(left[1] - 32) < 4


def test_an_empty_page(pipeline):
    result = read_page(pipeline(), page())
    assert result.lines == () and result.text == "" and result.size_hw == (320, 320)


def test_drop_score(pipeline):
    badly = line(2)
    badly[..., 2] = 0  # neither way up
    both = page((20, 20, line(1)), (20, 80, badly))
    assert read_page(pipeline(drop_score=0.5), both).text == "aa\nbb"
    assert read_page(pipeline(drop_score=0.7), both).text == "aa"
    assert read_page(pipeline(artifact(drop_score=0.99)), both).text == ""


def test_a_page_of_low_lines_is_seen_again_unless_one_look_is_wanted(pipeline):
    low = page(*((40, 60 * row, line(1, 300, 36)) for row in range(1, 8)), size=1280)
    looks = []
    for given in (artifact(), artifact(look_closer=False)):
        once = pipeline(given)
        assert [found.text for found in read_page(once, low).lines] == ["aa"] * 7
        looks.append(once.detector.engine.calls)
    assert looks[0] > looks[1] == 1
    asked = pipeline(look_closer=False)
    assert not read_page(asked, low).warnings
    assert asked.detector.engine.calls == 1


def test_one_look_at_small_letters_that_read_badly_is_told(pipeline):
    """Whoever asks for one look is told what a second one might have read."""
    badly = line(2, 240, 36)
    badly[..., 2] = 0  # neither way up
    for size, told in ((1280, True), (320, False)):  # 320 is what the detector sees
        once = pipeline(look_closer=False)
        found = read_page(once, page(*((40, 50 * row, badly) for row in range(6)), size=size))
        assert once.detector.engine.calls == 1
        assert [f"max_side={size}" in warning for warning in found.warnings] == [True] * told


# -- curved lines ------------------------------------------------------------------------------------------------------


def arc(letter: int, start: float, stop: float) -> np.ndarray:
    """A line along a ring, its blue rising clockwise from one angle to the other; 0 is to the right."""
    ys, xs = np.mgrid[:320, :320] + 0.5
    radius, angle = np.hypot(xs - 160, ys - 160), np.degrees(np.arctan2(ys - 160, xs - 160)) % 360
    share = ((angle - start) % 360) / (stop - start)
    pixels = np.stack(
        [np.full_like(share, 255), np.full_like(share, 40 * letter), 255 * share.clip(0, 1)], -1
    )
    inside = (radius > 100) & (radius < 130) & (share <= 1)
    return np.where(inside[..., None], pixels, 0).astype(np.uint8)


def of_outlines() -> Artifact:
    made = artifact()
    made.stages["detector"].config["options"]["postprocess"]["box_type"] = "poly"
    return made


def test_curved_and_straight_lines_of_one_page(pipeline):
    image = np.maximum(arc(1, 180, 360), page((100, 150, line(2))))
    result = read_page(pipeline(of_outlines()), image)
    assert sorted(found.text for found in result.lines) == ["aa", "bb"]
    curved, straight = sorted(result.lines, key=lambda found: found.text)
    assert len(straight.polygon) == 4 and len(curved.polygon) == 24 and curved.score > 0.9
    first, last = np.array(curved.polygon)[[0, 11]]  # of the upper edge
    assert np.hypot(*(first - (30, 160))) < 12 and np.hypot(*(last - (290, 160))) < 12
    left, right = (np.mean(char.polygon, axis=0) for char in curved.words[0].chars)
    for place, angle in ((left, 225), (right, 315)):  # a quarter and three quarters along
        x, y = place - 160
        assert abs(np.degrees(np.arctan2(y, x)) % 360 - angle) < 8
        assert np.hypot(x, y) == pytest.approx(115 * np.cos(np.pi / 4), abs=6)  # the middle of a chord


def test_a_curved_line_on_its_head(pipeline):
    image = np.ascontiguousarray(arc(1, 180, 360)[::-1, ::-1])
    (found,) = read_page(pipeline(of_outlines()), image).lines
    assert found.text == "aa" and found.score > 0.9
    assert np.hypot(*(np.array(found.polygon[0]) - (290, 160))) < 12


def test_an_image_that_is_cut_into_tiles_has_straight_lines(pipeline):
    image = np.zeros((64, 640, 3), np.uint8)
    image[20:44, 20:140] = line(1)
    assert [found.text for found in read_page(pipeline(of_outlines()), image).lines] == ["aa"]


# -- orientation -------------------------------------------------------------------------------------------------------


def test_a_page_on_its_head(pipeline):
    result = read_page(pipeline(), np.ascontiguousarray(THREE[::-1, ::-1]))
    assert [found.text for found in result.lines] == ["aa", "bb", "cc"]
    assert {found.orientation for found in result.lines} == {180}
    assert np.abs(np.array(result.lines[0].polygon[0]) - (300, 300)).max() <= 4  # the text's own top left
    assert result.lines[0].words[0].chars[0].polygon[0][0] > result.lines[0].words[0].chars[1].polygon[0][0]


def test_one_line_on_its_head(pipeline):
    turned = page((20, 20, line(1)), (20, 80, line(2)[::-1, ::-1]), (20, 140, line(3)))
    result = read_page(pipeline(), turned)
    found = {line.text: (line.orientation, round(line.score, 2)) for line in result.lines}
    assert found == {"aa": (0, 0.95), "bb": (180, 0.95), "cc": (0, 0.95)}


def test_an_error_of_the_classifier_is_corrected_by_reading(pipeline):
    def errs(image: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
        down = np.array(
            [abs(float(line[24, w // 2, 1]) - 80) < 20 for line, w in zip(image, width)], np.float32
        )
        return {"probability": np.stack([1 - down, down], axis=1)}  # the line "bb", which stands upright

    result = read_page(pipeline(orient=errs), THREE)
    assert [(line.text, line.orientation, round(line.score, 2)) for line in result.lines] == [
        ("aa", 0, 0.95), ("bb", 0, 0.95), ("cc", 0, 0.95),
    ]  # fmt: skip


def test_without_orientation(pipeline):
    of = artifact(orient=False)
    read = pipeline(of, all_on_their_heads)
    assert read.orientation is None and read_page(read, THREE).text == "aa\nbb\ncc"
    del of.stages["orientation"]
    assert pipeline(of).orientation is None


# -- vertical ----------------------------------------------------------------------------------------------------------


def test_a_tall_line_is_read_turned(pipeline):
    tall = page((20, 20, line(1)), (200, 60, np.rot90(line(2), -1)))  # reads downwards
    result = read_page(pipeline(), tall)
    found = {line.text: (line.orientation, line.vertical) for line in result.lines}
    assert found == {"aa": (0, False), "bb": (90, False)}


def test_a_column_of_upright_characters(pipeline):
    """CJK characters that take a square each: characters follow one another downwards, each upright."""
    column = np.rot90(line(2, width=60, height=30), -1)
    result = read_page(pipeline(artifact("猫犬鳥魚虫馬"), orient=orientation), page((200, 60, column)))
    (found,) = result.lines
    assert (found.text, found.vertical) == ("犬犬", True)
    upper, lower = found.words[0].chars
    assert np.mean(upper.polygon, axis=0)[1] < np.mean(lower.polygon, axis=0)[1]
    (x0, y0), (x1, y1) = upper.polygon[:2]
    assert x1 > x0 and abs(y1 - y0) < 1  # the upper edge runs to the right


def test_words_of_right_to_left_lines_are_in_reading_order(pipeline):
    read = pipeline(artifact("אבגד", right_to_left=True))
    assert read.recognizer.characters.reading_indices(["א", "ב", "1", "2", "ג"]) == [4, 2, 3, 1, 0]

    def two(image: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
        out = words(image, width)
        out["indices"][out["indices"] > 0] = [1, 2]  # א left of ב
        return out

    read.recognizer.engine.answer = two
    (found,) = read_page(read, page((20, 20, line(1)))).lines
    assert found.text == "בא" == "".join(word.text for word in found.words)
    first, last = found.words[0].chars
    assert np.mean(first.polygon, axis=0)[0] > np.mean(last.polygon, axis=0)[0]


def test_a_page_of_two_languages_takes_each_line_from_the_recogniser_that_is_surer(pipeline):
    of = artifact("abcdef")
    of.stages["recognizer2"] = artifact("אבגדהו", right_to_left=True).stages["recognizer"]
    read = pipeline(of)

    def only(*letters: int) -> Callable:
        def answer(image: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
            out = words(image, width)
            known = np.isin(out["indices"].max(axis=1), letters)
            out["probabilities"][:] = np.where(known, 0.99, 0.55)[:, None]
            return out

        return answer

    first, second = read.recognizers
    assert (first.characters.right_to_left, second.characters.right_to_left) == (False, True)
    first.engine.answer, second.engine.answer = only(1, 3), only(2)
    result = read_page(read, THREE)
    assert result.text == "aa\nבב\ncc"
    left_to_right, right_to_left = (
        [np.mean(char.polygon, axis=0)[0] for char in line.words[0].chars] for line in result.lines[:2]
    )
    assert left_to_right == sorted(left_to_right) and right_to_left == sorted(right_to_left, reverse=True)
    assert read.bucket_count == 1 + 1 + 2 * 2 * len(first.options.widths)


# -- many pages --------------------------------------------------------------------------------------------------------


def pages_of(*letters: int) -> Iterator[ImageItem]:
    for number, letter in enumerate(letters, start=1):
        yield ImageItem(page((20, 20, line(letter))), f"p{letter}", number)


def test_pages_keep_their_order(pipeline):
    results = list(pipeline().predict_stream(pages_of(3, 1, 2)))
    assert [(p.text, p.source, p.page) for p in results] == [
        ("cc", "p3", 1),
        ("aa", "p1", 2),
        ("bb", "p2", 3),
    ]
    assert list(pipeline().predict_stream([])) == []


def test_memory_is_handed_back_after_each_page(pipeline, monkeypatch: pytest.MonkeyPatch):
    released = []
    monkeypatch.setattr("ocr.pipeline.text_pipeline.release_after_item", lambda: released.append(1))
    for number, _ in enumerate(pipeline().predict_stream(pages_of(1, 2, 3)), start=1):
        assert len(released) == number


def test_the_next_page_is_detected_while_this_one_is_read(pipeline):
    read = pipeline()
    second = threading.Event()

    def detect(image: np.ndarray, size: np.ndarray) -> dict[str, np.ndarray]:
        if read.detector.engine.calls == 2:
            second.set()
        return text_map(image, size)

    def recognise(image: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
        assert second.wait(20), "the second page was not detected while the first was read"
        return words(image, width)

    read.detector.engine.answer, read.recognizer.engine.answer = detect, recognise
    assert [p.text for p in read.predict_stream(pages_of(1, 2))] == ["aa", "bb"]


def test_pages_before_a_damaged_one_are_given_first(pipeline):
    def items() -> Iterator[ImageItem]:
        yield from pages_of(1, 2)
        raise InputError("page 3 is damaged")

    got = []
    with pytest.raises(InputError, match="page 3 is damaged"):
        for result in pipeline().predict_stream(items()):
            got.append(result.text)
    assert got == ["aa", "bb"]


@pytest.mark.parametrize("stage", ["detector", "recognizer", "orientation"])
def test_exceptions_of_a_stage_come_out(pipeline, stage: str):
    def fails(**inputs: np.ndarray) -> dict[str, np.ndarray]:
        raise RuntimeError("out of memory")

    read = pipeline()
    getattr(read, stage).engine.answer = fails
    with pytest.raises(RuntimeError, match="out of memory"):
        list(read.predict_stream(pages_of(1, 2)))


def test_pages_may_be_left_early(pipeline):
    results = pipeline().predict_stream(pages_of(1, 2, 3))
    assert next(results).text == "aa"
    results.close()


# -- opening -----------------------------------------------------------------------------------------------------------


def test_an_artifact_of_something_else():
    with pytest.raises(
        FormatError, match=r"does not recognise text\n  received: stages: none\n  allowed: detector, recog"
    ):
        DOMAIN.open(Artifact({}), OCROptions(), Runtime())


def test_counts_and_device(pipeline):
    assert Runtime().find_device() == Runtime("cpu").find_device() == jax.local_devices(backend="cpu")[0]
    read = pipeline()
    assert read.compile_count == 0 and read.bucket_count == 1 + 1 + 2 * len(read.recognizer.options.widths)
    of = artifact()
    of.stages["detector"].config["options"]["sides"] = []
    assert pipeline(of).bucket_count is None
