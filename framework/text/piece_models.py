"""SentencePiece .model files as tokenizers of the library `tokenizers`, by the rules of the toolkits that wrote them:
LLaMA, Gemma, T5 and mT5, XLM-R, and any other by what the file itself says.

Sources: https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto (numbers of fields); the
    tokenizers of transformers 5 (what stands around the model)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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
        prefix: A space is put before a text.
        joined: Runs of spaces become one, and those at the ends go.
    """

    pieces: list[str]
    scores: list[float]
    kinds: list[int]
    algorithm: int
    byte_fallback: bool
    specials: Mapping[str, tuple[int, str]]
    charsmap: bytes
    prefix: bool
    joined: bool


def parse_piece_model(data: bytes, where: object) -> PieceModel:
    """Raises: FormatError, where this is no SentencePiece model of subwords."""
    try:
        pieces, scores, kinds = [], [], []
        trainer: dict[int, Any] = {}
        normalizer: dict[int, Any] = {}
        for number, value in _fields(data):
            if number == 1:
                piece = dict(_fields(value))
                pieces.append(piece[1].decode("utf-8"))
                scores.append(struct.unpack("<f", piece.get(2, bytes(4)))[0])
                kinds.append(piece.get(3, 1))
            elif number == 2:
                trainer = dict(_fields(value))
            elif number == 3:
                normalizer = dict(_fields(value))
        algorithm = trainer.get(3, _UNIGRAM)
        if not pieces or algorithm not in (_UNIGRAM, _BPE):
            raise ValueError(f"{len(pieces)} pieces, algorithm {algorithm}")
        defaults = {"unk": (0, "<unk>"), "bos": (1, "<s>"), "eos": (2, "</s>"), "pad": (-1, "<pad>")}
        specials = {}
        for place, (role, (number, text)) in enumerate(defaults.items()):
            said = trainer.get(40 + place, number)
            said = said - (1 << 64) if said >= 1 << 63 else said
            if 0 <= said < len(pieces):
                specials[role] = (said, trainer.get(45 + place, text.encode()).decode("utf-8"))
        return PieceModel(
            pieces,
            scores,
            kinds,
            algorithm,
            bool(trainer.get(35, 0)),
            specials,
            normalizer.get(2, b""),
            bool(normalizer.get(3, 1)),
            bool(normalizer.get(4, 1)),
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise FormatError(
            "the file is not a SentencePiece model of subwords",
            where=where,
            received=f"{len(data)} bytes: {error}"[:160],
            allowed="a .model file of the kind unigram or bpe, as sentencepiece writes it",
            fix="copy the file again",
        ) from error


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a protobuf message: ints, or bytes. Raises: ValueError, IndexError."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = _varint(data, at)
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
        else:
            raise ValueError(f"key {key} is none of protobuf")
        if size > len(data) - at:
            raise ValueError(f"a field of {size} bytes, and {len(data) - at} are left")
        yield key >> 3, data[at : at + size]
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


def merges_of(vocabulary: Mapping[str, int], pieces: list[str]) -> list[tuple[str, str]]:
    """Of BPE: every way to make a piece of two, in the order of the pieces, which is that of their scores."""
    merges = []
    for piece in pieces:
        pairs = [
            (piece[:cut], piece[cut:])
            for cut in range(1, len(piece))
            if piece[:cut] in vocabulary and piece[cut:] in vocabulary
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
    _add_pieces(core, model)
    return core


def _core(model: PieceModel) -> tokenizers.Tokenizer:
    models = library().models
    unknown = model.specials.get("unk")
    if model.algorithm == _UNIGRAM:
        rows = list(zip(model.pieces, model.scores))
        return _tokenizer(models.Unigram(rows, None if unknown is None else unknown[0], model.byte_fallback))
    vocabulary = {piece: number for number, piece in enumerate(model.pieces)}
    normal = [
        piece for piece, kind in zip(model.pieces, model.kinds) if kind not in (_UNKNOWN, _CONTROL, _BYTE)
    ]
    merges = merges_of(vocabulary, normal)
    text = None if unknown is None else model.pieces[unknown[0]]
    return _tokenizer(
        models.BPE(vocabulary, merges, unk_token=text, fuse_unk=True, byte_fallback=model.byte_fallback)
    )


def _tokenizer(model: object) -> tokenizers.Tokenizer:
    return library().Tokenizer(model)


def _add_pieces(core: tokenizers.Tokenizer, model: PieceModel) -> None:
    """Control pieces count as special where they stand in a text, those of the user stay whole."""
    module = library()
    for piece, kind in zip(model.pieces, model.kinds):
        if kind in (_CONTROL, _USER, _UNKNOWN) and piece:
            token = module.AddedToken(piece, normalized=False, special=kind != _USER)
            (core.add_tokens if kind == _USER else core.add_special_tokens)([token])


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
    """As sentencepiece reads texts with this model."""
    module = library()
    steps = [module.normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    if model.joined:
        steps += [
            module.normalizers.Strip(),
            module.normalizers.Replace(module.Regex(" {2,}"), " "),
        ]
    if model.prefix:
        steps.append(module.normalizers.Prepend(" "))
    steps.append(module.normalizers.Replace(" ", _SPACE))
    core.normalizer = module.normalizers.Sequence(steps)
    core.decoder = _decoder(model.byte_fallback, model.prefix)


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
    rows = [*zip(model.pieces, model.scores), *((token, 0.0) for token in extra)]
    core = _tokenizer(module.models.Unigram(rows, model.specials["unk"][0], False))
    _set_word_rules(core, model)
    _add_pieces(core, model)
    core.add_special_tokens([module.AddedToken(token, normalized=False, special=True) for token in extra])
    return core


def _xlm_roberta(model: PieceModel) -> tokenizers.Tokenizer:
    """XLM-R's: the numbers are fairseq's, whose special tokens come first, and <mask> last."""
    module = library()
    rows = [(token, 0.0) for token in _XLM_R]
    rows += [(piece, score) for piece, score in list(zip(model.pieces, model.scores))[3:]]
    rows.append(("<mask>", 0.0))
    core = _tokenizer(module.models.Unigram(rows, 3, False))
    _set_word_rules(core, model)
    core.add_special_tokens([module.AddedToken(token, normalized=False, special=True) for token in _XLM_R])
    core.add_special_tokens([module.AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    return core
