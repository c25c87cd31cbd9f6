from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from framework.core.errors import ConfigError, FormatError
from nlp.generation.options import GenerationOptions
from nlp.text_generator import chat_defaults


@pytest.mark.parametrize(
    "settings, expected",
    [
        (
            {"max_tokens": 5, "n": 2, "stop": "x"},
            {"max_new_tokens": 5, "num_return_sequences": 2, "stop": ("x",)},
        ),
        ({"stop_strings": ["a", "b", "a"]}, {"stop": ("a", "b")}),
        ({"temperature": 0.7}, {"temperature": 0.7, "do_sample": True}),
        ({"temperature": 0}, {"do_sample": False}),
        ({"temperature": 0.7, "do_sample": False}, {"do_sample": False}),
        ({"top_k": -1, "do_sample": True}, {"top_k": 0, "do_sample": True}),
        ({"max_new_tokens": 5.0}, {"max_new_tokens": 5}),
        ({"logprobs": True, "top_logprobs": 3}, {"logprobs": 3}),
        ({"logprobs": True}, {"logprobs": 0}),
        ({"logprobs": False}, {"logprobs": None}),
        ({"logit_bias": {"5": -100, 6: 1}}, {"logit_bias": {5: -100.0, 6: 1.0}}),
        ({"bad_words_ids": [[1], [2, 3]]}, {"bad_words": ((1,), (2, 3))}),
        ({"decode_strategy": "sampling"}, {"do_sample": True, "num_beams": 1}),
        ({"decode_strategy": "beam_search", "num_beams": 2}, {"do_sample": False, "num_beams": 2}),
        ({"eos_token_id": 3, "stop_token_ids": [4]}, {"end_tokens": (3, 4)}),
        ({"eos_token_id": 3, "ignore_eos": True, "stop_token_ids": [4]}, {"end_tokens": (4,)}),
        ({"seed": None, "top_p": None}, {"seed": None, "do_sample": False}),
    ],
)
def test_names_of_others(settings: dict[str, Any], expected: dict[str, Any]) -> None:
    options = GenerationOptions().merge(**settings)
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(
    "name, value",
    [
        *(("max_new_tokens", value) for value in (0, -1, 1.5, "5", True, float("nan"))),
        *(("temperature", value) for value in (-0.1, float("inf"), float("nan"), "hot", False)),
        *(("top_p", value) for value in (-0.1, 1.1)),
        *(("min_p", value) for value in (-0.1, 2)),
        *(("typical_p", value) for value in (0, 1.1)),
        *(("repetition_penalty", value) for value in (0, -1)),
        *(("presence_penalty", value) for value in (-2.1, 2.1)),
        *(("frequency_penalty", value) for value in (3, [])),
        *(("top_k", value) for value in (-2, 0.5)),
        *(("stop", value) for value in ("", [""], [1], {})),
        *(("logprobs", value) for value in (-1, 21)),
        *(("eos_token_id", value) for value in (-1, [1, "x"], 0.5)),
        *(("bad_words", value) for value in ([[]], [""], [[-1]], 3)),
        *(("logit_bias", value) for value in ([], {"x": 1}, {1: "y"}, {1: float("nan")}, {-1: 0})),
        *(("num_beams", value) for value in (0, 65)),
        ("seed", 2**64),
        ("early_stopping", "always"),
        ("beam_penalty", "other"),
        ("sequence_bias", [[1, 2, 3]]),
        ("constraint", {"type": "object"}),
        ("decode_strategy", "dfs"),
    ],
)
def test_what_is_out_of_range(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        GenerationOptions().merge(**{name: value})


def test_unknown_names() -> None:
    with pytest.raises(ConfigError, match="did you mean 'temperature'"):
        GenerationOptions().merge(temprature=1.0)
    with pytest.raises(ConfigError, match="two of its names"):
        GenerationOptions().merge(max_tokens=1, max_new_tokens=2)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"num_beams": 2, "num_return_sequences": 3}, "num_return_sequences"),
        ({"max_new_tokens": 3, "min_new_tokens": 4}, "min_new_tokens"),
    ],
)
def test_what_does_not_go_together(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GenerationOptions().merge(**settings)


def test_a_file_of_options(tmp_path: Path) -> None:
    settings = {
        **{"_from_model_config": True, "transformers_version": "5.23", "bos_token_id": 1, "pad_token_id": 0},
        **{
            "eos_token_id": [2, 3],
            "temperature": 0.6,
            "top_p": 0.9,
            "penalty_alpha": 0.6,
            "num_beam_groups": 1,
        },
    }
    (tmp_path / "generation_config.json").write_text(json.dumps(settings), encoding="utf-8")
    options, warnings = GenerationOptions.from_folder(tmp_path)
    assert (options.eos_token_id, options.temperature, options.do_sample) == ((2, 3), 0.6, False)
    assert warnings == [f"{tmp_path / 'generation_config.json'}: penalty_alpha 0.6 is not followed"]
    assert GenerationOptions.from_folder(tmp_path / "other") == (GenerationOptions(), [])
    sampled, _ = GenerationOptions.from_pretrained({**settings, "do_sample": True})
    assert sampled.do_sample and not sampled.merge(temperature=0).do_sample


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"temperature": -1}', '{"eos_token_id": "x"}', '{"top_k": 1.5}']
)
def test_a_file_that_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "generation_config.json").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="generation_config"):
        GenerationOptions.from_folder(tmp_path)


# facebook/bart-large-cnn before transformers had generation_config.json
BART = {
    **{
        "model_type": "bart",
        "d_model": 1024,
        "eos_token_id": 2,
        "max_length": 142,
        "min_length": 56,
        "num_beams": 4,
    },
    **{"early_stopping": True, "length_penalty": 2.0, "no_repeat_ngram_size": 3, "forced_bos_token_id": 0},
    **{"forced_eos_token_id": 2, "dropout": 0.1, "seed": "of something else", "task_specific_params": {}},
}


def test_config_json_says_it_where_there_is_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BART), encoding="utf-8")
    options, warnings = GenerationOptions.from_folder(tmp_path)
    assert not warnings and not options.do_sample and options.eos_token_id == ()
    assert (options.num_beams, options.early_stopping, options.length_penalty) == (4, True, 2.0)
    assert (options.min_length, options.max_length, options.no_repeat_ngram_size) == (56, 142, 3)
    assert (options.forced_bos_token_id, options.forced_eos_token_id) == (0, (2,))
    older = {"force_bos_token_to_be_generated": True, "bos_token_id": 0, "forced_bos_token_id": None}
    (tmp_path / "config.json").write_text(json.dumps(BART | older), encoding="utf-8")
    assert GenerationOptions.from_folder(tmp_path)[0].forced_bos_token_id == 0
    (tmp_path / "generation_config.json").write_text('{"num_beams": 2}', encoding="utf-8")
    options, _ = GenerationOptions.from_folder(tmp_path)
    assert options.num_beams == 2 and options.min_length == GenerationOptions().min_length


def test_a_server_searches_none_of_a_folders_beams(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BART), encoding="utf-8")
    options = chat_defaults(tmp_path)
    assert options.num_beams == 1 and options.forced_eos_token_id == (2,) and options.max_length is None
