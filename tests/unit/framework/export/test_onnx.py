"""ONNX files: natural operators, names, sizes, external data, the comparison before writing, and artifacts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import (
    ConfigError,
    FormatError,
    InputError,
    MissingExtraError,
    ShapeError,
    TraceError,
)
from framework.export import Artifact, TensorSpec, load_artifact
from framework.export.artifact import StoredFiles
from framework.export.formats.onnx import check, export_layer, export_onnx, write_onnx
from framework.export.formats.onnx.check import export_file, trial_sizes
from framework.export.program import layer_function
from framework.nn import functional as F
from framework.nn.reparam import fold_norms
from framework.workflow.export import onnx as onnx_format
from framework.workflow.export.onnx import OnnxFile, OnnxOptions, draw_input, with_onnx

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

IMAGES = {"image": TensorSpec(("n", "4*h", "4*w", 3), "uint8")}


class Net(nn.Layer):
    """A classifier of the usual parts."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(3, 8, 3, stride=2, padding=1), nn.BatchNorm2D(8), nn.Hardswish())
        self.depthwise = nn.Conv2D(8, 8, 3, padding=1, groups=8)
        self.fc = nn.Linear(8, 5)

    def forward(self, image: jax.Array) -> dict[str, jax.Array]:
        x = self.stem(image.astype(jnp.float32) / 255)
        x = x + F.interpolate(F.max_pool2d(F.relu(self.depthwise(x)), 2), scale_factor=2)
        return {"scores": F.softmax(self.fc(x.mean((1, 2)))), "maps": x}


@pytest.fixture(scope="module")
def net() -> Net:
    return Net()


def operators(model: Any) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def test_the_natural_operators_stand_in_the_file(net: Net):
    model = export_onnx(*layer_function(net, IMAGES), IMAGES)
    assert operators(model) == {
        "Cast": 1,
        "Div": 1,
        "Transpose": 2,  # of the image, and of the maps that leave channels-last
        "Conv": 2,
        "HardSwish": 1,
        "Relu": 1,
        "MaxPool": 1,
        "Resize": 1,
        "Add": 1,
        "ReduceMean": 1,
        "Gemm": 1,
        "Softmax": 1,
    }
    constants = {one.name: tuple(one.dims) for one in model.graph.initializer}
    weights = ("stem.0.weight", "stem.0.bias", "depthwise.weight", "depthwise.bias", "fc.weight", "fc.bias")
    shapes = {name: tuple(net.state_shapes()[name]) for name in weights}
    assert {name: constants.get(name) for name in weights} == shapes
    assert model.opset_import[0].version == 18 and model.ir_version == 9
    (image,) = model.graph.input
    assert [d.dim_param or d.dim_value for d in image.type.tensor_type.shape.dim] == ["n", "4*h", "4*w", 3]


def test_written_and_equal(net: Net, tmp_path: Path):
    left = tmp_path / "deep" / ".net.onnx.0123456789ab"  # of a process that was killed while it wrote
    (left / "new").mkdir(parents=True)
    (left / "lock").touch()
    (left / "target").write_text("net.onnx", encoding="utf-8")
    (file,) = export_file(*layer_function(net, IMAGES), IMAGES, tmp_path / "deep" / "net.onnx")
    assert [path.name for path in file.parent.iterdir()] == ["net.onnx"]
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    image = np.random.default_rng(0).integers(0, 256, (3, 20, 36, 3)).astype(np.uint8)
    scores, *_ = session.run(["scores"], {"image": image})
    np.testing.assert_allclose(scores, np.asarray(net.eval()(jnp.asarray(image))["scores"]), atol=1e-6)


def test_large_files_have_their_weights_beside_them(net: Net, tmp_path: Path):
    model = export_onnx(*layer_function(net, IMAGES), IMAGES)
    whole = write_onnx(model, tmp_path / "whole.onnx")
    wide = {"fc": jnp.asarray(np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32))}

    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return {"y": inputs["x"] @ weights["fc"]}

    files = export_file(fn, wide, {"x": TensorSpec(("n", 40))}, tmp_path / "wide.onnx", most_bytes=1000)
    assert [path.name for path in whole] == ["whole.onnx"]
    assert sorted(path.name for path in files) == ["wide.onnx", "wide.onnx.data"]
    assert (tmp_path / "wide.onnx").stat().st_size < 1000 < (tmp_path / "wide.onnx.data").stat().st_size


