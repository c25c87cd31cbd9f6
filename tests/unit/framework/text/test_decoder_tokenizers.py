"""Tokenizers of decoders: files in the published forms, special tokens in texts, and the stream of tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.core.errors import FormatError
from framework.text.piece_models import parse_piece_model
from framework.text.tokenizer import Tokenizer

sentencepiece = pytest.importorskip("sentencepiece")
tokenizers = pytest.importorskip("tokenizers")

TEXTS = [
    "the cat sat on the mat",
    "a dog, a cat",
    "she said: hello world",
    "你好,世界",
    "naïve café",
    "x = 1\n\ty",
] * 20
CHAT = "<|im_start|>user\nhi<|im_end|>\n"


def write(folder: Path, name: str, data: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BPE model with bytes, as LLaMA's."""
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "texts.txt"),
        model_prefix=str(folder / "bpe"),
        model_type="bpe",
        vocab_size=330,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return folder / "bpe.model"


def llama(pieces: Path, folder: Path, **settings: object) -> Tokenizer:
    write(folder, "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", **settings})
    (folder / "tokenizer.model").write_bytes(pieces.read_bytes())
    return Tokenizer.from_file(folder)


def byte_level(folder: Path, special: tuple[str, ...], **settings: object) -> Tokenizer:
    core = tokenizers.Tokenizer(tokenizers.models.BPE())
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(TEXTS, tokenizers.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    core.add_special_tokens(list(special))
    folder.mkdir(exist_ok=True)
    core.save(str(folder / "tokenizer.json"))
    write(folder, "tokenizer_config.json", settings)
    return Tokenizer.from_file(folder)


@pytest.mark.parametrize("text", ["the cat", " two  spaces ", "naïve 😀", "x\n\ty", "", "a" * 5000])
def test_a_llama_model_gives_the_ids_of_sentencepiece(pieces: Path, tmp_path: Path, text: str) -> None:
    """Of a text that begins with a space transformers makes one space less than sentencepiece."""
    ours = llama(pieces, tmp_path / "llama")
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    expected = theirs.encode(text.removeprefix(" "))
    assert ours.encode(text, add_special=False).ids.tolist() == expected
    assert ours.encode(text).ids.tolist() == [1, *expected]


def test_a_model_without_settings_is_read_as_its_file_says(pieces: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(pieces.read_bytes())
    ours = Tokenizer.from_file(tmp_path)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    for text in ("  the cat ", "naïve 😀", "x\n\ty"):
        assert ours.encode(text, add_special=False).ids.tolist() == theirs.encode(text)
        assert ours.decode(ours.encode(text).ids) == theirs.decode(theirs.encode(text))
    assert (ours.bos_id, ours.eos_id) == (1, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"normalization_rule_name": "identity"},
        {"user_defined_symbols": "<sep>,<mask>"},
        {"user_defined_symbols": "<sep>", "remove_extra_whitespaces": False},
        {"user_defined_symbols": "<sep>,<SEP>,①", "normalization_rule_name": "nfkc_cf"},
        {"treat_whitespace_as_suffix": True, "user_defined_symbols": "<mask>"},
    ],
)
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_spaces_and_symbols_are_those_of_sentencepiece(tmp_path: Path, kind: str, options: dict) -> None:
    """No space stands behind a symbol of the user, line ends are no spaces, and a space may end a word."""
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "texts.txt"),
        model_prefix=str(tmp_path / "tokenizer"),
        model_type=kind,
        vocab_size=300,
        byte_fallback=True,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    ours = Tokenizer.from_file(tmp_path, {"tokenizer_class": "InternLMTokenizer"})
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    texts = [
        "a dog",
        "  a  dog ",
        "\na\n",
        "a<sep>cat",
        "<sep>cat sat <sep> on",
        "the<mask>",
        "\u00a0a\u3000",
        "",
        " ",
    ]
    for text in [*texts, "a▁ "]:
        assert ours.encode(text, add_special=False).ids.tolist() == theirs.encode(text), text


def test_settings_say_what_begins_and_ends_texts(pieces: Path, tmp_path: Path) -> None:
    both = llama(pieces, tmp_path / "a", add_bos_token=True, add_eos_token=True)
    none = llama(pieces, tmp_path / "b", add_bos_token=False)
    assert both.encode("a dog").ids.tolist() == [1, *none.encode("a dog").ids.tolist(), 2]
    assert both.encode("a dog", add_special=False).ids.tolist() == none.encode("a dog").ids.tolist()


