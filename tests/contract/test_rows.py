"""What every dataset, transform and task of rows promises: zoo.recommendation, whose samples are no images."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import Kind, available, bind, build, dump, find, parse
from framework.core.errors import OarError
from framework.core.rng import rng_scope
from framework.core.transform import Transform
from zoo.recommendation.data.features import EncodeFeatures
from zoo.recommendation.data.interactions import EncodeHistory, EncodeUser, InteractionPairs, Interactions
from zoo.recommendation.data.rows import Rows, RowStream
from zoo.recommendation.graph_task import CollaborativeFiltering
from zoo.recommendation.models.fm import FMConfig
from zoo.recommendation.models.lightgcn import LightGCNConfig
from zoo.recommendation.models.multi_task import MMoEConfig
from zoo.recommendation.models.sasrec import SASRecConfig
from zoo.recommendation.sample import RowSample
from zoo.recommendation.sequence_tasks import NextItem
from zoo.recommendation.tasks import ClickPrediction, MultiTaskPrediction

PACKAGES = ("zoo.recommendation",)
REPO = Path(__file__).resolve().parents[2]
COUNT = 6


def table(folder: Path) -> tuple[str, ...]:
    lines = [f"u{number},{number % 3}.5,{number % 2},{int(number == 3)}" for number in range(COUNT)]
    (folder / "rows.csv").write_text("\n".join(["user,hour,click,buy", *lines]) + "\n", encoding="utf-8")
    return ((folder / "rows.csv").as_posix(),)


def log(folder: Path, times: int = 4) -> tuple[str, ...]:
    lines = [f"u{user},i{(user + time) % 7},{time}" for user in range(COUNT) for time in range(times)]
    (folder / "log.csv").write_text("\n".join(["user_id,item_id,timestamp", *lines]) + "\n", encoding="utf-8")
    return ((folder / "log.csv").as_posix(),)


DATASETS: dict[str, Callable[[Path], Any]] = {
    "InteractionPairs": lambda folder: InteractionPairs(log(folder, 3)),
    "Interactions": lambda folder: Interactions(log(folder)),
    "RowStream": lambda folder: RowStream(table(folder), window=3),
    "Rows": lambda folder: Rows(table(folder)),
}
TRANSFORMS: dict[str, list[Transform[RowSample]]] = {
    "EncodeFeatures": [
        EncodeFeatures(("user",), ("hour",), size=50, labels=("click",)),
        EncodeFeatures(("user",), ("hour",), size=50, length=2, labels=("click", "buy"), group="user"),
    ],
    "EncodeHistory": [EncodeHistory(3), EncodeHistory(1, crop=True)],
    "EncodeUser": [EncodeUser("user", users=("u0", "u1")), EncodeUser("user", "hour", ("u1",), ("2.5",))],
}
ROW = RowSample(values={"user": "u1", "hour": "2.5", "click": "1", "buy": "0"}, id="row")
USER = RowSample(
    arrays={"user": np.asarray(1, np.int32), "history": np.array([3, 1, 2], np.int32)}, id="user"
)
every = pytest.mark.parametrize("name", DATASETS)


@pytest.fixture
def dataset(name: str, tmp_path: Path) -> Any:
    return DATASETS[name](tmp_path)


def contents(sample: RowSample) -> tuple[Any, ...]:
    return sample.id, dict(sample.values), {key: value.tolist() for key, value in sample.arrays.items()}


def test_every_component_has_a_row() -> None:
    assert set(DATASETS) == set(available("dataset", PACKAGES))
    assert set(TRANSFORMS) == set(available("transform", PACKAGES))
    assert set(TASKS) == set(available("task", PACKAGES))


@every
def test_samples(dataset: Any, name: str) -> None:
    assert type(dataset) is find("dataset", name, PACKAGES).config and len(dataset) == COUNT
    samples = list(dataset)
    assert len(samples) == COUNT and len({sample.id for sample in samples}) == COUNT
    assert all(isinstance(sample, RowSample) and sample.values for sample in samples)
    names = getattr(dataset, "class_names", ())
    assert isinstance(names, tuple) and all(isinstance(one, str) and one for one in names)


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "RowStream"])
def test_indices_and_threads(dataset: Any) -> None:
    with ThreadPoolExecutor(8) as pool:  # the first use, too, is from several threads
        read = list(pool.map(lambda index: contents(dataset[index % COUNT]), range(20 * COUNT)))
    assert read[:COUNT] == [contents(sample) for sample in dataset]
    assert all(one == read[index % COUNT] for index, one in enumerate(read))
    for index in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError):
            dataset[index]


@every
def test_pickles_are_small_and_hold_the_settings(dataset: Any) -> None:
    before = [contents(sample) for sample in dataset]
    stored = pickle.dumps(dataset)  # the number of rows of a stream goes along, what was read does not
    assert len(stored) < 1000 and len(dataset) == COUNT
    copy = pickle.loads(stored)
    assert copy == dataset and [contents(sample) for sample in copy] == before


@every
def test_it_comes_back_from_its_configuration(dataset: Any) -> None:
    assert bind(parse(dump(dataset), "dumped.yml"), Annotated[Any, Kind("dataset")], PACKAGES) == dataset


@every
def test_files_are_not_touched_before_the_first_use(dataset: Any, tmp_path: Path) -> None:
    for path in list(tmp_path.iterdir()):
        path.unlink()
    copy = pickle.loads(pickle.dumps(dataset))
    with pytest.raises(OarError):
        len(copy)


def test_workers_load_no_jax() -> None:
    modules = {**available("dataset", PACKAGES), **available("transform", PACKAGES)}.values()
    script = f"import sys, {', '.join(sorted(set(modules)))}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=REPO, check=False).returncode == 0


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_repeatable_and_leave_what_they_got(name: str) -> None:
    for transform in TRANSFORMS[name]:
        sample = USER if name == "EncodeHistory" else ROW
        before = contents(sample)
        first, second = (contents(transform(sample, np.random.default_rng(5))) for _ in range(2))
        assert first == second != before and contents(sample) == before
        assert pickle.loads(pickle.dumps(transform)) == transform
        again = bind(parse(dump(transform), "dumped.yml"), Annotated[Any, Kind("transform")], PACKAGES)
        assert again == transform


def clicks(folder: Path) -> tuple[Any, nn.Layer, list[Any]]:
    encode = EncodeFeatures(("user",), ("hour",), size=50, labels=("click",))
    model = build(FMConfig(sparse_feature_number=50, sparse_feature_dim=3, dense_input_dim=1, num_field=1))
    return ClickPrediction(), model, [encode(one, np.random.default_rng(0)) for one in Rows(table(folder))]


def several(folder: Path) -> tuple[Any, nn.Layer, list[Any]]:
    encode = EncodeFeatures(dense=("hour",), labels=("click", "buy"))
    samples = [encode(one, np.random.default_rng(0)) for one in Rows(table(folder))]
    return MultiTaskPrediction(), build(MMoEConfig(1, 2, 2, 4, 3)), samples


def items(folder: Path, split: Any) -> list[Any]:
    return [EncodeHistory(3)(one, np.random.default_rng(0)) for one in Interactions(log(folder), split)]


def following(folder: Path) -> tuple[Any, nn.Layer, list[Any]]:
    model = build(SASRecConfig(7, hidden_size=4, inner_size=4, num_layers=1, max_length=3))
    return NextItem(7, loss_name="in_batch"), model, items(folder, "train")


def pairs(folder: Path) -> tuple[Any, nn.Layer, list[Any]]:
    model, task = build(LightGCNConfig(COUNT, 7, 2 * COUNT, 4)), CollaborativeFiltering(7)
    train = InteractionPairs(log(folder))
    task.prepare_model(model, train)
    return task, model, [train[index] for index in range(len(train))]


TASKS = {
    "ClickPrediction": clicks,
    "CollaborativeFiltering": pairs,
    "MultiTaskPrediction": several,
    "NextItem": following,
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_packs_learns_and_judges(name: str, tmp_path: Path) -> None:
    task, model, samples = TASKS[name](tmp_path)
    assert type(task) is find("task", name, PACKAGES).config
    packed = [task.pack(sample) for sample in samples]
    assert len({tuple((key, value.shape, value.dtype) for key, value in one.items()) for one in packed}) == 1
    batch = {key: jnp.asarray(np.stack([one[key] for one in packed])) for key in packed[0]}
    graphdef, params, buffers = nn.split(model.train())

    def loss(params: dict[str, jax.Array]) -> jax.Array:
        with rng_scope(jax.random.key(0)):
            return task.loss(graphdef.bind(params, buffers), {**batch, "step": jnp.int32(0)}).total

    before, grads = jax.jit(jax.value_and_grad(loss))(params)
    assert np.isfinite(before) and before > 0
    moved = {key: value - 0.01 * grads[key] for key, value in params.items()}
    assert float(loss(moved)) < float(before)
    if name in ("NextItem", "CollaborativeFiltering"):
        samples = items(tmp_path, "valid")
    packed = [task.pack_evaluated(sample) for sample in samples]
    batch = {key: np.stack([one[key] for one in packed]) for key in packed[0]}
    inputs = {key: jnp.asarray(value) for key, value in batch.items()}
    outputs = {key: np.asarray(value) for key, value in task.infer(model.eval(), inputs).items()}
    assert set(task.describe_outputs()) <= set(outputs)
    for metric in task.metrics(()).values():
        metric.update(outputs, batch)
        scores = metric.result()
        assert scores and all(np.isfinite(score) for score in scores.values())
