from __future__ import annotations

import importlib.util
import string
import unicodedata
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest

from framework import hub
from framework.config import Kind, bind, load
from framework.core.errors import InputError
from framework.engine.experiment import bind_experiment
from framework.workflow.domain.domain import find_config
from ocr.models.text_recognizer import TextRecognizerConfig
from ocr.tasks.text import TextRecognition
from ocr.text.languages import (
    ARABIC,
    CYRILLIC,
    DEFAULT,
    DEVANAGARI,
    LANGUAGES,
    LATIN,
    OTHER,
    choose_recognizers,
    is_right_to_left,
    missing_letters,
    recognisers_for,
    required_letters,
)

REPO = Path(__file__).resolve().parents[4]
# Languages that no official dictionary has all letters of: those of other scripts, and of a few letters too many.
UNREAD = {
    *("am", "as", "bn", "bo", "gu", "he", "hy", "kat", "km", "lo", "ml", "my", "or", "pa", "si", "yi"),
    *("ast", "ig", "mg", "mhr", "os", "pi", "sah", "vi", "yo"),
}


def test_every_language_has_letters_in_one_table():
    tables = [LATIN, CYRILLIC, ARABIC, DEVANAGARI, OTHER]
    assert sorted(code for table in tables for code in table) == sorted(LANGUAGES)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_letters_are_single_composed_code_points_without_repeats(lang):
    letters = required_letters(lang)
    assert len(set(letters)) == len(letters) >= 26
    assert unicodedata.normalize("NFC", letters) == letters
    assert all(unicodedata.category(letter)[0] in "LM" for letter in letters)


def test_known_alphabets():
    assert len(required_letters("ru")) == 33
    assert len(required_letters("uk")) == 33
    assert len(required_letters("bg")) == 30
    assert len(required_letters("sr")) == 30
    assert len(required_letters("tr")) == 26 + len("çğıİöşü")
    assert len(required_letters("vi")) == 26 + 67
    assert required_letters("en") == string.ascii_lowercase
    assert "ё" in required_letters("be") and "ў" in required_letters("be")
    assert len(required_letters("he")) == 27 and len(required_letters("kat")) == 33


def test_a_letter_counts_in_either_case_but_not_by_another_letters_capital():
    ascii_letters = string.ascii_letters
    assert missing_letters("de", ascii_letters + "ÄÖÜß") == ""
    assert missing_letters("german", ascii_letters + "äöü") == "ß"
    assert missing_letters("tr", ascii_letters + "çğöşü") == "ıİ"  # I and i are there, and are not enough
    assert missing_letters("en", ["abcdefghijklm", "nopqrstuvwxyz"]) == ""  # inside longer symbols


def test_direction():
    assert {code for code in LANGUAGES if is_right_to_left(code)} == {*ARABIC, "he", "yi"}


# -- what the index says -----------------------------------------------------------------------------------------------


def test_rows_name_known_languages_and_a_model():
    rows = {name: entry for name, entry in hub.entries("ocr").items() if "dict" in entry.files}
    assert len(rows) > 30
    for name, entry in rows.items():
        assert entry.languages and set(entry.languages) | set(entry.lacks) <= set(LANGUAGES), name
        assert "en" in entry.languages
        if entry.form == "deploy":
            assert entry.model["type"] in ("TextRecognizer", "CRNN") and entry.model["num_classes"] > 90, name
        for code, letters in entry.lacks.items():
            assert set(letters) <= set(required_letters(code)) and not recognisers_for(code), (name, code)


def test_every_languages_recogniser_is_fine_tuned_by_the_config_of_its_variant():
    """As docs/ocr_training.md says: weights and dictionary are named, and the network is the config's."""
    trained = 0
    for name, entry in hub.entries("ocr").items():
        if "dict" not in entry.files or entry.form != "deploy" or entry.model["type"] != "TextRecognizer":
            continue
        config = find_config(entry.model["variant"], "ocr")
        deployed = ("model.deploy=true", "model.guided=false")
        named = (f"pretrained.weights={name}", f"task.characters.weights={name}")
        experiment = bind_experiment(load(config, (*deployed, *named)))
        model, task = experiment.model, experiment.task
        assert isinstance(model, TextRecognizerConfig) and isinstance(task, TextRecognition)
        assert model.num_classes is None and task.characters is not None and task.characters.weights == name
        # With the classes of its dictionary the model is the one that the weights were exported from.
        variant = bind(entry.model, Annotated[Any, Kind("model")], ("ocr", "zoo", "framework"))
        parts = replace(model, num_classes=entry.model["num_classes"]).parts
        assert parts._replace(head=variant.parts.head) == variant.parts
        trained += 1
    assert trained > 25


