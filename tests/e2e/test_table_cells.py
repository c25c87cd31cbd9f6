"""Tables of a page by classifier, structure and cell networks with random weights: from configs to cells with text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import framework
from framework.config import build, load
from framework.engine.experiment import bind_experiment
from framework.interop import write_safetensors
from framework.vision import image as vision_image
from framework.workflow.export.export import write_artifact
from ocr.documents.document import make_reader
from ocr.documents.options import DocumentOptions
from ocr.results.blocks import Table
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
STRUCTURE = """
_base_: {configs}/ocr/table/SLANeXt_wireless.yml
model: {{image_size: 64, width: 16, depth: 2, attention_heads: 2, global_layers: [1], hidden: 16, max_text_length: 20}}
task: {{size_hw: [64, 64], max_text_length: 20}}
weights: {weights}
export: {{inputs: {{image: {{shape: [n, 64, 64, 3], dtype: uint8}}, size: {{shape: [n, 2], dtype: int32}}}}}}
"""
CELLS = """
_base_: {configs}/detection/layout/RT-DETR-L_wireless_table_cell_det.yml
model: {{variant: r18, backbone: {{_inherited_: false, type: ResNet, variant: resnet18_vd}}}}
data: {{eval: {{transforms: [{{type: Resize, size_hw: [128, 128]}}]}}}}
weights: {weights}
export: {{inputs: {{image: {{shape: [n, 128, 128, 3], dtype: uint8}}}}}}
"""
KINDS = """
_base_: {configs}/classification/table/PP-LCNet_x1_0_table_cls.yml
data:
  eval:
    dataset: {{root: {folder}, list_file: {folder}/list.txt, labels_file: {folder}/labels.txt}}
    transforms: [{{type: Resize, size_hw: [64, 64]}}]
weights: {weights}
export: {{inputs: {{image: {{shape: [n, 64, 64, 3], dtype: uint8}}}}}}
"""


def artifact(folder: Path, name: str, text: str, bias: dict[str, tuple[int, float]]) -> Path:
    """An artifact of a config with random weights, to whose vectors that end so `bias` adds at a place."""
    config, weights = folder / f"{name}.yml", folder / f"{name}.safetensors"
    places = {"configs": CONFIGS.as_posix(), "folder": folder.as_posix(), "weights": weights.as_posix()}
    config.write_text(text.format(**places), encoding="utf-8")
    experiment = bind_experiment(load(config))
    assert experiment.task is not None
    model = build(experiment.task.adapt_model(experiment.model)).eval()
    state = {key: np.array(value) for key, value in model.state_dict().items()}
    for end, (place, value) in bias.items():
        (key,) = (key for key in state if key.endswith(end))
        state[key][place] += value
    write_safetensors(weights, state)
    return write_artifact(config, folder / "artifacts" / name)


@pytest.mark.slow
def test_three_networks_read_a_table(tmp_path: Path) -> None:
    framework.seed(0)
    (tmp_path / "labels.txt").write_text("wired_table\nwireless_table\n", encoding="utf-8")
    (tmp_path / "list.txt").write_text("a.png 0\na.png 1\n", encoding="utf-8")
    vision_image.write(tmp_path / "a.png", np.zeros((8, 8, 3), np.uint8))
    kinds = artifact(tmp_path, "kinds", KINDS, {"fc.bias": (1, 50.0)})  # always the second, "wireless_table"
    structure = artifact(
        tmp_path, "structure_wireless", STRUCTURE, {"structure_generator.1.bias": (-2, 50.0)}
    )
    cells = artifact(tmp_path, "cells", CELLS, {"transformer.dec_score_head.2.bias": (0, 9.0)})
    page = PdfPage()
    for row in range(5):
        for column, text in enumerate(("Apple", "12", "3.40")):
            page.text(40 + 110 * column, 60 + 22 * row, text + str(row))
    options = DocumentOptions(
        table_model=structure.as_posix().replace("wireless", "{kind}"),
        cell_model=cells.as_posix(),
        table_classification_model=kinds.as_posix(),
        text_layer="always",
    )

    def no_ocr():
        raise AssertionError("a page with a text layer was read by OCR")

    (found,) = make_reader(options, no_ocr, images=True)(make_pdf(page)).tables
    assert isinstance(found, Table)
    # The structure says a cell at each of its 21 steps, all in one row; every word is in one of them.
    assert (found.rows, found.columns) == (1, 21) and all(cell.bbox is not None for cell in found.cells)
    words = " ".join(cell.text for cell in found.cells).split()
    assert sorted(words) == sorted(f"{text}{row}" for row in range(5) for text in ("Apple", "12", "3.40"))
