"""The official weights of PP-OCRv2 and v3 in our models: recorded outputs, both file formats, what the models read.

Needs the folder of shared weights and data (OAR_SHARED).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.interop import load_program, weighted_ops
from framework.interop.weights.match import match_weights
from framework.vision.image import read
from framework.workflow.domain.weights import load_weights_into
from ocr.models.crnn import CRNN, CRNNConfig
from ocr.models.dbnet import DBNet, DBNetConfig
from ocr.models.text_classifier import TextClassifier, TextClassifierConfig
from ocr.models.text_recognizer import greedy
from ocr.text.characters import CharacterSet
from ocr.text.postprocess import ctc_decode
from ocr.text.preprocess import line_width, pack_lines

CLASSIFIER = "ppocr_v2_cls/ch_ppocr_mobile_v2.0_cls_infer.onnx"
ENGLISH = "ppocr_v2_rec_en_number/en_number_mobile_v2.0_rec_infer.onnx"
JAPANESE = "ppocr_v2_rec_japan/inference.pdmodel"
DETECTOR = "ppocr_v3_det_ch/ch_PP-OCRv3_det_infer.onnx"
HEIGHT = 32  # of the lines of v2


def build(path: str, deploy: bool) -> Any:
    if path == CLASSIFIER:
        return TextClassifier(TextClassifierConfig(deploy=deploy)).eval()
    if path == DETECTOR:
        return DBNet(DBNetConfig("PP-OCRv3_mobile_det", deploy=deploy)).eval()
    return CRNN(CRNNConfig(num_classes=97 if path == ENGLISH else 4400, deploy=deploy)).eval()


def found(shared: Path, name: str) -> Path:
    path = shared / name
    if not path.exists():
        pytest.skip(f"{path} is not there (OAR_SHARED)")
    return path


def weights(model: Any, path: Path) -> dict[str, np.ndarray]:
    return match_weights(model, weighted_ops(load_program(path)), model.example_shape)


@pytest.mark.parametrize("deploy", [False, True])
@pytest.mark.parametrize("path", [CLASSIFIER, ENGLISH, DETECTOR])
def test_recorded_outputs(shared: Path, path: str, deploy: bool) -> None:
    file = found(shared, f"weights/{path}")
    model = build(path, deploy)
    # The threshold map of the detector, which only training uses, is in no exported program.
    missing, _ = model.set_state_dict(weights(model, file), strict=False)
    assert all(name.startswith("head.thresh.") for name in missing)
    with np.load(file.with_name("ref_io.npz")) as data:
        x = next(data[name] for name in data.files if name.startswith("in:")).astype(np.float32)
        want = next(data[name] for name in data.files if name.startswith("out:"))
    graphdef, params, buffers = nn.split(model)
    out = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0])(
        params, buffers, x.transpose(0, 2, 3, 1)
    )
    ours = np.asarray(out.probability[:, None] if path == DETECTOR else jax.nn.softmax(out))
    assert ours.shape == want.shape and want.std() > 0.01
    np.testing.assert_allclose(ours, want, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("path", "entries", "values"), [(CLASSIFIER, 213, 133628), (DETECTOR, 288, 592625)])
def test_both_formats_give_the_same_parameters(shared: Path, path: str, entries: int, values: int) -> None:
    file = found(shared, f"weights/{path}")
    model = build(path, deploy=False)
    onnx, paddle = weights(model, file), weights(model, file.with_name("inference.pdmodel"))
    assert len(onnx) == entries and sum(array.size for array in onnx.values()) == values
    assert onnx.keys() == paddle.keys()
    assert all(np.array_equal(onnx[name], paddle[name]) for name in onnx)


@pytest.mark.parametrize(("path", "values"), [(ENGLISH, 454321), (JAPANESE, 871712)])
def test_the_recogniser_has_every_parameter(shared: Path, path: str, values: int) -> None:
    model = build(path, deploy=False)
    state = weights(model, found(shared, f"weights/{path}"))
    assert state.keys() == model.state_shapes().keys() and len(state) == 229
    assert sum(array.size for array in state.values()) == values


def recogniser(shared: Path, path: str) -> Any:
    """Text of a batch of crops padded to `width`."""
    model = load_weights_into(build(path, deploy=True), found(shared, f"weights/{path}"))
    dictionary = next((shared / "weights" / path).parent.glob("*_dict.txt"))
    # The Japanese dictionary has a space of its own.
    characters = CharacterSet.from_file(dictionary, use_space_char=path == ENGLISH)
    characters.check_head(model.config.num_classes, path)
    graphdef, params, buffers = nn.split(model)
    best = jax.jit(lambda p, b, x: greedy(nn.apply(graphdef, p, b, None, x)[0]))

    def texts(crops: list[np.ndarray], width: int) -> list[str]:
        batch, widths = pack_lines(crops, width, HEIGHT)
        inside = np.arange(width)[:, None] < widths[:, None, None, None]  # [N, 1, W, 1]
        x = np.where(inside, batch[..., ::-1] * np.float32(2 / 255) - 1, np.float32(0))
        indices, probabilities = best(params, buffers, x)
        return [line.text for line in ctc_decode(np.asarray(indices), np.asarray(probabilities), characters)]

    return texts


def test_a_japanese_word(shared: Path) -> None:
    crop = read(found(shared, "data/ppocr_imgs/imgs_words/japan/1.jpg"))
    assert recogniser(shared, JAPANESE)([crop], max(320, line_width(crop.shape, HEIGHT))) == ["したがって"]


@pytest.mark.slow
def test_the_score_on_iiit5k(shared: Path) -> None:
    """What ONNX Runtime gives with the same preprocessing: 84.8 % of letters and digits, 72.2 % exact."""
    folder = found(shared, "data/iiit5k")
    read_line = recogniser(shared, ENGLISH)
    rows = [line.split("\t") for line in (folder / "test.txt").read_text(encoding="utf-8").splitlines()]
    texts: list[str] = []
    for start in range(0, len(rows), 50):
        texts += read_line([read(folder / name) for name, _ in rows[start : start + 50]], 320)

    def plain(text: str) -> str:
        return "".join(character for character in text.lower() if character.isalnum())

    exact = sum(text == word for text, (_, word) in zip(texts, rows, strict=True))
    alike = sum(plain(text) == plain(word) for text, (_, word) in zip(texts, rows, strict=True))
    assert len(rows) == 600
    assert exact / 600 == pytest.approx(0.722, abs=0.003) and alike / 600 == pytest.approx(0.848, abs=0.003)
