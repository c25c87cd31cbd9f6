"""The routes of PaddleX's servers: bodies as its clients send and read them, and what is not used said."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from detection.paddlex_routes import ROUTES as OBJECT_ROUTES
from detection.results import Box, DetectionResult
from framework.core.errors import ConfigError, InputError
from framework.serving.routes.paddlex import _split_fields, paths
from framework.vision import image as vision_image
from framework.workflow.domain.request_options import request_options
from ocr.paddlex_routes import ROUTES as TEXT_ROUTES
from ocr.pages.preparation import PagePreparation
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.text_pipeline import OCRPipeline
from ocr.results.blocks import Block, Figure
from ocr.results.pages import Line, Page
from ocr.results.settings import ReadingSettings
from segmentation.paddlex_routes import ROUTES as MASK_ROUTES
from segmentation.results import Segmentation
from tests.unit.framework.serving.protocol_server import classifier, file_of, grey, serve
from zoo.classification.paddlex_routes import ROUTES as CLASS_ROUTES

ROUTE = "/image-classification"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with serve(classifier("mean").save(tmp_path_factory.mktemp("paddlex") / "mean")) as opened:
        yield opened


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def test_domains_announce_their_routes() -> None:
    assert {"/ocr", "/layout-parsing", "/object-detection", ROUTE, "/semantic-segmentation"} <= set(paths())


def test_an_answer_has_the_form_of_paddlex(client: TestClient) -> None:
    body = {"image": text_of(file_of(51)), "topk": 1, "logId": "mine"}
    content = client.post(ROUTE, json=body).json()
    assert (content["logId"], content["errorCode"], content["errorMsg"]) == ("mine", 0, "Success")
    ((category),) = content["result"]["categories"]
    assert category == {"id": 1, "name": "dark", "score": pytest.approx(0.8, abs=1e-5)}
    drawing = vision_image.read(base64.b64decode(content["result"]["image"]))
    assert drawing.shape == (12, 16, 3)
    assert set(content["result"]) == {"categories", "image"}


def test_a_file_under_the_name_of_the_other_routes(client: TestClient) -> None:
    content = client.post(ROUTE, json={"file": text_of(file_of(51)), "visualize": False}).json()
    assert content["result"]["categories"][0]["name"] == "dark" and "warnings" not in content["result"]


def test_drawings_can_be_left_out_and_fields_without_a_meaning_are_named(client: TestClient) -> None:
    body = {"image": text_of(file_of(51)), "visualize": False, "useHpip": True, "other": None, "off": False}
    result = client.post(ROUTE, json=body).json()["result"]
    assert "image" not in result
    assert result["warnings"] == ["useHpip has no meaning here and was not used"]


@pytest.mark.parametrize(
    ("value", "draws"), [("no", False), (0, False), ("FALSE", False), ("yes", True), (1, True)]
)
def test_truth_values_are_those_of_pydantic(client: TestClient, value: object, draws: bool) -> None:
    result = client.post(ROUTE, json={"image": text_of(file_of(51)), "visualize": value}).json()["result"]
    assert ("image" in result) == draws


@dataclass(frozen=True)
class Options:
    flatten: bool = False
    language: bool | str = False
    count: int = 1


def test_switches_of_requests() -> None:
    for value in ("no", 0, "Off", False):
        assert request_options(Options, {"flatten": value}, "model") == {"flatten": False}
    assert request_options(Options, {"flatten": "yes", "language": "no"}, "model") == {
        "flatten": True,
        "language": "no",  # a text that it may be
    }
    # Of a language that writes whole numbers as others.
    assert request_options(Options, {"count": 2.0}, "model") == {"count": 2}
    for wrong in ({"count": 2.5}, {"flatten": 2}, {"flatten": "maybe"}, {"count": True}, {"count": "yes"}):
        with pytest.raises(ConfigError, match="wrong type"):
            request_options(Options, wrong, "model")


def test_health(client: TestClient) -> None:
    content = client.get("/health").json()
    assert content["errorCode"] == 0 and content["errorMsg"] == "Healthy" and content["logId"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 422, "no file"),
        ({"photo": "aaaa"}, 422, "no file"),
        ({"image": 3}, 422, "no file"),
        ({"image": "!"}, 422, "no base64"),
        ({"image": text_of(b"no image")}, 422, "not of a known format"),
        ({"image": "http://127.0.0.1/a.png"}, 403, "fetches no addresses"),
        ({"image": text_of(file_of(1)), "topk": 0}, 422, "holds a class"),
        ({"image": text_of(file_of(1)), "topk": "many"}, 422, "topk"),
        ({"image": text_of(file_of(1)), "visualize": "maybe"}, 422, "truth value"),
        ({"image": text_of(file_of(1)), "fileType": 2}, 422, "type of a file"),
    ],
)
def test_errors_have_the_form_of_paddlex(
    client: TestClient, body: dict[str, Any], status: int, message: str
) -> None:
    answer = client.post(ROUTE, json={**body, "logId": "mine"})
    content = answer.json()
    assert answer.status_code == content["errorCode"] == status
    assert content["logId"] == "mine" and message in content["errorMsg"] and "result" not in content


def test_a_body_that_is_not_json_and_a_route_without_a_model(client: TestClient) -> None:
    answer = client.post(ROUTE, content=b"{")
    assert answer.status_code == answer.json()["errorCode"] == 422 and "not JSON" in answer.json()["errorMsg"]
    answer = client.post("/ocr", json={"file": "aaaa"})
    assert answer.status_code == 404 and "no model of this server answers" in answer.json()["errorMsg"]
    answer = client.post("/ocr?model=mean", json={"file": "aaaa"})
    assert answer.status_code == 404
    answer = client.get(ROUTE)
    assert answer.status_code == answer.json()["errorCode"] == 405


def test_a_key_is_asked_for_in_the_form_of_paddlex(tmp_path: Path) -> None:
    with serve(classifier("mean").save(tmp_path / "mean"), api_keys=("secret",)) as client:
        assert client.get("/health").status_code == 200
        answer = client.post(ROUTE, json={"image": text_of(file_of(1))})
        assert answer.status_code == answer.json()["errorCode"] == 401
        headers = {"X-API-Key": "secret"}
        assert client.post(ROUTE, json={"image": text_of(file_of(1))}, headers=headers).status_code == 200


def route(routes: Any, path: str) -> Any:
    return next(one for one in routes.routes if one.path == path)


def test_objects_and_people() -> None:
    points = ((1.0, 2.0, 0.5), (3.0, 4.0, 0.7))
    box = Box("cell", 2, 0.75, (1.5, 2.0, 8.0, 9.0), keypoints=points)
    results = [DetectionResult(width=16, height=12, boxes=(box,))]
    objects = route(OBJECT_ROUTES, "/object-detection").write(results, {}, None)
    assert objects == {
        "detectedObjects": [
            {"bbox": [1.5, 2.0, 8.0, 9.0], "categoryId": 2, "categoryName": "cell", "score": 0.75}
        ]
    }
    (person,) = route(OBJECT_ROUTES, "/human-keypoint-detection").write(results, {}, None)["persons"]
    assert person["kpts"] == [[1.0, 2.0, 0.5], [3.0, 4.0, 0.7]]
    assert person["detScore"] == 0.75 and person["kptScore"] == pytest.approx(0.6)


def test_thresholds_of_classes() -> None:
    boxes = tuple(Box("a", number, score, (0, 0, 1, 1)) for number, score in ((0, 0.3), (1, 0.3), (2, 0.6)))
    results = [DetectionResult(width=16, height=12, boxes=boxes)]
    one = route(OBJECT_ROUTES, "/object-detection")
    fields = {"threshold": {"0": 0.2, "1": 0.4}}
    assert one.convert["threshold"](fields["threshold"]) == 0.2
    assert one.convert["threshold"](0.7) == 0.7
    written = one.write(results, fields, None)["detectedObjects"]
    assert [entry["categoryId"] for entry in written] == [0, 2]
    with pytest.raises(ConfigError, match="no threshold of a class"):
        one.convert["threshold"]({"first": 0.2})


def test_fields_are_converted_before_they_are_options(client: TestClient) -> None:
    (model,) = client.app.state.store.models.values()  # type: ignore[attr-defined]
    one = replace(route(CLASS_ROUTES, ROUTE), convert={"topk": len})
    assert _split_fields(one, model, {"topk": {"a": 1, "b": 2}}) == ({"topk": 2}, [])


def test_figures_are_files_that_the_markdown_names() -> None:
    """PaddleX's own example of a client writes them beside the text."""
    inner = Block("image", (1, 2, 5, 6), content=Figure(grey(9)))
    block = Block("image", (0, 1, 8, 9), content=Figure(grey(200)), children=(inner,))
    page = Page(
        (), width=16, height=12, image=grey(255), blocks=(block, Block("text", (0, 9, 9, 12), "Total"))
    )
    layout = route(TEXT_ROUTES, "/layout-parsing")
    (entry,) = layout.write([page], {}, None)["layoutParsingResults"]
    markdown = entry["markdown"]
    assert list(markdown["images"]) == [
        "imgs/img_in_image_box_0_1_8_9.jpg",
        "imgs/img_in_image_box_1_2_5_6.jpg",
    ]
    assert "imgs/img_in_image_box_0_1_8_9.jpg" in markdown["text"]
    figure = vision_image.read(base64.b64decode(markdown["images"]["imgs/img_in_image_box_0_1_8_9.jpg"]))
    assert figure.shape == grey(200).shape
    (entry,) = layout.write([page], {"returnMarkdownImages": False}, None)["layoutParsingResults"]
    assert "images" not in entry["markdown"]


