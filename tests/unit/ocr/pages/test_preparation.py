"""Pages that are turned upright and made flat: the stages, the way back of what was read, options and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from framework.config import load
from framework.core.errors import ConfigError, HubError
from framework.engine.experiment import bind_experiment
from framework.export import Artifact
from framework.inference import Runtime
from framework.vision.grid_warp import GridWarp
from framework.vision.normalize import Normalize
from framework.workflow import ImageItem
from framework.workflow.domain.domain import find_config
from ocr.documents.reader import DocumentReader
from ocr.domain import DOMAIN, OCROptions
from ocr.pages.stages import PageOrientationClassifier, PageOrientationOptions, Unwarper, UnwarpOptions
from ocr.pipeline.config import PageOrientationConfig, TextSystem
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.pages import Page
from tests.unit.ocr.pipeline.test_text_pipeline import (
    HALF,
    THREE,
    FakeEngine,
    artifact,
    orientation,
    text_map,
    words,
)

N = Normalize()
STRIPES = np.random.default_rng(0).integers(0, 256, (90, 70, 3)).astype(np.uint8)


def engine(answer: Callable[..., Any]) -> Any:
    return FakeEngine(answer)


# -- the stages --------------------------------------------------------------------------------------------------------


def test_upstreams_view_is_the_middle_of_the_page() -> None:
    seen = []

    def answer(image: np.ndarray) -> dict[str, np.ndarray]:
        seen.append(image)
        return {"probability": np.float32([[0.1, 0.7, 0.1, 0.1]])}

    page = np.zeros((512, 256, 3), np.uint8)
    page[144 + 16 : 368 - 16, 16 + 16 : 240 - 16] = 255  # within the middle 224 x 224
    found = PageOrientationClassifier(engine(answer), PageOrientationOptions(N)).find_angle(page)
    assert found == 90 and seen[0].shape == (1, 224, 224, 3)
    assert seen[0][0, 16:-16, 16:-16].min() == 255 and seen[0][0, :16].max() == 0


def test_parts_are_combined_and_doubt_turns_nothing() -> None:
    def answer(image: np.ndarray) -> dict[str, np.ndarray]:
        rows = np.tile(np.float32([0.25, 0.25, 0.25, 0.25]), (len(image), 1))
        rows[0] = [0, 0, 1, 0]
        return {"probability": rows}

    options = PageOrientationOptions(N, 64, (32, 32), patches=8, thresh=0.3)
    classifier = PageOrientationClassifier(engine(answer), options)
    # 64 x 64 is covered by four parts, of which the first says 180; the other three say nothing and cancel out.
    ratio = (0.001 / 1.001) ** 0.25
    np.testing.assert_allclose(classifier(STRIPES[:70])[2], 1 / (1 + 3 * ratio), rtol=1e-5)
    assert classifier.find_angle(STRIPES[:70]) == 180
    unsure = dataclasses.replace(options, thresh=0.7)
    assert PageOrientationClassifier(engine(answer), unsure).find_angle(STRIPES[:70]) == 0


def test_options_out_of_range() -> None:
    for given in ({"short_side": 0}, {"patches": -1}, {"thresh": 1.5}, {"size_hw": (0, 4)}):
        with pytest.raises(ConfigError, match="this is no way to look at a page"):
            PageOrientationOptions(N, **given)


def test_the_grid_of_the_network_is_that_of_the_image() -> None:
    y, x = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 4), indexing="ij")

    def answer(image: np.ndarray) -> dict[str, np.ndarray]:
        assert image.shape == (1, 20, 10, 3) and image.dtype == np.uint8
        np.testing.assert_array_equal(
            image[0, [0, 0, -1, -1], [0, -1, 0, -1]], STRIPES[[0, 0, -1, -1], [0, -1, 0, -1]]
        )
        return {"grid": np.stack([-x, y], axis=-1)[None].astype(np.float32)}

    warp = Unwarper(engine(answer), UnwarpOptions(N, (20, 10)))(STRIPES)
    assert warp.size_hw == warp.source_hw == (90, 70)
    assert np.abs(warp.image(STRIPES).astype(int) - STRIPES[:, ::-1]).max() <= 1


# -- the pipeline ------------------------------------------------------------------------------------------------------


def bow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where in a photograph of 320 x 320 points of the flat page are: lines hang through by 10 pixels."""
    return np.stack([x, y + 10 * np.cos(np.pi * (x - 160) / 320)], axis=-1)


