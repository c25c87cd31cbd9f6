"""Where a recogniser's symbols come from, as a setting: a file, weights that carry them, text, or Unicode blocks."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

from framework import hub
from framework.core.errors import ConfigError, did_you_mean
from framework.export.artifact import CONFIG, load_artifact
from framework.interop import load_program
from framework.interop.source import find_paddle_program
from framework.workflow.domain.weights import resolve_weights
from ocr.text.characters import CharacterSet
from ocr.text.label_files import read_line_labels

# First and last code point. Source: https://www.unicode.org/Public/UCD/latest/ucd/Blocks.txt
BLOCKS: dict[str, tuple[int, int]] = {
    "Basic Latin": (0x0020, 0x007E),
    "Latin-1 Supplement": (0x00A0, 0x00FF),
    "Latin Extended-A": (0x0100, 0x017F),
    "Latin Extended-B": (0x0180, 0x024F),
    "Greek and Coptic": (0x0370, 0x03FF),
    "Cyrillic": (0x0400, 0x04FF),
    "Armenian": (0x0530, 0x058F),
    "Hebrew": (0x0590, 0x05FF),
    "Arabic": (0x0600, 0x06FF),
    "Devanagari": (0x0900, 0x097F),
    "Bengali": (0x0980, 0x09FF),
    "Gurmukhi": (0x0A00, 0x0A7F),
    "Gujarati": (0x0A80, 0x0AFF),
    "Tamil": (0x0B80, 0x0BFF),
    "Telugu": (0x0C00, 0x0C7F),
    "Kannada": (0x0C80, 0x0CFF),
    "Malayalam": (0x0D00, 0x0D7F),
    "Sinhala": (0x0D80, 0x0DFF),
    "Thai": (0x0E00, 0x0E7F),
    "Lao": (0x0E80, 0x0EFF),
    "Myanmar": (0x1000, 0x109F),
    "Georgian": (0x10A0, 0x10FF),
    "Ethiopic": (0x1200, 0x137F),
    "Khmer": (0x1780, 0x17FF),
    "Latin Extended Additional": (0x1E00, 0x1EFF),
    "General Punctuation": (0x2000, 0x206F),
    "Currency Symbols": (0x20A0, 0x20CF),
    "CJK Symbols and Punctuation": (0x3000, 0x303F),
    "Hiragana": (0x3040, 0x309F),
    "Katakana": (0x30A0, 0x30FF),
    "CJK Unified Ideographs": (0x4E00, 0x9FFF),
    "Hangul Syllables": (0xAC00, 0xD7AF),
    "Halfwidth and Fullwidth Forms": (0xFF00, 0xFFEF),
}


@dataclass(frozen=True)
class Dictionary:
    """The symbols that a recogniser writes. One of the first five settings says where they are.

    Attributes:
        file: One symbol a line, in UTF-8, such as PaddleOCR's `ppocr/utils/dict/*.txt`.
        weights: A name of the hub, or a file or an artifact, whose weights carry their symbols.
        symbols: The symbols themselves, in this order.
        blocks: Unicode blocks by their names, without their spaces and control characters.
        labels: Label files of lines: the characters that stand in them, sorted.
        use_space_char: Whether a space follows as the last symbol.
        right_to_left: See `CharacterSet`; None: where "arabic" is in the name of `file` or `weights`.

    Raises:
        ConfigError: none of the five is given, or several are, or there is no such block.
    """

    file: Path | None = None
    weights: str | None = None
    symbols: str | None = None
    blocks: tuple[str, ...] = ()
    labels: tuple[Path, ...] = ()
    use_space_char: bool = True
    right_to_left: bool | None = None

    def __post_init__(self) -> None:
        names = ("file", "weights", "symbols", "blocks", "labels")
        given = [name for name in names if getattr(self, name)]
        if len(given) != 1:
            raise ConfigError(
                "a dictionary comes from one place",
                where="characters",
                received=", ".join(given) or "nothing",
                allowed=f"one of {', '.join(names)}",
            )
        for block in self.blocks:
            if block not in BLOCKS:
                raise ConfigError(
                    f"there is no block {block!r} here",
                    where="characters.blocks",
                    received=block,
                    allowed=", ".join(BLOCKS),
                    fix=did_you_mean(block, BLOCKS) or None,
                )

    def read(self) -> CharacterSet:
        """The symbols with their classes.

        Raises:
            FormatError, InputError: the file cannot be read. ConfigError: the weights carry no symbols.
        """
        space, reversed_ = self.use_space_char, bool(self.right_to_left)
        if self.file is not None:
            return CharacterSet.from_file(
                self.file, use_space_char=self.use_space_char, right_to_left=self.right_to_left
            )
        if self.weights is not None:
            reversed_ = "arabic" in self.weights if self.right_to_left is None else self.right_to_left
            return characters_of_weights(self.weights, use_space_char=space, right_to_left=reversed_)
        if self.symbols is not None:
            found, source = [*dict.fromkeys(self.symbols.replace(" ", ""))], "symbols"
        elif self.blocks:
            found = [chr(code) for name in self.blocks for code in _range(name) if _is_symbol(chr(code))]
            source = ", ".join(self.blocks)
        else:
            texts = [label.text for path in self.labels for label in read_line_labels(path)]
            found, source = sorted(set("".join(texts)) - {" "}), str(self.labels[0])
        return CharacterSet.from_symbols(found, use_space_char=space, right_to_left=reversed_, source=source)


def characters_of_weights(weights: str, *, use_space_char: bool, right_to_left: bool) -> CharacterSet:
    """The symbols that come with weights: of a recogniser's artifact, inside an ONNX file, or beside a row of the hub.

    Raises:
        ConfigError: they carry none.
    """
    folder = Path(weights).expanduser()
    if (folder / CONFIG).is_file():
        artifact = load_artifact(folder)
        artifact = artifact.stages.get("recognizer", artifact)
        return CharacterSet.from_symbols(
            artifact.setting("characters", tuple[str, ...]),
            use_space_char=artifact.setting("space", bool),
            right_to_left=artifact.setting("right_to_left", bool),
            source=artifact.source,
        )
    path = resolve_weights(weights, "ocr")
    named_by = "characters: {file: FILE}"
    return find_characters(
        path, weights, named_by, use_space_char=use_space_char, right_to_left=right_to_left
    )


def find_characters(
    path: Path, weights: str, named_by: str, *, use_space_char: bool, right_to_left: bool
) -> CharacterSet:
    """The symbols inside an ONNX file, in the inference.yml beside a program of PaddleOCR 3.x, or beside the weights of
    this name in the hub.

    Args:
        named_by: How a file of symbols would be named in the configuration, for the error.

    Raises:
        ConfigError: there are none.
    """
    text = load_program(path).metadata.get("character", "") if path.suffix == ".onnx" else ""
    if text:
        return CharacterSet.from_text(
            text, source=str(path), use_space_char=use_space_char, right_to_left=right_to_left
        )
    known = hub.entries("ocr")
    if weights in known and "dict" in known[weights].files:
        file = hub.fetch(weights, "dict")
        return CharacterSet.from_file(file, use_space_char=use_space_char, right_to_left=right_to_left)
    described = path.with_name("inference.yml")
    if path == find_paddle_program(path.parent) and described.is_file():
        return CharacterSet.from_inference_yml(described, right_to_left=right_to_left or None)
    raise ConfigError(
        "these weights carry no dictionary",
        where=weights,
        allowed="an artifact of a recogniser, an ONNX file with its dictionary, a folder of PaddleOCR with "
        "inference.yml, or weights of the hub that have one",
        fix=f"name the file of symbols: {named_by}",
    )


def _range(block: str) -> range:
    first, last = BLOCKS[block]
    return range(first, last + 1)


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character)[0] not in "CZ"
