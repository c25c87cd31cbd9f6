"""What tokenizer_config.json and its neighbours change of a tokenizer of the library `tokenizers`: special tokens, what
is put around texts, and rules that depend on the class that they name.

Source: TokenizersBackend of transformers 5
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from framework.core.errors import FormatError
from framework.text.piece_models import set_llama_rules
from framework.text.segmenter import ALL_ROLES, Frame
from framework.text.subwords import library

if TYPE_CHECKING:
    import tokenizers

_KEYS = {"cls": ("cls_token", "bos_token"), "sep": ("sep_token", "eos_token")}
_END = "<|endoftext|>"
# What a class takes where tokenizer_config.json says nothing.
_CLASSES: Mapping[str, Mapping[str, str]] = {
    "Llama": {"unk": "<unk>", "bos": "<s>", "eos": "</s>"},
    "CodeLlama": {"unk": "<unk>", "bos": "<s>", "eos": "</s>"},
    "Gemma": {"unk": "<unk>", "bos": "<bos>", "eos": "<eos>", "pad": "<pad>", "mask": "<mask>"},
    "T5": {"unk": "<unk>", "eos": "</s>", "pad": "<pad>"},
    "XLMRoberta": {
        "unk": "<unk>",
        "bos": "<s>",
        "eos": "</s>",
        "cls": "<s>",
        "sep": "</s>",
        "pad": "<pad>",
        "mask": "<mask>",
    },
    "GPT2": {"unk": _END, "bos": _END, "eos": _END},
    "Qwen2": {"unk": _END, "eos": _END, "pad": _END},
}
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizers divide texts before their merges. Source: Qwen2Tokenizer of transformers 5"""


def class_tokens(settings: Mapping[str, object]) -> Mapping[str, str]:
    """The special tokens of the class that the settings name; {} of one that is not known."""
    name = str(settings.get("tokenizer_class") or "")
    return next((tokens for start, tokens in _CLASSES.items() if name.startswith(start)), {})


def token_name(settings: Mapping[str, object], role: str, usual: Mapping[str, str]) -> str | None:
    """The special token of a role: what the settings say, which may be none at all, else the usual one."""
    keys = [key for key in _KEYS.get(role, (f"{role}_token",)) if key in settings]
    for key in keys:
        value = settings[key]
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            return value
    return None if keys else usual.get(role)


def library_roles(
    core: tokenizers.Tokenizer, settings: Mapping[str, object], fallbacks: tuple[Mapping[str, str], ...]
) -> dict[str, str]:
    """The special token of each role that the vocabulary has.

    Args:
        fallbacks: What to look for where neither the settings nor their class say what a role's token is.
    """
    vocabulary, usual = core.get_vocab(with_added_tokens=True), class_tokens(settings)
    roles: dict[str, str] = {}
    ends = {key for keys in _KEYS.values() for key in keys}
    for role in ALL_ROLES:
        said = token_name(settings, role, usual)
        # Where the settings name one end of texts, a token that they do not name is none.
        keys = ends if role in _KEYS else (f"{role}_token",)
        names = [said]
        if said is None and not usual and not any(key in settings for key in keys):
            names += [tokens[role] for tokens in fallbacks if role in tokens]
        present = [name for name in names if name in vocabulary]
        if present:
            roles[role] = str(present[0])
    return roles


def library_frames(
    core: tokenizers.Tokenizer,
    settings: Mapping[str, object],
    roles: Mapping[str, str],
    frames: tuple[Frame, Frame],
) -> tuple[Frame, Frame]:
    """What is put around texts where no tokenizer.json says it: what `add_bos_token` and `add_eos_token` say, where
    either is there, else `frames`, those of the class."""
    explicit = [key in settings for key in ("add_bos_token", "add_eos_token")]
    if not any(explicit) or str(settings.get("tokenizer_class") or "").startswith(("T5", "XLMRoberta")):
        return frames
    ends = []
    for role in ("bos", "eos"):
        number = (
            core.token_to_id(roles[role]) if settings.get(f"add_{role}_token") and role in roles else None
        )
        ends.append(() if number is None else (number,))
    first, last = ends

    def surround(text: str, kind: int) -> Frame:
        return (*((one, kind) for one in first), (text, kind), *((one, kind) for one in last))

    return surround("A", 0), surround("A", 0) + surround("B", 1)


def apply_settings(core: tokenizers.Tokenizer, settings: Mapping[str, Any], where: object) -> None:
    """Adds the tokens that the settings name, makes special ones special, and sets the rules of LLaMA's class.

    Raises:
        FormatError: an added token has another number in the tokenizer.
    """
    module = library()
    named = str(settings.get("tokenizer_class") or "")
    is_llama = named.startswith("LlamaTokenizer") and settings.get("model_type", "llama") == "llama"
    if is_llama and type(core.model).__name__ == "BPE" and core.model.byte_fallback:
        set_llama_rules(core, settings)
    decoder = settings.get("added_tokens_decoder")
    rows = sorted((int(number), row) for number, row in decoder.items()) if isinstance(decoder, dict) else []
    for number, row in rows:
        flags = {name: bool(row.get(name, False)) for name in ("single_word", "lstrip", "rstrip", "special")}
        normalized = bool(row.get("normalized", not flags["special"]))
        token = module.AddedToken(str(row["content"]), normalized=normalized, **flags)
        if core.get_added_tokens_decoder().get(number) == token:
            continue
        known = core.token_to_id(token.content)
        if known is not None and known != number:
            raise number_error(token.content, number, known, where)
        (core.add_special_tokens if flags["special"] else core.add_tokens)([token])
        if core.token_to_id(token.content) != number:
            raise number_error(token.content, number, core.token_to_id(token.content), where)
    _add_named(core, settings)


def _add_named(core: tokenizers.Tokenizer, settings: Mapping[str, object]) -> None:
    """Special tokens that have a role or stand among the additional ones."""
    module, usual = library(), class_tokens(settings)
    values = [settings.get(f"{role}_token", usual.get(role)) for role in ALL_ROLES]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = settings.get(key)
        values += (
            list(more.values()) if isinstance(more, dict) else list(more) if isinstance(more, list) else []
        )
    special = {token.content for token in core.get_added_tokens_decoder().values() if token.special}
    for value in values:
        row = value if isinstance(value, dict) else {"content": value}
        content = row.get("content")
        if isinstance(content, str) and content and content not in special:
            flags = {name: bool(row.get(name, False)) for name in ("single_word", "lstrip", "rstrip")}
            core.add_special_tokens([module.AddedToken(content, normalized=False, special=True, **flags)])
            special.add(content)


def number_error(token: str, number: int, received: int | None, where: object) -> FormatError:
    """Of an added token whose number is not the one that the settings say."""
    return FormatError(
        "an added token has another number than the vocabulary gives it",
        where=where,
        received=f"{token!r} as {number}",
        allowed="none: it is not in the model" if received is None else str(received),
        fix="use the files of one model together",
    )
