"""Which tokens are hidden, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.io.loader import DataLoader
from framework.text.masking import MaskTokens
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize

TEXT = " ".join(["the quick brown foxes are jumping over lazy sleeping dogs near rivers"] * 4)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> str:
    """WordPiece with few tokens, so that most words have several."""
    path = tmp_path_factory.mktemp("text") / "tokenizer.json"
    return str(Tokenizer.train("wordpiece", [TEXT], 60, lower=True).save(path))


def hidden(
    vocabulary: str, text: str | TextSample = TEXT, times: int = 300, **settings: Any
) -> list[TextSample]:
    sample = TextSample(text) if isinstance(text, str) else text
    whole = Tokenize(vocabulary, 512)(sample, np.random.default_rng(0))
    mask = MaskTokens(vocabulary, max_positions=100, **settings)
    return [mask(whole, np.random.default_rng((1, time))) for time in range(times)]


def load_assets(sample: TextSample) -> np.ndarray:
    assert sample.ids is not None and sample.positions is not None and sample.target_ids is not None
    ids = sample.ids.copy()
    ids[sample.positions] = sample.target_ids
    return ids


@pytest.mark.parametrize("unit", ["tokens", "words", "spans"])
def test_shares_of_what_is_hidden(vocabulary: str, unit: str) -> None:
    tokenizer = Tokenizer.from_file(vocabulary)
    whole = tokenizer.encode(TEXT).ids
    samples = hidden(vocabulary, unit=unit)
    masked = changed = kept = 0
    for sample in samples:
        assert np.array_equal(load_assets(sample), whole)
        assert (
            sample.positions is not None and sample.ids is not None and (np.diff(sample.positions) > 0).all()
        )
        assert sample.positions.min() > 0 and sample.positions.max() < len(whole) - 1  # [CLS] and [SEP] stay
        new, old = sample.ids[sample.positions], whole[sample.positions]
        masked += int((new == tokenizer.mask_id).sum())
        changed += int(((new != tokenizer.mask_id) & (new != old)).sum())
        kept += int((new == old).sum())
        assert (new >= 4).all()  # no special token in the place of another
    total = masked + changed + kept
    assert abs(total / len(samples) - 0.15 * (len(whole) - 2)) <= (0.6 if unit == "tokens" else 2)
    # Spans are fewer than tokens, so their shares vary more.
    shares, near = np.array([masked, changed, kept]) / total, 0.05 if unit == "spans" else 0.02
    assert (abs(shares - [0.8, 0.1, 0.1]) < near).all()


def test_all_places_are_hidden_alike(vocabulary: str) -> None:
    samples = hidden(vocabulary, times=1000)
    assert samples[0].ids is not None
    counts = np.bincount(
        np.concatenate([sample.positions for sample in samples]), minlength=len(samples[0].ids)
    )
    assert (abs(counts[1:-1] / 1000 - 0.15) < 0.05).all()


def test_whole_words(vocabulary: str) -> None:
    tokenizer = Tokenizer.from_file(vocabulary)
    whole = tokenizer.encode(TEXT).ids
    goes_on = np.array([(tokenizer.token_of(one) or "").startswith("##") for one in whole])
    assert goes_on.sum() > 20
    words = np.cumsum(~goes_on)
    for sample in hidden(vocabulary, unit="words"):
        assert sample.positions is not None
        for word in set(words[sample.positions]):
            assert set(np.flatnonzero(words == word)) <= set(sample.positions.tolist())


def test_words_of_the_sample_are_hidden_whole(tmp_path: Path) -> None:
    path = str(
        Tokenizer.train("characters", ["今天天气很好我们去公园"], 40).save(tmp_path / "tokenizer.json")
    )
    sample = TextSample("今天天气很好", words=("今天", "天气", "很", "好"))
    found = {tuple(s.positions.tolist()) for s in hidden(path, sample, unit="words", share=0.34)}  # type: ignore[union-attr]
    assert found == {(1, 2), (3, 4), (5, 6)}  # of six characters two


def test_phrases_are_hidden_whole_and_alike(vocabulary: str) -> None:
    start = TEXT.index("lazy")
    sample = TextSample(TEXT, spans=((start, start + len("lazy sleeping dogs")),))
    tokenizer = Tokenizer.from_file(vocabulary)
    offsets = tokenizer.encode(TEXT).offsets
    inside = np.flatnonzero((offsets[:, 0] >= start) & (offsets[:, 1] <= start + 18) & (offsets[:, 1] > 0))
    ways = set()
    for found in hidden(vocabulary, sample, unit="spans", share=0.3):
        assert found.positions is not None and found.ids is not None
        seen = np.isin(inside, found.positions)
        assert seen.all() or not seen.any()
        if seen.all():
            masked = found.ids[inside] == tokenizer.mask_id
            assert masked.all() or not masked.any()
            ways.add(bool(masked[0]))
    assert ways == {True, False}


def test_runs_of_words(vocabulary: str) -> None:
    encoding = Tokenizer.from_file(vocabulary).encode(TEXT.split())

    def runs(**settings: Any) -> list[int]:
        lengths = []
        for sample in hidden(vocabulary, unit="spans", share=0.1, **settings):
            assert sample.positions is not None
            here = np.unique(encoding.words[sample.positions])
            lengths += [len(run) for run in np.split(here, np.flatnonzero(np.diff(here) > 1) + 1)]
        return lengths

    assert np.mean(runs(span_end=0.2)) > np.mean(runs(span_end=1.0)) + 0.5
    assert np.mean(runs(span_end=0.01, span_words=2)) < np.mean(runs(span_end=0.01))


def test_what_cannot_be_hidden(vocabulary: str) -> None:
    (nothing,) = hidden(vocabulary, "", times=1)
    assert nothing.positions is not None and len(nothing.positions) == 0
    for sample in hidden(vocabulary, "the [SEP] 天 [MASK] dogs", times=20, share=1.0, unit="words"):
        assert sample.positions is not None and sample.target_ids is not None
        assert (sample.target_ids > 4).all() and sample.positions.tolist() == [1, 2, 3, 7, 8, 9, 10]
    # A word that is longer than the share of its text is hidden all the same, where nothing else is left.
    (one,) = hidden(vocabulary, "sleeping", times=1, unit="words")
    assert one.positions is not None and len(one.positions) > 1
    few = MaskTokens(vocabulary, max_positions=3)(
        Tokenize(vocabulary)(TextSample(TEXT), np.random.default_rng(0)), np.random.default_rng(0)
    )
    assert few.positions is not None and len(few.positions) == 3


def test_a_sample_is_hidden_by_seed_epoch_and_index(vocabulary: str) -> None:
    data = [TextSample(TEXT, id=number) for number in range(6)]

    def read(workers: int, epoch: int) -> list[list[int]]:
        loader = DataLoader(
            data,
            batch_size=2,
            transforms=(Tokenize(vocabulary), MaskTokens(vocabulary)),
            pack=lambda sample: {"ids": sample.ids},
            num_workers=workers,
            seed=3,
        )
        return [row.tolist() for batch in loader.batches(epoch) for row in batch.data["ids"]]

    assert read(0, 0) == read(2, 0) and read(0, 0) != read(0, 1)
    assert len({tuple(row) for row in read(0, 0)}) == 6


def test_errors(vocabulary: str) -> None:
    with pytest.raises(InputError, match="put Tokenize before MaskTokens"):
        MaskTokens(vocabulary)(TextSample("a"), np.random.default_rng(0))
    for settings in (
        {"share": 1.5},
        {"masked": 0.8, "changed": 0.3},
        {"span_end": 0.0},
        {"max_positions": 0},
    ):
        with pytest.raises(ConfigError, match="tokens cannot be hidden so"):
            MaskTokens(vocabulary, **settings)  # type: ignore[arg-type]
