"""Names of Paddle's conversion of source: what its callers get of them."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ForeignNameError
from framework.paddle.jit.spec import InputSpec


def imported(module: str) -> Any:
    return importlib.import_module(f"framework.{module}")


def two(a: Any, b: int = 2) -> Any:
    return a * b


def test_arguments_of_a_function() -> None:
    spec = imported("paddle.jit.dy2static.function_spec").FunctionSpec
    assert (spec(two).args_name, spec(two).input_spec) == (["a", "b"], None)
    assert spec(two).unified_args_and_kwargs([1], {}) == ((1, 2), {})
    assert "return a * b" in spec(two).code
    with pytest.raises(TypeError, match="tuple, list"):
        spec(two, input_spec=InputSpec([1]))
    for args, kwargs in (([1, 2, 3], {}), ([], {"b": 1})):
        with pytest.raises(ValueError, match="requires"):
            spec(two).unified_args_and_kwargs(args, kwargs)
    with_spec = spec(two, input_spec=[InputSpec([None, 3])])
    (first, second), _ = with_spec.args_to_input_spec((paddle.ones([2, 3]), np.ones(2)), {})
    assert (first.shape, first.name, second.shape, second.name) == ((-1, 3), "a", (2,), "b")
    with pytest.raises(ValueError, match="unexpected keyword"):
        with_spec.args_to_input_spec((paddle.ones([2, 3]),), {"c": 1})
    with pytest.raises(ValueError, match="len"):
        with_spec.args_to_input_spec((), {})
    with pytest.raises(RuntimeError, match="non-tensorable"):
        with_spec.args_to_input_spec((1,), {})


def test_trees_are_source_and_functions() -> None:
    utils, gast = imported("paddle.jit.dy2static.utils"), imported("paddle.utils.gast")
    tree = gast.parse("def two(a): return a + 40")
    function, _ = utils.ast_to_func(gast.gast_to_ast(tree), two)
    assert function(2) == 42
    with pytest.raises(TypeError, match=r"gast\.AST or ast\.AST"):
        utils.ast_to_func("a + b", two)
    with pytest.raises(ValueError, match="doesn't exist"):
        utils.ast_to_func(gast.parse("x = 1"), two)
    compare = imported("paddle.jit.dy2static.logical_transformer").cmpop_node_to_str
    assert (compare(gast.NotIn()), compare(gast.LtE())) == ("not in", "<=")
    for source, expected in (("paddle.base.dygraph.to_variable(x)", True), ("paddle.ones(x)(y)", False)):
        assert utils.is_dygraph_api(gast.parse(source).body[0].value) is expected


def signed(x: Any) -> Any:
    if x.sum() > 0:
        return x
    return -x


def test_calls_of_converted_functions() -> None:
    module = imported("paddle.jit.dy2static.convert_call_func")
    assert imported("paddle.jit.dy2static").Call(len)([1]) == 1
    assert module.convert_call(signed) is not signed
    assert module.convert_call(functools.partial(two, b=3))(2) == 6
    assert module.convert_call(paddle.jit.to_static(two))(2) == 4
    plain = paddle.jit.not_to_static(lambda x: signed(x))
    assert getattr(plain, module.CONVERSION_OPTIONS).not_convert
    layer: Any = type("Layer", (), {"forward": lambda self, x: signed(x)})()
    assert paddle.jit.not_to_static(layer.forward).conversion_options.not_convert
    assert imported("paddle.jit.dy2static.origin_info").unwrap(paddle.jit.to_static(two)) is two
    with pytest.raises(ForeignNameError, match="concrete_programs"):
        imported("paddle.jit.dy2static.program_translator").PartialProgramLayer()


def test_predictors_by_their_older_names(tmp_path: Any) -> None:
    core = imported("paddle.base.core")
    net = paddle.nn.Linear(2, 2)
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 2], name="x")])
    predictor = core.create_paddle_predictor(core.AnalysisConfig(str(tmp_path / "net")))
    (name,) = predictor.get_input_names()
    assert predictor.get_input_tensor_shape() == {name: [-1, 2]}
    predictor.get_input_tensor(name).copy_from_cpu(np.ones((1, 2), np.float32))
    assert predictor.zero_copy_run()
    result = predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu()
    np.testing.assert_allclose(result, net(paddle.ones([1, 2])).numpy(), rtol=1e-5)


def test_functions_as_static_programs() -> None:
    written = paddle.jit.to_static(signed, input_spec=[InputSpec([None, 3], name="x")])
    program = written.concrete_program
    assert isinstance(program, imported("paddle.jit.dy2static.program_translator").ConcreteProgram)
    assert [(v.name, v.shape) for v in written.inputs] == [("x", (-1, 3))]
    x = np.array([[1.0, 2.0, -4.0]], np.float32)
    paddle.enable_static()
    try:
        with pytest.raises(RuntimeError, match="only available in dynamic mode"):
            written.concrete_program  # noqa: B018
        (result,) = paddle.static.Executor().run(
            written.program_cache.last()[1][0].main_program, feed={"x": x}, fetch_list=program.outputs
        )
    finally:
        paddle.disable_static()
    np.testing.assert_array_equal(result, -x)


def test_programs_are_counted_by_the_kinds_of_arguments() -> None:
    static = paddle.jit.to_static(two)
    with pytest.raises(ValueError, match="No valid transformed program"):
        static.concrete_program  # noqa: B018
    for value, factor, count in ((1.0, 2, 1), (5.0, 2, 1), (1.0, 3, 2)):
        static(paddle.full([4], value), factor)
        assert len(static.program_cache) == static.get_traced_count() == count
    assert len(static.program_cache.concrete_programs()) == 2
    assert static.main_program is static.program_cache.last()[1][0].main_program
    first = static.get_concrete_program(InputSpec([None]))
    assert first == static.get_concrete_program(InputSpec([None]), b=2)
    with pytest.raises(ValueError, match="requires `a`"):
        static.get_concrete_program(b=2)
    with pytest.raises(TypeError, match="unexpected keyword"):
        static.get_concrete_program(InputSpec([None]), c=2)
    nested = paddle.jit.to_static(
        lambda pair: pair[0] + pair[1]["y"], input_spec=[[InputSpec([None]), {"y": InputSpec([2])}]]
    )
    nested([paddle.ones([2]), {"y": paddle.ones([2])}])
    assert [tuple(v.shape) for v in nested.inputs] == [(-1,), (2,)]


def test_converted_source_is_written_at_its_level(capsys: pytest.CaptureFixture[str]) -> None:
    utils = imported("paddle.jit.dy2static.logging_utils")

    def halved(x: Any) -> Any:
        while x.sum() > 1:
            x = x / 2
        return x

    try:
        paddle.jit.set_code_level(also_to_stdout=True)
        assert paddle.jit.to_static(halved)(paddle.to_tensor([4.0])).item() == 1.0
        assert "After the last level ast transformer: 'halved'" in capsys.readouterr().out
        with pytest.raises(TypeError, match="not an integer"):
            paddle.jit.set_verbosity("3")
        with pytest.raises(AssertionError, match="bool"):
            paddle.jit.set_code_level(also_to_stdout=1)
        paddle.jit.set_verbosity(1, True)
        utils.log(1, "told"), utils.log(2, "not told"), utils.error("wrong")
        lines = capsys.readouterr().out.splitlines()
        assert lines == ["Dynamic-to-Static INFO: (Level 1) told", "Dynamic-to-Static ERROR: wrong"]
    finally:
        paddle.jit.set_code_level(None), paddle.jit.set_verbosity(None)
    assert (utils.get_code_level(), utils.get_verbosity()) == (-1, -1)


def test_generators_stay_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    function = imported("paddle.jit.dy2static.convert_call_func")

    def numbers() -> Any:
        for i in range(3):
            yield paddle.to_tensor([i])

    function.translator_logger.verbosity_level = 1
    try:
        assert function.convert_call(numbers) is numbers
    finally:
        function.translator_logger.verbosity_level = None
    assert "it is a generator function" in caplog.text


def test_variables_of_a_program_have_the_names_of_arguments() -> None:
    row = InputSpec([None, 2])

    def run(pair: Any, table: Any) -> Any:
        return pair[0] + pair[1]["y"] + table["z"]

    run = paddle.jit.to_static(run, input_spec=[[row, {"y": row}], {"z": row}])
    assert [one.name for one in run.inputs] == ["pair_0", "y", "z"]


def test_arguments_with_other_names_are_refused_beside_an_input_spec() -> None:
    x = paddle.ones([1, 2])
    run = paddle.jit.to_static(two, input_spec=[InputSpec([None, 2])])
    assert run(x, b=3).tolist() == [[3.0, 3.0]]
    with pytest.raises(ValueError, match="unexpected keyword arguments"):
        run(x, other=2)
    with pytest.raises(ValueError, match="Requires len"):
        paddle.jit.to_static(two, input_spec=[InputSpec([2])] * 3)(x)
