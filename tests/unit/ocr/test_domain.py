from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import ocr.export
import pytest

import ocr
from framework.core.errors import ConfigError, FormatError, InputError
from framework.export import Artifact
from framework.vision import image as vision_image
from ocr import api
from ocr.domain import TextReader
from ocr.results import Page

HALF = {"mean": [0.5] * 3, "std": [0.5] * 3}


def small_artifact(*, orientation: bool = True) -> Artifact:
    """A pipeline without programs: enough for everything but running."""
    stages = {
        "detector": Artifact({"options": {"normalize": HALF}}),
        "recognizer": Artifact(
            {"name": "fake", "characters": list("abcdefghijklmnopqrstuvwxyz"), "space": True,
             "right_to_left": False, "options": {"normalize": HALF}}
        ),
    }  # fmt: skip
    if orientation:
        stages["orientation"] = Artifact({"options": {"normalize": HALF}})
    return Artifact({"domain": "ocr", "options": {"drop_score": 0.5}}, stages=stages)


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """What was exported since, as the overrides that it was exported with; an OAR_HOME of its own."""
    made: list[tuple[str, ...]] = []

    def export_pipeline(pipeline: tuple[str, ...], name: str, text: str) -> Artifact:
        made.append(pipeline)
        return small_artifact()

    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(ocr.export, "load_pipeline", lambda path, overrides: (overrides, "text"))
    monkeypatch.setattr(ocr.export, "export_pipeline", export_pipeline)
    monkeypatch.setattr(ocr.pipeline, "engine_of", lambda stage, device, precision: None)
    return made


# -- which model -------------------------------------------------------------------------------------------------------


def test_config_files():
    assert api.config_file("pp_ocrv6_small") == api.CONFIGS / "pp_ocrv6_small.yml"
    assert api.config_file("mine/own.yml") == Path("mine/own.yml")
    with pytest.raises(
        InputError, match=r"no such OCR model\n  received: 'pp_ocrv6_smal'\n  allowed: .*pp_ocrv6_tiny.*"
    ):
        api.config_file("pp_ocrv6_smal")
    with pytest.raises(InputError, match=r"did you mean 'pp_ocrv6_medium'\?"):
        api.config_file("pp_ocrv6_mediun")
    with pytest.raises(InputError) as caught:
        api.config_file("xyzzy")
    assert caught.value.fix is None


def test_a_folder_is_an_artifact(exports, tmp_path: Path):
    folder = small_artifact().save(tmp_path / "mine")
    read = ocr.predictor(folder, drop_score=0.25)
    assert read.name == "mine" and read.reader.options.drop_score == 0.25 and exports == []
    with pytest.raises(FormatError, match="not an artifact folder"):
        ocr.predictor(tmp_path)


def test_options_of_the_tool(exports, tmp_path: Path):
    folder = str(small_artifact().save(tmp_path / "mine"))
    read = api.open_predictor(None, folder, None, "auto", (), threshold=0.25, batch_size=3)
    assert (read.options.drop_score, read.recognizer.options.batch) == (0.25, 3)
    assert api.open_predictor(None, folder, None, "auto", ()).options.drop_score == 0.5 and exports == []


def test_the_programs_of_an_artifact_cannot_be_changed(exports, tmp_path: Path):
    folder = small_artifact().save(tmp_path / "mine")
    for setting in ("pipeline.recognizer.options.height=32", "pipeline.detector.weights=x.onnx"):
        with pytest.raises(
            ConfigError, match=rf"mine: an artifact's programs(.*)\n  received: {setting}\n  allowed"
        ):
            ocr.predictor(folder, overrides=[setting])


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("pipeline.options.drop_score=0.3", True),
        ("pipeline.detector.options.size.limit_side=640", True),
        ("pipeline.recognizer.options.widths=[160, 320]", True),
        (" pipeline.options.orient = false", True),
        ("pipeline.recognizer.options.height=32", False),
        ("pipeline.orientation.options.size_hw=[80, 160]", False),
        ("pipeline.detector.options.normalize.mean=[0, 0, 0]", False),
        ("pipeline.detector.weights=options.onnx", False),
        ("pipeline.recognizer.model.variant=x", False),
    ],
)
def test_at_run_time(setting: str, expected: bool):
    assert api._at_run_time(setting) is expected


