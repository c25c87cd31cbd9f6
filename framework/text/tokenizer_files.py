"""Tokenizers from the files that toolkits write.

Sources: PaddleNLP 2.6 and transformers 4 (names of files and settings, special tokens and how they are put around).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.core import bounded
from framework.core.errors import FormatError, InputError, OarError
from framework.text.library_files import (
    QWEN_WORDS,
    apply_settings,
    class_tokens,
    library_frames,
    library_roles,
    number_error,
    token_name,
)
from framework.text.lookup import Lookup
from framework.text.piece_models import parse_piece_model, piece_tokenizer
from framework.text.segmenter import ALL_ROLES, FORMAT, ROLES, Frame, Segmenter, TokenizerParts
from framework.text.sentence_pieces import SentencePieces
from framework.text.subwords import Subwords, check_vocab_size, library

if TYPE_CHECKING:
    import tokenizers

_BERT = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_ROBERTA = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
_ALBERT = {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_MPNET = {"pad": "<pad>", "unk": "[UNK]", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
_GPT = {"unk": "<|endoftext|>", "cls": "<|endoftext|>", "sep": "<|endoftext|>"}
_MODELS = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", *_MODELS)
_PLAIN: tuple[Frame, Frame] = ((("A", 0),), (("A", 0), ("B", 1)))
_AROUND = ("add_bos_token", "add_eos_token")
_MERGES = "merges.txt"  # beside vocab.json
_SETTINGS = ("special_tokens_map.json", "tokenizer_config.json")
_ADDED = "added_tokens.json"
_CONFIG = "config.json"  # of the model: its kind
# Characters that PaddleNLP's WordPiece takes for symbols although Unicode does not.
_SYMBOLS = r"[\p{S}\x{00AD}\x{00B2}\x{00BA}\x{3007}\x{00B5}\x{00D8}\x{014B}\x{01B1}]"


def file_states(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of change of each file that `read_tokenizer` reads of a path; () where there is none."""
    if path.is_dir():
        files = [path / name for name in (*_FILES, _MERGES, *_SETTINGS, _ADDED, _CONFIG)]
    else:
        files = [path, path.with_name(_MERGES)]
    states = []
    for file in files:
        with suppress(OSError):
            about = file.stat()
            states.append((file.name, about.st_size, about.st_mtime_ns))
    return tuple(states)


def read_tokenizer(path: Path, settings: Mapping[str, object]) -> TokenizerParts:
    """See `Tokenizer.from_file`."""
    with damage_errors(path):
        return _read_tokenizer(path, settings)


@contextmanager
def damage_errors(where: object) -> Iterator[None]:
    """Turns whatever is raised of a damaged tokenizer, by the libraries too, into one kind of error.

    Raises:
        FormatError: in the place of all but our own errors.
    """
    try:
        yield
    except OarError:
        raise
    except BaseException as error:  # panics of the library `tokenizers` are no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise FormatError(
            "the tokenizer is damaged",
            where=where,
            received=f"{type(error).__name__}: {error}"[:200],
            allowed="a file as its library, or Tokenizer.save, wrote it",
            fix="copy the file again",
        ) from error


def _read_tokenizer(path: Path, settings: Mapping[str, object]) -> TokenizerParts:
    if path.is_dir():
        files = [path / name for name in _FILES if (path / name).is_file()]
        of_folder = folder_settings(path)
        if files and files[0].name == _FILES[0]:  # which has what is put around texts itself
            of_folder = {key: value for key, value in of_folder.items() if key not in _AROUND}
        settings = {**_model_type(path), **of_folder, **settings}
        if not files:
            raise InputError(
                "there is no tokenizer in the folder",
                where=path,
                received=", ".join(sorted(file.name for file in path.iterdir())[:10]) or "an empty folder",
                allowed=", ".join(_FILES),
            )
        path = files[0]
    tokenizer = _read_file(path, settings)
    side = settings.get("truncation_side", tokenizer.truncation_side)
    return tokenizer._replace(truncation_side="left" if side == "left" else "right")


