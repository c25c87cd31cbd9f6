"""Our options and PaddleSeg's spellings of them."""

import argparse

import pytest

from framework.config import load
from framework.config.arguments import add_config, add_settings, settings


def parsed(*words, weights=True):
    parser = argparse.ArgumentParser()
    add_config(parser)
    add_settings(parser, weights=weights)
    return parser.parse_args(words)


@pytest.mark.parametrize("config", ["-c", "--config"])
@pytest.mark.parametrize("opt", ["-o", "--opt", "--opts"])
def test_spellings(config, opt):
    args = parsed(config, "a.yml", opt, "x=1", "y=2", opt, "z=3")
    assert (args.config, settings(args.opt, args.model_path)) == ("a.yml", ("x=1", "y=2", "z=3"))


def test_calls_do_not_share_settings():
    parsed("-c", "a.yml", "-o", "x=1")
    assert parsed("-c", "a.yml").opt == []


@pytest.mark.parametrize("path", ["a/b.pdparams", r"C:\new\a.pdparams", "odd: #1 名.safetensors"])
def test_weights_are_a_setting(path, tmp_path):
    args = parsed("-c", "a.yml", "-o", "weights=other", "--model_path", path)
    config = tmp_path / "a.yml"
    config.write_text("domain: segmentation\n", encoding="utf-8")
    assert load(config, settings(args.opt, args.model_path)).plain()["weights"] == path


def test_training_has_no_weights_to_choose(capsys):
    with pytest.raises(SystemExit):
        parsed("-c", "a.yml", "--model_path", "a", weights=False)
    assert "unrecognized arguments" in capsys.readouterr().err