def test_sides():
    assert api._sides(960) == "192, 384, 576, 768, 960"
    assert api._sides(640) == "128, 256, 384, 512, 640"
    assert api._sides(100) == "32, 64, 96" and api._sides(32) == "32" and api._sides(1) == "32"


def test_arguments_become_options(exports):
    reader = ocr.predictor(
        max_side=640, thresh=0.2, box_thresh=0.4, unclip_ratio=1.2, batch_size=3, drop_score=0.1, orient=False
    ).reader
    detect = reader.detector.options
    assert (detect.size.limit_side, detect.size.limit_type) == (640, "max")
    assert detect.sides == (128, 256, 384, 512, 640)
    assert (detect.postprocess.thresh, detect.postprocess.box_thresh, detect.postprocess.unclip_ratio) == (
        0.2,
        0.4,
        1.2,
    )
    assert (
        reader.recognizer.options.batch == 3
        and reader.options.drop_score == 0.1
        and reader.orientation is None
    )


def test_run_time_settings_do_not_export_again(exports):
    assert ocr.predictor().reader.options.drop_score == 0.5
    assert ocr.predictor(drop_score=0.9, max_side=320).reader.options.drop_score == 0.9
    assert (
        ocr.predictor(overrides=["pipeline.detector.options.max_aspect=6"]).reader.detector.options.max_aspect
        == 6
    )
    assert ocr.predictor().reader.options.drop_score == 0.5  # the kept artifact was not touched
    assert exports == [()]
    ocr.predictor(overrides=["pipeline.recognizer.options.height=32", "pipeline.options.drop_score=0.1"])
    assert exports == [(), ("pipeline.recognizer.options.height=32",)]


@pytest.mark.parametrize(
    "setting",
    [
        "pipeline.detektor.options.max_aspect=6",
        "options.drop_score=0.1",
        "pipline.options.drop_score=0.1",
        "pipeline.orientation.options.thresh=0.5",
    ],
)
def test_settings_of_nothing_are_errors(setting: str):
    with pytest.raises(
        ConfigError, match=rf"-o {setting}: the pipeline has no such option\n(.*\n)+.*pipeline\.detector"
    ):
        api._changed(small_artifact(orientation=False), [setting])


def test_an_unknown_option_is_an_error(exports):
    with pytest.raises(ConfigError, match="drop_scor"):
        ocr.predictor(overrides=["pipeline.options.drop_scor=0.1"])


# -- artifacts of this machine -----------------------------------------------------------------------------------------


def test_a_kept_artifact_that_is_damaged_is_made_again(
    exports, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    config = api.config_file("pp_ocrv6_small")
    api.artifact_of(config)
    (folder,) = (tmp_path / "home" / "artifacts").iterdir()
    assert folder.name.startswith("pp_ocrv6_small-")
    (folder / "infer_cfg.yml").write_text("format: [", encoding="utf-8")
    assert set(api.artifact_of(config).stages) == {"detector", "recognizer", "orientation"}
    assert len(exports) == 2 and "cannot be read and is made again" in caplog.text
    api.artifact_of(config)
    assert len(exports) == 2


def test_an_artifact_that_cannot_be_kept_is_used_all_the_same(
    exports, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "home").write_text("a file", encoding="utf-8")
    assert api.artifact_of(api.config_file("pp_ocrv6_small")).stages
    assert "the artifact is not kept" in caplog.text


def test_the_users_files_of_a_config(tmp_path: Path):
    weights = tmp_path / "own.pdmodel"
    weights.write_bytes(b"1")
    plain = {
        "pipeline": {
            "type": "x",
            "detector": {"weights": str(weights)},
            "recognizer": {"weights": "of_the_hub"},
        }
    }
    assert api._local_files(plain) == [weights]
    assert api._local_files({}) == api._local_files({"pipeline": None}) == []
    (tmp_path / "own.pdiparams").write_bytes(b"3")  # of the same pair
    assert api._local_files(plain) == [tmp_path / "own.pdiparams", weights]


# -- languages ---------------------------------------------------------------------------------------------------------


def test_a_language_that_the_dictionary_lacks(exports):
    assert ocr.predictor(lang="en")
    with pytest.raises(
        InputError, match=r"cannot write the language 'de'\n  received: a dictionary without ä ö ü ß"
    ):
        ocr.predictor(lang="de")
    with pytest.raises(InputError, match="the language is not known"):
        ocr.predictor(lang="klingon")


# -- sources -----------------------------------------------------------------------------------------------------------


class Echo:
    """A reader whose pages carry what they were given."""

    def pages(self, images):  # type: ignore[no-untyped-def]
        for image, source, number in images:
            yield Page((), (image.shape[1], image.shape[0]), source, number, image=image)


READ = TextReader(Echo(), "echo")  # type: ignore[arg-type]
ONE_PAGE = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R 3 0 R]/Count 2>>endobj "
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 36]>>endobj trailer<</Root 1 0 R>>"
)


