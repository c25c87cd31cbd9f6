from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import framework.workflow.export.export
import ocr
from framework.core.errors import ConfigError, FormatError, HubError, InputError
from framework.export import Artifact
from framework.inference import Runtime
from framework.vision import image as vision_image
from framework.workflow import open_predictor
from framework.workflow.domain.capabilities import OptionModel
from framework.workflow.domain.config_file import ConfigFile
from framework.workflow.domain.domain import DefaultName, find_capabilities, find_config
from framework.workflow.open.artifacts import find_artifact
from ocr.domain import DOMAIN, _bucket_sides, predictor
from ocr.pipeline.predictor import OCRPredictor, is_pdf
from ocr.pipeline.settings import _at_run_time, apply_settings, fallback_model
from ocr.results.pages import Page
from ocr.text.languages import required_letters

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
    return Artifact({"domain": "ocr", "name": "mine", "options": {"drop_score": 0.5}}, stages=stages)


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """What was exported since, as the overrides that it was exported with; an OAR_HOME of its own."""
    made: list[tuple[str, ...]] = []

    def export_config(config: ConfigFile, onnx: None) -> Artifact:
        made.append(config.settings)
        return small_artifact()

    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(framework.workflow.export.export, "export_config", export_config)
    monkeypatch.setattr(Runtime, "open", lambda self, stage: None)
    return made


# -- which model -------------------------------------------------------------------------------------------------------


def test_config_files():
    assert find_config("pp_ocrv6_small", "ocr") == DOMAIN.configs / "pp_ocrv6_small.yml"
    assert find_config("mine/own.yml", "ocr") == Path("mine/own.yml")
    with pytest.raises(
        InputError, match=r"unknown model\n  received: 'pp_ocrv6_smal'\n  allowed: .*pp_ocrv6_tiny.*"
    ):
        find_config("pp_ocrv6_smal", "ocr")
    with pytest.raises(InputError, match=r"did you mean 'pp_ocrv6_medium'\?"):
        find_config("pp_ocrv6_mediun", "ocr")
    with pytest.raises(InputError) as caught:
        find_config("xyzzy", "ocr")
    assert caught.value.fix is None


def test_a_folder_is_an_artifact(exports, tmp_path: Path):
    folder = small_artifact().save(tmp_path / "mine")
    read = ocr.predictor(folder, drop_score=0.25)
    assert read.name == "mine" and read.pipeline.options.drop_score == 0.25 and exports == []
    with pytest.raises(FormatError, match="neither an artifact nor a model"):
        ocr.predictor(tmp_path)


def test_options_of_the_tool(exports, tmp_path: Path):
    folder = str(small_artifact().save(tmp_path / "mine"))
    read = open_predictor(folder, options={"threshold": 0.25, "batch_size": 3, "lang": None}).pipeline
    assert (read.options.drop_score, read.recognizer.options.batch) == (0.25, 3)
    assert open_predictor(folder).pipeline.options.drop_score == 0.5 and exports == []
    with pytest.raises(ConfigError, match="unknown option\n  received: fps"):
        open_predictor(folder, options={"fps": 25})


@pytest.mark.parametrize(
    ("name", "value"),
    [("thresh", -0.1), ("box_thresh", 1.5), ("drop_score", 2), ("max_side", 0), ("batch_size", 0)],
)
def test_options_out_of_range(exports, name: str, value: float):
    with pytest.raises(InputError, match=rf"{name}: .*\n  received: {value}\n  allowed"):
        ocr.predictor(**{name: value})


