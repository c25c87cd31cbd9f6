"""What an artifact and its ONNX file say of their outputs: the names that the program has, box format and units."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import onnx
import pytest

from framework.export import load_artifact
from framework.workflow.export.export import export_config
from framework.workflow.export.onnx import OnnxOptions


@pytest.mark.parametrize(
    "config",
    ["pp_lcnet_x0_25_clothing", "picodet_xs_320_raccoon", "text_cnn_snips", "oar_latin", "table_grid_s"],
)
def test_every_output_of_a_program_is_described(config: str) -> None:
    artifact = export_config(config)
    for one in (artifact, *artifact.stages.values()):
        for program in one.programs.values():
            outputs = jax.tree.unflatten(program.out_tree, program.out_avals)
            assert sorted(one.config["outputs"]) == sorted(outputs)


def test_boxes_say_their_format_and_unit_in_the_artifact_and_in_its_onnx_file(tmp_path: Path) -> None:
    folder = export_config("picodet_xs_320_raccoon", onnx=OnnxOptions()).save(tmp_path / "m")
    config = load_artifact(folder).config
    assert config["outputs"]["boxes"] == {
        "format": "xyxy", "unit": "pixels of the input image", "order": "best first",
    }  # fmt: skip
    model = onnx.load(folder / "model.onnx")
    texts = {one.key: one.value for one in model.metadata_props}
    assert json.loads(texts["outputs"]) == config["outputs"]
    assert json.loads(texts["labels"]) == list(config["labels"])
    assert {one.name for one in model.graph.output} == set(config["outputs"])