def test_is_pdf(tmp_path: Path):
    path = tmp_path / "image.png"  # content counts, not the name
    path.write_bytes(b"\n %PDF-1.7\n")
    assert (
        api.is_pdf(path)
        and api.is_pdf(str(path))
        and api.is_pdf(b"%PDF-1.4")
        and api.is_pdf(bytearray(b"%PDF-1.4"))
    )
    path.write_bytes(b"\x89PNG %PDF-1.7")
    assert not api.is_pdf(path) and not api.is_pdf(tmp_path) and not api.is_pdf(b"")
    assert not api.is_pdf(np.zeros((2, 2, 3), np.uint8)) and not api.is_pdf(tmp_path / "nothing")


def test_every_kind_of_source(tmp_path: Path):
    path = tmp_path / "a.png"
    vision_image.write(path, np.full((3, 5, 3), 9, np.uint8))
    for source, label in (
        (path, str(path)),
        (str(path), str(path)),
        (path.read_bytes(), ""),
        (np.full((3, 5, 3), 9, np.uint8), ""),
    ):
        document = READ(source)
        assert [(p.size, p.input, p.page) for p in document.pages] == [((5, 3), label, 1)]
        assert document.input == label and (document.pages[0].image == 9).all()


def test_open_files_are_not_read_line_by_line(tmp_path: Path):
    path = tmp_path / "a.png"
    vision_image.write(path, np.full((3, 5, 3), 10, np.uint8))  # 10 is a line feed
    with path.open("rb") as file:
        assert [p.input for p in READ(file).pages] == [str(path)]
    (found,) = READ(io.BytesIO(path.read_bytes())).pages
    assert (found.size, found.input) == ((5, 3), "")
    with path.open(encoding="latin-1") as file, pytest.raises(InputError, match="the file object gives text"):
        READ(file)
    pytest.importorskip("pypdfium2", reason="PDFs are read by pypdfium2")
    assert [p.page for p in READ(io.BytesIO(ONE_PAGE)).pages] == [1, 2]


def test_lists_and_generators():
    small, large = np.zeros((1, 1, 3), np.uint8), np.zeros((2, 4, 3), np.uint8)
    assert [p.size for p in READ([small, large]).pages] == [(1, 1), (4, 2)]
    assert [p.size for p in READ((small, [large, small])).pages] == [(1, 1), (4, 2), (1, 1)]
    assert [p.size for p in READ(image for image in (large, small)).pages] == [(4, 2), (1, 1)]
    assert READ([]).pages == ()


def test_pages_of_a_pdf(tmp_path: Path):
    pytest.importorskip("pypdfium2", reason="PDFs are read by pypdfium2")
    path = tmp_path / "a.pdf"
    path.write_bytes(ONE_PAGE)
    document = TextReader(Echo(), "echo", pdf_dpi=144)(path)  # type: ignore[arg-type]
    assert [(p.size, p.input, p.page) for p in document.pages] == [
        ((144, 72), str(path), 1),
        ((144, 72), str(path), 2),
    ]
    assert len(READ(ONE_PAGE).pages) == 2


def test_a_source_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match=r"no\.png: there is no such image file"):
        READ(tmp_path / "no.png")
    with pytest.raises(InputError, match="this is no image"):
        READ(3)


def test_the_package_gives_the_short_names():
    assert ocr.predictor is api.predictor and ocr.Page is Page
    with pytest.raises(AttributeError, match="no attribute 'reader'"):
        _ = ocr.reader
