"""The names of `framework` itself: what they load, and save, load and summary."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.core.disk import DiskError
from framework.core.errors import FormatError, ShapeError, WeightError

ROOT = Path(__file__).resolve().parents[3]


def test_import_is_light() -> None:
    code = (
        "import sys, framework; names = dir(framework); assert 'run_check' in names and 'nn' in names; "
        "print([m for m in ('jax', 'numpy', 'yaml', 'cv2', 'flax', 'optax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_opens_a_model_of_another_engine_loads_no_jax() -> None:
    """It takes a third of a second. Programs and layers load it when they are first used."""
    code = (
        "import sys, framework.commands.infer, framework.inference.engines.openvino as _; "
        "from framework.core.device import default_device_name; "
        "from framework.workflow.domain.domain import all_domains; "
        "print(len(list(all_domains())), default_device_name(), "
        "[m for m in ('jax', 'framework.nn') if m in sys.modules])"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split(maxsplit=1)[1].strip() == "cpu []"


def test_every_name_is_there() -> None:
    for name in (*framework._PACKAGES, *framework._WHERE):
        assert getattr(framework, name).__name__.rpartition(".")[2] == name
    with pytest.raises(AttributeError, match="module 'framework' has no attribute 'Tenser'"):
        framework.Tenser  # noqa: B018


def test_devices() -> None:
    assert framework.get_device().partition(":")[0] in ("cpu", "gpu", "tpu")
    assert framework.get_device() in framework.device_list()


def test_seed_makes_the_same_parameters() -> None:
    def weights() -> np.ndarray:
        framework.seed(3)
        return np.asarray(nn.Linear(4, 5).weight)

    first = weights()
    other = np.asarray(nn.Linear(4, 5).weight)
    assert (weights() == first).all() and not (other == first).all()


def test_rng_scope_repeats() -> None:
    dropout = nn.Dropout(0.5)
    runs = []
    for _ in range(2):
        with framework.rng_scope(jax.random.key(1)):
            runs.append(np.asarray(dropout(jnp.ones((8, 8)))))
    assert (runs[0] == runs[1]).all() and set(np.unique(runs[0])) == {0.0, 2.0}


def test_run_check(capsys: pytest.CaptureFixture[str]) -> None:
    report = framework.run_check()
    assert report["jax"] == jax.__version__
    assert capsys.readouterr().out.endswith("Oar works on this machine.\n")


# -- save and load -----------------------------------------------------------------------------------------------------


def test_save_and_load(tmp_path: Path) -> None:
    layer = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3))
    path = tmp_path / "new" / "model.safetensors"
    framework.save(layer.state_dict(), path)
    state = framework.load(path)
    assert set(state) == set(layer.state_dict())
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3))
    assert other.set_state_dict(state) == ([], [])
    assert (np.asarray(other[0].weight) == np.asarray(layer[0].weight)).all()


def test_save_knows_two_formats(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"allowed: \.safetensors, \.pdparams\n[\s\S]*m\.safetensors"):
        framework.save({"a": np.zeros(1)}, tmp_path / "m.bin")


def test_save_and_load_paddles_format(tmp_path: Path) -> None:
    layer = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3))
    framework.save(layer.state_dict(), tmp_path / "new" / "model.pdparams")
    state = framework.load(tmp_path / "new" / "model.pdparams")
    assert list(state) == list(layer.state_dict())
    assert layer.set_state_dict(state) == ([], [])


@pytest.mark.parametrize("name", ["m.safetensors", "m.pdparams"])
def test_a_full_disk_is_an_error_of_ours(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    framework.save({"a": np.ones(3, np.float32)}, tmp_path / name)
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(DiskError, match=rf"{name}: the disk is full[\s\S]*24 bytes to write"):
        framework.save({"a": np.zeros(6, np.float32)}, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert framework.load(tmp_path / name)["a"].sum() == 3


@pytest.mark.parametrize(
    ("state", "received"),
    [({}, "dict"), ([np.zeros(1)], "list"), ({"a": np.zeros(1), "b": 2.0}, "no array under 'b'")],
)
def test_save_wants_a_state_dict(state: object, received: str, tmp_path: Path) -> None:
    with pytest.raises(
        WeightError, match=rf"a state dict must map[\s\S]*received: {received}\n[\s\S]*layer.state_dict"
    ):
        framework.save(state, tmp_path / "m.safetensors")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


# -- summary -----------------------------------------------------------------------------------------------------------


def test_summary_by_hand() -> None:
    layer = nn.Sequential(
        nn.Conv2D(4, 6, 3, stride=2, padding=1, groups=2, bias_attr=False),
        nn.BatchNorm2D(6),
        nn.Conv2DTranspose(6, 5, 2, stride=2),
        nn.Flatten(),
        nn.Linear(8 * 8 * 5, 7),
    )
    layer.freeze("^0")
    found = framework.summary(layer, (2, 8, 8, 4))
    assert [(row.name, row.kind, row.shapes) for row in found.rows] == [
        ("0", "Conv2D", ((2, 4, 4, 6),)),
        ("1", "BatchNorm2D", ((2, 4, 4, 6),)),
        ("2", "Conv2DTranspose", ((2, 8, 8, 5),)),
        ("3", "Flatten", ((2, 320),)),
        ("4", "Linear", ((2, 7),)),
    ]
    assert [row.params for row in found.rows] == [6 * 2 * 9, 12, 6 * 5 * 4 + 5, 0, 320 * 7 + 7]
    assert found.trainable_params == found.params - 108
    assert [row.flops for row in found.rows] == [
        2 * (2 * 4 * 4 * 6) * (2 * 9),  # 18 products for each output
        0,
        2 * (2 * 4 * 4 * 6) * (5 * 4),  # 20 for each input
        0,
        2 * (2 * 7) * 320,
    ]
    lines = str(found).splitlines()
    assert lines[0].split() == ["layer", "type", "output", "params", "FLOPs"]
    assert lines[1].split() == ["0", "Conv2D", "[2,", "4,", "4,", "6]", "108", "6,912"]
    assert lines[-1] == "2,492 parameters, 2,384 of them trained; 23,552 FLOPs"


class _Twice(nn.Layer):
    """Calls one sublayer twice, never calls another, and owns a parameter itself."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = self.create_parameter((3,))
        self.shared, self.unused = nn.Linear(3, 3), nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: jax.Array, rows: jax.Array) -> dict[str, jax.Array]:
        return {"a": self.drop(self.shared(self.shared(x))) * self.scale, "b": rows}


def test_summary_of_several_inputs_and_calls() -> None:
    layer = _Twice()
    found = framework.summary(layer, [(1, 3), (5,)], dtypes=["float32", "int32"])
    rows = {row.name: row for row in found.rows}
    assert list(rows) == ["", "shared", "unused", "drop"]
    assert rows[""].shapes == ((1, 3), (5,)) and rows[""].params == 3
    assert rows["shared"].flops == 2 * (2 * 3 * 3) and rows["shared"].params == 12
    assert rows["unused"].shapes == () and rows["unused"].flops == 0
    assert "not called" in str(found) and "(itself)" in str(found)
    assert not layer.shared._post_hooks, "the layer itself is left as it was"


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((3, None), "float32"), ((3, -1), "float32"), ([(1, 3)], ["float32", "int32"]), (None, None)],
)
def test_summary_wants_sizes(shape: object, dtype: object) -> None:
    with pytest.raises(ShapeError, match=r"no shape to run the layer on[\s\S]*allowed: positive sizes"):
        framework.summary(nn.Linear(3, 3), shape, dtype)  # type: ignore[arg-type]
