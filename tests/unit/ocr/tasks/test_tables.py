"""What the tasks of tables pack, minimise and score, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from framework.vision.sample_transforms.pad import PadToSize
from ocr.layers.sla_head import Structure
from ocr.models.slanet import SLANetConfig
from ocr.tables.scores import GridScores, StructureScores, TokenScores
from ocr.tasks.table_master import TableMasterStructure
from ocr.tasks.tables import TableGrid, TableStructure

NORMALIZE = Normalize((0.5,) * 3, (0.5,) * 3)
HTML = '<table><tbody><tr><td>a</td><td colspan="2"></td></tr></tbody></table>'


def sample() -> Sample:
    boxes = np.array([[4, 2, 12, 6], [0, 0, 1, 1]], np.float32)
    image = np.full((8, 16, 3), 255, np.uint8)
    plain = Sample(image, boxes=boxes, valid=np.array([True, False]), text=HTML, id="t")
    return PadToSize((16, 32))(plain, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("scale", "box"),
    [
        ("content", [0.25, 0.25, 0.75, 0.75]),
        ("padded", [0.125, 0.125, 0.375, 0.375]),
        ("none", [0.125, 0.125, 0.375, 0.375]),
    ],
)
def test_a_table_is_packed_as_tokens_and_boxes(scale, box):
    task = TableStructure(NORMALIZE, max_text_length=10, box_scale=scale)
    packed = task.pack(sample())
    names = [task.dictionary.tokens[number] for number in packed["tokens"]]
    said = ["<tbody>", "<tr>", "<td></td>", "<td", ' colspan="2"', ">", "</td>", "</tr>", "</tbody>"]
    assert names == ["sos", *said, "eos", "sos"] and packed["length"] == 9 and packed["counts"] == 1
    assert packed["known"].tolist() == [0, 0, 0, 1] + [0] * 8
    assert packed["boxes"][3].tolist() == box and packed["size"].tolist() == [8, 16]


def test_table_master_has_centers_of_boxes_and_tokens_of_empty_cells():
    task = TableMasterStructure(NORMALIZE, max_text_length=10)
    packed = task.pack(sample())
    names = [task.dictionary.tokens[number] for number in packed["tokens"]]
    said = ["<tbody>", "<tr>", "<td></td>", "<eb></eb>", ' colspan="2"', ">", "</td>", "</tr>", "</tbody>"]
    assert names == ["sos", *said, "eos", "padding"]
    assert packed["boxes"][3].tolist() == [0.25, 0.25, 0.25, 0.25] and packed["known"].sum() == 1
    batch = {name: jnp.asarray(packed[name])[None] for name in ("image", "size")}
    prepared = task.prepare({**batch, "image": jnp.full((1, 16, 32, 3), 255, jnp.uint8)})
    assert float(prepared[0, 7, 15, 0]) == 1 and float(prepared[0, 8, 0, 0]) == -1  # in and below the table
    options = task.describe_stage(None)["options"]
    assert options["box_form"] == "center" and options["box_scale"] == "padded"


def test_the_stage_has_the_size_that_the_task_says():
    stage = TableStructure(NORMALIZE, box_scale="none", size_hw=(512, 512)).describe_stage(None)
    assert stage["kind"] == "table" and stage["options"]["box_scale"] == "none"
    assert list(stage["options"]["size_hw"]) == [512, 512]


def test_long_and_unknown_tables_do_not_count():
    assert TableStructure(NORMALIZE, max_text_length=8).pack(sample())["counts"] == 0
    odd = sample().replace(text=HTML.replace('"2"', '"77"'))
    assert TableStructure(NORMALIZE).pack(odd)["counts"] == 0


@pytest.mark.parametrize("task", [TableStructure(NORMALIZE), TableGrid(NORMALIZE)])
def test_samples_that_are_no_tables(task):
    with pytest.raises(InputError, match="no structure"):
        task.pack(sample().replace(text=None))
    with pytest.raises(InputError, match="differ in number"):
        task.pack(sample().replace(text=HTML.replace("<td>a</td>", "")))


def test_the_model_has_the_dictionarys_tokens():
    task = TableStructure(NORMALIZE)
    assert task.adapt_model(SLANetConfig()).num_tokens == 30
    model = type("Model", (), {"config": SLANetConfig(num_tokens=50)})()
    with pytest.raises(ConfigError, match="different numbers of tokens"):
        task.check(model, ())  # type: ignore[arg-type]


def test_the_loss_is_cross_entropy_and_twice_smooth_l1():
    task = TableStructure(NORMALIZE, max_text_length=10)
    packed = {name: value for name, value in task.pack(sample()).items() if name != "html"}
    batch = {name: jnp.asarray(value)[None] for name, value in packed.items()}
    steps = packed["tokens"].shape[0] - 1

    def model(image, tokens):
        assert tokens.shape == (1, steps) and image.shape == (1, 16, 32, 3)
        return Structure(jnp.zeros((1, steps, 30)), jnp.zeros((1, steps, 4)))

    losses = task.loss(model, batch)  # type: ignore[arg-type]
    assert float(losses.parts["structure"]) == pytest.approx(np.log(30))
    smooth = np.mean([0.5 * value**2 for value in (0.25, 0.25, 0.75, 0.75)])
    assert float(losses.parts["boxes"]) == pytest.approx(2 * smooth)
    assert float(losses.total) == pytest.approx(np.log(30) + 2 * smooth)


def test_scores():
    scores = StructureScores()
    assert scores.result() == {"teds_structure": 0.0, "acc": 0.0}
    tokens = ["<tbody>", "<tr>", "<td>", "</td>", "<td", ' colspan="2"', ">", "</td>", "</tr>", "</tbody>"]
    scores.add(tokens, HTML)
    scores.add([*tokens[:4], *tokens[8:]], HTML)
    assert scores.result() == pytest.approx({"teds_structure": (1 + 0.75) / 2, "acc": 0.5})
    without = StructureScores(score_head=False)
    without.add(tokens[1:-1], HTML)
    assert without.result()["acc"] == 1.0


def test_outputs_of_both_kinds_are_scored():
    task = TableStructure(NORMALIZE, max_text_length=10)
    packed = task.pack(sample())
    told = {
        "tokens": packed["tokens"][None, 1:],
        "probabilities": np.ones((1, 11)),
        "boxes": np.zeros((1, 11, 4)),
    }
    batch = {"html": np.array([HTML]), "size": packed["size"][None]}
    scores = TokenScores(task.dictionary.tokens)
    scores.update(told, batch)
    assert scores.result() == {"teds_structure": 1.0, "acc": 1.0}
    empty = {name: np.ones((1, 16)) for name in ("between_rows", "head", "between_columns")}
    empty |= {name: np.zeros((1, 4, 3)) for name in ("right", "down")}
    grid = GridScores()
    grid.update(empty, batch)
    assert grid.result()["teds_structure"] == 0.0