def test_the_programs_of_an_artifact_cannot_be_changed(exports, tmp_path: Path):
    folder = small_artifact().save(tmp_path / "mine")
    for setting in ("pipeline.recognizer.options.height=32", "pipeline.detector.weights=x.onnx"):
        with pytest.raises(
            ConfigError,
            match=rf"mine: an artifact's programs(.*)\n  received: {setting}\n  what to do: .*export again",
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
    assert _at_run_time(setting) is expected


def test_sides():
    assert _bucket_sides(960) == (192, 384, 576, 768, 960)
    assert _bucket_sides(640) == (128, 256, 384, 512, 640)
    assert _bucket_sides(100) == (32, 64, 96) and _bucket_sides(32) == _bucket_sides(1) == (32,)


def test_arguments_become_options(exports):
    pipeline = ocr.predictor(
        max_side=640, thresh=0.2, box_thresh=0.4, unclip_ratio=1.2, batch_size=3, drop_score=0.1, orient=False
    ).pipeline
    detect = pipeline.detector.options
    assert (detect.size.limit_side, detect.size.limit_type) == (640, "max")
    assert detect.sides == (128, 256, 384, 512, 640)
    assert (detect.postprocess.thresh, detect.postprocess.box_thresh, detect.postprocess.unclip_ratio) == (
        0.2,
        0.4,
        1.2,
    )
    assert (
        pipeline.recognizer.options.batch == 3
        and pipeline.options.drop_score == 0.1
        and pipeline.orientation is None
    )


def test_run_time_settings_do_not_export_again(exports):
    assert ocr.predictor().pipeline.options.drop_score == 0.5
    assert ocr.predictor(drop_score=0.9, max_side=320).pipeline.options.drop_score == 0.9
    assert (
        ocr.predictor(
            overrides=["pipeline.detector.options.max_aspect=6"]
        ).pipeline.detector.options.max_aspect
        == 6
    )
    assert ocr.predictor().pipeline.options.drop_score == 0.5  # the kept artifact was not touched
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
        apply_settings(small_artifact(orientation=False), [setting])


def test_an_unknown_option_is_an_error(exports):
    with pytest.raises(ConfigError, match="drop_scor"):
        ocr.predictor(overrides=["pipeline.options.drop_scor=0.1"])


# -- artifacts of this machine -----------------------------------------------------------------------------------------


def test_a_kept_artifact_that_is_damaged_is_made_again(
    exports, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    find_artifact("pp_ocrv6_small")
    (folder,) = (tmp_path / "home" / "artifacts").iterdir()
    assert folder.name.startswith("pp_ocrv6_small-")
    (folder / "infer_cfg.yml").write_text("format: [", encoding="utf-8")
    assert set(find_artifact("pp_ocrv6_small").artifact.stages) == {"detector", "recognizer", "orientation"}
    assert len(exports) == 2 and "cannot be read and is made again" in caplog.text
    find_artifact("pp_ocrv6_small")
    assert len(exports) == 2


def test_an_artifact_that_cannot_be_kept_is_used_all_the_same(
    exports, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "home").write_text("a file", encoding="utf-8")
    assert find_artifact("pp_ocrv6_small").artifact.stages
    assert "the artifact is not kept" in caplog.text


def test_the_users_files_of_a_config(exports, tmp_path: Path):
    """An artifact is made again when the weights that its config names have changed, or a file of the same stem."""
    weights = tmp_path / "own.pdmodel"
    weights.write_bytes(b"1")
    settings = [f"pipeline.detector.weights={weights}"]

    def makes_again() -> bool:
        before = len(exports)
        find_artifact("pp_ocrv6_small", settings)
        return len(exports) > before

    assert makes_again() and not makes_again()
    weights.write_bytes(b"2")
    assert makes_again() and not makes_again()
    (tmp_path / "own.pdiparams").write_bytes(b"3")  # of the same pair
    assert makes_again() and not makes_again()
    (tmp_path / "other.pdiparams").write_bytes(b"4")
    assert not makes_again()
    characters = tmp_path / "symbols.txt"
    characters.write_text("a", encoding="utf-8")
    settings.append(f"pipeline.recognizer.characters={characters}")
    assert makes_again() and not makes_again()
    characters.write_text("b", encoding="utf-8")
    assert makes_again()


def test_the_output_of_an_earlier_run_is_no_training_run(
    exports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "output" / "pp_ocrv6_small").mkdir(parents=True)
    (tmp_path / "output" / "pp_ocrv6_small" / "receipt.json").write_text("{}", encoding="utf-8")
    assert find_artifact("pp_ocrv6_small").artifact.stages


# -- languages ---------------------------------------------------------------------------------------------------------


def test_a_language_that_the_dictionary_lacks(exports):
    assert ocr.predictor(lang="en")
    with pytest.raises(
        InputError, match=r"cannot write the language 'de'\n  received: a dictionary without ä ö ü ß"
    ):
        ocr.predictor(lang="de")
    with pytest.raises(InputError, match="the language is not known"):
        ocr.predictor(lang="klingon")


@pytest.fixture
def routed(exports, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """As `exports`; the dictionary of what is exported has the letters of the languages that the tests ask for."""

    def export_config(config: ConfigFile, onnx: None) -> Artifact:
        settings = config.settings
        exports.append(settings)
        artifact = small_artifact()
        names = " ".join(settings).partition("[")[2].rstrip("]").split(", ") if settings else [""]
        for number, name in enumerate(names, start=1):
            code = {"eslav": "ru", "arabi": "ar"}.get(name[:5], "de")
            stage = Artifact({**artifact.stages["recognizer"].config, "characters": list(required_letters(code)),
                              "name": name, "right_to_left": code == "ar"})  # fmt: skip
            artifact.stages["recognizer" if number == 1 else f"recognizer{number}"] = stage
        return artifact

    monkeypatch.setattr(framework.workflow.export.export, "export_config", export_config)
    return exports


ESLAV = ("pipeline.recognizers=[eslav_pp_ocrv5_mobile_rec]",)


@pytest.mark.parametrize("model", [(), ("pp_ocrv6_small",), (str(DOMAIN.configs / "pp_ocrv6_small.yml"),)])
def test_a_language_picks_the_recogniser_and_the_log_says_which(
    routed, caplog: pytest.LogCaptureFixture, model: tuple[str, ...]
):
    with caplog.at_level("INFO", logger="oar"):
        found = ocr.predictor(*model, lang="ru")
    assert routed == [ESLAV]
    assert found.pipeline.recognizers[0].characters.can_write("ru")
    (line,) = [r.getMessage() for r in caplog.records if "reads ru" in r.getMessage()]
    assert line.startswith("eslav_pp_ocrv5_mobile_rec reads ru: the newest of the index")


def test_languages_of_one_recogniser_share_its_artifact(routed):
    for lang in ("ru", "russian", "rus", ["ru"]):
        ocr.predictor(lang=lang)
    assert routed == [ESLAV]
    assert ocr.predictor(lang="de").pipeline.recognizers[0].characters.can_write("de")
    assert ocr.predictor().pipeline and routed == [ESLAV, ()]  # the default reads German: no other artifact


def test_right_to_left_languages(routed):
    characters = ocr.predictor(lang="ar").pipeline.recognizers[0].characters
    assert characters.right_to_left and routed == [("pipeline.recognizers=[arabic_pp_ocrv5_mobile_rec]",)]


def test_several_languages(routed):
    pipeline = ocr.predictor(lang="de,ru", batch_size=3).pipeline
    assert routed == [("pipeline.recognizers=[pp_ocrv6_small_rec, eslav_pp_ocrv5_mobile_rec]",)]
    german, russian = pipeline.recognizers
    assert german.characters.can_write("de") and russian.characters.can_write("ru")
    assert german.options.batch == russian.options.batch == 3
    pipeline = ocr.predictor(lang="de,ru", overrides=["pipeline.recognizer.options.widths=[160]"]).pipeline
    assert [recognizer.options.widths for recognizer in pipeline.recognizers] == [(160,), (160,)]


def test_a_model_that_is_named_or_changed_is_only_checked(routed, tmp_path: Path):
    folder = small_artifact().save(tmp_path / "mine")
    assert ocr.predictor(folder, lang="en")
    with pytest.raises(
        InputError, match=r"cannot write the language 'ru'[\s\S]*use eslav_pp_ocrv5_mobile_rec or cyr"
    ):
        ocr.predictor(folder, lang="ru")
    with pytest.raises(InputError, match="cannot write the language 'ru'"):
        ocr.predictor("pp_ocrv6_tiny", lang="ru")
    with pytest.raises(InputError, match="cannot write the language 'ru'"):
        ocr.predictor(lang="ru", overrides=["pipeline.recognizer.weights=mine.onnx"])
    with pytest.raises(InputError, match="cannot write the language 'ru'"):
        ocr.predictor(lang="ru", overrides=["pipeline.lang=de"])
    assert not any("eslav" in " ".join(settings) for settings in routed)


def test_languages_that_cannot_be_had(routed, tmp_path: Path):
    with pytest.raises(InputError, match="no recogniser of the index can write the language 'he'"):
        ocr.predictor(lang="hebrew")
    with pytest.raises(InputError, match="did you mean 'german'"):
        ocr.predictor(lang="germam")
    with pytest.raises(InputError, match="did you mean 'german'"):  # of a folder too
        ocr.predictor(small_artifact().save(tmp_path / "mine"), lang="germam")
    assert routed == []


def test_an_option_alone_stands_for_the_default_model():
    assert [(one.option, one.model) for one in find_capabilities(OptionModel)] == [("lang", "pp_ocrv6_small")]


def test_the_log_says_what_a_config_with_a_language_chose(exports, caplog: pytest.LogCaptureFixture):
    artifact = small_artifact()
    artifact.config["lang"] = "de"
    with caplog.at_level("INFO", logger="oar"):
        DOMAIN.open(artifact, DOMAIN.options(), Runtime("cpu"))
    assert "fake recognises text, for pipeline.lang: de" in caplog.text


# -- sources -----------------------------------------------------------------------------------------------------------


class Echo:
    """A pipeline whose pages carry what they were given."""

    def predict_stream(self, items):  # type: ignore[no-untyped-def]
        for image, source, number, warnings, *_ in items:
            height, width = image.shape[:2]
            yield Page((), number, warnings=warnings, source=source, width=width, height=height, image=image)


READ = OCRPredictor(Echo(), "echo")  # type: ignore[arg-type]
ONE_PAGE = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R 3 0 R]/Count 2>>endobj "
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 36]>>endobj trailer<</Root 1 0 R>>"
)