def _read_file(path: Path, settings: Mapping[str, object]) -> TokenizerParts:
    if path.suffix == ".model":
        return _read_sentence_pieces(path, settings)
    if path.name == "vocab.json":
        return _read_byte_level(path, settings)
    if path.name == _MERGES:
        return _read_byte_level(path.with_name("vocab.json"), settings)
    if path.suffix == ".json":
        return parse_tokenizer(_read_text(path), path, settings)
    if path.suffix == ".txt":
        return word_piece(_read_vocabulary(path), settings, path)
    _read_bytes(path)
    raise FormatError(
        "the file is not of a known tokenizer format",
        where=path,
        received=f"a name that ends in {path.suffix or 'nothing'}",
        allowed=f"{', '.join(_FILES)}, or a folder with one of them",
    )


def parse_tokenizer(text: str, where: object, settings: Mapping[str, object]) -> TokenizerParts:
    """A tokenizer from JSON: this toolkit's, or the library's."""
    data = _parse_json(text, where)
    if "oar_tokenizer" not in data:
        if "model" not in data:
            raise FormatError(
                "the JSON file does not hold a tokenizer",
                where=where,
                received=f"keys {', '.join(list(data)[:8]) or 'none'}",
                allowed="a tokenizer.json, or vocab.json with merges.txt beside it",
            )
        return _parse_library_file(text, data, where, settings)
    if data["oar_tokenizer"] != FORMAT:
        raise FormatError(
            "a tokenizer of another format",
            where=where,
            received=f"format {data['oar_tokenizer']}",
            allowed=f"format {FORMAT}",
            fix="train it again with this version of Oar",
        )
    with damage_errors(where):
        frames = [tuple((item, int(kind)) for item, kind in data[name]) for name in ("single", "pair")]
        roles = {str(role): str(token) for role, token in data["roles"].items()}
        side = "left" if data.get("truncation_side") == "left" else "right"
        return TokenizerParts(_make_segmenter(data, where), roles, frames[0], frames[1], side)


def _make_segmenter(data: dict[str, Any], where: object) -> Segmenter:
    if data["kind"] in ("words", "characters"):
        return Lookup(data["kind"], data["tokens"], data["roles"]["unk"], data["lower"])
    if data["kind"] == "sentencepiece":
        model = base64.b64decode(data["model"], validate=True)
        return SentencePieces(model, data["lower"], data["keep_accents"], data["special"], where)
    if data["kind"] == "tokenizers":
        return Subwords.from_json(json.dumps(data["model"], ensure_ascii=False), where)
    raise ValueError(f"kind {data['kind']!r}")


# -- WordPiece ---------------------------------------------------------------------------------------------------------


def word_piece(
    vocabulary: Mapping[str, int], settings: Mapping[str, object], where: object
) -> TokenizerParts:
    """BERT's tokenizer; with the class of ERNIE in the settings every symbol is a word, as in PaddleNLP's; with that of
    MPNet texts are framed as RoBERTa's.

    Raises:
        FormatError: the vocabulary lacks [UNK], [CLS], [SEP] or [PAD].
    """
    module = library()
    kind = str(settings.get("tokenizer_class") or settings.get("model_type") or "").lower()
    usual = _MPNET if kind.startswith("mpnet") else _BERT
    roles = _find_roles(settings, usual, vocabulary, where, optional=("mask",))
    core = module.Tokenizer(
        module.models.WordPiece(dict(vocabulary), unk_token=roles["unk"], max_input_chars_per_word=100)
    )
    core.normalizer = module.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        strip_accents=settings.get("strip_accents"),
        lowercase=bool(settings.get("do_lower_case", True)),
    )
    core.pre_tokenizer = module.pre_tokenizers.BertPreTokenizer()
    if str(settings.get("tokenizer_class", "")).startswith("Ernie"):
        symbols = module.pre_tokenizers.Split(module.Regex(_SYMBOLS), "isolated")
        core.pre_tokenizer = module.pre_tokenizers.Sequence([core.pre_tokenizer, symbols])
    core.decoder = module.decoders.WordPiece(prefix="##")
    _add_special(core, roles, settings, where)
    return (surround_as_bert if usual is _BERT else _surround_as_roberta)(Subwords(core), roles)