def test_a_caller_says_what_stands_around_texts(tmp_path: Path) -> None:
    """As the embedder of intfloat/e5-mistral-7b-instruct: huggingface/sentence-transformers#2591."""
    folder = tmp_path / "a"
    tokenizer = byte_level(folder, ("<s>", "</s>"), bos_token="<s>", eos_token="</s>", add_eos_token=True)
    bare = tokenizer.encode("a dog").ids.tolist()
    assert tokenizer.eos_id not in bare  # tokenizer.json has what is put around texts
    both = Tokenizer.from_file(folder, {"add_eos_token": True, "add_bos_token": True})
    assert both.encode("a dog").ids.tolist() == [tokenizer.bos_id, *bare, tokenizer.eos_id]


def test_settings_name_a_piece_anew(pieces: Path, tmp_path: Path) -> None:
    """As 01-ai/Yi-34B-Chat: huggingface/tokenizers#1444."""
    rows = {"1": {"content": "<|start|>", "special": True}, "5": {"content": "<|im_end|>", "special": True}}
    tokenizer = llama(
        pieces, tmp_path, added_tokens_decoder=rows, bos_token="<|start|>", eos_token="<|im_end|>"
    )
    assert (tokenizer.bos_id, tokenizer.eos_id) == (1, 5)
    assert tokenizer.encode("a dog<|im_end|>").ids[[0, -1]].tolist() == [1, 5]
    assert tokenizer.decode(tokenizer.encode("a dog<|im_end|>").ids) == "a dog"


def test_legacy_llama_puts_a_space_behind_special_tokens(pieces: Path, tmp_path: Path) -> None:
    new, old = llama(pieces, tmp_path / "a", legacy=False), llama(pieces, tmp_path / "b", legacy=True)
    assert new.decode(new.encode("<s>cat").ids) == old.decode(old.encode("<s>cat").ids) == "cat"
    tokens = [[one.token_of(i) for i in one.encode("</s>dog", add_special=False).ids] for one in (new, old)]
    assert not str(tokens[0][1]).startswith("▁") and str(tokens[1][1]).startswith("▁")


def test_special_tokens_in_texts_are_parsed_unless_told_not_to(tmp_path: Path) -> None:
    tokenizer = byte_level(
        tmp_path / "a", ("<|im_start|>", "<|im_end|>"), eos_token="<|im_end|>", bos_token=None
    )
    start, end = tokenizer.id_of("<|im_start|>"), tokenizer.id_of("<|im_end|>")
    parsed = tokenizer.encode(CHAT).ids.tolist()
    literal = tokenizer.encode(CHAT, parse_special=False).ids.tolist()
    assert parsed[0] == start and end in parsed and not {start, end} & set(literal)
    assert tokenizer.decode(parsed) == "user\nhi\n" and tokenizer.decode(literal) == CHAT
    assert tokenizer.decode(parsed, skip_special=False) == CHAT
    assert (tokenizer.bos_id, tokenizer.eos_id) == (None, end)
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.encode(CHAT, parse_special=False).ids.tolist() == literal and again.eos_id == end


def test_tokens_of_the_settings_are_added(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    size = byte_level(folder, ()).vocab_size
    row = {"content": "<tool>", "special": False, "normalized": False}
    write(folder, "tokenizer_config.json", {"added_tokens_decoder": {str(size): row}, "eos_token": "<end>"})
    tokenizer = Tokenizer.from_file(folder)
    ids = tokenizer.encode("a<tool>b<end>").ids.tolist()
    assert ids.count(size) == 1 and ids[-1] == tokenizer.eos_id == size + 1
    assert tokenizer.decode(ids) == "a<tool>b"
    write(folder, "tokenizer_config.json", {"added_tokens_decoder": {"3": row}})
    with pytest.raises(FormatError, match="has another number"):
        Tokenizer.from_file(folder)


def test_qwen_files_divide_numbers_and_lines(tmp_path: Path) -> None:
    core = byte_level(tmp_path / "a", ()).segmenter.core  # type: ignore[attr-defined]
    model = json.loads(core.to_str())["model"]
    write(tmp_path / "b", "vocab.json", model["vocab"])
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    (tmp_path / "b" / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    write(tmp_path / "b", "tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer", "unk_token": None})
    tokenizer = Tokenizer.from_file(tmp_path / "b")
    assert [tokenizer.token_of(one) for one in tokenizer.encode("12\n\n").ids] == ["1", "2", "Ċ", "Ċ"]
    composed, combining = "caf\u00e9", "cafe\u0301"
    assert tokenizer.encode(combining).ids.tolist() == tokenizer.encode(composed).ids.tolist()


def test_damaged_models_are_refused(pieces: Path) -> None:
    data = pieces.read_bytes()
    for damaged in (b"", b"\x0a\xff", data[: len(data) // 2 + 1], data[::-1]):
        with pytest.raises(FormatError, match="not a SentencePiece model"):
            parse_piece_model(damaged, "a.model")
