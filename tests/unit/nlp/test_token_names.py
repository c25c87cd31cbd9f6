"""Tokens as answers name them, beside their logarithms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer as Core
from tokenizers import decoders, models

from framework.text.tokenizer import Tokenizer
from nlp.text_generator import EngineGenerator


@pytest.mark.parametrize("strips", [True, False])
def test_the_space_before_a_word_belongs_to_its_token(strips: bool, tmp_path: Path) -> None:
    """Decoders of LLaMA drop that of a first word: the names together would be a text without spaces."""
    core = Core(models.WordLevel({"▁the": 0, "▁fox": 1, "es": 2, "<0xC3>": 3, "▁": 4}, unk_token="es"))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    core.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strips else steps)
    core.save(str(tmp_path / "tokenizer.json"))
    generator = SimpleNamespace(tokenizer=Tokenizer.from_file(tmp_path))
    names = [EngineGenerator.name_token(generator, token) for token in range(5)]  # type: ignore[arg-type]
    assert names == [
        (" the", b" the"),
        (" fox", b" fox"),
        ("es", b"es"),
        ("\ufffd", b"\xc3"),
        (" ", b" "),
    ]
    first, _ = EngineGenerator.name_token(generator, 0, begins=True)  # type: ignore[arg-type]
    assert first == ("the" if strips else " the")
