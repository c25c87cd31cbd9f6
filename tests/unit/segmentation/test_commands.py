"""Flags that segmentation adds to the command `oar`."""

import argparse
import json

import pytest

from framework.core.errors import ConfigError
from segmentation.commands import COMMANDS


def test_flags_of_test_time_augmentation() -> None:
    parser, flags = argparse.ArgumentParser(), COMMANDS.flags["eval"]
    flags.add(parser, parser)

    def changes(*words: str) -> tuple[str, ...]:
        return flags.changes(parser.parse_args(words))

    assert changes("--flip_horizontal") == ()
    assert changes("--aug_eval", "--scales", "0.5", "1", "--flip_horizontal") == (
        *("task.inference.scales=[0.5, 1.0]", "task.inference.flip=true"),
    )
    key, _, value = changes("--is_slide", "--crop_size", "1024", "512", "--stride", "768", "384")[
        0
    ].partition("=")
    assert (key, json.loads(value)) == (
        "task.inference.slide",
        {"crop_hw": [512, 1024], "stride_hw": [384, 768]},
    )
    with pytest.raises(
        ConfigError, match=r"--is_slide: windows need a size and a stride\n  received: no --stride"
    ):
        changes("--is_slide", "--crop_size", "8", "8")
