"""Programs that Paddle exported as Layers, against Paddle's outputs: small ones made by tools/golden/paddle_graphs.py,
and published ones against ONNX twins' (OAR_SHARED)."""

from pathlib import Path

import numpy as np
import pytest

from framework import jit
from framework.core.errors import FormatError, InputError
from framework.export import TensorSpec, lower_layer
from framework.inference import Config, create_predictor
from framework.interop.graph import paddle
from framework.interop.graph.layer import GraphLayer

DATA = Path(__file__).parent / "data"
ENDINGS = {"pdmodel": "inference.pdmodel", "pir": "inference.json"}


def unpack(name: str, kind: str, folder: Path) -> tuple[Path, np.ndarray, list[np.ndarray]]:
    """The program's file, with its parameters beside it; the input, and Paddle's outputs."""
    with np.load(DATA / f"paddle_graphs_{name}_{kind}.npz") as stored:
        arrays = dict(stored)
    path = folder / ENDINGS[kind]
    path.write_bytes(arrays.pop("program").tobytes())
    path.with_suffix(".pdiparams").write_bytes(arrays.pop("params").tobytes())
    x = arrays.pop("x")
    return path, x, [arrays[f"out{i}"] for i in range(len(arrays))]


@pytest.mark.parametrize("kind", ["pdmodel", "pir"])
@pytest.mark.parametrize("name", ["text_line", "encoder", "pyramid"])
def test_exported_programs(name: str, kind: str, tmp_path: Path) -> None:
    path, x, expected = unpack(name, kind, tmp_path)
    layer = paddle.load(path)
    got = jit.to_static(layer)(x.astype(np.int32) if x.dtype == np.int64 else x)
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(expected)
    for one, other in zip(got, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_program_trains_and_exports_with_open_sizes(tmp_path: Path) -> None:
    from framework import nn

    path, x, (expected,) = unpack("text_line", "pdmodel", tmp_path)
    layer = paddle.load(path)
    shape = (2, 3, 16, "8*w")
    program, weights = lower_layer(layer, {"x": TensorSpec(shape, "float32")}, platforms=("cpu",))
    got = program.call(weights, {"x": x})["output"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    layer.train()
    means = [value for name, value in layer.named_buffers() if value.ndim == 1]
    loss, grads = nn.value_and_grad(layer, lambda net, x: (net(x)[..., 0] ** 2).mean())(x)
    assert np.isfinite(loss) and all(np.isfinite(grad).all() for grad in grads.values())
    assert set(grads) == {name for name, _ in layer.named_parameters()} and len(means) == 2


def test_a_config_takes_programs_of_paddle(tmp_path: Path) -> None:
    path, x, (expected,) = unpack("text_line", "pir", tmp_path)
    for config in (Config(path, path.with_suffix(".pdiparams")), Config(path), Config(tmp_path)):
        predictor = create_predictor(config)
        assert predictor.get_input_names() == ["x"]
        handle = predictor.get_input_handle("x")
        handle.reshape(x.shape)
        handle.copy_from_cpu(x)
        predictor.run()
        name = predictor.get_output_names()[0]
        got = predictor.get_output_handle(name).copy_to_cpu()
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(predictor.clone().run([x])[0], got)
    with pytest.raises(InputError, match=r"its own precision\n  received: bfloat16"):
        config.set_precision("bfloat16")
        create_predictor(config)
    path.with_suffix(".pdiparams").unlink()
    with pytest.raises(FormatError, match=r"without its parameters.*\n(.*\n)*.*\.pdiparams file beside it"):
        create_predictor(Config(path))


def test_an_unknown_operator_is_named(tmp_path: Path) -> None:
    path, _, _ = unpack("pyramid", "pdmodel", tmp_path)
    path.write_bytes(path.read_bytes().replace(b"hard_sigmoid", b"hard_sigmoix"))
    with pytest.raises(
        FormatError, match=r"an operator that is not known(.*\n)+  received: hard_sigmoix at hard_"
    ):
        paddle.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppocr_v2_cls", "ppocr_v3_det_ch"])
def test_published_programs(name: str, shared: Path) -> None:
    folder = shared / "weights" / name
    layer = paddle.load(folder / "inference.pdmodel")
    assert isinstance(layer, GraphLayer)
    with np.load(folder / "ref_io.npz") as stored:
        inputs = [stored[key].astype(np.float32) for key in stored if key.startswith("in")]
        outputs = [stored[key] for key in stored if key.startswith("out")]
    got = jit.to_static(layer)(*inputs)
    np.testing.assert_allclose(got, outputs[0], rtol=1e-3, atol=1e-4)
