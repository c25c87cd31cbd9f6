"""The recogniser's task: texts in lower case, and lines of one size in training and in the reader."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, InputError
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from ocr.tasks.text import TextRecognition
from ocr.text.dictionary import Dictionary
from ocr.text.stages import RecognizeOptions, Recognizer

HALF = Normalize((0.5,) * 3, (0.5,) * 3)
ABC = Dictionary(symbols="abc", use_space_char=False)


def task(**fields: Any) -> TextRecognition:
    return TextRecognition(HALF, ABC, **{"max_text_length": 4, **fields})


def line(text: str) -> Sample:
    return Sample(np.zeros((48, 96, 3), np.uint8), text=text)


def test_lower_case_is_of_targets_and_of_scores(caplog: pytest.LogCaptureFixture) -> None:
    packed = task(lower_case=True, unknown="skip").pack(line("bAc"))
    assert packed["target"].tolist() == [2, 1, 3, 0] and packed["counts"] == 1 and packed["text"] == "bac"
    kept = task(unknown="skip").pack(line("bAc"))
    assert kept["counts"] == 0 and kept["text"] == "bAc"

    class Lines:
        def labels_of_lines(self) -> list[tuple[str, str]]:
            return [("bAc", "lines.txt:1"), ("D", "lines.txt:2")]

    with caplog.at_level(logging.WARNING, "oar"):
        task(lower_case=True, unknown="drop").adapt(Lines())
    assert "1 of 2 texts have characters outside of the dictionary" in caplog.text
    assert "'d' (lines.txt:2)" in caplog.text


def test_texts_of_which_none_can_be_learnt_are_refused(tmp_path: Path) -> None:
    class Lines:
        def __init__(self, *texts: str) -> None:
            self.texts = texts

        def labels_of_lines(self) -> list[tuple[str, str]]:
            return [(text, f"lines.txt:{number}") for number, text in enumerate(self.texts, start=1)]

    with pytest.raises(
        InputError, match=r"no text of the training data can be learnt\n(.*\n)*.*lines\.txt:1"
    ):
        task(unknown="skip").adapt(Lines("123", "abcabc"))
    task(unknown="skip").adapt(Lines("123", "abc"))
    (tmp_path / "words.txt").write_text("lambda\na\n", encoding="utf-8")
    words = replace(task(unknown="skip"), characters=Dictionary(file=tmp_path / "words.txt"))
    assert words.misfits(Lines("a", "lambda"))[0].startswith("1 of 2 texts have characters outside")


def test_the_stage_has_the_width_of_the_training() -> None:
    options = task(height=32, width=320).describe_stage((160,))["options"]
    assert options["widths"] == [320] and options["height"] == 32 and not options["stretch"]
    assert task(width=256, stretch=True).describe_stage(None)["options"]["stretch"]
    assert task().describe_stage((100, 300))["options"]["widths"][:3] == [100, 300, 320]
    with pytest.raises(ConfigError, match=r"no width to stretch lines to\n(.*\n)*.*task\.width"):
        task(stretch=True)


@pytest.mark.parametrize("takes_any_shape", [False, True])
def test_lines_of_one_width_are_padded_by_every_engine(takes_any_shape: bool) -> None:
    asked: list[dict[str, np.ndarray]] = []

    class Engine:
        def __init__(self) -> None:
            self.takes_any_shape = takes_any_shape

        def prepare(self, shapes: Any) -> None: ...

        def start(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            asked.append(inputs)
            zeros = np.zeros((len(inputs["image"]), 8))
            return {"indices": zeros.astype(np.int32), "probabilities": zeros}

    options = replace(RecognizeOptions(HALF, 32), widths=(320,), batch=2)
    read = Recognizer(Engine(), options, ABC.read())  # type: ignore[arg-type]
    crops = [np.full((16, width, 3), 255, np.uint8) for width in (20, 400, 60)]
    assert len(read(crops)) == 3
    assert {one["image"].shape[1:] for one in asked} == {(32, 320, 3)}
    widths = sorted(int(w) for one in asked for w in one["width"])
    assert widths[-3:] == [40, 120, 320] and not any(widths[:-3])


def test_any_model_of_logits_is_trained_and_read() -> None:
    class Logits(nn.Layer):
        def forward(self, x: jax.Array) -> jax.Array:
            return jnp.tile(jnp.asarray([0.0, 2.0, 1.0, 0.0]), (len(x), x.shape[2] // 8, 1))

    image, width = np.zeros((1, 48, 32, 3), np.uint8), np.array([32], np.int32)
    found = task().infer(Logits(), {"image": jnp.asarray(image), "width": jnp.asarray(width)})
    assert found["indices"].tolist() == [[1] * 4]
    np.testing.assert_allclose(found["probabilities"], np.e**2 / (2 + np.e + np.e**2), rtol=1e-6)
    packed = {
        name: jnp.asarray(value)[None] for name, value in task().pack(line("ab")).items() if name != "text"
    }
    losses = task().loss(Logits(), packed)
    assert float(losses.total) > 0 and float(losses.weight) == 1  # type: ignore[arg-type]


def test_symbols_say_of_how_many_their_loss_is_the_mean() -> None:
    class Symbols(nn.Layer):
        def symbol_loss(
            self, x: jax.Array, target: jax.Array, length: jax.Array, counts: jax.Array
        ) -> jax.Array:
            return jnp.float32(0)

    batch = {
        "image": jnp.zeros((3, 48, 32, 3), jnp.uint8),
        "width": jnp.array([32, 32, 32]),
        "target": jnp.zeros((3, 3), jnp.int32),
        "target_length": jnp.array([1, 3, 2]),
        "counts": jnp.array([1.0, 1.0, 0.0]),
    }
    assert task().loss(Symbols(), batch).weight == 2 + 4  # with the end of each text that counts