def test_nothing_is_written_that_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "onnxruntime_runner", lambda file: lambda feed: {"y": feed["x"] * 2 + 0.01})
    fn = lambda weights, inputs: {"y": inputs["x"] * 2}  # noqa: E731
    with pytest.raises(FormatError, match=r"y differs by .* for x \[1, 12\]"):
        export_file(fn, {}, {"x": TensorSpec(("n", "t"))}, tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def test_shapes_and_whole_numbers_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fn = lambda weights, inputs: {"y": (inputs["x"] > 0).astype(jnp.int32)}  # noqa: E731
    specs = {"x": TensorSpec((4, 4))}
    for run, message in (
        (lambda feed: {"y": np.zeros((4, 4), np.int32)}, "whole numbers"),
        (lambda feed: {"y": np.zeros((4, 3), np.int32)}, r"shape \[4, 3\] in place of \[4, 4\]"),
    ):
        monkeypatch.setattr(check, "onnxruntime_runner", lambda file, run=run: run)
        with pytest.raises(FormatError, match=message):
            export_file(fn, {}, specs, tmp_path / "net.onnx")


def test_trial_sizes_differ_and_keep_to_constraints():
    specs = {"image": TensorSpec(("n", 48, "w", 3), "uint8"), "width": TensorSpec(("n",), "int32")}
    small, large = trial_sizes(specs, ("w >= 80",))
    assert small == {"n": 1, "w": 80} and large["n"] == 2 and large["w"] > 80
    assert trial_sizes({"x": TensorSpec((1, 2))}) == [{}]
    assert draw_input(
        "width", (2,), {"image": np.zeros((2, 48, 9, 3))}, np.random.default_rng()
    ).tolist() == [9, 9]


# -- what cannot be exported ------------------------------------------------------------------------------------------


def test_an_unknown_operation_names_itself_and_the_line():
    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return {"y": jax.scipy.special.digamma(inputs["x"])}

    with pytest.raises(TraceError, match="digamma") as caught:
        export_onnx(fn, {}, {"x": TensorSpec((3,))})
    assert Path(__file__).name in str(caught.value) and "what to do" in str(caught.value)


def test_random_numbers_are_refused():
    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return {"y": jax.random.normal(jax.random.key(inputs["seed"]), (3,))}

    with pytest.raises(TraceError, match="random"):
        export_onnx(fn, {}, {"seed": TensorSpec((), "int32")})


def test_a_function_of_the_user_is_not_taken_for_one_of_ours():
    @jax.jit
    def relu(x: jax.Array) -> jax.Array:
        return x * 3

    model = export_onnx(lambda weights, inputs: {"y": relu(inputs["x"])}, {}, {"x": TensorSpec((3,))})
    assert operators(model) == {"Mul": 1}


def test_a_symbol_without_an_axis_of_its_own():
    with pytest.raises(ShapeError, match="h in"):
        export_onnx(
            lambda weights, inputs: {"y": jnp.zeros(inputs["x"].shape[0])},
            {},
            {"x": TensorSpec(("h*w", 2))},
        )


def test_versions_of_operators():
    fn = lambda weights, inputs: {"y": inputs["x"] + 1}  # noqa: E731
    assert export_onnx(fn, {}, {"x": TensorSpec((2,))}, opset=20).opset_import[0].version == 20
    with pytest.raises(ConfigError, match="opset"):
        export_onnx(fn, {}, {"x": TensorSpec((2,))}, opset=17)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"oar-toolkit\[onnx\]"):
        OnnxOptions().check_packages()


# -- artifacts --------------------------------------------------------------------------------------------------------


def artifact(net: Net, options: OnnxOptions | None = None) -> Artifact:
    from framework.export import lower_layer

    program, weights = lower_layer(net, IMAGES, after=lambda out: out, platforms=("cpu",))
    file = OnnxFile(net, IMAGES, (), OnnxOptions())
    return Artifact({"domain": "test"}, {"float32": program}, weights, formats=with_onnx(options, file))


def test_artifacts_hold_verify_and_replace_the_file(net: Net, tmp_path: Path):
    folder = artifact(net, OnnxOptions()).save(tmp_path / "net")
    loaded = load_artifact(folder)
    assert loaded.onnx_file == folder / "model.onnx" and "model.onnx" not in loaded.files
    assert isinstance(loaded.formats[0], StoredFiles) and loaded.formats[0].size > 0
    again = load_artifact(
        loaded.save(tmp_path / "copy")
    )  # a copy has the file, and so has one in its own place
    assert again.onnx_file is not None
    assert again.onnx_file.read_bytes() == loaded.onnx_file.read_bytes()
    loaded.save(folder)
    artifact(net).save(folder)  # a new export without it replaces both
    assert not (folder / "model.onnx").exists() and load_artifact(folder).onnx_file is None
    with (tmp_path / "copy" / "model.onnx").open("ab") as file:
        file.write(b"!")
    with pytest.raises(FormatError, match=r"model\.onnx"):
        load_artifact(tmp_path / "copy")


