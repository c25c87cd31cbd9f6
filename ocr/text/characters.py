"""The symbols that a recogniser can write, in the order of its head's classes.

Class 0 is the CTC blank, then come the dictionary's lines, then a space when the model was trained with
`use_space_char`. Dictionaries are split at LF alone: the v5 and v6 ones hold U+3000 as a symbol, and other white space
that `str.strip` or `str.splitlines` would lose, which shifts every later class by one.

Source: PaddleOCR, ppocr/utils/dict/*.txt and ppocr/postprocess/rec_postprocess.py.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import yaml

from framework.core.bounded import VOCABULARY, decode, read_bytes
from framework.core.errors import FormatError, InputError, WeightError
from framework.core.types import JSON
from framework.core.yaml_text import load_yaml
from ocr.text.language_codes import language_codes
from ocr.text.languages import missing_letters, recognisers_for, spell

BLANK = 0

# Runs that keep their direction inside a right-to-left line; every other symbol stands alone.
_LEFT_TO_RIGHT = re.compile(r"[a-zA-Z0-9 :*./%+-]+|.", re.DOTALL)


@dataclass(frozen=True)
class CharacterSet:
    """`symbols[i]` is what class `i` writes; `symbols[0]` is the blank, written as nothing.

    A symbol may stand twice in an official dictionary (the v5 Latin one has × in two places): both classes write it,
    and `encode` gives the later one, as upstream's training does.

    Attributes:
        right_to_left: The model reads the crop from the left, so an Arabic line comes out backwards; `reading_order`
            turns it round.
        source: Where the dictionary came from, for messages.
    """

    symbols: tuple[str, ...]
    right_to_left: bool = False
    source: str = "dictionary"

    @classmethod
    def from_symbols(
        cls,
        symbols: Iterable[str],
        *,
        use_space_char: bool = True,
        right_to_left: bool = False,
        source: str = "dictionary",
    ) -> Self:
        """From the dictionary's lines, without blank and space.

        Raises: FormatError when there are none.
        """
        listed = tuple(symbols)
        wrong = next((number for number, symbol in enumerate(listed) if not isinstance(symbol, str)), None)
        if not listed or wrong is not None:
            raise FormatError(
                "the dictionary has no symbols" if wrong is None else "a symbol of the dictionary is no text",
                where=source,
                received=None if wrong is None else f"{listed[wrong]!r}"[:80] + f" as symbol {wrong}",
                allowed="one symbol a line",
            )
        return cls(("", *listed, *((" ",) if use_space_char else ())), right_to_left, source)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        use_space_char: bool = True,
        right_to_left: bool = False,
        source: str = "dictionary",
    ) -> Self:
        """From text with one symbol a line: a dictionary file, or the entry `character` of an ONNX file's metadata."""
        lines = text.split("\n")
        if lines[-1] == "":  # what follows the last line's end is no line
            lines.pop()
        return cls.from_symbols(
            (line.rstrip("\r") for line in lines),
            use_space_char=use_space_char,
            right_to_left=right_to_left,
            source=source,
        )

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, use_space_char: bool = True, right_to_left: bool | None = None
    ) -> Self:
        """From a dictionary file in UTF-8. `right_to_left` None: when "arabic" is in the file's name, as upstream.

        Raises: FormatError for a file that is empty or not UTF-8; InputError when there is none.
        """
        path = Path(path)
        if right_to_left is None:
            right_to_left = "arabic" in path.name
        return cls.from_text(
            _read_utf8(path), use_space_char=use_space_char, right_to_left=right_to_left, source=str(path)
        )

    @classmethod
    def from_inference_yml(cls, path: str | os.PathLike[str], *, right_to_left: bool | None = None) -> Self:
        """From `PostProcess.character_dict` of an official 3.x `inference.yml`; the space is always added there.

        `right_to_left` None: when "arabic" is in `Global.model_name`.

        Raises: FormatError when the file is no such YAML or has no `character_dict`; InputError when there is none.
        """
        path = Path(path)
        try:
            # Every scalar stays text: the symbols include 0, ~, = and, in some files, `no`.
            config: Any = load_yaml(_read_utf8(path), scalars=False)
        except yaml.YAMLError as error:
            raise FormatError("this is no YAML file", where=path, received=error) from error
        post = config.get("PostProcess") if isinstance(config, dict) else None
        listed = post.get("character_dict") if isinstance(post, dict) else None
        if not isinstance(listed, list):
            raise FormatError(
                "the file holds no dictionary",
                where=path,
                received=f"PostProcess: {sorted(post) if isinstance(post, dict) else post}",
                allowed="a list under PostProcess.character_dict",
                fix="take the inference.yml of a recogniser; detectors and classifiers have no dictionary",
            )
        if right_to_left is None:
            model = config.get("Global")
            right_to_left = isinstance(model, dict) and "arabic" in str(model.get("model_name"))
        return cls.from_symbols(listed, right_to_left=right_to_left, source=str(path))

    def to_dict(self) -> dict[str, JSON]:
        """What an artifact's config holds of it: the dictionary, whether a space follows, and the direction."""
        space = self.symbols[-1] == " " and len(self.symbols) > 2
        return {
            "characters": list(self.symbols[1 : -1 if space else None]),
            "space": space,
            "right_to_left": self.right_to_left,
        }

    @property
    def num_classes(self) -> int:
        """Width of a CTC head for these symbols: the dictionary, the blank and the space if there is one."""
        return len(self.symbols)

    def check_head(self, num_classes: int, model: str) -> None:
        """Raises: WeightError unless `model`'s head has as many classes as there are symbols here."""
        if num_classes == self.num_classes:
            return
        if num_classes - self.num_classes in (1, -1):
            fix = f"set use_space_char: {'true' if num_classes > self.num_classes else 'false'}"
        else:
            fix = "use the dictionary that came with the weights"
        raise WeightError(
            "the dictionary does not fit the model's head",
            where=f"{self.source} and {model}",
            received=f"{self.num_classes} symbols (the blank and any space included), {num_classes} classes",
            allowed="one class for each symbol",
            fix=fix,
        )

    def check_language(self, lang: str) -> None:
        """Raises: InputError when a letter that `lang` needs cannot be written; it names letters and better models."""
        for code in language_codes(lang):
            missing = missing_letters(code, self.symbols)
            if not missing:
                continue
            better = recognisers_for(code)
            raise InputError(
                f"this recogniser cannot write the language {lang!r}",
                where=self.source,
                received=f"a dictionary without {spell(missing)}",
                allowed=f"a dictionary with every letter of {code!r}",
                fix=f"use {' or '.join(better)}"
                if better
                else "train a recogniser with a dictionary that has them",
            )

    def can_write(self, lang: str) -> bool:
        """Whether every letter of the language is there. Raises: InputError for a language that is not known."""
        return not missing_letters(lang, self.symbols)

    def decode(self, indices: Sequence[int] | np.ndarray) -> str:
        """The symbols of class `indices`, blanks as nothing, repeats kept, in reading order.

        Raises: InputError for an index outside 0..num_classes-1.
        """
        array = np.asarray(indices, dtype=np.int64).reshape(-1)
        if array.size and (array.min() < 0 or array.max() >= self.num_classes):
            raise InputError(
                "there is no such class",
                where=self.source,
                received=f"class {int(array.max() if array.min() >= 0 else array.min())}",
                allowed=f"0 to {self.num_classes - 1}",
                fix="use the dictionary that came with the weights",
            )
        return self.reading_order("".join([self.symbols[index] for index in array.tolist()]))

    def encode(self, text: str, *, skip_unknown: bool = False) -> np.ndarray:
        """Classes `[len(text)]` int32 of `text`, left to right as the crop shows it.

        `skip_unknown` leaves out symbols that are not in the dictionary, as upstream's training does without a word.
        Differs: upstream wants the labels of right-to-left lines turned round beforehand.

        Raises: InputError when a symbol is not in the dictionary.
        """
        unknown = "".join(dict.fromkeys(symbol for symbol in text if symbol not in self.classes))
        if unknown and not skip_unknown:
            raise InputError(
                "the text has symbols that are not in the dictionary",
                where=self.source,
                received=f"{unknown!r} in {text!r}",
                fix="add them to the dictionary, or pass skip_unknown=True to leave them out",
            )
        shown = self.reading_order(text)
        return np.array([self.classes[s] for s in shown if s in self.classes], dtype=np.int32)

    def reading_order(self, text: str) -> str:
        """`text` between crop order and reading order; the same text when the set is not right-to-left.

        Runs of Latin letters, digits, spaces and " :*./%+-" keep their direction, the order of runs is turned round.
        Applying it twice gives the text back.
        """
        return "".join(reversed(_LEFT_TO_RIGHT.findall(text))) if self.right_to_left else text

    def reading_indices(self, symbols: Sequence[str]) -> list[int]:
        """The places of `symbols`, left to right as the crop shows them, in the order of `reading_order`."""
        return reading_indices(symbols, self.right_to_left)

    @functools.cached_property
    def classes(self) -> dict[str, int]:
        """The class of each symbol; of one that stands twice the later."""
        return {symbol: index for index, symbol in enumerate(self.symbols) if index != BLANK}


def reading_indices(symbols: Sequence[str], right_to_left: bool) -> list[int]:
    """The places of `symbols`, left to right as the crop shows them, in the order in which they are read."""
    if not right_to_left:
        return list(range(len(symbols)))
    places = [place for place, symbol in enumerate(symbols) for _ in symbol]
    runs = list(_LEFT_TO_RIGHT.finditer("".join(symbols)))
    return list(dict.fromkeys(p for run in reversed(runs) for p in places[run.start() : run.end()]))


def _read_utf8(path: Path) -> str:
    return decode(read_bytes(path, VOCABULARY, "dictionary", InputError), path, "dictionary")
