"""SentencePiece .model files as tokenizers of the library `tokenizers`, by the rules of the toolkits that wrote them:
LLaMA, Gemma, T5 and mT5, XLM-R, and any other by what the file itself says.

Sources: https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto (numbers of fields); the
    tokenizers of transformers 5 (what stands around the model)
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from framework.core.errors import FormatError
from framework.text.subwords import library

if TYPE_CHECKING:
    import tokenizers

_SPACE = "▁"
_UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = 2, 3, 4, 5, 6  # kinds of pieces
_UNIGRAM, _BPE = 1, 2
_T5_EXTRA = 100
_XLM_R = ("<s>", "<pad>", "</s>", "<unk>")


class PieceModel(NamedTuple):
    """What a .model file says.

    Attributes:
        kinds: Of each piece: 1 normal, 2 unknown, 3 control, 4 defined by the user, 5 unused, 6 a byte.
        algorithm: 1 unigram, 2 BPE.
        specials: unk, bos, eos and pad: number and text; -1 where there is none.
        charsmap: The compiled table of normalisation; b"" where texts stay as they are.
        prefix: A space is put before a text, or behind it with `suffix`.
        joined: Runs of spaces become one, and those at the ends go.
        suffix: A space belongs to the word before it.
    """

    tokens: list[str]
    scores: list[float]
    kinds: list[int]
    algorithm: int
    byte_fallback: bool
    specials: Mapping[str, tuple[int, str]]
    charsmap: bytes
    prefix: bool
    joined: bool
    suffix: bool = False


def parse_piece_model(data: bytes, where: object) -> PieceModel:
    """Raises: FormatError, where this is no SentencePiece model of subwords."""
    try:
        tokens, scores, kinds = [], [], []
        trainer, normalizer = _Message(b""), _Message(b"")
        for number, _, content in _fields(data):
            if number == 1:
                row = _Message(content)
                tokens.append(row.texts[1].decode("utf-8"))
                scores.append(struct.unpack("<f", row.texts.get(2, bytes(4)))[0])
                kinds.append(row.numbers.get(3, 1))
            elif number == 2:
                trainer = _Message(content)
            elif number == 3:
                normalizer = _Message(content)
        algorithm = trainer.numbers.get(3, _UNIGRAM)
        if not tokens or algorithm not in (_UNIGRAM, _BPE):
            raise ValueError(f"{len(tokens)} pieces, algorithm {algorithm}")
        defaults = {"unk": (0, "<unk>"), "bos": (1, "<s>"), "eos": (2, "</s>"), "pad": (-1, "<pad>")}
        specials = {}
        for index, (role, (number, text)) in enumerate(defaults.items()):
            number = trainer.numbers.get(40 + index, number)
            number = number - (1 << 64) if number >= 1 << 63 else number
            if 0 <= number < len(tokens):
                specials[role] = (number, trainer.texts.get(45 + index, text.encode()).decode("utf-8"))
        return PieceModel(
            tokens,
            scores,
            kinds,
            algorithm,
            bool(trainer.numbers.get(35, 0)),
            specials,
            normalizer.texts.get(2, b""),
            bool(normalizer.numbers.get(3, 1)),
            bool(normalizer.numbers.get(4, 1)),
            bool(trainer.numbers.get(24, 0)),
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise FormatError(
            "the file is not a SentencePiece model of subwords",
            where=where,
            received=f"{len(data)} bytes: {error}"[:160],
            allowed="a .model file of the kind unigram or bpe, as sentencepiece writes it",
            fix="copy the file again",
        ) from error


class _Message:
    """The last value of each field of a protobuf message: of whole numbers, and of texts and floats as bytes."""

    def __init__(self, data: bytes) -> None:
        self.numbers: dict[int, int] = {}
        self.texts: dict[int, bytes] = {}
        for field, number, content in _fields(data):
            if number is None:
                self.texts[field] = content
            else:
                self.numbers[field] = number


def _fields(data: bytes) -> Iterator[tuple[int, int | None, bytes]]:
    """Fields of a protobuf message: (its number, its value as a whole number, its bytes where it is none).

    Raises:
        ValueError, IndexError: this is no message.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value, b""
            continue
        if key & 7 == 2:
            size, at = _varint(data, at)
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
        else:
            raise ValueError(f"key {key} is none of protobuf")
        if size > len(data) - at:
            raise ValueError(f"a field of {size} bytes, and {len(data) - at} are left")
        yield key >> 3, None, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 10 bytes")