def bent_grid() -> np.ndarray:
    """The same as the network says it, 32 x 32 points from -1 to 1."""
    y, x = np.meshgrid(np.linspace(0.5, 319.5, 32), np.linspace(0.5, 319.5, 32), indexing="ij")
    return ((bow(x, y) - 0.5) / 319 * 2 - 1).astype(np.float32)


def bend(image: np.ndarray) -> np.ndarray:
    """The photograph of a flat page: the inverse of `bow`."""
    y, x = np.mgrid[:320, :320] + 0.5
    back = np.stack([x, y - 10 * np.cos(np.pi * (x - 160) / 320)], axis=-1)
    return GridWarp(back, (320, 320), (320, 320)).image(image)


def direction(image: np.ndarray) -> dict[str, np.ndarray]:
    """By which way blue rises in what is red: to the right in upright lines, see test_pipeline."""
    rows = []
    for one in image:
        text, blue = one[..., 0] > 127, one[..., 2].astype(float)
        # Over eight pixels, and the usual one: at the edges of lines it is another.
        across = np.median((blue[:, 8:] - blue[:, :-8])[text[:, 8:] & text[:, :-8]])
        down = np.median((blue[8:] - blue[:-8])[text[8:] & text[:-8]])
        turns = (0 if across > 0 else 2) if abs(across) > abs(down) else (1 if down > 0 else 3)
        rows.append(np.eye(4, dtype=np.float32)[turns])
    return {"probability": np.stack(rows)}


def unwarped(image: np.ndarray) -> dict[str, np.ndarray]:
    return {"grid": bent_grid()[None]}


def prepared_artifact(*names: str) -> Artifact:
    made = artifact()
    options = {
        "document_orientation": {"normalize": HALF, "short_side": 320, "size_hw": [320, 320]},
        "unwarp": {"normalize": HALF, "size_hw": [64, 64]},
    }
    for name in names:
        made.stages[name] = Artifact({"name": name, "options": options[name]})
    return made


@pytest.fixture
def predictor(monkeypatch: pytest.MonkeyPatch) -> Callable[..., OCRPredictor]:
    def make(*names: str, **options: Any) -> OCRPredictor:
        of = prepared_artifact(*names)
        answers = {
            "detector": text_map,
            "recognizer": words,
            "orientation": orientation,
            "document_orientation": direction,
            "unwarp": unwarped,
        }
        known = {id(stage): answers[name] for name, stage in of.stages.items()}
        monkeypatch.setattr(Runtime, "open", lambda self, stage: FakeEngine(known[id(stage)]))
        return DOMAIN.open(of, OCROptions(**options), Runtime("cpu"))

    return make


def read(predictor: OCRPredictor, image: np.ndarray) -> Page:
    (page,) = predictor.predict_stream([ImageItem(image, "scan.png", 2)])
    return page


@pytest.mark.parametrize("turns", range(4))
def test_a_turned_page_has_its_polygons_in_the_image_as_it_was(predictor, turns: int) -> None:
    image = np.ascontiguousarray(np.rot90(THREE, -turns))
    page = read(predictor("document_orientation"), image)
    upright = read(predictor(), THREE)
    assert page.text == upright.text == "aa\nbb\ncc" and page.angle == 90 * turns and page.image is image
    assert {line.orientation for line in page.lines} == {90 * turns} and not page.unwarped
    for line, other in zip(page.lines, upright.lines):
        polygon = np.array(other.polygon)
        for _ in range(turns):  # a quarter turn clockwise of a square of 320
            polygon = np.stack([320 - polygon[:, 1], polygon[:, 0]], axis=-1)
        np.testing.assert_allclose(line.polygon, polygon, atol=1e-6)
        assert [char.text for word in line.words for char in word.chars] == list(line.text)
    assert page.seconds["total"] > page.seconds["prepare"] > 0 and (page.page, page.source) == (2, "scan.png")


