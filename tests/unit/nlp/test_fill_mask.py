"""How a text with masks goes through the program, and what is made of the candidates.

Parity is in tests/golden/test_fill_mask.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.text.masking import MaskTokens
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
from nlp.fill_mask import MaskProcessor
from nlp.processors import ProcessorContext


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("gaps") / "tokenizer.json"
    return str(Tokenizer.train("characters", ["abcdefghijklmnopqrstuvwxyz天气"], 40).save(path))


def processor(vocabulary: str, limit: int = 12, count: int = 3, top: int = 2) -> MaskProcessor:
    transforms = (Tokenize(vocabulary, 64), MaskTokens(vocabulary))
    return MaskProcessor(ProcessorContext(transforms, (), limit, top), count)


def outputs(parts: Any, first: int) -> list[dict[str, np.ndarray]]:
    """Every gap of part p is `first` + p with 0.5, and what follows with 0.25 and 0.125."""
    return [
        {
            "candidates": np.tile(np.arange(first + place, first + place + 3), (3, 1)),
            "scores": np.tile([0.5, 0.25, 0.125], (3, 1)),
        }
        for place in range(len(parts))
    ]


def test_a_text_with_two_gaps(vocabulary: str) -> None:
    process = processor(vocabulary)
    sample = TextSample("天[MASK] b[MASK]")
    parts = process.parts(sample)
    assert len(parts) == 1 and parts[0].ids is not None
    packed = process.pack(parts[0])
    assert packed["positions"].tolist() == [2, 4, 0] and packed["mask"].tolist() == [True] * 6
    result = process.result(sample, parts, outputs(parts, 5))
    assert [(mask.start, mask.end) for mask in result.masks] == [(1, 7), (9, 15)]
    best = result.masks[0].candidates
    tokenizer = Tokenizer.from_file(vocabulary)
    assert [one.token for one in best] == [tokenizer.token_of(5), tokenizer.token_of(6)]
    assert best[0].sequence == f"天{best[0].token} b[MASK]" and best[0].score == 0.5
    assert result.to_dict()["masks"][1]["candidates"][0]["sequence"] == f"天[MASK] b{best[0].token}"


def test_long_texts_are_read_around_their_gaps(vocabulary: str) -> None:
    process = processor(vocabulary)
    letters = "abcdefghijklmnopqrstuvwxyz" * 3
    text = letters[:40] + "[MASK]" + letters[:3] + "[MASK]" + letters + "[MASK]"
    sample = TextSample(text)
    parts = process.parts(sample)
    tokenizer = Tokenizer.from_file(vocabulary)
    found = 0
    for part in parts:
        assert part.ids is not None and len(part.ids) == 12 and part.positions is not None
        assert part.ids[0] == tokenizer.cls_id and part.ids[-1] == tokenizer.sep_id
        assert (part.ids[part.positions] == tokenizer.mask_id).all()
        found += len(part.positions)
    assert [len(part.positions) for part in parts if part.positions is not None] == [2, 1] and found == 3
    result = process.result(sample, parts, outputs(parts, 5))
    assert [text[mask.start : mask.end] for mask in result.masks] == ["[MASK]"] * 3
    assert [mask.start for mask in result.masks] == [40, 49, 133]
    # The second window begins another list of candidates.
    assert [mask.candidates[0].token_id for mask in result.masks] == [5, 5, 6]


def test_more_gaps_than_places(vocabulary: str) -> None:
    parts = processor(vocabulary, limit=20).parts(TextSample("[MASK]" * 8))
    assert [part.positions.tolist() for part in parts] == [[1, 2, 3], [4, 5, 6], [7, 8]]  # type: ignore[union-attr]
    assert all(part.ids is not None and len(part.ids) == 10 for part in parts)


def test_a_token_that_goes_on_with_a_word(tmp_path: Path) -> None:
    text = "walking talking"
    path = str(Tokenizer.train("wordpiece", [text * 3], 40, lower=True).save(tmp_path / "tokenizer.json"))
    process = processor(path)
    tokenizer = Tokenizer.from_file(path)
    goes_on = next(n for n in range(40) if (tokenizer.token_of(n) or "").startswith("##"))
    sample = TextSample("Talk [MASK].")
    parts = process.parts(sample)
    (mask,) = process.result(sample, parts, outputs(parts, goes_on)).masks
    token = mask.candidates[0].token
    assert token.startswith("##") and mask.candidates[0].sequence == f"Talk{token[2:]}."


def test_errors(vocabulary: str) -> None:
    process = processor(vocabulary)
    with pytest.raises(InputError, match=r"(?s)there is no mask token to fill.*a text with \[MASK\]"):
        process.parts(TextSample("abc"))
    with pytest.raises(InputError, match="masks are filled in one text"):
        process.parts(TextSample("a[MASK]", pair="b"))
    with pytest.raises(ConfigError, match="no transform has a tokenizer"):
        MaskProcessor(ProcessorContext((), (), 12, 5), 3)
    with pytest.raises(InputError, match=r"(?s)more tokens are hidden.*max_positions of the task: 1"):
        processor(vocabulary, count=1).pack(processor(vocabulary).parts(TextSample("[MASK][MASK]"))[0])
