from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from framework.core.errors import FormatError, InputError
from framework.text.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s"]
ROBERTA = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "c": 4, "a": 5, "ca": 6}


def write(path: Path, data: Any) -> Path:
    text = data if isinstance(data, str) else json.dumps(data)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def vocabulary(folder: Path, tokens: list[str] = VOCAB) -> Path:
    pytest.importorskip("tokenizers")
    return write(folder / "vocab.txt", "\n".join(tokens) + "\n")


def test_a_vocabulary_with_windows_lines_and_a_mark(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(VOCAB).encode())
    tokenizer = Tokenizer.from_file(tmp_path / "vocab.txt")
    assert tokenizer.vocab_size == 7
    assert tokenizer.encode("cats").ids.tolist() == [2, 5, 6, 3]


def test_a_token_that_is_there_twice_has_the_second_number(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(vocabulary(tmp_path, [*VOCAB, "dog", "dog"]))
    assert tokenizer.encode("dog").ids.tolist() == [2, 8, 3]
    assert tokenizer.vocab_size == 9
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.vocab_size == 9 and again.id_of("dog") == 8 and again.token_of(7) is None


def test_the_folders_settings_are_respected(tmp_path: Path) -> None:
    vocabulary(tmp_path, ["<pad>", "<unk>", "<b>", "<e>", "Cat", "cat"])
    with pytest.raises(FormatError, match=r"special token is not in the vocabulary[\s\S]*\[PAD\]"):
        Tokenizer.from_file(tmp_path)
    write(tmp_path / "special_tokens_map.json", {"pad_token": "<pad>", "unk_token": {"content": "<unk>"}})
    write(
        tmp_path / "tokenizer_config.json",
        {"do_lower_case": False, "cls_token": "<b>", "sep_token": "<e>", "mask_token": "<m>"},
    )
    write(tmp_path / "added_tokens.json", {"<m>": 6})
    tokenizer = Tokenizer.from_file(tmp_path)
    assert tokenizer.encode("Cat <m>").ids.tolist() == [2, 4, 6, 3]
    assert tokenizer.mask_id == 6 and tokenizer.vocab_size == 7
    assert Tokenizer.from_file(tmp_path, {"do_lower_case": True}).encode("Cat").ids.tolist() == [2, 5, 3]


def test_an_added_token_has_its_own_number(tmp_path: Path) -> None:
    vocabulary(tmp_path)
    write(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": {"9": {"content": "<new>"}}})
    with pytest.raises(FormatError, match=r"another number[\s\S]*'<new>' as 9[\s\S]*allowed: 7"):
        Tokenizer.from_file(tmp_path)
    with pytest.raises(FormatError, match="the added tokens cannot be read"):
        Tokenizer.from_file(tmp_path, {"added_tokens_decoder": {"nine": {}}})


def test_the_librarys_own_file(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    core = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"<s>": 0, "</s>": 1, "<unk>": 2, "cat": 3}, unk_token="<unk>")
    )
    core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    core.enable_truncation(2)
    core.enable_padding(length=10)
    path = write(tmp_path / "tokenizer.json", core.to_str())
    plain = Tokenizer.from_file(path)
    assert plain.encode("cat cat dog").ids.tolist() == [3, 3, 2]
    assert plain.encode("cat", "cat").type_ids.tolist() == [0, 1]

    core.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B:1 </s>:1 <s>:2", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    path.write_text(core.to_str(), encoding="utf-8")
    found = Tokenizer.from_file(tmp_path).encode("cat", "dog cat")
    assert found.ids.tolist() == [3, 1, 2, 3, 1, 0]
    assert found.type_ids.tolist() == [0, 0, 1, 1, 1, 2]

    for kind, ids, types in (
        ("RobertaProcessing", [0, 3, 1, 1, 3, 1], [0] * 6),
        ("BertProcessing", [0, 3, 1, 3, 1], [0, 0, 0, 1, 1]),
    ):
        core.post_processor = getattr(tokenizers.processors, kind)(("</s>", 1), ("<s>", 0))
        found = Tokenizer.from_json(core.to_str()).encode("cat", "cat")
        assert (found.ids.tolist(), found.type_ids.tolist()) == (ids, types)