class Turned:
    """Says that pages are turned by 90 degrees."""

    def find_angle(self, image: np.ndarray) -> int:
        return 90


def prepare(preparation: PagePreparation, **options: object) -> Any:
    pipeline = object.__new__(OCRPipeline)
    pipeline.preparation = preparation
    page = grey(255)
    page[:3] = 0  # at the left once the page is turned back
    data = vision_image.encode(page, ".png")
    one = route(TEXT_ROUTES, "/document-preprocessing")
    results = one.read(OCRPredictor(pipeline, "pages"), data, options)
    return one.write(results, {}, None)["docPreprocessingResults"][0], one.write(results, {}, text_of_size)


def text_of_size(image: np.ndarray) -> str:
    return "x".join(map(str, image.shape[:2]))


def test_pages_are_made_upright() -> None:
    turning = PagePreparation(Turned(), None)  # type: ignore[arg-type]
    entry, drawn = prepare(turning)
    upright = vision_image.read(base64.b64decode(entry["outputImage"]))
    assert upright.shape == (16, 12, 3) and upright[:, :3].max() == 0 and upright[:, 3:].min() == 255
    settings = {"use_doc_orientation_classify": True, "use_doc_unwarping": False}
    assert entry["prunedResult"] == {"model_settings": settings, "angle": 90}
    assert set(entry) == {"outputImage", "prunedResult"}
    (entry,) = drawn["docPreprocessingResults"]
    assert (entry["inputImage"], entry["docPreprocessingImage"]) == ("12x16", "16x28")
    entry, _ = prepare(turning, document_orientation=False)
    assert vision_image.read(base64.b64decode(entry["outputImage"])).shape == (12, 16, 3)
    assert entry["prunedResult"]["angle"] == -1
    with pytest.raises(ConfigError, match="no such stage"):
        prepare(turning, unwarp=True)


