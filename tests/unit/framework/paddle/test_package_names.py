"""Values of the names that packages use of Paddle's modules: those of paddlepaddle 2.6.2."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ForeignNameError, InputError


def imported(module: str) -> Any:
    return importlib.import_module(f"framework.{module}")


def test_kernels_by_their_names() -> None:
    x = paddle.to_tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    for values, order in (
        imported("paddle._C_ops").argsort(x, 1, True),
        imported("paddle._legacy_C_ops").argsort(x, "axis", 1, "descending", True),
    ):
        np.testing.assert_array_equal(values.numpy(), [[3, 2, 1], [5, 4, 0]])
        np.testing.assert_array_equal(order.numpy(), [[0, 2, 1], [1, 2, 0]])
    kernels = imported("paddle._C_ops")
    y = kernels.layer_norm(x, paddle.full([3], 2.0), paddle.ones([3]), 1e-5, 1)
    np.testing.assert_allclose(y.numpy()[0], [3.449, -1.449, 1.0], atol=1e-3)
    mean, variance = paddle.zeros([3]), paddle.ones([3])
    out = kernels.batch_norm(
        x, mean, variance, paddle.ones([3]), paddle.zeros([3]), False, 0.5, 0.0, "NCHW", False, False
    )
    np.testing.assert_allclose(out[0].numpy(), [[1, -1, -1], [-1, 1, 1]], atol=1e-5)
    np.testing.assert_allclose(mean.numpy(), [0.75, 1.5, 1.5])
    fixed = kernels.batch_norm(x, mean, variance, None, None, True, 0.5, 0.0, "NCHW", False, False)
    np.testing.assert_allclose(fixed[0].numpy(), (x - mean).numpy() / np.sqrt(variance.numpy()), rtol=1e-6)
    assert float(imported("paddle._legacy_C_ops").c_allreduce_sum(x, "ring_id", 0).sum()) == 15
    rois = paddle.to_tensor([[0.0, 0, 100, 100], [0, 0, 500, 500], [0, 0, 10, 10]])
    levels, _, restore = kernels.distribute_fpn_proposals(rois, None, 2, 4, 4, 224, False)
    assert [one.shape[0] for one in levels] == [2, 0, 1] and restore.reshape([-1]).tolist() == [0, 2, 1]


def test_helpers_of_the_core() -> None:
    core = imported("paddle.base.core")
    assert core.default_cpu_generator().get_state() == paddle.get_rng_state()[0]
    paddle.seed(5)
    paddle.rand([2])
    assert paddle.get_rng_state()[0].current_seed() == 5
    assert core.op_proto_and_checker_maker.OpRole.Forward == 0 and core.get_custom_device_count("npu") == 0
    assert core.device_memory_stat_current_value("Allocated", 0) >= 0
    with pytest.raises(ValueError, match="Allocated or Reserved"):
        core.device_memory_stat_peak_value("Used", 0)
    with pytest.raises(ForeignNameError, match="C\\+\\+"):
        core.eager._run_custom_op("op")
    parameter = paddle.framework.EagerParamBase.from_tensor(paddle.ones([2]), trainable=False)
    assert parameter.stop_gradient and float(parameter.sum()) == 2
    made = imported("paddle.base.framework")._create_tensor(
        shape=[2, 3], dtype="int64", name="t", persistable=True
    )
    assert made.shape == [2, 3] and made.dtype == paddle.int64 and made.name == "t" and made.persistable
    assert paddle.ones([1])._to(dtype="float16").dtype == paddle.float16
    assert repr(paddle.CustomPlace("npu", 0)) == "Place(npu:0)"
    with pytest.raises(ValueError, match="does not exist"):
        paddle.base.DatasetFactory().create_dataset("Nothing")
    dataset = paddle.base.DatasetFactory().create_dataset("InMemoryDataset")
    assert isinstance(dataset, paddle.distributed.InMemoryDataset)


def test_older_datasets_are_set_one_setting_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("1 7 2 0.5 1.5\n1 8 2 2.5 3.5\n", encoding="utf-8")
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            slots = [paddle.static.data("id", [None, 1], "int64"), paddle.static.data("x", [None, 2])]
        assert repr(slots[1]) == "var x : LOD_TENSOR.shape(-1, 2).dtype(float32).stop_gradient(True)"
    finally:
        paddle.disable_static()
    dataset = paddle.base.DatasetFactory().create_dataset()
    assert isinstance(dataset, paddle.distributed.QueueDataset)
    dataset.set_use_var(slots)
    dataset.set_batch_size(2)
    dataset.set_thread(1)
    dataset.set_pipe_command("cat")
    dataset.set_filelist([str(tmp_path / "lines")])
    (batch,) = dataset.batches()
    assert batch["id"].tolist() == [[7], [8]] and batch["x"].tolist() == [[0.5, 1.5], [2.5, 3.5]]


def test_collections_are_converted_in_place() -> None:
    io = imported("paddle.framework.io")
    tree = {"a": [np.zeros(2), (np.ones(1), "text")], "b": 1}
    converted = io._parse_every_object(tree, io._transformed_from_lodtensor, io._to_LodTensor)
    assert converted is tree and isinstance(tree["a"][0], paddle.Tensor)  # type: ignore[index]
    assert isinstance(tree["a"][1][0], paddle.Tensor) and tree["a"][1][1] == "text"  # type: ignore[index]
    with pytest.raises(TypeError, match="iteratable"):
        io._parse_every_object([iter([1])], lambda _: False, str)
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        io._to_LodTensor([1])


def test_counters_of_operations(capsys: pytest.CaptureFixture[str]) -> None:
    counters = imported("paddle.hapi.dynamic_flops")
    layer: Any = paddle.nn.Conv2D(3, 4, 3)
    layer.register_buffer("total_ops", paddle.zeros([1], "int64"))
    layer.register_buffer("total_params", paddle.zeros([1], "int64"))
    x = paddle.ones([1, 3, 8, 8])
    y = layer(x)
    for count in (
        counters.register_hooks[paddle.nn.Conv2D],
        counters.count_parameters,
        counters.count_io_info,
    ):
        count(layer, [x], y)
    assert int(layer.total_ops) == 4032 and int(layer.total_params) == 112
    assert layer.output_shape.tolist() == [1, 4, 6, 6]
    table = imported("paddle.hapi.static_flops").Table(["a", "bc"])
    table.add_row(["xyz", 1])
    table.print_table()
    assert "|  a  | bc |" in capsys.readouterr().out
    with pytest.raises(ValueError, match="2 cells"):
        table.add_row([1])
    assert imported("paddle.hapi.model")._all_gather(x).shape == [1, 3, 8, 8]


def test_attention_by_the_name_of_its_kernel() -> None:
    attention = imported("paddle.nn.functional.flash_attention").flash_attention
    q, k, v = paddle.randn([3, 2, 5, 3, 8]).unbind(0)
    for causal in (False, True):
        out, weights = attention(q, k, v, causal=causal, return_softmax=True)
        mixed = paddle.matmul(weights, v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3])
        np.testing.assert_allclose(out.numpy(), mixed.numpy(), atol=1e-5)
        assert attention(q, k, v, causal=causal)[1] is None
    layer = paddle.nn.MultiHeadAttention(8, 2)
    x = paddle.randn([1, 3, 8])
    heads = layer._prepare_qkv(x, x, x)
    assert [one.shape for one in heads] == [[1, 2, 3, 4]] * 3
    longer = layer._prepare_qkv(x, x, x, layer.gen_cache(x))
    assert len(longer) == 4 and longer[1].shape == [1, 2, 3, 4]


def test_attributes_of_layers_and_convolutions() -> None:
    attributes = imported("paddle.nn.layer.transformer")._convert_param_attr_to_list
    assert [one.name for one in attributes(paddle.ParamAttr(name="w"), 2)] == ["w_0", "w_1"]
    assert attributes(False, 2) == [False, False] and attributes([True, False], 2)[1] is False
    with pytest.raises(AssertionError, match="length of param_attr"):
        attributes([None], 2)
    convolve = imported("paddle.nn.functional.conv")._conv_nd
    x, weight = paddle.randn([1, 2, 5, 5]), paddle.randn([2, 1, 3, 3])
    expected = paddle.nn.functional.conv2d(x, weight, padding=1, groups=2)
    one = convolve(x, weight, None, 1, [1, 1], "EXPLICIT", [1, 1], 2, "NCHW", 1, "depthwise_conv2d")
    np.testing.assert_allclose(one.numpy(), expected.numpy(), atol=1e-6)
    same = convolve(x, weight, None, 1, [0, 0], "SAME", [1, 1], 2)
    np.testing.assert_allclose(same.numpy(), expected.numpy(), atol=1e-6)
    assert not imported("paddle.nn.layer.layers").in_declarative_mode()
    asked = []
    paddle.jit.to_static(
        lambda t: asked.append(imported("paddle.base.dygraph.base").in_to_static_mode()) or t
    )(x)
    assert asked[-1]


def test_variables_in_files_of_their_own(tmp_path: Path) -> None:
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [2, 3], "float32")
            paddle.matmul(x, paddle.static.create_parameter([3, 2], "float32", name="names_w"))
        io, folder = paddle.static.io, str(tmp_path)
        assert [one.name for one in main.list_vars() if io.is_persistable(one)] == ["names_w"]
        weight = main.all_parameters()[0]
        before = weight.numpy()
        io.save_vars(None, folder, main, predicate=io.is_persistable)
        io.save_vars(None, folder, main, vars=[weight], filename="all")
        data = io.save_vars(None, None, main, predicate=io.is_persistable)
        assert data == (tmp_path / "all").read_bytes() == (tmp_path / "names_w").read_bytes()
        for filename, source in ((None, folder), ("all", folder), (data, None)):
            weight.set_value(np.zeros([3, 2], np.float32))
            io.load_vars(None, source, main, predicate=io.is_persistable, filename=filename)
            np.testing.assert_array_equal(weight.numpy(), before)
        with pytest.raises(InputError, match="no file of this variable"):
            io.load_vars(None, str(tmp_path / "other"), main, vars=[weight])
        with pytest.warns(UserWarning, match="no variable"):
            io.save_vars(None, folder, paddle.static.Program())
        wrong = paddle.static.create_global_var([2], 0.0, "float32", name="names_w")
        with pytest.raises(RuntimeError, match="shape does not match"):
            io.load_vars(None, folder, main, vars=[wrong])
    finally:
        paddle.disable_static()


def test_integers_of_arrays() -> None:
    utils = imported("paddle.static.quantization.utils")
    x = np.random.RandomState(0).randn(3, 4, 2).astype(np.float32)
    sums = ((966.3778, 961.0, 1429.9336), (880.38635, 880.0, 1304.5479), (1063.3463, 1061.0, 1612.6901))
    for (scale, axis), (plain, rounded, corrected) in zip(
        (([0.5, 1.0, 0.0], 0), ([0.5, 1.0, 2.0, 1.5], 1), (0.7, 0)), sums, strict=True
    ):
        assert utils.quant_tensor(x, scale, axis).sum() == pytest.approx(plain, rel=1e-5)
        integers = utils.quant_tensor(x, scale, axis, onnx_format=True)
        assert integers.sum() == rounded
        if axis == 0:
            assert utils.bias_correction_w(x, integers, scale, axis).sum() == pytest.approx(
                corrected, rel=1e-4
            )
    np.testing.assert_allclose(utils.stable_sigmoid(np.array([-1000.0, 0, 1000])), [0, 0.5, 1])
    with pytest.raises(AssertionError, match="0 or 1"):
        utils.dequant_tensor(x, 1.0, 2)


def test_operators_that_engines_quantise() -> None:
    config = imported("paddle.static.quantization.quant_config")
    assert config.SUPPORT_QUANTIZATION_OP_DICT["conv2d"] == [["Input", "Filter"], ["Output"]]
    assert len(config.SUPPORT_ACT_QUANTIZATION_OP_DICT) == 89
    assert config.BaseQuantizer().activation_quant_operation_types == ["mul", "matmul", "matmul_v2"]
    chosen = config.BaseQuantizer(["conv2d", "softmax"])
    assert chosen.weight_quant_operation_types == ["conv2d"]
    assert chosen.activation_quant_operation_types == ["softmax"]
    assert config.TensorRTQuantizer(["conv2d"]).activation_quant_operation_types[0] == "pool2d"
    assert config.ARMCPUQuantizer()._quant_min == -127 and config.MKLDNNQuantizer()._quant_min == -128


def test_processes_take_tensors() -> None:
    multiprocessing = imported("paddle.incubate.multiprocessing")
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    queue.put(paddle.arange(3))
    assert queue.get().tolist() == [0, 1, 2] and multiprocessing.Event is not None
    assert pickle.loads(pickle.dumps(paddle.ones([2]))).tolist() == [1, 1]


def test_a_saved_model_as_an_object(tmp_path: Path) -> None:
    layer = paddle.nn.Linear(2, 1)
    path = str(tmp_path / "linear")
    paddle.jit.save(layer, path, [paddle.static.InputSpec([None, 2], "float32")])
    model = imported("paddle.jit.layer").Layer()
    model.load(path, paddle.CPUPlace())
    x = paddle.ones([3, 2])
    np.testing.assert_allclose(model.forward(x)[0].numpy(), layer(x).numpy(), rtol=1e-6)


def test_small_names() -> None:
    loader = paddle.io.DataLoader(paddle.io.TensorDataset([paddle.arange(4)]), batch_size=2)
    batches = iter(loader)
    assert isinstance(batches, imported("paddle.io.dataloader.dataloader_iter")._DataLoaderIterBase)
    assert batches._batch_sampler is loader.batch_sampler and len(list(batches)) == 2
    assert imported("paddle.amp.auto_cast").amp_state() is None and callable(paddle.amp.auto_cast)
    assert imported("paddle.utils.download").is_url("https://a/b") and not paddle.utils.download.is_url("/a")
    assert imported("paddle.utils.cpp_extension.cpp_extension").CUDA_HOME is None
    assert len(paddle.audio.datasets.ESC50.label_list) == 50
    assert (
        imported("paddle.incubate.nn.layer.fused_dropout_add").FusedDropoutAdd(0.0)(
            paddle.ones([1]), paddle.ones([1])
        )
        == 2
    )


def test_parameters_as_bytes() -> None:
    """paddlepaddle 2.6.2 gives as many bytes, and asks for them so."""
    static, constant = paddle.static, paddle.nn.initializer.Constant
    paddle.enable_static()
    try:
        with static.program_guard(static.Program(), static.Program()):
            x = static.data("x", [None, 3])
            attrs = (
                paddle.ParamAttr(name=name, initializer=constant(value))
                for name, value in (("w", 2.0), ("b", 1.0))
            )
            y = static.nn.fc(x, 2, weight_attr=next(attrs), bias_attr=next(attrs))
            static.nn.fc(x, 2)
            executor, main = static.Executor(), static.default_main_program()
            data = static.serialize_persistables([x], [y], executor)
            assert data is not None and len(data) == 82
            program = static.normalize_program(main, [x], [y])
            with pytest.warns(UserWarning, match="no variable in your model"):
                assert static.io._serialize_persistables(static.Program(), executor) is None
            assert static.io._serialize_persistables(program, executor) == data
            for parameter in program.all_parameters():
                parameter.set_value(np.zeros(parameter.shape, np.float32))
            static.deserialize_persistables(program, data, executor)
            assert executor.run(main, {"x": np.ones((1, 3), np.float32)}, [y])[0].tolist() == [[7, 7]]
            with pytest.raises(AssertionError, match="Required 'data'"):
                static.deserialize_persistables(program, None, executor)
            with pytest.raises(TypeError, match="program type must be"):
                static.deserialize_persistables(x, data, executor)
    finally:
        paddle.disable_static()


def test_suppression_as_detectors_call_it() -> None:
    kernels, draw = imported("paddle._legacy_C_ops"), np.random.RandomState(0)

    def boxes(*shape: int) -> paddle.Tensor:
        first = draw.rand(*shape, 2) * 80
        return paddle.to_tensor(
            np.concatenate([first, first + 10 + draw.rand(*shape, 2) * 30], -1).astype(np.float32)
        )

    def scores(*shape: int) -> paddle.Tensor:
        return paddle.to_tensor(draw.rand(*shape).astype(np.float32))

    shared = ("background_label", -1, "score_threshold", 0.3, "nms_top_k", 10, "nms_threshold", 0.4)
    rest = ("keep_top_k", 12, "nms_eta", 1.0, "normalized", True)
    rows, index, counts = kernels.multiclass_nms3(boxes(2, 20), scores(2, 3, 20), None, *shared, *rest)
    assert float(rows.sum()) == pytest.approx(5047.959, rel=1e-5) and int(index.sum()) == 484
    assert counts.tolist() == [12, 12] and index.reshape([-1])[:4].tolist() == [4, 17, 3, 5]
    of_classes = ("background_label", 0, "score_threshold", 0.2, "nms_top_k", -1, "nms_threshold", 0.3)
    rest = ("keep_top_k", 9, "nms_eta", 1.0, "normalized", False)
    images = paddle.to_tensor([10, 7], "int32")
    rows, index, counts = kernels.multiclass_nms3(boxes(17, 3), scores(17, 3), images, *of_classes, *rest)
    assert float(rows.sum()) == pytest.approx(3597.966, rel=1e-5) and counts.tolist() == [9, 9]
    assert index.reshape([-1])[:9].tolist() == [1, 4, 7, 19, 22, 25, 5, 8, 29] and int(index.sum()) == 487
    matrix = ("background_label", 0, "score_threshold", 0.3, "post_threshold", 0.1, "nms_top_k", 10)
    rest = ("gaussian_sigma", 2.0, "use_gaussian", False, "keep_top_k", 12, "normalized", True)
    rows, index, counts = kernels.matrix_nms(boxes(2, 20), scores(2, 3, 20), *matrix, *rest)
    assert float(rows.sum()) == pytest.approx(5060.375, rel=1e-5) and int(index.sum()) == 473
    coding = ("code_type", "encode_center_size", "box_normalized", False, "axis", 0)
    encoded = kernels.box_coder(boxes(6), None, boxes(4), *coding, "variance", [0.1, 0.1, 0.2, 0.2])
    assert float(encoded.sum()) == pytest.approx(267.094, rel=1e-4)


def test_suppression_in_a_saved_program(tmp_path: Path) -> None:
    """PaddleDetection's export: as many rows as could stay, those of -1 last; eagerly the rows that stay."""
    kernels = imported("paddle._legacy_C_ops")
    settings = ("background_label", -1, "score_threshold", 0.3, "nms_top_k", 2, "nms_threshold", 0.4)

    def suppress(boxes: paddle.Tensor, scores: paddle.Tensor) -> list[paddle.Tensor]:
        rows, _, counts = kernels.multiclass_nms3(boxes, scores, None, *settings, "keep_top_k", 3)
        return [rows, counts]

    boxes = paddle.to_tensor([[[0.0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]]] * 2, stop_gradient=False)
    scores = paddle.to_tensor([[[0.9, 0.8, 0.1]], [[0.5, 0.1, 0.7]]])
    rows, counts = suppress(boxes, scores)
    assert counts.tolist() == [1, 2] and rows.shape == [3, 6] and rows.stop_gradient
    spec = [paddle.static.InputSpec([None, 3, 4]), paddle.static.InputSpec([None, 1, 3])]
    paddle.jit.save(suppress, str(tmp_path / "suppress"), spec)
    padded, counts = paddle.jit.load(str(tmp_path / "suppress"))(boxes, scores)
    np.testing.assert_array_equal(padded.numpy(), [*rows.numpy(), [-1] * 6])
    assert counts.tolist() == [1, 2]


