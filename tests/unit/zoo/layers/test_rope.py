"""Frequencies of rotary embeddings against those of transformers 5.23, and their settings in config.json."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError
from zoo.decoder.gemma import GemmaSize
from zoo.layers.decoder_config import DecoderSize
from zoo.layers.rope import RopeOptions, read_rope, rotary_tables, write_rope

# transformers 5.23, `ROPE_INIT_FUNCTIONS`, heads 128 wide: the frequencies of channels 0, 1, 16, 32, 48 and 63.
CHANNELS = [0, 1, 16, 32, 48, 63]
DEFAULT = [1, 0.8146172, 0.03760603, 1.414213e-3, 5.318296e-5, 2.455141e-6]
CASES = {
    "default": (RopeOptions(5e5), DEFAULT, 1.0),
    "linear": (RopeOptions(5e5, "linear", 4.0), [one / 4 for one in DEFAULT], 1.0),
    "dynamic": (RopeOptions(5e5, "dynamic", 4.0), DEFAULT, 1.0),
    "llama3": (
        RopeOptions(5e5, "llama3", 8.0, 8192),
        [1, 0.8146172, 0.03760603, 5.248460e-4, 6.647870e-6, 3.068926e-7],
        1.0,
    ),
    "yarn": (
        RopeOptions(1e6, "yarn", 4.0, 32768),
        [1, 0.8058422, 0.03162278, 6.029411e-4, 7.905694e-6, 3.102344e-7],
        1.138629,
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_frequencies(kind: str) -> None:
    options, expected, scale = CASES[kind]
    cos, sin = rotary_tables(options, 128, 8192, jnp.asarray([[0, 1]]))
    assert cos.shape == sin.shape == (1, 2, 64)
    np.testing.assert_allclose(cos[0, 0], scale, rtol=1e-6)
    angles = np.arctan2(sin[0, 1], cos[0, 1])[CHANNELS]
    np.testing.assert_allclose(angles, expected, rtol=2e-6)


def test_dynamic_rows_grow_apart() -> None:
    options = RopeOptions(1e4, "dynamic", 2.0)
    positions = jnp.asarray([[0, 1, 2], [0, 1, 63]])
    _, sin = rotary_tables(options, 8, 16, positions)
    _, short = rotary_tables(RopeOptions(1e4), 8, 16, positions)
    np.testing.assert_allclose(sin[0], short[0], rtol=1e-6)  # below the original length
    theta = 1e4 * (2 * 64 / 16 - 1) ** (8 / 6)
    np.testing.assert_allclose(sin[1, 1], np.sin(theta ** -(np.arange(0, 8, 2) / 8)), rtol=1e-5)


def test_longrope_changes_over_at_the_original_length() -> None:
    options = RopeOptions(1e4, "longrope", None, 16, short_factor=(1.0, 2.0), long_factor=(4.0, 8.0))
    plain = 1e4 ** -np.asarray([0, 0.5])
    scale = np.sqrt(1 + np.log(4) / np.log(16))
    for last, factors in ((15, [1, 2]), (16, [4, 8])):
        _, sin = rotary_tables(options, 4, 64, jnp.asarray([[1, last]]))
        np.testing.assert_allclose(sin[0, 0], np.sin(plain / factors) * scale, rtol=1e-5)
    with pytest.raises(ConfigError, match="a factor for each pair"):
        rotary_tables(dataclasses.replace(options, long_factor=(1.0,)), 4, 64, jnp.asarray([[1]]))


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        (RopeOptions(), 64),
        (RopeOptions(1e4, "linear", 4.0), 256),
        (RopeOptions(1e4, "yarn", 4.0, 32), 128),
        (RopeOptions(1e4, "yarn", 4.0, 8), 64),
        (RopeOptions(1e4, "llama3", 8.0, 8), 64),
    ],
)
def test_stretched_positions_are_for_longer_texts(options: RopeOptions, longest: int) -> None:
    """vllm#2518: `rope_scaling` in a config.json, whose `max_position_embeddings` stays what it was."""
    assert DecoderSize(max_positions=64, rope=options).longest_text == longest
    assert GemmaSize(max_positions=64, rope=options, local_rope=RopeOptions()).longest_text == 64


