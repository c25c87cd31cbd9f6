from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError, MissingExtraError
from framework.text.tokenizer import Tokenizer

KINDS = ("characters", "words", "wordpiece", "bpe", "unigram")
TEXTS = [
    "the cat sat on the mat",
    "the dog sat on the log",
    "a cat and a dog, 2 cats!",
    "今天天气很好",
    "猫和狗",
] * 5
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", "sat", "今", "天", ",", "a", "##b"]


def trained(kind: Any, vocab_size: int = 320) -> Tokenizer:
    if kind in ("wordpiece", "bpe"):
        pytest.importorskip("tokenizers")
    if kind == "unigram":
        pytest.importorskip("sentencepiece")
    return Tokenizer.train(kind, TEXTS, vocab_size)


def bert(folder: Path, tokens: list[str] = VOCAB, **settings: Any) -> Tokenizer:
    pytest.importorskip("tokenizers")
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return Tokenizer.from_file(folder, settings)


def byte_level(folder: Path, special: list[str]) -> Path:
    """A vocabulary of the bytes of ASCII and three merges: "he", "Ġc", "Ġca"."""
    pytest.importorskip("tokenizers")
    letters = [chr(code) for code in range(33, 127)] + ["Ġ", "Ċ"]
    vocabulary = {token: place for place, token in enumerate([*special, *letters, "he", "Ġc", "Ġca"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\nh e\nĠ c\nĠc a\n", encoding="utf-8")
    return folder


# -- WordPiece ---------------------------------------------------------------------------------------------------------


def test_word_pieces_with_special_tokens_and_offsets(tmp_path: Path) -> None:
    found = bert(tmp_path).encode("Cats sat，今天x")
    # "，" and "x" are not in the vocabulary; each Chinese character is a word.
    assert found.ids.tolist() == [2, 5, 6, 7, 1, 8, 9, 1, 3]
    assert found.offsets.tolist() == [
        *([0, 0], [0, 3], [3, 4], [5, 8], [8, 9], [9, 10], [10, 11], [11, 12], [0, 0]),
    ]
    assert found.special.tolist() == [True, *[False] * 7, True]
    assert found.words.tolist() == [-1] * 9
    assert found.type_ids.tolist() == [0] * 9
    assert found.ids.dtype == found.offsets.dtype == found.type_ids.dtype == np.int32


def test_a_pair_is_two_segments(tmp_path: Path) -> None:
    found = bert(tmp_path).encode("cat", "a sat")
    assert found.ids.tolist() == [2, 5, 3, 11, 7, 3]
    assert found.type_ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.texts.tolist() == [-1, 0, -1, 1, 1, -1]
    assert found.offsets[3:5].tolist() == [[0, 1], [2, 5]]


def test_accents_and_capitals(tmp_path: Path) -> None:
    tokenizer = bert(tmp_path)
    assert tokenizer.encode("CÁTS").ids.tolist() == [2, 5, 6, 3]
    assert tokenizer.encode("CÁTS").offsets.tolist()[1:3] == [[0, 3], [3, 4]]
    assert bert(tmp_path, do_lower_case=False).encode("Cat cat").ids.tolist() == [2, 1, 5, 3]
    assert bert(tmp_path, strip_accents=False).encode("cát").ids.tolist() == [2, 1, 3]


def test_ernie_splits_at_symbols(tmp_path: Path) -> None:
    tokens = [*VOCAB, "℃"]
    assert bert(tmp_path, tokens).encode("a℃").ids.tolist() == [2, 1, 3]
    assert bert(tmp_path, tokens, tokenizer_class="ErnieTokenizer").encode("a℃").ids.tolist() == [
        2,
        11,
        13,
        3,
    ]


def test_given_words_keep_their_numbers(tmp_path: Path) -> None:
    found = bert(tmp_path).encode(["cats", "", "sat"], "cat")
    assert found.ids.tolist() == [2, 5, 6, 7, 3, 5, 3]
    assert found.words.tolist() == [-1, 0, 0, 2, -1, -1, -1]
    assert found.offsets.tolist()[1:4] == [[0, 3], [3, 4], [0, 3]]  # within the word


def test_special_tokens_in_a_text(tmp_path: Path) -> None:
    found = bert(tmp_path).encode("a [MASK] cat")
    assert found.ids.tolist() == [2, 11, 4, 5, 3]
    assert not found.special[2]  # it is part of the text


@pytest.mark.parametrize(
    ("first", "second", "max_length", "kept"),
    [
        (5, 2, 9, (4, 2)),
        (2, 5, 9, (2, 4)),
        (5, 5, 10, (4, 3)),
        (6, 5, 10, (4, 3)),
        (1, 1, 9, (1, 1)),
        (5, 5, 3, (0, 0)),
    ],
)
def test_the_longer_text_is_cut_first(
    tmp_path: Path, first: int, second: int, max_length: int, kept: tuple[int, int]
) -> None:
    found = bert(tmp_path).encode("a " * first, "cat " * second, max_length=max_length)
    assert ((found.texts == 0).sum(), (found.texts == 1).sum()) == kept
    assert len(found) <= max_length


def test_no_room_for_a_text(tmp_path: Path) -> None:
    tokenizer = bert(tmp_path)
    assert tokenizer.encode("cat", max_length=2).ids.tolist() == [2, 3]
    with pytest.raises(ConfigError, match=r"max_length: there is no room[\s\S]*received: 1[\s\S]*2 or more"):
        tokenizer.encode("cat", max_length=1)
    with pytest.raises(ConfigError, match="3 or more"):
        tokenizer.encode("cat", "cat", max_length=2)


def test_decode_leaves_out_what_surrounds(tmp_path: Path) -> None:
    tokenizer = bert(tmp_path)
    assert tokenizer.decode([2, 5, 6, 7, 1, 3, 0, 0]) == "cats sat [UNK]"
    assert tokenizer.decode(np.array([2, 5, 3]), skip_special=False) == "[CLS] cat [SEP]"
    assert tokenizer.decode([5, 99, -1]) == "cat"
    assert tokenizer.decode([]) == ""


# -- other kinds -------------------------------------------------------------------------------------------------------


def test_roberta(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(byte_level(tmp_path, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]))
    number = {token: tokenizer.id_of(token) for token in ("he", "Ġca", "t", "x", "Ġ")}
    found = tokenizer.encode("he cat", "x")
    assert found.ids.tolist() == [0, number["he"], number["Ġca"], number["t"], 2, 2, number["x"], 2]
    assert found.offsets.tolist()[1:4] == [[0, 2], [3, 5], [5, 6]]
    assert found.type_ids.tolist() == [0] * 8
    assert found.texts.tolist() == [-1, 0, 0, 0, -1, -1, 1, -1]
    assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.unk_id, tokenizer.mask_id) == (
        0,
        1,
        2,
        3,
        4,
    )
    assert tokenizer.encode("he <mask>").ids.tolist() == [0, number["he"], 4, 2]  # the space is the mask's
    assert tokenizer.encode("é").ids.tolist() == [0, 3, 3, 2]  # two bytes that this vocabulary lacks
    assert tokenizer.decode(found.ids) == "he catx"
    words = tokenizer.encode(["cat", "he"])
    assert words.ids.tolist() == [0, number["Ġca"], number["t"], number["Ġ"], number["he"], 2]
    assert words.words.tolist() == [-1, 0, 0, 1, 1, -1]
    assert words.offsets.tolist()[1:3] == [[0, 2], [2, 3]]
    assert words.offsets.tolist()[4] == [0, 2]


def test_gpt2_puts_nothing_around(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(byte_level(tmp_path, ["<|endoftext|>"]) / "merges.txt")
    assert tokenizer.encode("he").ids.tolist() == [tokenizer.id_of("he")]
    assert tokenizer.encode("").ids.tolist() == []
    assert tokenizer.sep_id == tokenizer.cls_id == 0
    with pytest.raises(ConfigError, match=r"has no pad token[\s\S]*unk <\|endoftext\|>[\s\S]*\"pad_token\""):
        _ = tokenizer.pad_id


def test_sentence_pieces_follow_alberts_rules(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    texts = [*TEXTS, "costs 3,5 or 12,000 ``quoted''", "one ½ ﬁne ①"]
    tokenizer = Tokenizer.train("unigram", texts, 90, lower=True)
    text = "  A  ﬁne CÁT, 12,000 [MASK]!"
    found = tokenizer.encode(text)
    tokens = [tokenizer.token_of(one) or "" for one in found.ids]
    assert tokens[0] == "[CLS]" and tokens[-1] == "[SEP]" and "[MASK]" in tokens
    assert "".join(tokens[1:-1]).replace("▁", "") == "afinecat,12,000[MASK]!"
    mask = tokens.index("[MASK]")
    assert text[slice(*found.offsets[mask])] == "[MASK]"
    comma = max(place for place, token in enumerate(tokens) if token == ",")
    assert found.offsets[comma].tolist() == [16, 17]
    assert found.offsets[1].tolist()[0] == 2  # white space before a word is not part of it
    spans = found.offsets[~found.special]
    assert (spans[:, 0] <= spans[:, 1]).all() and (np.diff(spans[:, 0]) >= 0).all()
    assert tokenizer.encode("cát").ids.tolist() == tokenizer.encode("CAT").ids.tolist()
    assert tokenizer.encode("``a''").ids.tolist() == tokenizer.encode('"a"').ids.tolist()
    assert tokenizer.decode(tokenizer.encode("the cat").ids) == "the cat"
    assert tokenizer.encode(["the", "cat"]).words.tolist()[1:-1] == sorted(
        tokenizer.encode(["the", "cat"]).words.tolist()[1:-1]
    )


def test_a_character_is_one_token() -> None:
    tokenizer = trained("characters")
    found = tokenizer.encode("天 猫?")
    assert [tokenizer.token_of(one) for one in found.ids] == ["[CLS]", "天", "猫", "[UNK]", "[SEP]"]
    assert found.offsets.tolist()[1:4] == [[0, 1], [2, 3], [3, 4]]
    assert tokenizer.decode(found.ids) == "天猫[UNK]"
    assert tokenizer.encode(["天猫", "", "狗"]).words.tolist() == [-1, 0, 0, 2, -1]


def test_words_are_whole() -> None:
    tokenizer = Tokenizer.train("words", [["New York", "is"], "is big"], 9, lower=True)
    assert [tokenizer.token_of(place) for place in range(5, 8)] == ["is", "big", "new york"]
    assert tokenizer.encode(["New York", "IS"]).ids.tolist() == [2, 7, 5, 3]
    assert tokenizer.encode("big [MASK]").ids.tolist() == [2, 6, 4, 3]
    assert tokenizer.encode(["big", "[MASK]"]).ids.tolist() == [2, 6, 4, 3]
    assert tokenizer.decode([6, 5]) == "big is"
    assert tokenizer.vocab_size == 8


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_comes_back(kind: str, tmp_path: Path) -> None:
    tokenizer = trained(kind)
    path = tokenizer.save(tmp_path / "new")
    assert path == tmp_path / "new" / "tokenizer.json"
    again = Tokenizer.from_file(path.parent)
    assert again.vocab_size == tokenizer.vocab_size <= 320
    assert (again.pad_id, again.unk_id, again.cls_id, again.sep_id, again.mask_id) == (0, 1, 2, 3, 4)
    for text in (*TEXTS[:5], "unseen Ω words", "[MASK]"):
        assert again.encode(text, "cat", 12).ids.tolist() == tokenizer.encode(text, "cat", 12).ids.tolist()
    assert again.to_json() == tokenizer.to_json()
    assert again.token_of(10_000) is None and again.token_of(-1) is None and again.id_of("\x00no") is None


@pytest.mark.parametrize("kind", KINDS)
def test_training_does_not_depend_on_chance(kind: str) -> None:
    assert trained(kind).to_json() == trained(kind).to_json()


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_empty_texts(kind: str) -> None:
    tokenizer = trained(kind)
    for text in ("", " \t\n", []):
        found = tokenizer.encode(text)
        assert found.ids[[0, -1]].tolist() == [2, 3]
        assert found.offsets.shape == (len(found), 2)
    assert tokenizer.encode("", "").ids.tolist() == [2, 3, 3]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["a", "ab, ", "天气", "😀", "\u0301", "\x00"])
def test_a_hundred_thousand_characters_take_a_second(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    started = time.perf_counter()
    found = tokenizer.encode(text * (100_000 // len(text)), max_length=512)
    assert time.perf_counter() - started < 5
    assert len(found) <= 512


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_emoji_and_halves_of_surrogates(kind: str) -> None:
    tokenizer = trained(kind)
    text = "the 猫 عربي हिन्दी 한국어 👨‍👩‍👧 \ud83d x \x00\u202e"
    found = tokenizer.encode(text)
    assert found.offsets.max() <= len(text)
    assert (found.ids < tokenizer.vocab_size).all()
    assert tokenizer.encode([text, "\udc00"]).ids[-1] == 3
    assert isinstance(tokenizer.decode(found.ids), str)


def test_a_byte_level_vocabulary_knows_everything() -> None:
    tokenizer = trained("bpe")
    text = "ünknown 猫😀 \n end"
    found = tokenizer.encode(text)
    assert tokenizer.unk_id not in found.ids
    assert tokenizer.decode(found.ids) == text


@pytest.mark.parametrize("kind", KINDS)
def test_threads_get_what_one_gets(kind: str) -> None:
    tokenizer = trained(kind)
    alone = [tokenizer.encode(text, "cat").ids.tolist() for text in TEXTS]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            for place, text in enumerate(TEXTS):
                if tokenizer.encode(text, "cat").ids.tolist() != alone[place]:
                    wrong.append(place)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("text", [b"bytes", 3, None, [1, 2], ["a", None]])
def test_what_is_no_text(text: Any) -> None:
    with pytest.raises(InputError, match="the input of a tokenizer must be text"):
        trained("words").encode(text)


def test_bytes_are_decoded_first() -> None:
    with pytest.raises(InputError, match="decode bytes first"):
        trained("words").encode(b"bytes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "package"), [("wordpiece", "tokenizers"), ("bpe", "tokenizers"), ("unigram", "sentencepiece")]
)
def test_a_missing_library_is_named(kind: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"'{package}'[\s\S]*oar-toolkit\[nlp\]"):
        Tokenizer.train(kind, TEXTS, 300)


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [[], ["", "  "], [[]]])
def test_training_needs_texts(texts: list[Any]) -> None:
    with pytest.raises(ConfigError, match="no text to train"):
        Tokenizer.train("words", texts, 100)


@pytest.mark.parametrize(("kind", "size"), [("words", 5), ("characters", 0), ("bpe", 260)])
def test_training_needs_room(kind: Any, size: int) -> None:
    with pytest.raises(ConfigError, match=r"vocab_size: the vocabulary is too small"):
        Tokenizer.train(kind, TEXTS, size)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_every_letter_needs_room(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"vocab_size: the vocabulary is too small"):
        trained(kind, 12)


def test_an_unknown_kind() -> None:
    with pytest.raises(ConfigError, match=r"unknown kind of tokenizer[\s\S]*'sylables'[\s\S]*unigram"):
        Tokenizer.train("sylables", TEXTS, 100)  # type: ignore[arg-type]
