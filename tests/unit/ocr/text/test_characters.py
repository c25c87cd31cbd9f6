from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from framework.core.errors import FormatError, InputError, WeightError
from ocr.text.characters import CharacterSet


def test_classes_are_blank_then_lines_then_space():
    characters = CharacterSet.from_text("a\nb\nc\n")
    assert characters.symbols == ("", "a", "b", "c", " ")
    assert characters.num_classes == 5
    assert CharacterSet.from_text("a\nb", use_space_char=False).symbols == ("", "a", "b")


def test_only_line_feeds_separate_and_no_white_space_is_stripped(tmp_path):
    lines = ["\u3000", "a", "\x0b", "\x85", "\u2028", "\t", "", "\xa0", "z"]
    path = tmp_path / "dict.txt"
    path.write_bytes("\n".join(lines).encode() + b"\n")
    characters = CharacterSet.from_file(path)
    assert list(characters.symbols[1:-1]) == lines
    assert characters.encode("z").tolist() == [9]


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    path = tmp_path / "dict.txt"
    path.write_bytes(b"\xef\xbb\xbf\xe3\x80\x80\r\na\r\n")
    assert CharacterSet.from_file(path).symbols == ("", "\u3000", "a", " ")


def test_only_the_last_line_end_ends_the_file():
    assert CharacterSet.from_text("a\n\n", use_space_char=False).symbols == ("", "a", "")


def test_a_dictionary_with_what_is_no_text(tmp_path):
    nested = tmp_path / "inference.yml"
    nested.write_text("PostProcess: {character_dict: [a, [b]]}\n", encoding="utf-8")
    with pytest.raises(
        FormatError, match=r"inference.yml: a symbol of the dictionary is no text[\s\S]*symbol 1"
    ):
        CharacterSet.from_inference_yml(nested)
    with pytest.raises(InputError, match="a folder, not one dictionary"):
        CharacterSet.from_file(tmp_path)


def test_dictionary_file_errors(tmp_path):
    with pytest.raises(InputError, match="there is no such dictionary"):
        CharacterSet.from_file(tmp_path / "none.txt")
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    with pytest.raises(FormatError, match="the dictionary has no symbols"):
        CharacterSet.from_file(empty)
    latin1 = tmp_path / "latin1.txt"
    latin1.write_bytes(b"a\n\xe9\n")
    with pytest.raises(FormatError, match=r"line 2: the dictionary is not UTF-8\n  received: byte 0xe9"):
        CharacterSet.from_file(latin1)


def test_inference_yml_keeps_every_scalar_a_string(tmp_path):
    symbols = ["\u3000", "0", "1", "~", "=", "'", '"', ":", "#", "-", "no", "是", "🛅", "null", "\\"]
    config = {
        "Global": {"model_name": "PP"},
        "PostProcess": {"name": "CTCLabelDecode", "character_dict": symbols},
    }
    path = tmp_path / "inference.yml"
    path.write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    characters = CharacterSet.from_inference_yml(path)
    assert characters.symbols == ("", *symbols, " ")
    assert not characters.right_to_left

    config["Global"]["model_name"] = "arabic_PP-OCRv5_mobile_rec"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert CharacterSet.from_inference_yml(path).right_to_left


def test_inference_yml_without_quotes(tmp_path):
    path = tmp_path / "inference.yml"
    path.write_text(
        "PostProcess:\n  character_dict:\n  - 0\n  - yes\n  - 1.5\n  - ~\n  - =\n", encoding="utf-8"
    )
    assert CharacterSet.from_inference_yml(path).symbols == ("", "0", "yes", "1.5", "~", "=", " ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "PostProcess:\n  name: DBPostProcess\n",
            "the file holds no dictionary\n  received: PostProcess: .'name'",
        ),
        ("Global: {}\n", "the file holds no dictionary"),
        ("- 1\n", "the file holds no dictionary"),
        ("a: [\n", "this is no YAML file"),
        ("- " * 100_000, "nested more than 100 levels deep"),
    ],
)
def test_inference_yml_errors(tmp_path, text, message):
    path = tmp_path / "inference.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        CharacterSet.from_inference_yml(path)


def test_head_check_states_both_numbers():
    characters = CharacterSet.from_text("a\nb\n", source="dict.txt")
    characters.check_head(4, "small_rec")
    with pytest.raises(WeightError, match=r"4 symbols .*, 6906 classes") as caught:
        characters.check_head(6906, "tiny_rec")
    assert "dict.txt and tiny_rec" in str(caught.value)
    assert "use the dictionary that came with the weights" in str(caught.value)
    with pytest.raises(WeightError, match="use_space_char: false"):
        characters.check_head(3, "rec")
    with pytest.raises(WeightError, match="use_space_char: true"):
        CharacterSet.from_text("a\nb\n", use_space_char=False).check_head(4, "rec")