def test_a_graph_that_came_with_the_package_gets_its_weights_beside_it(
    net: Net, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = fold_norms(Net().eval())
    graph = OnnxFile(whole, IMAGES, (), OnnxOptions()).bare()
    assert len(graph) < 4000
    options = OnnxOptions(for_engine=True)
    monkeypatch.setattr(onnx_format, "find_graph", {"its key": graph}.get)
    with monkeypatch.context() as bare:  # no package of ONNX is needed
        bare.setitem(sys.modules, "onnx", None)
        for layer in (whole, fold_norms(Net().eval())):  # of other weights
            (file,) = with_onnx(options, OnnxFile(layer, IMAGES, (), OnnxOptions()), "its key")
            saved = Artifact({"domain": "test"}, formats=(file,)).save(tmp_path / "net")
            assert sorted(path.name for path in saved.glob("*.onnx*")) == ["model.onnx", "model.onnx.data"]
            assert load_artifact(saved).onnx_file == saved / "model.onnx"
            session = runtime.InferenceSession(str(saved / "model.onnx"), providers=["CPUExecutionProvider"])
            image = np.random.default_rng(0).integers(0, 256, (2, 12, 20, 3)).astype(np.uint8)
            (scores,) = session.run(["scores"], {"image": image})
            np.testing.assert_allclose(scores, np.asarray(layer(jnp.asarray(image))["scores"]), atol=1e-6)
        with pytest.raises(MissingExtraError, match=r"oar-toolkit\[onnx\]"):
            with_onnx(options, file, "another key")
        assert with_onnx(OnnxOptions(for_engine=True, optional=True), file, "another key") == ()
        with pytest.raises(MissingExtraError):
            with_onnx(OnnxOptions(), file, "its key")  # a file for others is compared before it is written


class Normed(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2D(3, 4, 1), nn.BatchNorm2D(4)

    def forward(self, x: jax.Array) -> dict[str, jax.Array]:
        return {"y": self.norm(self.conv(x))}


class Recurrent(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    def forward(self, x: jax.Array) -> dict[str, jax.Array]:
        return {"y": self.lstm(x)[0]}


@pytest.mark.parametrize(
    ("kind", "shape", "message"),
    [
        (Normed, ("n", 5, 5, 3), "is not the weight of its name"),
        (Recurrent, ("n", 5, 3), "computed from the weights"),
    ],
)
def test_a_graph_that_depends_on_the_values_of_weights_cannot_go_without(kind: Any, shape: Any, message: str):
    file = OnnxFile(kind().eval(), {"x": TensorSpec(shape)}, (), OnnxOptions())
    with pytest.raises(FormatError, match=message):
        file.bare()


def test_images_as_channels_first(net: Net, tmp_path: Path):
    (file,) = artifact(net, OnnxOptions(layout="NCHW")).formats[0].write(tmp_path)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (image,) = session.get_inputs()
    assert image.type == "tensor(float)" and image.shape == ["n", 3, "4*h", "4*w"]
    assert "Transpose" not in [n.op_type for n in onnx.load(file).graph.node if "image" in n.input]
    with pytest.raises(ConfigError, match="NCHW"):
        with_onnx(
            OnnxOptions(layout="NCHW"),
            OnnxFile(net, {"ids": TensorSpec(("n", "t"), "int32")}, (), OnnxOptions()),
        )


class Pair(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.fc(x), x.sum(-1)


def test_a_layer_that_returns_a_tuple_has_named_outputs(tmp_path: Path):
    layer, inputs = Pair(), {"x": TensorSpec(("n", 4))}
    for names, written in (((), ["output0", "output1"]), (("scores", "total"), ["scores", "total"])):
        (file,) = export_layer(layer, inputs, tmp_path / "pair.onnx", names)
        assert [one.name for one in onnx.load(file).graph.output] == written
    with pytest.raises(
        InputError,
        match=r"Pair: each output of the layer has one name\n  received: 1 names\n  allowed: 2 outputs",
    ):
        export_layer(layer, inputs, tmp_path / "pair.onnx", ["scores"])


ROWS = {"x": TensorSpec((1, 8)), "w": TensorSpec((1, 8))}


def ranked(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    """Rows with the scores x, and boxes of them."""
    return {"scores": inputs["x"], "boxes": jnp.stack([inputs["x"], inputs["w"]], -1) * weights["one"]}


def runner(change: Callable[[dict[str, np.ndarray]], np.ndarray]) -> Callable[..., Any]:
    """An engine that gives other boxes for rows for which `change` of the inputs says so, [1, 8] bool."""

    def run(feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        boxes = np.stack([feed["x"], feed["w"]], -1)
        return {"scores": feed["x"], "boxes": boxes + 3 * change(feed)[..., None]}

    return lambda file: run


def example(score: float) -> list[dict[str, np.ndarray]]:
    scores = np.full((1, 8), 0.01, np.float32)
    scores[0, :4] = score
    return [{"x": scores, "w": np.arange(8, dtype=np.float32)[None] / 8}]


def test_rows_that_nobody_looks_at_may_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    weights = {"one": np.ones(1, np.float32)}
    doubtful = runner(lambda feed: feed["x"] < 0.05)
    monkeypatch.setattr(check, "onnxruntime_runner", doubtful)
    (file,) = export_file(ranked, weights, ROWS, tmp_path / "net.onnx", examples=lambda: example(0.9))
    assert file.is_file()
    monkeypatch.setattr(check, "onnxruntime_runner", runner(lambda feed: feed["x"] > 0.5))
    with pytest.raises(FormatError, match=r"boxes, scores \(rows\) differs by 1 (?s:.)*--no-onnx_check"):
        export_file(ranked, weights, ROWS, tmp_path / "other.onnx", examples=lambda: example(0.9))
    assert not (tmp_path / "other.onnx").exists()


def test_a_file_that_differs_is_written_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(check, "onnxruntime_runner", runner(lambda feed: feed["x"] > -9))
    (file,) = export_file(ranked, {"one": np.ones(1, np.float32)}, ROWS, tmp_path / "net.onnx", refuse=False)
    assert file.is_file() and "written all the same, as --no-onnx_check says" in caplog.text


def test_as_many_rows_may_differ_as_the_program_itself_exchanges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def unstable(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        sign = jnp.sin(weights["w"] * 1e7)  # a few roundings of w make another box of each row
        return {"scores": inputs["x"], "boxes": jnp.stack([inputs["x"], inputs["w"] + sign], -1)}

    weights = {"w": np.linspace(1, 2, 8, dtype=np.float32)[None]}
    expected = {name: np.asarray(one) for name, one in unstable(weights, example(0.9)[0]).items()}
    for some, written in ((0.5, True), (1.0, False)):
        moved = expected["boxes"] + 3 * (np.arange(8) < 4 * some)[None, :, None]
        answer = {"scores": expected["scores"], "boxes": moved}
        monkeypatch.setattr(check, "onnxruntime_runner", lambda file, answer=answer: lambda feed: answer)
        path = tmp_path / f"{some}.onnx"
        if written:
            export_file(unstable, weights, ROWS, path, examples=lambda: example(0.9))
        else:
            with pytest.raises(FormatError, match="rows"):
                export_file(unstable, weights, ROWS, path, examples=lambda: example(0.9))
        assert path.exists() == written


def test_the_body_of_a_scan_takes_nothing_but_constants_from_around_it(tmp_path: Path) -> None:
    """OpenVINO counts what else it reads as inputs that are missing."""

    def fn(weights: dict, inputs: dict) -> dict:
        x = inputs["x"]

        def step(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            total = carry + row.max(-1, keepdims=True)
            return total, jnp.broadcast_to(total.max(-1, keepdims=True), carry.shape) * 2

        last, rows = jax.lax.scan(step, jnp.zeros((x.shape[0], 3)), x.swapaxes(0, 1))
        return {"last": last, "rows": rows}

    (file,) = export_file(fn, {}, {"x": TensorSpec(("n", "t", 3))}, tmp_path / "scan.onnx")
    graph = onnx.load(file).graph
    (scan,) = (node for node in graph.node if node.op_type == "Scan")
    (body,) = (attribute.g for attribute in scan.attribute if attribute.name == "body")
    own = {value.name for value in (*body.input, *body.initializer)} | {
        o for n in body.node for o in n.output
    }
    read = {name for node in body.node for name in node.input if name}
    assert read - own <= {value.name for value in graph.initializer}