def test_an_oblong_page(predictor) -> None:
    image = np.ascontiguousarray(np.rot90(THREE[:240], -1))
    page = read(predictor("document_orientation"), image)
    assert (page.size_hw, page.angle, page.text) == ((320, 240), 90, "aa\nbb\ncc")
    x, y = np.mean(
        page.lines[0].polygon, axis=0
    )  # upright at (80, 32); 240 - 32 from the left, 80 from above
    assert abs(x - 208) < 4 and abs(y - 80) < 4


def test_a_bent_page_has_polygons_that_follow_its_lines(predictor) -> None:
    photo = bend(THREE)
    page = read(predictor("unwarp"), photo)
    assert page.text == "aa\nbb\ncc" and page.unwarped and page.angle is None
    first = np.array(page.lines[0].polygon)
    assert first.shape == (14, 2)
    flat = np.array(read(predictor(), THREE).lines[0].polygon)
    np.testing.assert_allclose(first[[0, 6, 7, 13]], bow(flat[:, 0], flat[:, 1]), atol=2.5)
    middle = first[:7].mean(axis=0), flat[:2].mean(axis=0)
    assert middle[0][1] - middle[1][1] > 5  # it hangs through
    # What the polygon holds in the photograph is the line: red.
    inside = first[:7] * 0.5 + first[7:][::-1] * 0.5
    assert all(photo[int(y), int(x), 0] > 127 for x, y in inside[1:-1])


def test_both_stages(predictor) -> None:
    photo = np.ascontiguousarray(np.rot90(bend(THREE), -1))
    page = read(predictor("document_orientation", "unwarp"), photo)
    assert (page.text, page.angle, page.unwarped) == ("aa\nbb\ncc", 90, True)
    assert {line.orientation for line in page.lines} == {90}
    x, y = np.mean(page.lines[2].polygon, axis=0)
    assert photo[int(y), int(x), 0] > 127


def test_an_image_without_text(predictor) -> None:
    page = read(predictor("unwarp"), np.zeros((320, 320, 3), np.uint8))
    assert page.lines == () and page.unwarped and page.size_hw == (320, 320)


def test_stages_are_switched_off_and_asked_for(predictor) -> None:
    made = predictor("document_orientation", "unwarp", document_orientation=False).pipeline
    assert made.preparation.orientation is None and made.preparation.unwarper is not None
    assert len(made._stages) == 4
    assert predictor("unwarp", unwarp=False).pipeline.preparation is None
    assert predictor().pipeline.preparation is None
    with pytest.raises(
        ConfigError,
        match=r"(?s)unwarp: this model has no such stage.*detector, recognizer.*-o pipeline.unwarp.enabled=true",
    ):
        predictor("document_orientation", unwarp=True)


def test_a_classifier_of_pages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"normalize": HALF, "short_side": 320, "size_hw": [320, 320]}
    monkeypatch.setattr(Runtime, "open", lambda self, stage: FakeEngine(direction))
    made = Artifact({"kind": "document_orientation", "options": options})
    page = read(DOMAIN.open(made, OCROptions(), Runtime("cpu")), np.ascontiguousarray(np.rot90(THREE, -3)))
    assert (page.angle, page.text, page.lines[0].score) == (270, "270", 1.0)


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_say_what_was_done() -> None:
    page = Page((), width=4, height=3, source="a", angle=180, unwarped=True)
    data = page.to_dict()
    assert data["angle"] == 180 and data["unwarped"] is True and Page.from_dict(data) == page
    assert page.to_predict_dict()["doc_preprocessor_res"] == {
        "angle": 180,
        "model_settings": {"use_doc_orientation_classify": True, "use_doc_unwarping": True},
    }
    flat = Page((), width=4, height=3, source="a", unwarped=True)
    assert flat.to_predict_dict()["doc_preprocessor_res"]["angle"] == -1
    plain = Page((), width=4, height=3, source="a")
    assert (
        not {"angle", "unwarped"} & set(plain.to_dict())
        and "doc_preprocessor_res" not in plain.to_predict_dict()
    )


def test_bent_lines_are_no_seals(predictor) -> None:
    found = read(predictor("unwarp"), bend(THREE)).to_predict_dict()
    assert found["text_type"] == "general" and found["rec_polys"][0].shape == (4, 2)


# -- documents ---------------------------------------------------------------------------------------------------------