def symbols_of_the_small_recogniser() -> list[str]:
    ort = pytest.importorskip("onnxruntime", reason="reads the ONNX file's metadata")
    rapidocr = pytest.importorskip("rapidocr", reason="its wheel carries the model")
    model = Path(rapidocr.__file__).parent / "models" / "PP-OCRv6_rec_small.onnx"
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return session.get_modelmeta().custom_metadata_map["character"].split("\n")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "languages_tool", REPO / "tools" / "packaging" / "languages.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_agree_with_the_dictionaries_of_this_machine(tool, shared: Path):
    """The others' dictionaries need a network; the tool read them, and their SHA-256 stand in the index."""
    dictionaries = {
        "pp_ocrv6_small_rec": set(symbols_of_the_small_recogniser()),
        "en_number_mobile_v2_rec": _lines(shared / "weights" / "ppocr_v2_rec_en_number" / "en_dict.txt"),
        "japan_mobile_v2_rec": _lines(shared / "weights" / "ppocr_v2_rec_japan" / "japan_dict.txt"),
    }
    reads, _ = tool.coverage(dictionaries)
    for name, codes in reads.items():
        assert set(codes) == set(hub.entry(name).languages), name


def _lines(path: Path) -> set[str]:
    if not path.is_file():
        pytest.skip(f"{path} is not there (OAR_SHARED)")
    return set(path.read_text(encoding="utf-8").split("\n"))


def test_the_tool_claims_only_scripts_that_a_row_is_trained_for(tool):
    russian = set(required_letters("ru") + string.ascii_letters + "éñáíóúü")
    reads, lacks = tool.coverage(
        {"eslav_pp_ocrv5_mobile_rec": russian, "cyrillic_pp_ocrv5_mobile_rec": russian | {"ӱ", "ӧ"}}
    )
    assert reads["eslav_pp_ocrv5_mobile_rec"] == ["en", "ru"]  # and not Spanish, whose letters are there
    assert {"bg", "en", "ru"} <= set(reads["cyrillic_pp_ocrv5_mobile_rec"])
    assert (
        lacks["cyrillic_pp_ocrv5_mobile_rec"]["mhr"] == "ҥ"
        and "el" not in lacks["cyrillic_pp_ocrv5_mobile_rec"]
    )


def test_the_tool_reads_sets_of_cldr(tool, tmp_path: Path):
    folder = tmp_path / "xx"
    folder.mkdir()
    written = r'{"main": {"xx": {"characters": {"exemplarCharacters": "[a-c ä {ch} \\u0301 \\- 1]"}}}}'
    (folder / "characters.json").write_text(written, encoding="utf-8")
    assert tool.exemplars(tmp_path, "xx") == {*"abcäh", "\u0301"}
    assert tool.exemplars(tmp_path, "yy") == set()


# -- which recogniser --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_language_gets_a_row_that_reads_it_or_the_letters_that_are_missing(lang):
    if lang in UNREAD:
        with pytest.raises(
            InputError, match=f"no recogniser of the index can write the language '{lang}'"
        ) as caught:
            choose_recognizers(lang)
        named = set(
            str(caught.value.received)
            .partition(" lacks " if "lacks" in caught.value.received else " has ")[2]
            .split()[:5]
        )
        assert named <= set(required_letters(lang)) and named
        return
    (name,) = choose_recognizers(lang).recognizers
    entry = hub.entry(name)
    assert lang in entry.languages and entry.form == "deploy" and {"weights", "dict"} <= set(entry.files)
    assert (name == DEFAULT) == (lang in hub.entry(DEFAULT).languages)


def test_the_number_of_languages_that_are_read():
    assert len(set(LANGUAGES) - UNREAD) == 145