def test_what_is_put_around_must_be_readable(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    from framework.text.tokenizer_files import _read_frames

    assert tokenizers
    with pytest.raises(FormatError, match=r"put around texts[\s\S]*TemplateProcessing"):
        _read_frames({"type": "TemplateProcessing"}, "tokenizer.json")


@pytest.mark.parametrize("role", ["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
def test_a_missing_special_token(role: str, tmp_path: Path) -> None:
    path = vocabulary(tmp_path, [token for token in VOCAB if token != role])
    with pytest.raises(FormatError) as caught:
        Tokenizer.from_file(path)
    assert f"6 tokens without '{role}'" in str(caught.value) and "tokenizer_config.json" in str(caught.value)


def test_a_missing_mask_is_none(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(vocabulary(tmp_path, [token for token in VOCAB if token != "[MASK]"]))
    assert "mask" not in tokenizer.roles


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("vocab.txt", b"[PAD]\n\xff\xfe\n", r"vocab.txt, line 2: the tokenizer is not UTF-8[\s\S]*0xff"),
        ("tokenizer.json", b"\x89PNG\r\n", "the tokenizer is not UTF-8"),
        ("tokenizer.json", b"not json", "the tokenizer is not JSON"),
        ("tokenizer.json", b"[1, 2]", "holds no mapping"),
        ("tokenizer.json", b'{"a": 1}', r"the JSON file does not hold a tokenizer[\s\S]*keys a"),
        ("tokenizer.json", b'{"model": {"type": "X"}}', "the tokenizer cannot be read"),
        ("tokenizer.json", b'{"oar_tokenizer": 99}', r"another format[\s\S]*format 99"),
        ("tokenizer.json", b'{"oar_tokenizer": 1, "single": [], "pair": []}', "the tokenizer is damaged"),
        ("spiece.model", b"garbage", r"not a SentencePiece model[\s\S]*7 bytes"),
        ("spiece.model", b"", "not a SentencePiece model"),
        ("image.png", b"\x89PNG", r"not of a known tokenizer format[\s\S]*ends in .png"),
        ("vocab.json", b'{"a": "b"}', "gives each token a number"),
    ],
)
def test_wrong_files(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("sentencepiece")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match=message):
        Tokenizer.from_file(tmp_path / name)


@pytest.mark.parametrize("number", [2**32 - 7000, 2**24])
def test_numbers_of_tokens_have_a_limit(number: int, tmp_path: Path) -> None:
    """The library goes through all numbers up to the last: a damaged file would hold a program for minutes."""
    tokenizer = Tokenizer.from_file(vocabulary(tmp_path, list(VOCAB)))
    plain = json.loads(tokenizer.to_json())
    plain["model"]["model"]["vocab"][VOCAB[-1]] = number
    for text in (json.dumps(plain["model"]), json.dumps(plain)):
        with pytest.raises(FormatError, match=rf"file.json: the tokenizer(?s:.)*{number:,}"):
            Tokenizer.from_json(text, "file.json")
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n", encoding="utf-8")
    names = {
        token: index for index, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b"])
    }
    (tmp_path / "vocab.json").write_text(json.dumps({**names, "ab": number}), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"vocab.json(?s:.)*{number:,}"):
        Tokenizer.from_file(tmp_path / "vocab.json")


def test_a_damaged_tokenizer_of_ours(tmp_path: Path) -> None:
    data = json.loads(Tokenizer.train("words", ["a b"], 10).to_json())
    for change in ({"kind": "other"}, {"tokens": 3}, {"single": [["A"]]}, {"roles": []}):
        with pytest.raises(FormatError, match=r"tokenizer.json: the tokenizer is damaged"):
            Tokenizer.from_json(json.dumps({**data, **change}), "tokenizer.json")
    for frame in ([["C", 0]], [[99, 0], ["A", 0]], [["A", 0], ["A", 0]], [[-1, 0], ["A", 0]], [["A", 300]]):
        with pytest.raises(FormatError, match=r"tokenizer.json: what is put around texts does not fit"):
            Tokenizer.from_json(json.dumps({**data, "single": frame}), "tokenizer.json")
    with pytest.raises(FormatError, match=r"special token is not in the vocabulary[\s\S]*mask_token '<m>'"):
        Tokenizer.from_json(json.dumps({**data, "roles": {**data["roles"], "mask": "<m>"}}))


def test_a_tokenizer_that_fails_at_work_names_its_file(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100, "vocab": {"a": 0}}  # fmt: skip
    path = write(tmp_path / "tokenizer.json", {"version": "1.0", "model": model})
    tokenizer = Tokenizer.from_file(path)
    with pytest.raises(FormatError, match=r"tokenizer.json: the tokenizer is damaged[\s\S]*UNK"):
        tokenizer.encode("b")


def test_missing_files(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    with pytest.raises(InputError, match="there is no such tokenizer"):
        Tokenizer.from_file(tmp_path / "no.json")
    with pytest.raises(InputError, match=r"no tokenizer in the folder[\s\S]*an empty folder[\s\S]*vocab.txt"):
        Tokenizer.from_file(tmp_path)
    write(tmp_path / "vocab.json", ROBERTA)
    with pytest.raises(InputError, match=r"merges.txt: there is no such tokenizer"):
        Tokenizer.from_file(tmp_path)


def test_merges_that_do_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    write(tmp_path / "vocab.json", ROBERTA)
    write(tmp_path / "merges.txt", "#version: 0.2\nc a\n")
    assert Tokenizer.from_file(tmp_path).encode("ca").ids.tolist() == [0, 6, 2]
    write(tmp_path / "merges.txt", "c b\n")
    with pytest.raises(FormatError, match="do not belong together"):
        Tokenizer.from_file(tmp_path)
    write(tmp_path / "merges.txt", "c a\nc a b\n")
    with pytest.raises(FormatError, match=r"line 2: a merge is two tokens"):
        Tokenizer.from_file(tmp_path)


def test_a_sentencepiece_model_of_another_toolkit(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["a cat and a dog"] * 5),
        model_prefix=str(tmp_path / "spiece"),
        vocab_size=30,
        hard_vocab_limit=False,
        control_symbols=["[CLS]", "[SEP]"],
        minloglevel=2,
    )
    tokenizer = Tokenizer.from_file(tmp_path / "spiece.model", {"added_tokens": {"[CLS]": 3}})
    assert tokenizer.roles == {"unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]"}
    assert tokenizer.encode("A cát").ids.tolist() == tokenizer.encode("a cat").ids.tolist()
    assert (
        Tokenizer.from_file(tmp_path, {"keep_accents": True, "do_lower_case": False})
        .encode("A á")
        .ids.tolist()
        != tokenizer.encode("A á").ids.tolist()
    )
    of_xlm_r = Tokenizer.from_file(tmp_path, {"tokenizer_class": "XLMRobertaTokenizer"})
    assert [of_xlm_r.token_of(number) for number in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert of_xlm_r.encode("a").ids[[0, -1]].tolist() == [0, 2]


@pytest.mark.parametrize("where", ["tokenizer_config.json", "tokenizer.json", "both"])
def test_texts_are_cut_at_the_side_that_the_files_say(tmp_path: Path, where: str) -> None:
    from tokenizers import Tokenizer as Library
    from tokenizers import models, pre_tokenizers

    library = Library(models.WordLevel({word: number for number, word in enumerate("?abcdefgh")}, "?"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    if where != "tokenizer_config.json":
        library.enable_truncation(5, direction="left")
    library.save(str(tmp_path / "tokenizer.json"))
    side = {"tokenizer_config.json": {"truncation_side": "left"}, "both": {"truncation_side": "right"}}.get(
        where, {}
    )
    write(tmp_path / "tokenizer_config.json", json.dumps(side))
    tokenizer = Tokenizer.from_file(tmp_path)
    is_left = where != "both"
    for one in (tokenizer, Tokenizer.from_json(tokenizer.to_json())):
        assert one.encode("a b c d e", max_length=3).ids.tolist() == ([3, 4, 5] if is_left else [1, 2, 3])
        pair = one.encode("a b c", "d e f g", max_length=5).ids.tolist()
        assert pair == ([1, 2, 3, 6, 7] if is_left else [1, 2, 3, 4, 5])
        assert one.encode("a b", max_length=3).ids.tolist() == [1, 2]
        assert one.encode("a b", max_length=0).ids.tolist() == []
