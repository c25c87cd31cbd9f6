"""What the data sets of synthetic text share: their texts, fonts and looks, read at the first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framework.core.errors import ConfigError
from framework.io.dataset import LazyDataset
from framework.vision.sample import Sample
from framework.vision.sample_transforms.checks import check_number, check_range
from ocr.data.synthetic.backgrounds import list_backgrounds
from ocr.data.synthetic.fonts import FontSet, list_fonts
from ocr.data.synthetic.style import TextStyle
from ocr.data.synthetic.texts import Texts


class Material(NamedTuple):
    """What is drawn with."""

    fonts: FontSet
    texts: Texts
    images: tuple[Path, ...]


@dataclass(frozen=True)
class SyntheticText(LazyDataset):
    """Samples that are drawn as they are read; each depends on the settings, the fonts, `seed` and its index alone.

    Attributes:
        count: Number of samples.
        fonts: Font files, and folders that are searched with what is below them; none: those that
            `framework.vision.fonts` finds, which differ from machine to machine.
        corpus: Text files in UTF-8, one text a line; none: random strings.
        characters: What texts consist of: a dictionary file with one a line, or the characters themselves; None:
            whatever the corpus has, or ASCII. With a space among them random strings have spaces.
        skip_missing: Leave out characters that no font has, instead of refusing them.
        length: Least and most characters of a text; parts of longer lines are cut at spaces where there are any.
        words: Share of the corpus' texts that are single words.
        receipts: Share of texts such as dates, prices and numbers in groups.
        upper, title: Shares of texts that are put into capitals, and of the others whose words begin with one.

    Texts are in NFC and in reading order, with single spaces. Right-to-left and other complex scripts need a Pillow
    with raqm; without it their characters count as missing from all fonts.

    Raises:
        ConfigError: a number is out of range.
        InputError: at the first use, a file is not there, no font or no text is found, or a character is in no font.
    """

    count: int = 10_000
    seed: int = 0
    fonts: tuple[Path, ...] = ()
    corpus: tuple[Path, ...] = ()
    characters: str | None = None
    skip_missing: bool = False
    length: tuple[int, int] = (1, 25)
    words: float = 0.3
    receipts: float = 0.0
    upper: float = 0.0
    title: float = 0.0
    style: TextStyle = field(default_factory=TextStyle)

    def __post_init__(self) -> None:
        check_number(self, "count", 1)
        check_number(self, "seed", 0)
        check_range(self, "length", 1, 1000)
        check_number(self, "words", 0, 1)
        for name in ("receipts", "upper", "title"):
            check_number(self, name, 0, 1)
        if self.characters == "":
            raise ConfigError(
                "there are no characters",
                where=f"{type(self).__name__}.characters",
                received="''",
                allowed="a string, a dictionary file, or null",
            )

    @property
    def class_names(self) -> tuple[str, ...]:
        """None: texts have no classes."""
        return ()

    def __len__(self) -> int:
        self._material  # noqa: B018  what cannot be read is said before training starts
        return self.count

    def _draw(self, index: int, draw: Callable[[Material, np.random.Generator], Sample]) -> Sample:
        if not -self.count <= index < self.count:
            raise IndexError(f"index {index} of a {type(self).__name__} with {self.count} samples")
        index = int(index) % self.count
        return draw(self._material, np.random.default_rng((self.seed, index))).replace(id=index)

    @cached_property
    def _material(self) -> Material:
        fonts = FontSet(list_fonts(self.fonts))
        texts = Texts(
            fonts,
            self.corpus,
            self.characters,
            self.length,
            self.words,
            self.receipts,
            self.skip_missing,
            self.upper,
            self.title,
        )
        return Material(fonts, texts, list_backgrounds(self.style))