def test_names_of_modes_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    framework = imported("paddle.base.framework")
    with framework._dygraph_guard(None):
        assert not paddle.in_dynamic_mode()
        with framework._dygraph_guard(object()):
            assert paddle.in_dynamic_mode()
    assert paddle.in_dynamic_mode()
    settings = imported("paddle.base.dygraph.base").global_var
    settings._in_to_static_mode_ = False
    assert not settings._in_to_static_mode_
    environments = imported("paddle.utils.environments")
    count = environments.IntegerEnvironmentVariable("OAR_TEST_COUNT", 3)
    with environments.EnvironmentVariableGuard(count, 5):
        assert (count.get(), repr(count)) == (5, "Env(OAR_TEST_COUNT=5)")
    assert count.get() == 3
    monkeypatch.setenv("OAR_TEST_COUNT", "many")
    assert count.get() == 3
    with pytest.raises(AssertionError, match="value must be an integer"):
        count.set(True)


def test_byte_code_runs_as_python() -> None:
    sot = imported("paddle.jit.sot")
    calls: list[int] = []
    run = sot.symbolic_translate(sot.psdb.check_no_breakgraph(lambda x: calls.append(1) or x + 1))
    with sot.utils.strict_mode_guard(True):
        assert [run(1), run(2), len(calls)] == [2, 3, 2]
    cache = imported("paddle.jit.sot.opcode_translator.executor.executor_cache").OpcodeExecutorCache()
    cache.clear()
    assert (cache.cache, cache.translate_count) == ({}, 0)