def _read_vocabulary(path: Path) -> dict[str, int]:
    lines = [line.removesuffix("\r") for line in _read_text(path).split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    return {token: number for number, token in enumerate(lines)}


# -- byte-level BPE ----------------------------------------------------------------------------------------------------


def _read_byte_level(path: Path, settings: Mapping[str, object]) -> TokenizerParts:
    """RoBERTa's tokenizer where <s> and </s> are in the vocabulary, else GPT-2's, which puts nothing around a text."""
    module = library()
    vocabulary = _parse_json(_read_text(path), path)
    if not all(type(number) is int and number >= 0 for number in vocabulary.values()):
        raise FormatError("a vocabulary gives each token a number", where=path, allowed='{"token": 0, …}')
    check_vocab_size(max(vocabulary.values(), default=-1) + 1, path)
    merges = _read_merges(path.with_name(_MERGES))
    is_roberta = "<s>" in vocabulary and "</s>" in vocabulary
    usual = _ROBERTA if is_roberta else _GPT
    optional = ("pad", "mask") if is_roberta else ALL_ROLES
    roles = _find_roles(settings, usual, vocabulary, path, optional)
    try:
        model = module.models.BPE(vocabulary, merges, unk_token=roles.get("unk"))
    except Exception as error:  # the library raises nothing narrower
        raise FormatError(
            "vocab.json and merges.txt do not belong together",
            where=path,
            received=str(error)[:200],
            fix="copy both from one place",
        ) from error
    prefix = bool(settings.get("add_prefix_space", False))
    core = module.Tokenizer(model)
    core.pre_tokenizer = module.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    core.post_processor = module.processors.ByteLevel(trim_offsets=True)
    core.decoder = module.decoders.ByteLevel()
    if not is_roberta:
        if str(settings.get("tokenizer_class") or "").startswith("Qwen2"):
            core.normalizer = module.normalizers.NFC()
            words = module.pre_tokenizers.Split(module.Regex(QWEN_WORDS), "isolated")
            rest = module.pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)
            core.pre_tokenizer = module.pre_tokenizers.Sequence([words, rest])
        return _library_parts(core, settings, _PLAIN, (_GPT,), path)
    _add_special(core, roles, settings, path)
    return _surround_as_roberta(Subwords(core), roles)


def _read_merges(path: Path) -> list[tuple[str, str]]:
    merges = []
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = line.split(" ")
        if len(pair) != 2:
            raise FormatError(
                "a merge is two tokens", where=f"{path}, line {number}", received=repr(line[:80])
            )
        merges.append((pair[0], pair[1]))
    return merges


# -- SentencePiece -----------------------------------------------------------------------------------------------------


def _read_sentence_pieces(path: Path, settings: Mapping[str, object]) -> TokenizerParts:
    model = _read_bytes(path)
    made_for = settings.get("tokenizer_class")
    if not str(made_for or "Albert").startswith("Albert") or (
        made_for is None and not _is_alberts(model, path)
    ):
        return _read_piece_model(model, settings, path)
    lower = bool(settings.get("do_lower_case", True))
    keep_accents = bool(settings.get("keep_accents", False))
    bare = SentencePieces(model, lower, keep_accents, (), path)
    vocabulary = {str(bare.token_of(number)): number for number in range(bare.size)}
    roles = _find_roles(settings, _ALBERT, vocabulary, path, optional=("pad", "mask"))
    for number, token in sorted(_added_tokens(settings, path).items()):
        if vocabulary.get(token) != number:
            raise number_error(token, number, vocabulary.get(token), path)
    return surround_as_bert(SentencePieces(model, lower, keep_accents, tuple(roles.values()), path), roles)


def _is_alberts(model: bytes, path: Path) -> bool:
    """Whether a model that no settings stand beside has ALBERT's special tokens, or is none at all."""
    return SentencePieces(model, False, False, (), path).id_of(_ALBERT["cls"]) is not None