def merges_of(vocabulary: Mapping[str, int], tokens: list[str]) -> list[tuple[str, str]]:
    """Of BPE: every way to make a piece of two, in the order of the pieces, which is that of their scores."""
    merges = []
    for token in tokens:
        pairs = [
            (token[:cut], token[cut:])
            for cut in range(1, len(token))
            if token[:cut] in vocabulary and token[cut:] in vocabulary
        ]
        merges += sorted(pairs, key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
    return merges


def piece_tokenizer(model: PieceModel, settings: Mapping[str, object]) -> tokenizers.Tokenizer:
    """The tokenizer of a .model file, without what is put around texts.

    Args:
        settings: tokenizer_config.json. Its `tokenizer_class` says the rules: those of LLaMA, Gemma, T5, mT5 and XLM-R;
            of others those of the file count.
    """
    name = str(settings.get("tokenizer_class") or "")
    if name.startswith(("T5", "MT5", "UMT5")):
        return _t5(model, settings)
    if name.startswith("XLMRoberta"):
        return _xlm_roberta(model)
    core = _core(model)
    if name.startswith(("Llama", "CodeLlama")):
        set_llama_rules(core, settings)
    elif name.startswith("Gemma"):
        _set_gemma_rules(core)
    else:
        _set_file_rules(core, model)
        _add_symbols(core, model)
    _add_pieces(core, model)
    return core


def _core(model: PieceModel) -> tokenizers.Tokenizer:
    models = library().models
    unknown = model.specials.get("unk")
    if model.algorithm == _UNIGRAM:
        rows = list(zip(model.tokens, model.scores))
        return _tokenizer(models.Unigram(rows, None if unknown is None else unknown[0], model.byte_fallback))
    vocabulary = {token: number for number, token in enumerate(model.tokens)}
    normal = [
        token for token, kind in zip(model.tokens, model.kinds) if kind not in (_UNKNOWN, _CONTROL, _BYTE)
    ]
    merges = merges_of(vocabulary, normal)
    text = None if unknown is None else model.tokens[unknown[0]]
    return _tokenizer(
        models.BPE(vocabulary, merges, unk_token=text, fuse_unk=True, byte_fallback=model.byte_fallback)
    )


def _tokenizer(model: object) -> tokenizers.Tokenizer:
    return library().Tokenizer(model)


def _add_pieces(core: tokenizers.Tokenizer, model: PieceModel) -> None:
    """Control pieces count as special where they stand in a text, those of the user stay whole."""
    module = library()
    present = {token.content for token in core.get_added_tokens_decoder().values()}
    for content, kind in zip(model.tokens, model.kinds):
        if kind in (_CONTROL, _USER, _UNKNOWN) and content and content not in present:
            token = module.AddedToken(content, normalized=False, special=kind != _USER)
            (core.add_tokens if kind == _USER else core.add_special_tokens)([token])


def _add_symbols(core: tokenizers.Tokenizer, model: PieceModel) -> None:
    """Pieces of the user do not divide a text as sentencepiece normalises it: no space is put behind them. Those that
    are spelt otherwise in normalised texts are left to `_add_pieces`."""
    for symbol in _symbols(model):
        if core.normalizer.normalize_str(symbol) == symbol:  # type: ignore[union-attr]
            core.add_tokens([library().AddedToken(symbol, normalized=True, special=False)])


def _symbols(model: PieceModel) -> list[str]:
    return [token for token, kind in zip(model.tokens, model.kinds) if kind == _USER and token]


def set_llama_rules(core: tokenizers.Tokenizer, settings: Mapping[str, object]) -> None:
    """LLaMA's: a space before the text; with `legacy` also behind every special token.

    Source: LlamaTokenizer of transformers 5
    """
    module = library()
    prefix = settings.get("add_prefix_space") in (None, True)
    scheme = "never" if not prefix else "always" if settings.get("legacy") else "first"
    core.normalizer = None  # type: ignore[assignment]
    core.pre_tokenizer = module.pre_tokenizers.Metaspace(_SPACE, scheme, False)
    core.decoder = _decoder(True, prefix)


def _set_gemma_rules(core: tokenizers.Tokenizer) -> None:
    module = library()
    core.normalizer = module.normalizers.Replace(" ", _SPACE)
    core.pre_tokenizer = module.pre_tokenizers.Split(" ", "merged_with_previous")
    core.decoder = _decoder(True, False)


def _set_file_rules(core: tokenizers.Tokenizer, model: PieceModel) -> None:
    """As sentencepiece reads texts with this model: spaces are the one white space that it joins."""
    module = library()
    steps = [module.normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    if model.joined:
        steps += [_replace(r"\A +|[ ▁]+\z", ""), _replace(" {2,}", " ")]
    if model.prefix:
        # A text that is nothing but a symbol gets none: the library normalises the symbols themselves by these steps.
        symbols = [re.escape(symbol) for symbol in _symbols(model)]
        end = "|".join([r"\A", *(rf"\A{symbol}" for symbol in symbols)])
        start = "|".join([r"\z", *(rf"{symbol}\z" for symbol in symbols)])
        steps.append(_replace(rf"(?<!{end})\z" if model.suffix else rf"\A(?!{start})", _SPACE))
    steps.append(module.normalizers.Replace(" ", _SPACE))
    core.normalizer = module.normalizers.Sequence(steps)
    core.decoder = _decoder(model.byte_fallback, model.prefix and not model.suffix)


def _replace(pattern: str, text: str) -> tokenizers.normalizers.Normalizer:
    module = library()
    return module.normalizers.Replace(module.Regex(pattern), text)


def _decoder(bytes_: bool, prefix: bool) -> tokenizers.decoders.Decoder:
    decoders = library().decoders
    steps = [decoders.Replace(_SPACE, " "), *([decoders.ByteFallback()] if bytes_ else []), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)


def _set_word_rules(core: tokenizers.Tokenizer, model: PieceModel) -> None:
    """Of T5 and XLM-R: words divided at white space, each with a space before it."""
    module = library()
    if model.charsmap:
        core.normalizer = module.normalizers.Precompiled(model.charsmap)
    core.pre_tokenizer = module.pre_tokenizers.Sequence(
        [module.pre_tokenizers.WhitespaceSplit(), module.pre_tokenizers.Metaspace(_SPACE, "always")]
    )
    core.decoder = module.decoders.Metaspace(_SPACE, "always")


def _t5(model: PieceModel, settings: Mapping[str, object]) -> tokenizers.Tokenizer:
    """T5's: `extra_ids` sentinels stand behind the pieces, the last one first."""
    module = library()
    count = settings.get("extra_ids", _T5_EXTRA)
    extra = [f"<extra_id_{number}>" for number in reversed(range(count if isinstance(count, int) else 0))]
    rows = [*zip(model.tokens, model.scores), *((token, 0.0) for token in extra)]
    core = _tokenizer(module.models.Unigram(rows, model.specials["unk"][0], False))
    _set_word_rules(core, model)
    _add_pieces(core, model)
    core.add_special_tokens([module.AddedToken(token, normalized=False, special=True) for token in extra])
    return core


def _xlm_roberta(model: PieceModel) -> tokenizers.Tokenizer:
    """XLM-R's: the numbers are fairseq's, whose special tokens come first, and <mask> last."""
    module = library()
    rows = [(token, 0.0) for token in _XLM_R]
    rows += list(zip(model.tokens, model.scores))[3:]
    rows.append(("<mask>", 0.0))
    core = _tokenizer(module.models.Unigram(rows, 3, False))
    _set_word_rules(core, model)
    core.add_special_tokens([module.AddedToken(token, normalized=False, special=True) for token in _XLM_R])
    core.add_special_tokens([module.AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    return core
