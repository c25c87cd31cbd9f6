"""Several classes an image: lists, the loss and the scores against numbers by hand and scikit-learn's, results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, InputError
from framework.engine.label_alignment import align_labels
from framework.engine.multi_label_scores import MultiLabelScores, average_precision
from framework.vision import image
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from zoo.classification.check import validate
from zoo.classification.multi_label import MultiLabelClassification
from zoo.classification.multi_label_data import MultiLabelList
from zoo.classification.results import classes_from

PLAIN = Normalize((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def listed(root: Path, text: str, **more: object) -> MultiLabelList:
    for number, name in enumerate("abc"):
        image.write(root / f"{name} 1.png", np.full((8, 9, 3), 40 * number, np.uint8))
    (root / "list.csv").write_text(text, encoding="utf-8")
    return MultiLabelList(root, root / "list.csv", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("a 1.png,dog;cat\nb 1.png,\nc 1.png,dog\n", {}),
        ("file,cat,dog\na 1.png,1,1\nb 1.png,0,0\nc 1.png,0,1\n", {"header": True}),
        ("file, cat, dog\na 1.png, 1, 1\nb 1.png, 0, 0\nc 1.png, 0, 1\n", {"header": True}),
        ("file,cat,dog\na 1.png,True,True\nb 1.png,False,False\nc 1.png,False,True\n", {"header": True}),
        ("a 1.png\tcat dog\nb 1.png\t\nc 1.png\tdog\n", {"separator": "\t", "label_separator": " "}),
    ],
)
def test_lists(tmp_path: Path, text: str, more: dict[str, object]) -> None:
    data = listed(tmp_path, text, **more)
    assert data.class_names == ("cat", "dog")
    assert [one.tolist() for one in data.read_labels()] == [[0, 1], [], [1]]
    assert (
        str(data[2].id).endswith("c 1.png") and data[2].labels is not None and data[2].labels.tolist() == [1]
    )
    report = str(validate(data))
    assert "1 images of no class" in report and "3 images" in report


def test_paddleclas_lists(tmp_path: Path) -> None:
    data = listed(tmp_path, "a 1.png\t0,1,1\nb 1.png\t1,0,0\n", separator="\t", label_separator=",")
    assert data.class_names == ("0", "1", "2") and data.read_labels()[0].tolist() == [1, 2]
    (tmp_path / "names.txt").write_text("x\ny\nz\n", encoding="utf-8")
    named = MultiLabelList(tmp_path, tmp_path / "list.csv", tmp_path / "names.txt", "\t", ",")
    assert named.class_names == ("x", "y", "z")


@pytest.mark.parametrize(
    "text", ["file,crack\na 1.png,1\nb 1.png,0\n", "file,crack\na 1.png,True\nb 1.png,False\n"]
)
def test_one_class(tmp_path: Path, text: str) -> None:
    """Of 0 and 1 alone nobody knows whether they are flags or names: two classes came of one."""
    with pytest.raises(
        InputError, match=r"whether a class is there(?s:.)*a 1.png,(1|True)(?s:.)*labels_file"
    ):
        len(listed(tmp_path, text, header=True))
    (tmp_path / "names.txt").write_text("crack\n", encoding="utf-8")
    data = listed(tmp_path, text, header=True, labels_file=tmp_path / "names.txt")
    assert data.class_names == ("crack",) and [one.tolist() for one in data.read_labels()] == [[0], []]
    (tmp_path / "names.txt").write_text("0\n1\n", encoding="utf-8")
    numbers = listed(tmp_path, "a 1.png,1\nb 1.png,0\n", labels_file=tmp_path / "names.txt")
    assert [one.tolist() for one in numbers.read_labels()] == [[1], [0]]


def test_windows_separators(tmp_path: Path) -> None:
    image.write(tmp_path / "sub/d 1.png", np.zeros((8, 9, 3), np.uint8))
    data = listed(tmp_path, "sub\\d 1.png,dog\n/a 1.png,cat\n")
    assert data[0].id == str(tmp_path / "sub/d 1.png") and data[1].id == str(tmp_path / "a 1.png")


def test_lists_that_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("cat\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"1 lines of the list cannot be used(?s:.)*a 1.png: dog"):
        len(listed(tmp_path, "a 1.png,dog;cat\n", labels_file=tmp_path / "names.txt"))
    with pytest.raises(InputError, match=r"1 of the 1 images(?s:.)*d\.png"):
        len(listed(tmp_path, "d.png,dog\n"))
    with pytest.raises(ConfigError, match="a separator is empty"):
        listed(tmp_path, "", separator="")
    with pytest.raises(InputError, match="names no image"):
        len(listed(tmp_path, "\n"))


class Means(nn.Layer):
    """The three mean colours as logits, 1 or 0."""

    def forward(self, x):
        return x.mean(axis=(1, 2))


def test_the_loss_is_the_binary_cross_entropy() -> None:
    task = MultiLabelClassification(PLAIN, max_labels=3)
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[..., 0] = 255
    packed = task.pack(Sample(pixels, labels=np.array([0, 2], np.int32)))
    assert packed["label"].tolist() == [0, 2, -1]
    losses = task.loss(Means(), {key: value[None] for key, value in packed.items()})
    expected = (np.log1p(np.exp(-1)) + 2 * np.log(2)) / 3  # logits 1, 0, 0 for 1, 0, 1
    assert float(losses.total) == pytest.approx(expected, rel=1e-5)
    scores = task.infer(Means(), {"image": pixels[None]})["scores"]
    np.testing.assert_allclose(scores[0], [1 / (1 + np.exp(-1)), 0.5, 0.5], rtol=1e-5)
    with pytest.raises(InputError, match=r"too many(?s:.)*task.max_labels"):
        task.pack(Sample(pixels, labels=np.arange(4, dtype=np.int32)))
    with pytest.raises(ConfigError, match="out of range"):
        MultiLabelClassification(threshold=1.0)


def test_average_precision_is_scikit_learns() -> None:
    truth = np.array([0, 0, 1, 1], bool)
    assert average_precision(np.array([0.1, 0.4, 0.35, 0.8]), truth) == pytest.approx(0.8333333)
    assert average_precision(np.array([0.5, 0.5, 0.5, 0.5]), truth) == 0.5
    assert average_precision(np.array([0.9, 0.1, 0.1, 0.8]), truth) == pytest.approx(0.5 * 0.5 + 0.5 * 0.5)


def test_scores() -> None:
    metric = MultiLabelScores(0.5)
    scores = np.array([[0.9, 0.2, 0.6], [0.1, 0.8, 0.7], [0.4, 0.6, 0.1]])
    labels = np.array([[0, 2], [1, -1], [0, 1]])
    metric.update({"scores": scores[:2]}, {"label": labels[:2]})
    metric.update({"scores": scores[2:]}, {"label": labels[2:]})
    result = metric.result()
    assert next(iter(result)) == "mAP" and result["mAP"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert result["precision"] == pytest.approx(4 / 5) and result["recall"] == pytest.approx(4 / 5)
    assert result["f1"] == pytest.approx(0.8) and result["exact_match"] == pytest.approx(1 / 3)
    assert result["f1_macro"] == pytest.approx((2 / 3 + 1 + 2 / 3) / 3)


def test_classes_are_matched_by_name() -> None:
    alignment = align_labels(("cat", "dog"), ("cow", "dog", "cat"))
    assert alignment.remap(np.array([0, 1, 2, -1])).tolist() == [2, 1, 0, -1]
    metric = MultiLabelScores(0.5)
    metric.update({"scores": np.array([[0.9, 0.1]])}, {"label": np.array([[0, 2]])})
    assert metric.result()["recall"] == 0.5  # the model does not know the third class


def test_results_have_every_class_from_the_threshold_on() -> None:
    classes = classes_from(np.array([0.6, 0.1, 0.9]), ("a", "b", "c"), 0.5)
    assert [one.label for one in classes] == ["c", "a"] and classes_from(np.array([0.1]), ("a",), 0.5) == ()
