from __future__ import annotations

from pathlib import Path

import pytest

from framework.core.errors import ConfigError
from framework.workflow.domain.config_file import open_config


@pytest.mark.parametrize(
    ("text", "toolkit", "way"),
    [
        ("Global: {epoch_num: 5}\nArchitecture: {model_type: rec}\n", "PaddleOCR", "oar run tools/train.py -c pp_"),
        ("batch_size: 6\niters: 9\ntrain_dataset: {type: Dataset}\nmodel: {type: PPLiteSeg}\n", "PaddleSeg",
         "oar train -c pp_liteseg_stdc1_camvid_960x720_10k"),
        ("_BASE_: ['a.yml']\nepoch: 300\n", "PaddleDetection", "oar run tools/train.py"),
        ("path: coco8\ntrain: images\nval: images\nnames: {0: cat}\n", "ultralytics", "docs/own_data.md"),
    ],
)  # fmt: skip
def test_a_file_of_another_toolkit_is_named(text: str, toolkit: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "pp_liteseg_stdc1_camvid_960x720.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=f"this is a configuration of {toolkit}") as caught:
        open_config(path)
    assert way in str(caught.value.fix)


def test_a_file_without_a_domain_that_is_nobodys_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("model: {type: LeNet}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="domain: missing key"):
        _ = open_config(path).domain