def test_is_pdf(tmp_path: Path):
    path = tmp_path / "image.png"  # content counts, not the name
    path.write_bytes(b"\n %PDF-1.7\n")
    assert is_pdf(path) and is_pdf(str(path)) and is_pdf(b"%PDF-1.4") and is_pdf(bytearray(b"%PDF-1.4"))
    path.write_bytes(b"\x89PNG %PDF-1.7")
    assert not is_pdf(path) and not is_pdf(tmp_path) and not is_pdf(b"")
    assert not is_pdf(np.zeros((2, 2, 3), np.uint8)) and not is_pdf(tmp_path / "nothing")


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
        assert [(p.size_hw, p.source, p.page) for p in document.pages] == [((3, 5), label, 1)]
        assert document.source == label and (document.pages[0].image == 9).all()


def test_open_files_are_not_read_line_by_line(tmp_path: Path):
    path = tmp_path / "a.png"
    vision_image.write(path, np.full((3, 5, 3), 10, np.uint8))  # 10 is a line feed
    with path.open("rb") as file:
        assert [p.source for p in READ(file).pages] == [str(path)]
    (found,) = READ(io.BytesIO(path.read_bytes())).pages
    assert (found.size_hw, found.source) == ((3, 5), "")
    with path.open(encoding="latin-1") as file, pytest.raises(InputError, match="the file object gives text"):
        READ(file)
    pytest.importorskip("pypdfium2", reason="PDFs are read by pypdfium2")
    assert [p.page for p in READ(io.BytesIO(ONE_PAGE)).pages] == [1, 2]