def test_properties_are_written_and_read() -> None:
    properties = imported("paddle.base.core").Property()
    properties.set_float("rate", 1)
    properties.set_strings("names", ["a"])
    other = imported("paddle.base.core").Property()
    other.parse_from_string(properties.serialize_to_string())
    assert (other.size(), other.get_float("rate"), other.get_float(0)) == (2, 1.0, 1.0)
    with pytest.raises(ValueError, match="not a float"):
        other.get_float(1)


def test_axes_of_the_smaller_tensor_begin_where_it_is_said() -> None:
    x, y = paddle.ones([2, 3, 4]), paddle.to_tensor([1.0, 2.0, 3.0])
    math = imported("paddle.tensor.math")
    np.testing.assert_array_equal(math._multiply_with_axis(x, y, 1).numpy()[0, :, 0], [1, 2, 3])
    np.testing.assert_array_equal(math._subtract_with_axis(y, x, 1).numpy()[1, :, 3], [0, 1, 2])


def test_constraints_of_random_variables() -> None:
    constraint = imported("paddle.distribution.constraint")
    variable = imported("paddle.distribution.variable")
    assert constraint.Range(0, 1)(0.5)
    assert not bool(constraint.Simplex()(paddle.to_tensor([0.5, 0.6])))
    stacked = variable.Stack([variable.real, variable.positive], axis=-1)
    assert stacked.constraint(paddle.to_tensor([[1.0, -1.0]])).tolist() == [[True, False]]
    whole = variable.Independent(variable.positive, 1)
    assert (whole.event_rank, whole.constraint(paddle.to_tensor([[1.0, -1.0]])).tolist()) == (1, [False])
    with pytest.raises(NotImplementedError):
        constraint.Constraint()(1)


