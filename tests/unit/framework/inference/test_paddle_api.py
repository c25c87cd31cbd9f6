from __future__ import annotations

import copy
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from framework.core.errors import DeviceError, FormatError, InputError, ShapeError
from framework.export import Artifact, TensorSpec, lower_program
from framework.inference import (
    Config,
    DataType,
    PrecisionType,
    PredictorPool,
    create_predictor,
    get_num_bytes_of_data_type,
    get_version,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """b - a * scale, and the mean over the batch: padding shows in it."""
    program = lower_program(
        lambda w, i: {
            "out": i["b"] - i["a"] * i["scale"],
            "fixed": i["scale"] + w["shift"],
            "rows": i["a"][:, 0],
        },
        {"shift": np.ones(4, np.float32)},
        {"b": TensorSpec(("n", 4)), "a": TensorSpec(("n", 4)), "scale": TensorSpec((4,))},
        ("cpu",),
    )
    artifact = Artifact(
        {"inputs": ["b", "a", "scale"]}, {"float32": program}, {"shift": np.ones(4, np.float32)}
    )
    return artifact.save(tmp_path_factory.mktemp("paddle") / "net")


SCALE = np.full(4, 2, np.float32)


def batch(rows: int, value: float) -> np.ndarray:
    return np.full((rows, 4), value, np.float32)


def test_handles(folder: Path):
    predictor = create_predictor(Config(folder))
    assert predictor.get_input_names() == ["b", "a", "scale"]
    assert predictor.get_output_names() == ["fixed", "out", "rows"]
    b = predictor.get_input_handle("b")
    assert (b.shape(), b.type()) == ([-1, 4], "float32")
    for name, array in (("b", batch(2, 7)), ("a", batch(2, 3)), ("scale", SCALE)):
        handle = predictor.get_input_handle(name)
        handle.reshape([len(array), *array.shape[1:]])
        assert handle.shape() == list(array.shape)  # before there are values, as in Paddle
        handle.copy_from_cpu(array)
    assert predictor.run() is True
    out = predictor.get_output_handle("out").copy_to_cpu()
    np.testing.assert_array_equal(out, batch(2, 1))
    assert predictor.get_output_handle("out").shape() == [2, 4]
    out[:] = 0  # a copy: it can be written to, and the handle keeps its own
    np.testing.assert_array_equal(predictor.get_output_handle("out").copy_to_cpu(), batch(2, 1))


def test_copy_from_cpu_copies_and_share_does_not(folder: Path):
    predictor = create_predictor(Config(folder))
    array, shared = batch(1, 7), batch(1, 3)
    predictor.get_input_handle("b").copy_from_cpu(array)
    predictor.get_input_handle("a").share_external_data(shared)
    predictor.get_input_handle("scale").copy_from_cpu(SCALE.astype(np.float64))  # narrowed
    array[:], shared[:] = 0, 2
    predictor.run()
    np.testing.assert_array_equal(predictor.get_output_handle("out").copy_to_cpu(), batch(1, 7 - 2 * 2))


def test_arrays_in_arrays_out(folder: Path):
    fixed, out, rows = create_predictor(Config(folder)).run([batch(1, 7), batch(1, 3), SCALE])
    assert fixed.tolist() == [3, 3, 3, 3] and out.tolist() == [[1, 1, 1, 1]] and rows.tolist() == [3]


def test_clones_share_what_is_compiled_and_run_in_threads(folder: Path):
    first = create_predictor(Config(folder))
    clones = [first.clone() for _ in range(8)]

    def work(number: int) -> np.ndarray:
        predictor = clones[number]
        for name, array in (("b", batch(2, number)), ("a", batch(2, 1)), ("scale", SCALE)):
            predictor.get_input_handle(name).copy_from_cpu(array)
        predictor.run()
        return predictor.get_output_handle("out").copy_to_cpu()

    with ThreadPoolExecutor(8) as pool:
        for number, out in enumerate(pool.map(work, range(8))):
            np.testing.assert_array_equal(out, batch(2, number - 2))
    assert first._engine.compile_count == 1
    with pytest.raises(ShapeError, match="nothing to read yet"):
        first.get_output_handle("out").copy_to_cpu()


@pytest.mark.parametrize("value", [None, {"b": 1}, [[1, 2], [3]]])
def test_what_is_no_array_is_refused_where_it_is_given(folder: Path, value: Any):
    """PaddleOCR#11283: the error named neither the input nor what came."""
    handle = create_predictor(Config(folder)).get_input_handle("b")
    for give in (handle.copy_from_cpu, handle.share_external_data):
        with pytest.raises(ShapeError, match=f"b: this is no array\n  received: {type(value).__name__}\n"):
            give(value)


def test_batch_buckets(folder: Path):
    config = Config(folder)
    config.set_batch_buckets([4, 2])
    predictor = create_predictor(config)
    for rows, compiled in ((1, 1), (2, 1), (3, 2), (4, 2), (5, 3)):
        fixed, out, first = predictor.run([batch(rows, 7), batch(rows, 3), SCALE])
        assert fixed.shape == (4,), "the size of what is no batch stays"
        np.testing.assert_array_equal(out, batch(rows, 1))
        assert first.shape == (rows,) and predictor._engine.compile_count == compiled
    with pytest.raises(InputError, match=r"positive numbers\n  received: \[0, 2\]\n  allowed: \[1, 4, 16\]"):
        config.set_batch_buckets([0, 2])


def test_switches_of_other_engines_have_no_effect(folder: Path, caplog: pytest.LogCaptureFixture):
    config = Config(str(folder))
    with caplog.at_level(logging.INFO, "oar"):
        config.enable_mkldnn()
        config.switch_ir_optim(True)
        config.set_cpu_math_library_num_threads(4)
    assert caplog.text.count("has no effect") == 3
    assert copy.deepcopy(config).model_dir() == str(folder)


def test_attributes_that_are_none(folder: Path):
    with pytest.raises(AttributeError, match="no attribute 'enable_mkldn'; did you mean 'enable_mkldnn'"):
        Config(folder).enable_mkldn()
    assert not hasattr(Config(folder), "xyzzy")


def test_device_and_precision(folder: Path):
    config = Config(folder)
    assert not config.use_gpu() and "on cpu in float32, batch buckets off" in config.summary()
    config.enable_use_gpu(100, 7, PrecisionType.Bfloat16)
    assert config.use_gpu() and "on gpu:7 in bfloat16" in config.summary()
    with pytest.raises(DeviceError, match=r"unknown device\n  received: 'gpu:7'"):
        create_predictor(config)
    config.disable_gpu()
    with pytest.raises(
        InputError, match=r"precision is not available\n  received: 'bfloat16'\n  allowed: auto, float"
    ):
        create_predictor(config)


def test_a_pipeline_needs_one_of_its_stages(folder: Path, tmp_path: Path):
    from framework.export import load_artifact

    whole = Artifact({}, stages={"detector": load_artifact(folder)}).save(tmp_path / "pipeline")
    with pytest.raises(
        InputError, match=r"several programs\n  received: detector\n  allowed: the folder of one stage"
    ):
        create_predictor(Config(whole))
    assert create_predictor(Config(whole / "detector")).get_input_names() == ["b", "a", "scale"]


def test_what_is_wrong_is_named(folder: Path):
    predictor = create_predictor(Config(folder))
    with pytest.raises(InputError, match=r"no such input\n  received: 'x'\n  allowed: b, a, scale"):
        predictor.get_input_handle("x")
    with pytest.raises(InputError, match=r"no such output\n  received: 'y'\n  allowed: fixed, out, rows"):
        predictor.get_output_handle("y")
    with pytest.raises(ShapeError, match=r"wrong number of inputs\n  received: 1\n  allowed: b, a, scale"):
        predictor.run([batch(1, 1)])
    with pytest.raises(
        ShapeError, match=r"not set\n  received: nothing for b, a, scale\n.*\n.*copy_from_cpu"
    ):
        predictor.run()
    with pytest.raises(
        InputError,
        match=r"the files of a model must be [^\n]*\n  received: model.bin, model.pdiparams",
    ):
        Config("model.bin", "model.pdiparams")
    with pytest.raises(InputError, match=r"no int8 program\n  received: PrecisionType.Int8"):
        Config(folder).set_precision(PrecisionType.Int8)
    with pytest.raises(InputError, match=r"Config.enable_xpu: XLA drives no such device"):
        Config(folder).enable_xpu(100)
    with pytest.raises(ShapeError, match=r"no levels \(LoD\)"):
        predictor.get_input_handle("a").set_lod([[0, 2]])


def test_names_of_every_switch_and_object_of_paddle(folder: Path):
    config = Config(folder / "model", folder / "program_weights.safetensors")
    assert (config.model_dir(), config.gpu_device_id()) == (str(folder), -1)
    assert Path(config.prog_file()).is_file() and config.params_file().startswith(str(folder))
    config.enable_custom_device("cpu", 0)
    for name in ("enable_mkldnn_int8", "enable_tensorrt_engine", "exp_disable_tensorrt_ops"):
        assert getattr(config, name)() is None
    assert config.tensorrt_engine_enabled() is False
    predictor = create_predictor(config)
    assert (predictor.clear_intermediate_tensor(), predictor.try_shrink_memory()) == (None, 0)
    assert predictor.get_input_handle("a").lod() == []
    assert get_num_bytes_of_data_type(DataType.FLOAT16) == 2 and "jax" in get_version()


def test_a_pool_shares_one_program(folder: Path):
    pool = PredictorPool(Config(folder), 2)
    first, second = pool.retrieve(0), pool.retrieve(1)
    assert first is not second and first._engine is second._engine
    first.get_input_handle("a").copy_from_cpu(batch(1, 1))
    assert second.get_input_handle("a").value is None
    with pytest.raises(InputError, match=r"the predictor is out of range\n  received: 2\n  allowed: 0 to 1"):
        pool.retrieve(2)
    with pytest.raises(InputError, match="a pool holds predictors"):
        PredictorPool(Config(folder), 0)


def test_models_named_later_and_models_in_memory(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    x = helper.make_tensor_value_info("x", 1, ["n", 2])
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", 1, ["n", 2])])
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(content)
    config = Config()
    assert (config.model_dir(), config.prog_file(), config.model_from_memory()) == ("", "", False)
    with pytest.raises(InputError, match="no model is named"):
        create_predictor(config)
    config.set_prog_file(tmp_path / "m.onnx")
    assert config.prog_file() == str(tmp_path / "m.onnx")
    memory = Config()
    memory.set_model_buffer(content, len(content))
    assert memory.model_from_memory()
    with pytest.raises(InputError, match="the size of the program"):
        Config().set_model_buffer(content, len(content) + 1)
    for each in (config, memory):
        (y,) = create_predictor(each).run([np.float32([[-1, 2]])])
        assert y.tolist() == [[0, 2]]


def test_switches_are_remembered(folder: Path) -> None:
    config = Config(folder)
    standard = (config.ir_optim(), config.specify_input_name(), config.memory_pool_init_size_mb())
    assert standard == (True, False, 100) and config.mkldnn_enabled() is False
    config.enable_mkldnn()
    config.enable_onednn()
    config.switch_ir_optim(False)
    config.switch_specify_input_names()
    config.set_mkldnn_cache_capacity(3)
    config.collect_shape_range_info("shapes.txt")
    assert config.mkldnn_enabled() and config.onednn_enabled() and config.specify_input_name()
    assert not config.ir_optim() and config.mkldnn_cache_capacity() == 3
    assert config.shape_range_info_collected() and config.shape_range_info_path() == "shapes.txt"
    config.disable_mkldnn()
    assert not config.mkldnn_enabled() and config.pass_builder().all_passes() == []
    handle = create_predictor(config).get_input_handle("a")
    assert handle.type() is DataType.FLOAT32 and handle.type() == "float32"


def write_graph(file: Path, kind: int = 1) -> Path:
    """Two outputs whose names are not in order, of rows as many as are not zero, and an input of 64 bits."""
    inputs = [helper.make_tensor_value_info(*one) for one in (("x", kind, ["n"]), ("k", 7, []))]
    outputs = [helper.make_tensor_value_info(*one) for one in (("z", 7, [1, None]), ("a", 7, []))]
    nodes = [helper.make_node("NonZero", ["x"], ["z"]), helper.make_node("Add", ["k", "k"], ["a"])]
    if kind == 8:
        nodes[0] = helper.make_node("Shape", ["x"], ["z"])
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file.write_bytes(model.SerializeToString())
    return file


def test_an_onnx_file_runs_with_onnx_runtime_where_it_is_asked_for(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    config = Config(write_graph(tmp_path / "m.onnx"))
    inputs = [np.float32([0, 5, 0, 7]), np.int64(21)]
    plain = create_predictor(config)
    config.enable_onnxruntime()
    assert config.onnxruntime_enabled()
    predictor = create_predictor(config)
    assert type(predictor._engine).__name__ == "ONNXGraphEngine"
    assert predictor.get_output_names() == plain.get_output_names() == ["z", "a"]
    for got, expected in zip(predictor.run(inputs), plain.run(inputs)):
        assert got.dtype == expected.dtype == np.int64 and got.tolist() == expected.tolist()
    with pytest.raises(ShapeError, match="does not fit"):
        predictor.run([np.float32([[0]]), np.int64(21)])


def test_onnx_runtime_takes_no_texts(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    config = Config(write_graph(tmp_path / "m.onnx", kind=8))
    config.enable_onnxruntime()
    with pytest.raises(FormatError, match="arrays of numbers"):
        create_predictor(config)


def test_an_artifact_without_an_onnx_file_stays_with_xla(folder: Path):
    config = Config(folder)
    config.enable_onnxruntime()
    assert type(create_predictor(config)._engine).__name__ == "XLAEngine"