def test_decode_and_encode():
    characters = CharacterSet.from_text("a\nb\n")
    assert characters.decode([1, 0, 2, 2, 3]) == "abb "
    assert characters.decode([]) == ""
    assert characters.decode(np.array([2], np.int64)) == "b"
    encoded = characters.encode("ba b")
    assert encoded.dtype == np.int32
    assert encoded.tolist() == [2, 1, 3, 2]
    assert characters.encode("").shape == (0,)


@pytest.mark.parametrize("bad", [[4], [-1]])
def test_decode_refuses_classes_that_are_not_there(bad):
    with pytest.raises(InputError, match=rf"no such class\n  received: class {bad[0]}\n  allowed: 0 to 3"):
        CharacterSet.from_text("a\nb\n").decode(bad)


def test_encode_names_unknown_symbols_or_skips_them():
    characters = CharacterSet.from_text("a\nb\n")
    with pytest.raises(InputError, match="'éx' in 'aéxé'"):
        characters.encode("aéxé")
    assert characters.encode("aéxéb", skip_unknown=True).tolist() == [1, 2]


def test_a_symbol_that_stands_twice_is_encoded_as_the_later_one():
    characters = CharacterSet.from_text("×\na\n×\n")
    assert characters.encode("×").tolist() == [3]
    assert characters.decode([1, 3]) == "××"


def test_right_to_left_lines_are_turned_round_by_runs(tmp_path):
    path = tmp_path / "ppocrv5_arabic_dict.txt"
    path.write_text("\n".join("ابجد12ab%"), encoding="utf-8")
    characters = CharacterSet.from_file(path)
    assert characters.right_to_left
    assert not CharacterSet.from_file(path, right_to_left=False).right_to_left
    # In the crop, from the left: dal, then the number 12%, then jim ba alif. Read from the right.
    shown = "د12%جبا"
    assert characters.reading_order(shown) == "ابج12%د"
    assert characters.reading_order(characters.reading_order(shown)) == shown
    classes = characters.encode("ابج12%د")
    assert classes.tolist() == [4, 5, 6, 9, 3, 2, 1]
    assert characters.decode(classes) == "ابج12%د"
    assert CharacterSet.from_text("a\n").reading_order("abc") == "abc"


def test_language_check_names_letters_and_better_models():
    english = CharacterSet.from_text("\n".join("abcdefghijklmnopqrstuvwxyz"), source="en_dict.txt")
    english.check_language("en")
    with pytest.raises(InputError) as caught:
        english.check_language("german")
    assert str(caught.value) == (
        "en_dict.txt: this recogniser cannot write the language 'german'\n"
        "  received: a dictionary without ä ö ü ß\n"
        "  allowed: a dictionary with every letter of 'de'\n"
        "  what to do: use pp_ocrv6_small_rec or pp_ocrv6_tiny_rec or pp_ocrv6_medium_rec or latin_pp_ocrv5_mobile_rec "
        "or latin_pp_ocrv3_mobile_rec"
    )
    with pytest.raises(InputError, match=r"and \d+ more[\s\S]*train a recogniser"):
        english.check_language("vi")
    with pytest.raises(InputError, match="the language is not known"):
        english.check_language("klingon")


def test_equality_and_hash():
    a, b = CharacterSet.from_text("a\nb\n"), CharacterSet.from_symbols(["a", "b"])
    a.encode("a")  # fills its cache
    assert a == b and hash(a) == hash(b)
    assert a != CharacterSet.from_symbols(["b", "a"])


def test_official_small_recogniser_carries_its_dictionary():
    ort = pytest.importorskip("onnxruntime", reason="reads the ONNX file's metadata")
    rapidocr = pytest.importorskip("rapidocr", reason="its wheel carries the model")
    model = Path(rapidocr.__file__).parent / "models" / "PP-OCRv6_rec_small.onnx"
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    characters = CharacterSet.from_text(session.get_modelmeta().custom_metadata_map["character"])
    assert characters.num_classes == 18710
    characters.check_head(session.get_outputs()[0].shape[-1], model.name)
    assert characters.symbols[1749] == "\u3000"
    assert characters.symbols[-1] == " "
    for lang in ("ch", "chinese_cht", "en", "japan", "fr", "german", "pl", "ro", "az"):
        characters.check_language(lang)
    for lang in ("ru", "el", "ko", "ar", "vi", "th"):
        with pytest.raises(InputError, match="cannot write"):
            characters.check_language(lang)
