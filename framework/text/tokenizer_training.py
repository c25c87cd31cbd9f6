"""New vocabularies from texts."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

from framework.core.errors import ConfigError
from framework.text import sentence_pieces, subwords
from framework.text.lookup import Lookup
from framework.text.segmenter import Kind, Segmenter, TokenizerParts
from framework.text.sentence_pieces import SentencePieces
from framework.text.subwords import Subwords
from framework.text.tokenizer_files import surround_as_bert, word_piece
from framework.text.words import split_characters, split_words

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_BYTES = 256


def train_tokenizer(
    kind: Kind, texts: Iterable[str | Sequence[str]], vocab_size: int, lower: bool
) -> TokenizerParts:
    """See `Tokenizer.train`."""
    if kind not in get_args(Kind):
        raise ConfigError("unknown kind of tokenizer", received=repr(kind), allowed=", ".join(get_args(Kind)))
    smallest = len(SPECIAL) + (_BYTES if kind == "bpe" else 1)
    if vocab_size < smallest:
        raise ConfigError(
            "the vocabulary is too small",
            where="vocab_size",
            received=vocab_size,
            allowed=f"{smallest} or more for {kind}",
        )
    read = _NonBlank(texts)
    if kind in ("words", "characters"):
        segmenter: Segmenter = _make_lookup(kind, read, vocab_size, lower)
    else:
        plain = (text if isinstance(text, str) else " ".join(text) for text in read)
        segmenter = {
            "unigram": _train_unigram,
            "bpe": _train_bpe,
            "wordpiece": _train_word_piece,
            "spaced_characters": _train_characters,
        }[kind](plain, vocab_size, lower)
    return surround_as_bert(segmenter, SPECIAL)


class _NonBlank:
    """Texts as they are, but for blank ones. Raises: ConfigError, where there is none."""

    def __init__(self, texts: Iterable[str | Sequence[str]]) -> None:
        self.texts = texts

    def __iter__(self) -> Iterator[str | Sequence[str]]:
        empty = True
        for text in self.texts:
            if text and not (isinstance(text, str) and text.isspace()):
                empty = False
                yield text
        if empty:
            raise ConfigError("there is no text to train a tokenizer on", received="no texts, or blank ones")


def _make_lookup(
    kind: Literal["words", "characters"], texts: Iterable[str | Sequence[str]], vocab_size: int, lower: bool
) -> Lookup:
    counts: Counter[str] = Counter()
    for text in texts:
        if isinstance(text, str):
            words = (split_words if kind == "words" else split_characters)(text)[0]
        else:
            words = text if kind == "words" else split_characters("".join(text))[0]
        counts.update(token.lower() if lower else token for token in words)
    special = list(SPECIAL.values())
    # Of tokens that are equally common the one that sorts first: the order of the texts does not matter.
    ordered = sorted(
        (token for token in counts if token not in special), key=lambda token: (-counts[token], token)
    )
    return Lookup(kind, special + ordered[: vocab_size - len(special)], SPECIAL["unk"], lower)


def _train_word_piece(texts: Iterator[str], vocab_size: int, lower: bool) -> Subwords:
    module = subwords.library()
    core = module.Tokenizer(module.models.WordPiece(unk_token=SPECIAL["unk"]))
    core.normalizer = module.normalizers.BertNormalizer(lowercase=lower)
    core.pre_tokenizer = module.pre_tokenizers.BertPreTokenizer()
    corpus = list(texts)
    # The library numbers letters inside of words by chance and breaks ties by number: they are numbered here.
    inside: set[str] = set()
    for text in corpus:
        for word, _ in core.pre_tokenizer.pre_tokenize_str(core.normalizer.normalize_str(text)):
            inside.update(word[1:])
    first = [*SPECIAL.values(), *(f"##{letter}" for letter in sorted(inside))]
    trainer = module.trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=first, show_progress=False
    )
    core.train_from_iterator(corpus, trainer)
    trained = word_piece(core.get_vocab(), {"do_lower_case": lower}, "training")
    assert isinstance(trained.segmenter, Subwords)
    return _check_size(trained.segmenter, vocab_size)


def _train_bpe(texts: Iterator[str], vocab_size: int, lower: bool) -> Subwords:
    module = subwords.library()
    core = module.Tokenizer(module.models.BPE())
    if lower:
        core.normalizer = module.normalizers.Lowercase()
    core.pre_tokenizer = module.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.post_processor = module.processors.ByteLevel(trim_offsets=True)
    core.decoder = module.decoders.ByteLevel()
    trainer = module.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=module.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    return _check_size(Subwords(core), vocab_size)


def _train_characters(texts: Iterator[str], vocab_size: int, lower: bool) -> Subwords:
    """Each character is a token, spaces and line ends too: what is decoded is the text."""
    counts: Counter[str] = Counter({"\n": 1})  # files are read line by line, without their ends
    for text in texts:
        counts.update(text.lower() if lower else text)
    ordered = sorted(counts, key=lambda token: (-counts[token], token))
    tokens = [*SPECIAL.values(), *ordered[: vocab_size - len(SPECIAL)]]
    module = subwords.library()
    core = module.Tokenizer(
        module.models.WordLevel(
            {token: number for number, token in enumerate(tokens)}, unk_token=SPECIAL["unk"]
        )
    )
    if lower:
        core.normalizer = module.normalizers.Lowercase()
    core.pre_tokenizer = module.pre_tokenizers.Split(module.Regex(r"[\s\S]"), "isolated")
    core.decoder = module.decoders.Fuse()
    core.add_special_tokens(list(SPECIAL.values()))
    return Subwords(core)


def _check_size(segmenter: Subwords, vocab_size: int) -> Subwords:
    if segmenter.size > vocab_size:  # every letter of the texts is a token
        raise _size_error(
            vocab_size, f"{segmenter.size} or more: every letter of the texts is one of its tokens"
        )
    return segmenter


def _train_unigram(texts: Iterator[str], vocab_size: int, lower: bool) -> SentencePieces:
    module = sentence_pieces.library()
    file = io.BytesIO()
    try:
        module.SentencePieceTrainer.Train(
            sentence_iterator=texts,
            model_writer=file,
            model_type="unigram",
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            max_sentence_length=1 << 20,  # bytes; a longer one is left out
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece=SPECIAL["pad"],
            unk_piece=SPECIAL["unk"],
            control_symbols=[SPECIAL[role] for role in ("cls", "sep", "mask")],
            num_threads=1,  # with more the scores differ in their last digits from run to run
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _size_error(vocab_size, f"sentencepiece says: {str(error)[-160:]}") from error
    return SentencePieces(file.getvalue(), lower, not lower, tuple(SPECIAL.values()))


def _size_error(vocab_size: int, allowed: str) -> ConfigError:
    return ConfigError(
        "the vocabulary is too small", where="vocab_size", received=vocab_size, allowed=allowed
    )
