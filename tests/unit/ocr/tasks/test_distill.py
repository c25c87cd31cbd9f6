"""What students learn from teachers and from each other, with numbers by hand; teachers are programs made here."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.export import Artifact
from framework.vision.normalize import Normalize
from ocr.layers.ctc_head import greedy
from ocr.layers.db_head import DBMaps
from ocr.losses.center import CenterLoss
from ocr.models.distillation import Distillation, DistillationConfig
from ocr.models.text_recognizer import LineOutputs, TextRecognizer, TextRecognizerConfig
from ocr.tasks.distill import (
    LineTeacher,
    MapTeacher,
    MutualLines,
    MutualMaps,
    dilate,
    valid_pair,
    valid_steps,
)
from ocr.tasks.text import TextDetection, TextRecognition
from ocr.text.dictionary import Dictionary

HALF = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
ABC = Dictionary(symbols="abc", use_space_char=False)
RNG = np.random.default_rng(0)


def taught_by(teacher: Any, call: Callable[..., Any], **config: Any) -> Any:
    """The teacher with `call` as its program."""
    about = {"characters": ["c", "a", "x"], "space": False, "right_to_left": False, **config}
    inputs = {"image": {}, "size" if teacher.stage == "detector" else "width": {}}
    artifact = Artifact({**about, "inputs": inputs}, programs={"float32": SimpleNamespace(call=call)})  # type: ignore[dict-item]
    teacher.__dict__["artifact"] = artifact
    return teacher


def lines(texts: tuple[tuple[int, ...], ...] = ((1, 2), (3,))) -> dict[str, Any]:
    target = np.zeros((len(texts), 4), np.int32)
    for row, text in zip(target, texts):
        row[: len(text)] = text
    return {
        "image": RNG.integers(0, 255, (len(texts), 48, 32, 3), dtype=np.uint8),
        "width": np.array([32, 17][: len(texts)], np.int32),
        "target": target,
        "target_length": np.array([len(text) for text in texts], np.int32),
        "counts": np.ones(len(texts), np.float32),
    }


def test_columns_that_begin_inside_of_a_line_count() -> None:
    np.testing.assert_array_equal(
        valid_steps(lines(), 4), [[True, True, True, True], [True, True, True, False]]
    )


def test_a_teacher_of_lines_by_hand() -> None:
    """The teacher's symbols are blank, c, a, x; the student's blank, a, b, c. x is unknown and does not count."""
    out = {
        "indices": jnp.array([[1, 2, 3, 0]], jnp.int32),
        "probabilities": jnp.array([[0.9, 0.5, 0.8, 0.7]], jnp.float32),
    }
    teacher = taught_by(LineTeacher("t", weight=2.0), lambda weights, inputs: out)
    logits = RNG.standard_normal((1, 4, 4)).astype(np.float32)
    batch = lines(((1, 3),))
    q = np.asarray(jax.nn.softmax(logits, axis=-1))[0]
    wanted = 0.0
    for p, seen in ((0.9, q[0, 3]), (0.5, q[1, 1]), (0.7, q[3, 0])):
        wanted += p * np.log(p / seen) + (1 - p) * np.log((1 - p) / (1 - seen))
    assert float(teacher.loss(logits, batch, ABC.read())) == pytest.approx(2 * wanted, rel=1e-4)
    unknown = {**batch, "target": np.array([[1, 2, 0, 0]], np.int32)}  # b is not in the teacher's dictionary
    assert float(teacher.loss(logits, unknown, ABC.read())) == 0


def test_a_teacher_equal_to_the_student_teaches_nothing() -> None:
    logits = jnp.asarray(RNG.standard_normal((2, 4, 4)), jnp.float32)
    indices, probabilities = greedy(logits)
    out = {"indices": indices, "probabilities": probabilities}
    teacher = taught_by(LineTeacher("t"), lambda *_: out, characters=["a", "b", "c"])
    value, grads = jax.value_and_grad(lambda x: teacher.loss(x, lines(), ABC.read()))(logits)
    assert float(value) == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(grads, 0, atol=1e-6)


def test_teacher_and_student_have_the_same_columns() -> None:
    out = {"indices": jnp.zeros((2, 5), jnp.int32), "probabilities": jnp.ones((2, 5))}
    teacher = taught_by(LineTeacher("t"), lambda *_: out)
    with pytest.raises(ShapeError, match=r"other numbers of columns\n(.*\n)*.*5 and 4 of an image 32 wide"):
        teacher.loss(np.zeros((2, 4, 4), np.float32), lines(), ABC.read())


def test_a_teacher_of_maps_by_hand() -> None:
    p, q = (RNG.uniform(0.05, 0.95, (2, 4, 6)).astype(np.float32) for _ in range(2))
    mask = np.ones_like(p)
    mask[:, 0] = 0
    batch = {"image": np.zeros((2, 4, 6, 3), np.uint8), "shrink_mask": mask}
    maps = DBMaps(jnp.asarray(q), None, None)
    teacher = taught_by(MapTeacher("t"), lambda weights, inputs: {"probability": jnp.asarray(p)})
    losses = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    assert float(teacher.loss(maps, batch)) == pytest.approx(float(losses[:, 1:].mean()), rel=1e-4)
    same = DBMaps(jnp.asarray(p), None, None)
    assert float(teacher.loss(same, batch)) == pytest.approx(0, abs=1e-6)
    hard = taught_by(MapTeacher("t", target="dilated"), lambda *_: {"probability": jnp.asarray(p)})
    right = jnp.clip(dilate(jnp.asarray(p) > 0.3).astype(jnp.float32), 1e-4, 1 - 1e-4)
    assert float(hard.loss(DBMaps(right, None, right), batch)) < 0.05 * float(hard.loss(maps, batch))


def test_dilation_grows_to_the_right_and_down() -> None:
    mask = np.zeros((1, 3, 4), bool)
    mask[0, 1, 1] = True
    wanted = np.zeros((1, 3, 4), bool)
    wanted[0, 1:3, 1:3] = True
    np.testing.assert_array_equal(dilate(jnp.asarray(mask)), wanted)


class Line(nn.Layer):
    """Logits of four columns from their mean colours."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.forward_parts(x).ctc

    def forward_parts(self, x: jax.Array, tokens: None = None) -> LineOutputs:
        row = x.reshape(x.shape[0], 48, 4, -1, 3).mean(axis=(1, 3))
        return LineOutputs(row[:, None], row, self.fc(row), None)