def test_what_a_request_switches_off_is_off(client: TestClient) -> None:
    store = client.app.state.store  # type: ignore[attr-defined]
    (model,) = store.models.values()
    one = route(TEXT_ROUTES, "/document-preprocessing")
    fields = {"useDocOrientationClassify": False, "useDocUnwarping": True, "off": False, "on": True}
    options, unused = _split_fields(one, model, fields)
    assert options == {"use_doc_orientation_classify": False, "use_doc_unwarping": True}
    assert unused == ["on"]


def test_masks_are_rows_of_classes() -> None:
    labels = np.array([[0, 1, 1], [1, 0, 0]], np.uint8)
    palette = np.array([[0, 0, 0], [255, 0, 0]], np.uint8)
    result = Segmentation(width=3, height=2, labels=labels, names=("a", "b"), palette=palette)
    written = route(MASK_ROUTES, "/semantic-segmentation").write([result], {}, None)
    assert written == {"labelMap": [0, 1, 1, 1, 0, 0], "size": [2, 3]}


def test_pages_of_text() -> None:
    quad = ((1.0, 1.0), (9.0, 1.0), (9.0, 5.0), (1.0, 5.0))
    page = Page((Line("Total", 0.9, quad),), width=16, height=12, image=grey(255), source="secret/a.png")
    ocr = route(TEXT_ROUTES, "/ocr")
    (entry,) = ocr.write([page], {}, lambda image: f"{image.shape[0]} rows")["ocrResults"]
    assert entry["inputImage"] == "12 rows" and "ocrImage" in entry
    pruned = entry["prunedResult"]
    assert pruned["rec_texts"] == ["Total"] and pruned["rec_boxes"] == [[1, 1, 9, 5]]
    assert not {"input_path", "page_index", "text_word"} & set(pruned)
    (entry,) = ocr.write([page], {"returnWordBox": True}, None)["ocrResults"]
    assert "text_word" in entry["prunedResult"] and set(entry) == {"prunedResult"}
    (entry,) = route(TEXT_ROUTES, "/table-recognition").write([page], {}, None)["tableRecResults"]
    assert entry["prunedResult"]["table_res_list"] == []
    used = ReadingSettings(960, "max", None, 0.3, 0.6, 1.5, 0.5, True, False)
    (entry,) = ocr.write([replace(page, settings=used)], {}, None)["ocrResults"]
    assert entry["prunedResult"]["model_settings"] == {
        "use_doc_preprocessor": False,
        "use_textline_orientation": True,
    }
    assert entry["prunedResult"]["text_det_params"]["limit_side_len"] == 960
    assert entry["prunedResult"]["text_rec_score_thresh"] == 0.5


def test_pages_as_word_files() -> None:
    pytest.importorskip("docx")
    page = Page((), page=3, width=16, height=12, image=grey(255))
    layout = route(TEXT_ROUTES, "/layout-parsing")
    (entry,) = layout.write([page], {"outputFormats": ["docx"]}, None)["layoutParsingResults"]
    assert entry["exports"]["docx"]["fileName"] == "page_3.docx"
    assert base64.b64decode(entry["exports"]["docx"]["content"]).startswith(b"PK")
    for none in (None, []):
        (entry,) = layout.write([page], {"outputFormats": none}, None)["layoutParsingResults"]
        assert "exports" not in entry
    with pytest.raises(InputError, match="no such format"):
        layout.write([page], {"outputFormats": ["pdf"]}, None)


def test_a_path_that_is_none_is_told_to_both_kinds_of_clients(client: TestClient) -> None:
    answer = client.post("/nothing", json={})
    content = answer.json()
    assert answer.status_code == content["errorCode"] == content["error"]["status"] == 404
    assert content["errorMsg"] == "not found" and content["logId"] == content["error"]["request_id"]
    assert "errorCode" not in client.get("/v1/models/none").json()