def test_lists_and_generators():
    small, large = np.zeros((1, 1, 3), np.uint8), np.zeros((2, 4, 3), np.uint8)
    assert [p.size_hw for p in READ([small, large]).pages] == [(1, 1), (2, 4)]
    assert [p.size_hw for p in READ((small, [large, small])).pages] == [(1, 1), (2, 4), (1, 1)]
    assert [p.size_hw for p in READ(image for image in (large, small)).pages] == [(2, 4), (1, 1)]
    assert READ([]).pages == ()


def test_pages_of_a_pdf(tmp_path: Path):
    pytest.importorskip("pypdfium2", reason="PDFs are read by pypdfium2")
    path = tmp_path / "a.pdf"
    path.write_bytes(ONE_PAGE)
    document = OCRPredictor(Echo(), "echo", pdf_dpi=144)(path)  # type: ignore[arg-type]
    assert [(p.size_hw, p.source, p.page) for p in document.pages] == [
        ((72, 144), str(path), 1),
        ((72, 144), str(path), 2),
    ]
    assert len(READ(ONE_PAGE).pages) == 2


def test_a_source_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match=r"no\.png: there is no such image file"):
        READ(tmp_path / "no.png")
    with pytest.raises(InputError, match="the image must be a path"):
        READ(3)


def test_the_package_gives_the_short_names():
    assert ocr.predictor is predictor and ocr.Page is Page
    assert ocr.OCRPredictor is ocr.TextReader is OCRPredictor  # the second for one release
    with pytest.raises(AttributeError, match="no attribute 'reader'"):
        _ = ocr.reader


@pytest.mark.parametrize(
    ("model", "settings", "options", "taken"),
    [
        (DefaultName("pp_ocrv6_small"), (), {}, "oar_latin"),
        (DefaultName("pp_ocrv6_small"), ("pipeline.options.drop_score=0.8",), {"lang": "en"}, "oar_latin"),
        (DefaultName("pp_ocrv6_small"), (), {"lang": "de"}, None),
        (DefaultName("pp_ocrv6_small"), ("pipeline.detector.weights=mine.onnx",), {}, None),
        ("pp_ocrv6_small", (), {}, None),
    ],
)
def test_the_shipped_pair_stands_for_the_default_alone(model, settings, options, taken, caplog):
    error = HubError("the weights cannot be had", where="pp_ocrv6_small_det (weights)", received="a\n b")
    assert fallback_model(model, settings, options, error) == taken
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (taken is not None)
    assert all("oar-toolkit[ocr]" in line and "a; b" in line and "\n" not in line for line in said)