class Pair(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Line(), Line()

    @property
    def pair(self) -> tuple[Line, Line]:
        return self.first, self.second


def recognition(**fields: Any) -> TextRecognition:
    return TextRecognition(HALF, ABC, max_text_length=4, **fields)


def test_two_students_learn_from_each_other() -> None:
    model, task = Pair(), recognition(distill=MutualLines(weight=2.0))
    batch = jax.tree.map(jnp.asarray, lines())
    found = task.loss(model, batch)
    own = [float(recognition().loss(one, batch).total) for one in model.pair]
    assert float(found.parts["ctc"]) == pytest.approx(own[0]) and float(
        found.parts["second"]
    ) == pytest.approx(own[1])
    assert float(found.parts["mutual"]) > 0  # drawn apart
    assert float(found.total) == pytest.approx(sum(own) + float(found.parts["mutual"]), rel=1e-5)
    _, grads = nn.value_and_grad(model, lambda m: task.loss(m, batch).parts["mutual"])()
    assert all(float(jnp.abs(grads[f"{name}.fc.weight"]).max()) > 0 for name in ("first", "second"))
    model.second.set_state_dict({name: np.asarray(v) for name, v in model.first.state_dict().items()})
    assert float(task.loss(model, batch).parts["mutual"]) == pytest.approx(0, abs=1e-6)


def test_mutual_learning_takes_two_models() -> None:
    with pytest.raises(
        ConfigError, match=r"takes two models\n(.*\n)*.*received: model Line\n.*type: Distillation"
    ):
        valid_pair(Line())


def test_a_share_of_the_loss_is_not_negative() -> None:
    with pytest.raises(ConfigError, match=r"task\.distill\.weight"):
        LineTeacher("t", weight=-1.0)


def test_a_teacher_is_of_the_right_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(artifact=Artifact({"name": "d", "kind": "detector"}, programs={"float32": None}))  # type: ignore[dict-item]
    monkeypatch.setattr("framework.workflow.open.artifacts.find_artifact", lambda *_, **__: found)
    with pytest.raises(ConfigError, match=r"this model is no recognizer\n(.*\n)*.*received: some: detector"):
        _ = LineTeacher("some").artifact


def small() -> TextRecognizerConfig:
    return TextRecognizerConfig("PP-OCRv6_tiny_rec")


def test_a_distillation_hands_its_classes_on_and_reads_by_the_student() -> None:
    config = recognition().adapt_model(
        DistillationConfig(small(), TextRecognizerConfig("PP-OCRv3_mobile_rec", num_classes=7))
    )
    assert config.num_classes == 4
    assert [part.num_classes for part in config.parts] == [4, 7]
    model = Distillation(DistillationConfig(small(), num_classes=4)).eval()
    assert {name.split(".")[0] for name in model.state_dict()} == {"Student", "Teacher"}
    first, second = model.pair
    assert isinstance(first, TextRecognizer) and first.config == second.config
    image = jnp.asarray(RNG.standard_normal((1, 48, 32, 3)), jnp.float32)
    np.testing.assert_array_equal(model(image), first(image))
    np.testing.assert_array_equal(model.read(image)[0], first.read(image)[0])


def test_two_detectors_learn_from_each_other() -> None:
    class Maps(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 1)

        def forward(self, x: jax.Array) -> DBMaps:
            return DBMaps(jax.nn.sigmoid(self.fc(x))[..., 0], None, None)

    class Two(Pair):
        def __init__(self) -> None:
            nn.Layer.__init__(self)
            self.first, self.second = Maps(), Maps()  # type: ignore[assignment]

    shrink = (RNG.uniform(size=(2, 8, 8)) > 0.5).astype(np.float32)
    batch: Any = {
        "image": jnp.asarray(RNG.integers(0, 255, (2, 8, 8, 3)), jnp.uint8),
        "shrink": jnp.asarray(shrink),
        "shrink_mask": jnp.ones((2, 8, 8)),
    }
    model, task = Two(), TextDetection(HALF, distill=MutualMaps())
    found = task.loss(model, batch)
    own = [float(TextDetection(HALF).loss(one, batch).total) for one in model.pair]
    assert float(found.total) == pytest.approx(sum(own) + float(found.parts["mutual"]), rel=1e-5)
    assert float(found.parts["mutual"]) > 0
    p = jnp.asarray(RNG.uniform(0.1, 0.9, (2, 8, 8)), jnp.float32)
    teacher = taught_by(MapTeacher("t"), lambda *_: {"probability": p})
    taught = TextDetection(HALF, distill=teacher).loss(model.pair[0], batch)
    assert float(taught.total) == pytest.approx(own[0] + float(taught.parts["teacher"]), rel=1e-5)


# -- centres -----------------------------------------------------------------------------------------------------------


def test_centres_move_and_pull(tmp_path: Any) -> None:
    """Two columns of class 1 at (1, 0) and (3, 0), one of class 2 at (0, 2); the centres are 0 at first."""
    model = nn.Layer()
    model.register_buffer("centers", np.zeros((3, 2), np.float32))
    features = jnp.array([[[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]]])
    logits = 5 * jax.nn.one_hot(jnp.array([[1, 1, 2]]), 3)
    own = CenterLoss(weight=0.1, rate=0.5)
    assert float(own.loss(model, features, logits, jnp.ones(1))) == pytest.approx(0.1 * (1 + 9 + 4) / 3)
    # 0.5 * (1 + 3) / (1 + 2) and 0.5 * 2 / (1 + 1)
    np.testing.assert_allclose(model.centers, [[0, 0], [2 / 3, 0], [0, 0.5]], rtol=1e-6)
    file = tmp_path / "centers.npz"
    np.savez(file, centers=np.array([[0, 0], [2, 0], [0, 2]], np.float32))
    kept = CenterLoss(weight=1.0, file=file)
    assert float(kept.loss(model, features, logits, jnp.ones(1))) == pytest.approx(2 / 3)
    np.testing.assert_allclose(model.centers, [[0, 0], [2 / 3, 0], [0, 0.5]], rtol=1e-6)


def test_errors_of_centres(tmp_path: Any) -> None:
    features, logits = jnp.ones((1, 2, 3)), jnp.ones((1, 2, 4))
    with pytest.raises(ConfigError, match=r"a centre loss needs centres\n(.*\n)*.*model\.centers=true"):
        CenterLoss().loss(nn.Layer(), features, logits, jnp.ones(1))
    with pytest.raises(ConfigError, match=r"this is no centre loss"):
        CenterLoss(rate=2.0)
    np.save(tmp_path / "c.npy", np.zeros((4, 2), np.float32))
    with pytest.raises(ShapeError, match=r"the centres are of another model\n(.*\n)*.*\[4, 3\]"):
        CenterLoss(file=tmp_path / "c.npy").loss(nn.Layer(), features, logits, jnp.ones(1))
    with pytest.raises(Exception, match=r"no\.npz: the centres cannot be read"):
        CenterLoss(file=tmp_path / "no.npz").loss(nn.Layer(), features, logits, jnp.ones(1))


def test_a_recogniser_keeps_centres_and_a_step_moves_them() -> None:
    config = TextRecognizerConfig("PP-OCRv6_tiny_rec", num_classes=4, centers=True)
    model = TextRecognizer(config).train()
    assert model.centers.shape == (4, 80) and "centers" in model.state_dict()
    task = recognition(center=CenterLoss())
    graphdef, params, buffers = nn.split(model)

    def step(params: Any, batch: Any) -> Any:
        bound = graphdef.bind(params, buffers)
        from framework.core.rng import rng_scope

        with rng_scope(jax.random.key(0)):
            losses = task.loss(bound, batch)
        return losses.total, (losses.parts, dict(bound.named_buffers()))

    _, (parts, after) = jax.jit(step)(params, {name: jnp.asarray(v) for name, v in lines().items()})
    assert float(parts["center"]) > 0 and float(jnp.abs(after["centers"]).max()) > 0


def test_known_symbols_are_kept_where_new_ones_are_learned() -> None:
    model, known = Line(), Dictionary(symbols="ac", use_space_char=False)
    batch = jax.tree.map(jnp.asarray, lines())

    def grads(**fields: Any) -> np.ndarray:
        task = recognition(pretrained_characters=known, **fields)
        loss, found = nn.value_and_grad(model, lambda m: task.loss(m, batch).total)()
        assert float(loss) == pytest.approx(float(recognition().loss(model, batch).total))
        return np.abs(np.asarray(found["fc.weight"])).max(axis=0)

    assert (grads() > 0).all()
    assert (grads(keep_known=True) > 0).tolist() == [False, False, True, False]  # of blank, a, b, c
    with pytest.raises(ConfigError, match=r"task\.keep_known: there are no known symbols to keep"):
        recognition(keep_known=True)