def _read_piece_model(model: bytes, settings: Mapping[str, object], path: Path) -> TokenizerParts:
    content = parse_piece_model(model, path)
    names = {
        number: token
        for number, token in _added_tokens(settings, path).items()
        if token not in content.tokens
    }
    # Fine-tuned models call an unused piece by another name.
    content = content._replace(
        tokens=[names.get(number, token) for number, token in enumerate(content.tokens)]
    )
    core = piece_tokenizer(content, settings)
    named = {role: content.tokens[number] for role, (number, _) in content.specials.items()}
    usual = class_tokens(settings)
    if not usual:
        settings = {**{f"{role}_token": token for role, token in named.items()}, **settings}
    frames = _PLAIN
    first, last = (
        None if (token := token_name(settings, role, usual or named)) is None else core.token_to_id(token)
        for role in ("bos", "eos")
    )
    name = str(settings.get("tokenizer_class") or "")
    if name.startswith(("T5", "MT5", "UMT5")) and last is not None:
        frames = ((("A", 0), (last, 0)), (("A", 0), (last, 0), ("B", 0), (last, 0)))
    elif name.startswith("XLMRoberta") and first is not None and last is not None:
        single = ((first, 0), ("A", 0), (last, 0))
        frames = (single, (*single, (last, 0), ("B", 0), (last, 0)))
    elif first is not None:  # as the models were trained
        frames = (((first, 0), ("A", 0)), ((first, 0), ("A", 0), (first, 1), ("B", 1)))
    return _library_parts(core, settings, frames, (), path)


# -- tokenizer.json of the library -------------------------------------------------------------------------------------


def _parse_library_file(
    text: str, data: dict[str, Any], where: object, settings: Mapping[str, object]
) -> TokenizerParts:
    core = Subwords.from_json(text, where).core
    frames = _read_frames(data.get("post_processor"), where)
    tokenizer = _library_parts(core, settings, frames, (_BERT, _ROBERTA, _GPT), where)
    cut = data.get("truncation")
    is_left = isinstance(cut, dict) and cut.get("direction") == "Left"
    return tokenizer._replace(truncation_side="left") if is_left else tokenizer


def _library_parts(
    core: tokenizers.Tokenizer,
    settings: Mapping[str, object],
    frames: tuple[Frame, Frame],
    fallbacks: tuple[Mapping[str, str], ...],
    where: object,
) -> TokenizerParts:
    if "added_tokens" in settings and "added_tokens_decoder" not in settings:
        rows = {str(number): {"content": token} for number, token in _added_tokens(settings, where).items()}
        settings = {**settings, "added_tokens_decoder": rows}
    apply_settings(core, settings, where)
    roles = library_roles(core, settings, fallbacks)
    return TokenizerParts(Subwords(core), roles, *library_frames(core, settings, roles, frames))


def _read_frames(processor: object, where: object) -> tuple[Frame, Frame]:
    plain = _PLAIN
    if not isinstance(processor, dict):
        return plain
    kind = processor.get("type")
    try:
        if kind == "Sequence":
            nested = [_read_frames(part, where) for part in processor["processors"]]
            return next((frames for frames in nested if frames != plain), plain)
        if kind == "TemplateProcessing":
            ids = {name: special["ids"] for name, special in processor["special_tokens"].items()}
            single, pair = (_read_template(processor[name], ids) for name in ("single", "pair"))
            return single, pair
        if kind in ("BertProcessing", "RobertaProcessing"):
            first, last, second = int(processor["cls"][1]), int(processor["sep"][1]), int(kind[0] == "B")
            single = ((first, 0), ("A", 0), (last, 0))
            middle = () if second else ((last, 0),)
            return single, (*single, *middle, ("B", second), (last, second))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FormatError(
            "what is put around texts cannot be read",
            where=where,
            received=f"post_processor {kind}: {type(error).__name__} {error}",
        ) from error
    return plain


def _read_template(items: list[dict[str, Any]], ids: dict[str, list[int]]) -> Frame:
    frame: list[tuple[int | str, int]] = []
    for item in items:
        ((kind, value),) = item.items()
        names = [value["id"]] if kind == "Sequence" else ids[value["id"]]
        frame += [(name, int(value["type_id"])) for name in names]
    return tuple(frame)


# -- settings and special tokens ---------------------------------------------------------------------------------------


def folder_settings(folder: Path) -> dict[str, Any]:
    """What special_tokens_map.json, tokenizer_config.json and added_tokens.json of a folder say; {} without them."""
    settings: dict[str, object] = {}
    for name in _SETTINGS:
        if (folder / name).is_file():
            settings |= _parse_json(_read_text(folder / name), folder / name)
    path = folder / _ADDED
    if path.is_file():
        settings["added_tokens"] = _parse_json(_read_text(path), path)
    return settings