def test_source_of_functions() -> None:
    utils = imported("paddle.jit.dy2static.utils")
    assert "def test_source_of_functions" in utils.func_to_source_code(test_source_of_functions)
    with pytest.raises(TypeError, match="function or method"):
        utils.func_to_source_code(3)
    assert (utils.index_in_list([1, 2], 2), utils.index_in_list([], 1)) == (1, -1)
    assert utils.is_paddle_func(paddle.nn.functional.relu)
    assert not utils.is_paddle_func(np.mean)
    logger = imported("paddle.static.log_helper").get_logger("oar.test", 20, "%(message)s")
    assert (logger.level, logger.propagate) == (20, False)


def test_a_layer_of_a_package_asks_its_helper_for_the_default_type() -> None:
    # PaddleNLP's attention (BigBird) and Paddle's own layers begin so.
    class Projection(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self._dtype = self._helper.get_default_dtype()
            self.weight = self.create_parameter([2, 3], dtype=self._dtype)

    paddle.set_default_dtype("float64")
    try:
        assert Projection().weight.dtype == paddle.float64
    finally:
        paddle.set_default_dtype("float32")
    layer = Projection()
    assert (layer._dtype, layer._helper.name) == ("float32", layer.full_name())


def test_a_layer_may_define_train_and_eval_without_arguments() -> None:
    # As PaddleNLP's LoRALinear does.
    class Merged(paddle.nn.Layer):
        def train(self) -> None:  # type: ignore[override]
            super().train()
            self.merged = False

        def eval(self) -> None:  # type: ignore[override]
            super().eval()
            self.merged = True

    layer = Merged()
    layer.eval()
    assert (layer.training, layer.merged) == (False, True)
    layer.train()
    assert (layer.training, layer.merged) == (True, False)
    model = paddle.nn.Sequential(layer)
    model.eval()
    assert not layer.training


def test_methods_and_images_by_the_modules_that_paddle_keeps_them_in() -> None:
    manipulation = importlib.import_module("framework.paddle.tensor.manipulation")
    filled = manipulation.fill_diagonal_tensor(paddle.ones([2, 2]), paddle.zeros([2]))
    np.testing.assert_array_equal(filled.numpy(), [[0, 1], [1, 0]])
    x = paddle.to_tensor([4.0])
    assert importlib.import_module("framework.paddle.tensor.ops").sqrt_(x) is x and x.item() == 2
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    cv2 = importlib.import_module("framework.paddle.vision.transforms.functional_cv2")
    np.testing.assert_array_equal(cv2.hflip(image), image[:, ::-1])


def test_the_tracer_says_how_operations_run(monkeypatch: pytest.MonkeyPatch) -> None:
    core, frame = imported("paddle.base.core"), imported("paddle.base.framework")
    tracer = frame._dygraph_tracer()
    assert tracer._amp_level == core.AmpLevel.O0 and tracer._amp_dtype == "float32" and tracer._has_grad
    with paddle.no_grad():
        assert not tracer._has_grad
    monkeypatch.setattr(imported("paddle.amp.casting"), "available", lambda: True)
    with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
        assert (tracer._amp_level, tracer._amp_dtype) == (core.AmpLevel.O2, "bfloat16")
    assert tracer._amp_level == 0 and int(core.AmpLevel.OD) == 4
    assert not hasattr(core.eager.ops.legacy, "fused_gemm_epilogue") and hasattr(core.eager.ops, "matmul")


def test_the_range_of_steps_that_is_measured_ends_the_program() -> None:
    steps = imported("paddle.profiler.utils")
    seen = []
    with pytest.raises(SystemExit):
        for step in range(5):
            with steps.job_schedule_profiler_range(step, 1, 3) as inside:
                seen.append(inside)
    assert seen == [False, True, True]
    with steps.job_schedule_profiler_range(2, 1, 3, False) as inside:
        assert inside
    with steps._nvprof_range(0, -1, -1) as nothing:
        assert nothing is None


def test_kernels_of_linear_layers_and_attention() -> None:
    kernels, legacy = imported("paddle._C_ops"), imported("paddle._legacy_C_ops")
    x, dout = paddle.to_tensor([[[1.0, 2.0], [3.0, 4.0]]]), paddle.to_tensor([[[1.0], [2.0]]])
    weight, bias = kernels.fused_linear_param_grad_add(x, dout, None, None, True, True)
    assert weight.tolist() == [[7.0], [10.0]] and bias.tolist() == [3.0]
    more, none = kernels.fused_linear_param_grad_add(x, dout, weight, None, False, False)
    assert more.tolist() == [[14.0], [20.0]] and none is None
    q = paddle.to_tensor(np.arange(8, dtype="float32").reshape(1, 2, 2, 2) / 8)
    out, weights, sums, _ = kernels.flash_attn(q, q, q, None, None, 0.0, True, True, True, "")
    scores = np.einsum("nqhd,nkhd->nhqk", q.numpy(), q.numpy()) / np.sqrt(2)
    scores[..., 0, 1] = -np.inf
    np.testing.assert_allclose(sums.numpy(), np.log(np.exp(scores).sum(-1)), rtol=1e-6)
    np.testing.assert_allclose(np.exp(scores - sums.numpy()[..., None]), weights.numpy(), rtol=1e-5)
    np.testing.assert_allclose(out.numpy()[0, 0], q.numpy()[0, 0])
    masked = kernels.flash_attn(q, q, q, None, paddle.zeros([1, 1, 2, 2]), 0.0, False, False, True, "")[0]
    np.testing.assert_allclose(
        masked.numpy(), paddle.nn.functional.scaled_dot_product_attention(q, q, q).numpy(), rtol=1e-6
    )
    rows = paddle.to_tensor([[1.0, -3.0], [0.5, 0.25]])
    out, scale = paddle.empty([2, 2]), paddle.empty([2])
    result, scales = legacy.fake_channel_wise_quantize_dequantize_abs_max(
        rows, out, scale, "bit_length", 8, "quant_axis", 0
    )
    np.testing.assert_allclose(result.numpy(), [[127 / 127 * 42 / 42, -3.0], [0.5, 0.25197]], atol=9e-3)
    assert scales.tolist() == scale.tolist() == [3.0, 0.5] and out.tolist() == result.tolist()
    found = paddle.to_tensor([False])
    gradient = paddle.to_tensor([8.0])
    legacy.check_finite_and_unscale([gradient], paddle.to_tensor([4.0]), [gradient], found)
    assert gradient.tolist() == [2.0] and found.tolist() == [False]


def test_names_that_packages_look_up() -> None:
    names = imported("paddle.base.unique_name").UniqueNameGenerator("p_")
    assert [names("a"), names("a"), names("b")] == ["p_a_0", "p_a_1", "p_b_0"]
    lazy = imported("paddle.nn.initializer.lazy_init").lazy_init_helper
    assert not lazy()._state
    with paddle.LazyGuard():
        assert lazy()._state
    pinned = imported("paddle.io.reader").use_pinned_memory
    pinned(False)
    assert pinned() is False
    assert paddle.utils.to_sequence(3) == [3] and paddle.utils.to_sequence((1,)) == (1,)
    assert imported("paddle.nn.layer.transformer").tensor.reshape(paddle.ones([2, 2]), [4]).shape == [4]
    assert imported("paddle.nn.functional.flash_attention")._select_sdp(64) == "math"
    clip = imported("paddle.nn.clip")
    assert clip._squared_l2_norm(paddle.to_tensor([1.0, 2.0])).item() == 5
    assert not clip._clip_by_global_norm_using_mp_type(True) and clip._clip_by_global_norm_using_mp_type(
        False
    )
    layer = paddle.nn.Sequential(paddle.nn.Linear(1, 1))
    assert layer._to_impl(dtype="float64", include_sublayers=False)[0].weight.dtype == paddle.float32
    assert layer._to_impl(dtype="float64")[0].weight.dtype == paddle.float64
    for module, name in (
        ("paddle.static", "IpuStrategy"),
        ("paddle.inference", "XpuConfig"),
        ("paddle.pir", "Block"),
        ("paddle.incubate.distributed.models.moe", "MoELayer"),
    ):
        with pytest.raises(ForeignNameError):
            getattr(imported(module), name)()
