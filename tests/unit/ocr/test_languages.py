from __future__ import annotations

import string
import unicodedata
from pathlib import Path

import pytest

from framework import hub
from framework.core.errors import InputError
from ocr.languages import (
    ALIASES,
    LANGUAGES,
    RECOGNISERS,
    language_code,
    missing_letters,
    recognisers_for,
    required_letters,
)


def test_codes_are_unique_and_aliases_lead_to_them():
    assert len(set(LANGUAGES)) == len(LANGUAGES) >= 75
    assert set(ALIASES.values()) <= set(LANGUAGES)
    assert not set(ALIASES) & set(LANGUAGES)


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


def test_aliases_and_unknown_codes():
    assert language_code("japan") == "ja"
    assert language_code("rs_latin") == "sr-Latn"
    assert language_code("de") == "de"
    with pytest.raises(
        InputError, match=r"the language is not known\n  received: jaapan[\s\S]*did you mean 'japan'"
    ):
        language_code("jaapan")
    with pytest.raises(InputError, match="name the model instead"):
        language_code("12345678")


def test_a_letter_counts_in_either_case_but_not_by_another_letters_capital():
    ascii_letters = string.ascii_letters
    assert missing_letters("de", ascii_letters + "ÄÖÜß") == ""
    assert missing_letters("de", ascii_letters + "äöü") == "ß"
    assert missing_letters("tr", ascii_letters + "çğöşü") == "ıİ"  # I and i are there, and are not enough
    assert missing_letters("en", ["abcdefghijklm", "nopqrstuvwxyz"]) == ""  # inside longer symbols


def test_table_of_recognisers_names_known_languages_and_models_of_the_hub():
    assert set(RECOGNISERS) <= set(hub.entries("ocr"))
    for name, codes in RECOGNISERS.items():
        assert codes and codes <= set(LANGUAGES), name
    assert recognisers_for("ja") == ("pp_ocrv6_small_rec", "pp_ocrv6_medium_rec")
    assert recognisers_for("ru") == ("eslav_pp_ocrv5_mobile_rec", "cyrillic_pp_ocrv5_mobile_rec")
    assert recognisers_for("vi") == ()


def test_table_agrees_with_the_dictionary_of_the_small_recogniser():
    ort = pytest.importorskip("onnxruntime", reason="reads the ONNX file's metadata")
    rapidocr = pytest.importorskip("rapidocr", reason="its wheel carries the model")
    model = Path(rapidocr.__file__).parent / "models" / "PP-OCRv6_rec_small.onnx"
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    symbols = session.get_modelmeta().custom_metadata_map["character"].split("\n")
    assert {lang for lang in LANGUAGES if not missing_letters(lang, symbols)} == RECOGNISERS[
        "pp_ocrv6_small_rec"
    ]