def test_a_document_is_in_pixels_of_the_upright_page(predictor) -> None:
    ocr = predictor("document_orientation")
    image = np.ascontiguousarray(np.rot90(THREE[:240], -1))
    (page,) = DocumentReader(lambda: ocr, images=True)(image).pages
    assert page.angle == 90 and page.size_hw == (240, 320) and page.image.shape == (240, 320, 3)
    assert page.text == "aa\nbb\ncc" and {line.orientation for line in page.lines} == {0}
    assert page.blocks and all(block.bbox[3] <= 240 for block in page.blocks)


def test_points_of_a_turned_scan(predictor) -> None:
    pipeline = predictor("document_orientation").pipeline
    image = np.ascontiguousarray(np.rot90(THREE[:240], -1))  # 320 high, 240 wide
    _, prepared = pipeline.predict_prepared(ImageItem(image))
    # As of a page at 72 dpi: x stays, y runs upwards.
    a, b, c, d, e, f = prepared.compose((1.0, 0.0, 0.0, -1.0, 0.0, 320.0))
    # Upright (x, y) was at (240 - y, x) in the image.
    np.testing.assert_allclose((a * 10 + c * 20 + e, b * 10 + d * 20 + f), (220, 310), atol=1e-9)
    _, bent = predictor("unwarp").pipeline.predict_prepared(ImageItem(bend(THREE)))
    assert bent.compose((1.0, 0.0, 0.0, -1.0, 0.0, 320.0)) is None


# -- the configuration -------------------------------------------------------------------------------------------------


def system(*settings: str) -> TextSystem:
    found = bind_experiment(load(find_config("pp_ocrv6_small", "ocr"), settings)).pipeline
    assert isinstance(found, TextSystem)
    return found


def test_stages_are_off_unless_enabled() -> None:
    assert system().stage_names == ("detector", "recognizer", "orientation")
    both = system("pipeline.unwarp.enabled=true", "pipeline.document_orientation.enabled=true")
    assert both.stage_names[3:] == ("document_orientation", "unwarp")
    assert system("pipeline.document_orientation=output/mine").stage_names[3:] == ("document_orientation",)


def test_options_switch_stages_on() -> None:
    config = find_config("pp_ocrv6_small", "ocr")
    plain = load(config, ()).plain()
    chosen = DOMAIN.choose_settings(
        config, plain, {"unwarp": True, "document_orientation": True, "lang": "ru"}
    )
    assert set(chosen) == {
        "pipeline.recognizers=[eslav_pp_ocrv5_mobile_rec]",
        "pipeline.document_orientation.enabled=true",
        "pipeline.unwarp.enabled=true",
    }
    assert DOMAIN.choose_settings(config, plain, {"unwarp": False, "document_orientation": None}) == ()
    on = load(config, ("pipeline.unwarp.enabled=true",)).plain()
    assert DOMAIN.choose_settings(config, on, {"unwarp": True}) == ()


def test_the_small_classifier_takes_the_place_of_weights_that_cannot_be_had(
    monkeypatch, caplog, tmp_path
) -> None:
    def resolve(name: str, domain: str) -> Any:
        if name == "pp_lcnet_x1_0_doc_ori":
            raise HubError("no source had the file")
        return tmp_path / name

    monkeypatch.setattr("ocr.pipeline.config.hub.resolve", resolve)
    config = system().document_orientation
    assert isinstance(config, PageOrientationConfig)
    stage = config.stage()
    assert stage.weights == "pp_lcnet_x0_25_doc_ori" and stage.task.turn_all  # type: ignore[attr-defined]
    assert stage.inputs["image"].shape == ("n", 128, 128, 3) and stage.config["options"]["patches"] == 16
    assert "pp_lcnet_x1_0_doc_ori cannot be had" in caplog.text and "no source had the file" in caplog.text
    with pytest.raises(HubError, match="no source had the file"):
        dataclasses.replace(config, fallback=None).stage()
    monkeypatch.setattr("ocr.pipeline.config.hub.resolve", lambda name, domain: tmp_path / name)
    official = config.stage()
    assert official.weights == "pp_lcnet_x1_0_doc_ori" and official.inputs["image"].shape == (
        "n",
        224,
        224,
        3,
    )