def _model_type(folder: Path) -> dict[str, str]:
    """{"model_type": that of the model beside the tokenizer}; {} where config.json says none."""
    if not (folder / _CONFIG).is_file():
        return {}
    kind = _parse_json(_read_text(folder / _CONFIG), folder / _CONFIG).get("model_type")
    return {"model_type": kind} if isinstance(kind, str) else {}


def _find_roles(
    settings: Mapping[str, object],
    usual: Mapping[str, str],
    vocabulary: Mapping[str, int],
    where: object,
    optional: tuple[str, ...],
) -> dict[str, str]:
    """The special token of each role. Raises: FormatError, where one is missing that is not optional."""
    roles = {}
    added = set(_added_tokens(settings, where).values())
    for role in ROLES:
        name = token_name(settings, role, usual)
        if name is not None and (name in vocabulary or name in added):
            roles[role] = name
        elif role not in optional:
            raise FormatError(
                "a special token is not in the vocabulary",
                where=where,
                received=f"{len(vocabulary)} tokens without {name!r}",
                allowed=f"a vocabulary with {', '.join(usual.values())}",
                fix=f'say in tokenizer_config.json beside it which token is the "{role}_token"',
            )
    return roles


def _added_tokens(settings: Mapping[str, Any], where: object) -> dict[int, str]:
    """Tokens that a folder adds to the vocabulary, by number."""
    try:
        tokens = {int(number): str(token) for token, number in dict(settings.get("added_tokens", {})).items()}
        for number, token in dict(settings.get("added_tokens_decoder", {})).items():
            tokens[int(number)] = str(token["content"])
    except (TypeError, ValueError, KeyError) as error:
        raise FormatError(
            "the added tokens cannot be read", where=where, received=repr(error)[:120]
        ) from error
    return tokens


def _add_special(
    core: tokenizers.Tokenizer, roles: Mapping[str, str], settings: Mapping[str, object], where: object
) -> None:
    """Makes special tokens count as such where they stand in a text, and puts added ones behind the vocabulary."""
    module = library()
    for number, token in sorted(_added_tokens(settings, where).items()):
        if core.token_to_id(token) is None:
            core.add_tokens([module.AddedToken(token, normalized=False)])
        if core.token_to_id(token) != number:
            raise number_error(token, number, core.token_to_id(token), where)
    for role, token in roles.items():
        # A space before the mask belongs to it in byte-level vocabularies, where it would else be a token.
        spaced = role == "mask" and token == "<mask>"
        core.add_special_tokens([module.AddedToken(token, lstrip=spaced, normalized=False, special=True)])


def surround_as_bert(segmenter: Segmenter, roles: Mapping[str, str]) -> TokenizerParts:
    """The parts of a tokenizer that frames texts as BERT's does: cls A sep, and cls A sep B sep with B as segment 1."""
    first, last = segmenter.id_of(roles["cls"]), segmenter.id_of(roles["sep"])
    assert first is not None and last is not None
    single = ((first, 0), ("A", 0), (last, 0))
    return TokenizerParts(segmenter, roles, single, (*single, ("B", 1), (last, 1)))


def _surround_as_roberta(segmenter: Segmenter, roles: Mapping[str, str]) -> TokenizerParts:
    """cls A sep, and cls A sep sep B sep; all is segment 0."""
    first, last = segmenter.id_of(roles["cls"]), segmenter.id_of(roles["sep"])
    assert first is not None and last is not None
    single = ((first, 0), ("A", 0), (last, 0))
    return TokenizerParts(segmenter, roles, single, (*single, (last, 0), ("B", 0), (last, 0)))


# -- files -------------------------------------------------------------------------------------------------------------


def _read_bytes(path: Path) -> bytes:
    return bounded.read_bytes(path, bounded.VOCABULARY, "tokenizer", InputError)


def _read_text(path: Path) -> str:
    return bounded.decode(_read_bytes(path), path, "tokenizer")


def _parse_json(text: str, where: object) -> dict[str, Any]:
    return bounded.check_mapping(bounded.parse_json(text, where, "tokenizer"), where, "tokenizer")