def test_padding_does_not_stretch() -> None:
    options = RopeOptions(1e4, "dynamic", 2.0)
    positions, valid = jnp.asarray([[1, 500]]), jnp.asarray([[True, False]])
    cos, _ = rotary_tables(options, 8, 16, positions, valid)
    np.testing.assert_allclose(
        cos[0, 0], rotary_tables(RopeOptions(1e4), 8, 16, positions)[0][0, 0], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("rope", "scale"),
    [
        # transformers 5.23, `ROPE_INIT_FUNCTIONS` for max_position_embeddings 64
        ({"rope_type": "longrope", "factor": 2.0}, np.sqrt(1 + np.log(2) / np.log(64))),
        ({"rope_type": "longrope"}, 1.0),
        (
            {"rope_type": "longrope", "factor": 2.0, "original_max_position_embeddings": 16},
            np.sqrt(1 + np.log(2) / np.log(16)),
        ),
        ({"rope_type": "longrope", "original_max_position_embeddings": 16}, np.sqrt(1.5)),
        (
            {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 16},
            0.1 * np.log(4) + 1,
        ),
        ({"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 16}, 0.1 * np.log(2) + 1),
    ],
)
def test_a_factor_counts_before_the_lengths(rope: dict[str, object], scale: float) -> None:
    settings = {"rope_scaling": {**rope, "short_factor": [1.0, 2.0], "long_factor": [4.0, 8.0]}}
    options = read_rope(settings, "config.json")
    cos, _ = rotary_tables(options, 4, 64, jnp.asarray([[0]]))
    np.testing.assert_allclose(cos[0, 0], scale, rtol=1e-6)
    assert read_rope({"rope_parameters": write_rope(options)}, "config.json") == dataclasses.replace(
        options,
        **{} if options.kind == "longrope" else {"short_factor": (), "long_factor": ()},
    )


def test_what_stands_beside_the_mapping_counts() -> None:
    """As in transformers 5.23, `standardize_rope_params`; of the theta, that of the mapping."""
    outer = {"original_max_position_embeddings": 16, "partial_rotary_factor": 0.5, "rope_theta": 1e4}
    inner = {"original_max_position_embeddings": 32, "partial_rotary_factor": 1.0, "rope_theta": 1e5}
    options = read_rope({**outer, "rope_parameters": {"rope_type": "yarn", "factor": 4.0, **inner}}, "")
    assert options == RopeOptions(1e5, "yarn", 4.0, 16, partial=0.5)
    dynamic = {"rope_type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 32}
    assert (
        read_rope({"rope_scaling": dynamic}, "").original_positions == 0
    )  # which upstream does not read there


@pytest.mark.parametrize("options", [case[0] for case in CASES.values()])
def test_settings_go_both_ways(options: RopeOptions) -> None:
    assert read_rope({"rope_parameters": write_rope(options)}, "config.json") == options


def test_older_spellings_are_read() -> None:
    settings = {
        "rope_theta": 5e5,
        "rope_scaling": {"type": "linear", "factor": 2},
        "partial_rotary_factor": 0.5,
    }
    assert read_rope(settings, "config.json") == RopeOptions(5e5, "linear", 2, partial=0.5)
    assert read_rope({}, "config.json", 1e6) == RopeOptions(1e6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rope_scaling": {"rope_type": "lama3"}}, "did you mean 'llama3'"),
        ({"rope_scaling": {"rope_type": 3}}, "unknown kind"),
        ({"rope_scaling": [1]}, "no mapping"),
        ({"rope_theta": "1e4"}, "wrong type"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "out of range"),
        ({"rope_scaling": {"type": "longrope", "long_factor": ["a"]}}, "wrong type"),
    ],
)
def test_damaged_settings_are_told(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_rope(settings, "config.json")
