from __future__ import annotations

import dataclasses
import os
import pickle
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from framework.config import Kind, bind, dump, parse
from framework.core.errors import ConfigError, FormatError, InputError
from framework.text.masking import MaskTokens
from framework.text.question_windows import QuestionWindows
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize, load_tokenizer

RNG = np.random.default_rng(0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Tokenizer.train("words", ["big cats sat"], 100).save(
        tmp_path / "tokenizer.json"
    )  # big 5, cats 6, sat 7


def test_a_text_and_its_pair(path: Path) -> None:
    sample = Tokenize(str(path))(TextSample("cats  sat", pair="big"), RNG)
    assert sample.ids is not None and sample.ids.tolist() == [2, 6, 7, 3, 5, 3]
    assert sample.type_ids is not None and sample.type_ids.tolist() == [0, 0, 0, 0, 1, 1]
    assert sample.offsets is not None and sample.offsets.tolist()[1:3] == [[0, 4], [6, 9]]
    assert sample.word_ids is not None and sample.word_ids.tolist() == [-1, 0, 1, -1, -1, -1]
    assert sample.words is None and sample.target_ids is None


def test_a_pair_apart_and_a_negative(path: Path) -> None:
    apart = Tokenize(str(path), apart=True)(TextSample("cats sat", pair="big"), RNG)
    assert apart.ids is not None and apart.ids.tolist() == [2, 6, 7, 3]
    assert apart.pair_ids is not None and apart.pair_ids.tolist() == [2, 5, 3]
    worse = TextSample("cats", pair="sat")
    found = Tokenize(str(path))(TextSample("cats", pair="big", negative=worse), RNG)
    assert found.ids is not None and found.ids.tolist() == [2, 6, 3, 5, 3] and found.pair_ids is None
    assert found.negative is not None and found.negative.ids is not None
    assert found.negative.ids.tolist() == [2, 6, 3, 7, 3]


def test_words_of_the_sample_are_kept(path: Path) -> None:
    sample = Tokenize(str(path))(TextSample("big cats.", words=("big", "cats."), tags=(0, 1)), RNG)
    assert sample.ids is not None and sample.ids.tolist() == [2, 5, 1, 3]
    assert sample.offsets is not None and sample.offsets.tolist() == [[0, 0], [0, 3], [4, 9], [0, 0]]
    assert sample.word_ids is not None and sample.word_ids.tolist() == [-1, 0, 1, -1]


def test_a_unit_divides_the_text(tmp_path: Path) -> None:
    letters = str(Tokenizer.train("characters", ["ab猫"], 100).save(tmp_path / "t.json"))
    sample = Tokenize(letters, unit="words")(TextSample("ab, 猫"), RNG)
    assert sample.words == ("ab", ",", "猫")
    assert sample.word_ids is not None and sample.word_ids.tolist() == [-1, 0, 0, 1, 2, -1]
    assert sample.offsets is not None and sample.offsets.tolist()[1:-1] == [[0, 1], [1, 2], [2, 3], [4, 5]]
    sample = Tokenize(letters, unit="characters", max_length=4)(TextSample("a b猫"), RNG)
    assert sample.words == ("a", "b", "猫")
    assert sample.word_ids is not None and sample.word_ids.tolist() == [-1, 0, 1, -1]


def test_tokens_of_one_run_of_letters_are_a_word(tmp_path: Path) -> None:
    letters = str(Tokenizer.train("characters", ["abc-"], 100).save(tmp_path / "t.json"))
    sample = Tokenize(letters, unit="subwords")(TextSample("ab-c a", pair="bc"), RNG)
    assert sample.words is None
    assert sample.word_ids is not None
    assert sample.word_ids.tolist() == [-1, 0, 0, 1, 2, 3, -1, -1, -1, -1]


@pytest.mark.parametrize("kind", [Tokenize, MaskTokens, QuestionWindows])
def test_a_model_of_another_vocabulary(kind: Any, path: Path) -> None:
    class Model:
        vocab_size = 7

    message = rf"{kind.__name__}\.tokenizer: .* different vocabularies(.|\n)*with 8 tokens, a model with 7"
    with pytest.raises(ConfigError, match=message):
        kind(str(path)).check(Model())
    Model.vocab_size = 8
    kind(str(path)).check(Model())
    kind(str(path)).check(object())


@pytest.mark.parametrize("own", [True, False])
def test_a_model_of_another_target_vocabulary(own: bool, path: Path) -> None:
    class Model:
        class config:
            vocab_size, target_size = 8, 7

    tokenize = Tokenize(str(path), target_tokenizer=str(path) if own else None)
    with pytest.raises(
        ConfigError, match=r"Tokenize\.target_tokenizer: .* different vocabularies(.|\n)*with 7"
    ):
        tokenize.check(Model())
    Model.config.target_size = 8
    tokenize.check(Model())


@pytest.mark.parametrize("unit", ["text", "subwords", "words", "characters"])
def test_an_empty_text(unit: str, path: Path) -> None:
    sample = Tokenize(str(path), unit=unit)(TextSample("", target=""), RNG)  # type: ignore[arg-type]
    assert sample.ids is not None and sample.ids.tolist() == [2, 3]
    assert sample.target_ids is not None and sample.target_ids.tolist() == [2, 3]
    assert sample.offsets is not None and sample.offsets.tolist() == [[0, 0], [0, 0]]


def test_a_target_has_its_own_tokenizer(path: Path, tmp_path: Path) -> None:
    other = Tokenizer.train("characters", ["猫"], 100).save(tmp_path / "zh.json")
    sample = TextSample("big", target="猫big")
    both = Tokenize(str(path), target_tokenizer=str(other), max_length=4)(sample, RNG)
    assert both.target_ids is not None and both.target_ids.tolist() == [2, 5, 1, 3]
    one = Tokenize(str(path))(sample, RNG)
    assert one.target_ids is not None and one.target_ids.tolist() == [2, 1, 3]


def test_a_changed_file_is_read_again(path: Path) -> None:
    transform = Tokenize(str(path))
    assert transform.source() is Tokenize(str(path), 7).source()
    Tokenizer.train("words", ["dog"], 100).save(path)
    os.utime(path, ns=(1, 1))
    assert transform.source().vocab_size == 6


def test_an_artifact_carries_the_tokenizers(path: Path, tmp_path: Path) -> None:
    other = Tokenizer.train("characters", ["猫"], 100).save(tmp_path / "zh.json")
    sample = TextSample("big cats", target="猫")
    transform = Tokenize(str(path), target_tokenizer=str(other))
    before = transform(sample, RNG)
    plain, files = transform.pack_assets()
    assert sorted(files) == ["target_tokenizer.json", "tokenizer.json"]
    assert Tokenize(str(path)).pack_assets()[0] == Tokenize("tokenizer.json")
    path.unlink()
    other.unlink()
    bound = bind(parse(dump(plain), "artifact"), Annotated[Any, Kind("transform")], ("framework",))
    after = pickle.loads(pickle.dumps(bound.load_assets(files)))(sample, RNG)
    for field in dataclasses.fields(TextSample):
        assert np.array_equal(getattr(before, field.name), getattr(after, field.name)), field.name
    with pytest.raises(FormatError, match=r"tokenizer.json: the artifact lacks its tokenizer"):
        plain.load_assets({})


def test_what_cannot_be(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Tokenize.max_length[\s\S]*received: 0"):
        Tokenize(str(path), max_length=0)
    with pytest.raises(ConfigError, match="no room for a text"):
        Tokenize(str(path), max_length=1)(TextSample("cats"), RNG)
    with pytest.raises(InputError, match="there is no such tokenizer"):
        load_tokenizer("no/such/tokenizer.json")


@pytest.mark.parametrize("inside", [False, True])
def test_a_changed_file_is_seen_in_a_folder_and_by_its_size(tmp_path: Path, inside: bool) -> None:
    file = tmp_path / "tokenizer.json"
    named = str(tmp_path if inside else file)
    Tokenizer.train("words", ["big cats sat"], 100).save(file)
    before = load_tokenizer(named)
    assert load_tokenizer(named) is before
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    Tokenizer.train("words", ["big dogs sat too"], 100).save(file)
    os.utime(file, ns=times)  # of the same time, but another size
    after = load_tokenizer(named)
    assert after.vocab_size == before.vocab_size + 1
    os.utime(file, ns=(0, 0))
    assert load_tokenizer(named) is not after
    if inside:  # settings beside it count, too
        kept = load_tokenizer(named)
        (tmp_path / "tokenizer_config.json").write_text("{}", encoding="utf-8")
        assert load_tokenizer(named) is not kept