@pytest.mark.parametrize(
    ("langs", "names"),
    [
        ("german", [DEFAULT]), ("french", [DEFAULT]), ("japan", [DEFAULT]), ("ch", [DEFAULT]),
        ("chinese_cht", [DEFAULT]), ("latin", [DEFAULT]), ("en,de,ja", [DEFAULT]),
        ("ru", ["eslav_pp_ocrv5_mobile_rec"]), ("uk", ["eslav_pp_ocrv5_mobile_rec"]),
        ("ru,en", ["eslav_pp_ocrv5_mobile_rec"]), ("bg", ["cyrillic_pp_ocrv5_mobile_rec"]),
        ("cyrillic", ["cyrillic_pp_ocrv5_mobile_rec"]), ("ru,kk", ["cyrillic_pp_ocrv5_mobile_rec"]),
        ("arabic", ["arabic_pp_ocrv5_mobile_rec"]), ("ps", ["arabic_pp_ocrv5_mobile_rec"]),
        ("devanagari", ["devanagari_pp_ocrv5_mobile_rec"]), ("korean", ["korean_pp_ocrv5_mobile_rec"]),
        ("th", ["th_pp_ocrv5_mobile_rec"]), ("el", ["el_pp_ocrv5_mobile_rec"]), ("ta", ["ta_pp_ocrv5_mobile_rec"]),
        ("te", ["te_pp_ocrv5_mobile_rec"]), ("ka", ["ka_pp_ocrv4_mobile_rec"]),
        ("de,ru", [DEFAULT, "eslav_pp_ocrv5_mobile_rec"]), ("ko,ja", ["korean_pp_ocrv5_mobile_rec", DEFAULT]),
        (["ru", "ar", "de", "en"], ["eslav_pp_ocrv5_mobile_rec", "arabic_pp_ocrv5_mobile_rec", DEFAULT]),
    ],
)  # fmt: skip
def test_the_default_first_then_the_newest_that_reads_fewest(langs, names):
    choice = choose_recognizers(langs)
    assert list(choice.recognizers) == names
    assert all(name in choice.reason for name in names)


def test_the_reason():
    assert choose_recognizers("de").reason == f"{DEFAULT} reads de: it is the default and has the letters"
    assert choose_recognizers("ru").reason.startswith(
        "eslav_pp_ocrv5_mobile_rec reads ru: the newest of the index"
    )
    assert choose_recognizers("de,ru").reason.startswith(
        f"{DEFAULT} reads de; eslav_pp_ocrv5_mobile_rec reads ru: "
    )


def test_another_default_is_kept_where_it_reads_the_language():
    assert choose_recognizers("de", "latin_pp_ocrv5_mobile_rec").recognizers == ("latin_pp_ocrv5_mobile_rec",)
    assert choose_recognizers("ro", "pp_ocrv6_tiny_rec").recognizers == (DEFAULT,)
    assert choose_recognizers("ro", "mine.onnx").recognizers == (DEFAULT,)


def test_all_recognisers_of_a_language_best_first():
    assert recognisers_for("ja")[0] == DEFAULT and recognisers_for("ja")[-1] == "japan_mobile_v2_rec"
    assert recognisers_for("ru") == (
        "eslav_pp_ocrv5_mobile_rec", "cyrillic_pp_ocrv5_mobile_rec", "cyrillic_pp_ocrv3_mobile_rec",
    )  # fmt: skip
    assert recognisers_for("vi") == ()


def test_a_language_that_nobody_reads_names_the_nearest_and_its_letters():
    with pytest.raises(InputError) as caught:
        choose_recognizers("de,mhr")
    assert str(caught.value) == (
        "lang: no recogniser of the index can write the language 'mhr'\n"
        "  received: mhr: cyrillic_pp_ocrv5_mobile_rec comes nearest and lacks ҥ\n"
        "  allowed: a language that `oar models list --lang CODE` finds a recogniser for\n"
        "  what to do: leave lang out to read what the model can write, or train a recogniser with a dictionary that "
        "has them"
    )
    with pytest.raises(InputError, match=r"vi: pp_ocrv6_small_rec comes nearest and lacks ả ấ .* and 3 more"):
        choose_recognizers("vi")
    with pytest.raises(InputError, match="he: none has א ב"):
        choose_recognizers("hebrew")
