"""paddle.base.proto and what Paddle says of its operators; bytes and values are those of Paddle 2.6.2."""

import importlib

import numpy as np
import pytest

from framework import paddle
from framework.paddle.base import core
from framework.paddle.base.framework import OpProtoHolder
from framework.paddle.static.descriptions import AttrType

framework_pb2 = importlib.import_module(
    "framework.paddle.base.proto.framework_pb2"
)  # its classes are made when it runs
OPERATOR = bytes.fromhex(
    "0a060a01581201781a057363616c65220e0a057363616c651001250000204022150a016b1011aa010d080218ffffffffffffffffff01"
)
VARIABLE = bytes.fromhex("0a0178121508071a110a0f080510ffffffffffffffffff0110031801")


def test_messages_have_the_bytes_of_paddle() -> None:
    operator = framework_pb2.OpDesc(type="scale")
    operator.inputs.add(parameter="X", arguments=["x"])
    operator.attrs.add(name="scale", type=framework_pb2.FLOAT, f=2.5)
    numbers = operator.attrs.add(name="k", type=framework_pb2.SCALARS)
    numbers.scalars.add(type=framework_pb2.Scalar.Type.LONG, i=-1)
    assert operator.SerializeToString() == OPERATOR
    kind = framework_pb2.VarType(type=framework_pb2.VarType.LOD_TENSOR)
    kind.lod_tensor.tensor.data_type = framework_pb2.VarType.FP32
    kind.lod_tensor.tensor.dims.extend([-1, 3])
    variable = framework_pb2.VarDesc(name="x", type=kind, persistable=True)
    assert variable.SerializeToString() == VARIABLE
    assert framework_pb2.BlockDesc().forward_block_idx == -1
    assert not framework_pb2.OpProto(type="a").IsInitialized()


def test_messages_read_the_bytes_of_programs() -> None:
    program = paddle.static.Program()
    block = program.desc.block(0)
    operator = block.append_op()
    operator.set_type("t")
    values = {
        AttrType.INT: ("i", 1),
        AttrType.FLOAT: ("f", 0.5),
        AttrType.STRING: ("s", "a"),
        AttrType.INTS: ("ints", [1, -2]),
        AttrType.FLOATS: ("floats", [0.5]),
        AttrType.STRINGS: ("strings", ["a", "b"]),
        AttrType.BOOL: ("b", True),
        AttrType.BOOLS: ("bools", [True, False]),
        AttrType.LONG: ("l", 1 << 40),
        AttrType.LONGS: ("longs", [1 << 40]),
        AttrType.FLOAT64: ("float64", 0.1),
        AttrType.FLOAT64S: ("float64s", [0.1]),
    }
    for type, (name, value) in values.items():
        operator.set_attribute(name, type, value)
    data = program.desc.serialize_to_string()
    message = framework_pb2.ProgramDesc.FromString(data)
    assert message.SerializeToString(deterministic=True) == data
    read = {one.name: one for one in message.blocks[0].ops[0].attrs}
    for type, (name, value) in values.items():
        assert read[name].type == type
        field = getattr(read[name], name)
        assert (list(field) if isinstance(value, list) else field) == value


def test_types_of_attributes_have_the_numbers_of_the_messages() -> None:
    names = {"BOOL": "BOOLEAN", "BOOLS": "BOOLEANS"}
    assert {names.get(one.name, one.name): int(one) for one in AttrType} == dict(
        framework_pb2.AttrType.items()
    )
    assert all(getattr(framework_pb2, name) == number for name, number in framework_pb2.AttrType.items())


def test_operators_are_described() -> None:
    messages = [framework_pb2.OpProto.FromString(one) for one in core.get_all_op_protos()]
    assert len(messages) == 784
    assert all(one.IsInitialized() for one in messages)
    dropout = next(one for one in messages if one.type == "dropout")
    assert OpProtoHolder.instance().get_op_proto("dropout") == dropout
    assert [(one.name, one.dispensable) for one in dropout.inputs] == [("X", False), ("Seed", True)]
    assert [(one.name, one.intermediate) for one in dropout.outputs] == [("Out", False), ("Mask", True)]
    assert [(one.name, one.type) for one in dropout.attrs][:2] == [("dropout_prob", 1), ("is_test", 6)]
    assert core.get_op_extra_attrs("dropout") == {"fix_seed": False, "seed": 0}
    assert core.get_attrtibute_type("dropout", "fix_seed") == AttrType.BOOL
    with pytest.raises(IndexError, match="no attribute 'op_role'"):
        core.get_attrtibute_type("rsqrt", "op_role")
    with pytest.raises(ValueError, match='Operator "none" has not been registered'):
        OpProtoHolder.instance().get_op_proto("none")


def test_operator_of_a_message_runs() -> None:
    description = framework_pb2.OpDesc(type="sum")
    description.inputs.add(parameter="X", arguments=["a", "b"])
    description.outputs.add(parameter="Out", arguments=["z"])
    operator = core.Operator.create(description.SerializeToString())
    assert str(operator) == "Op(sum), inputs:{X[a, b]}, outputs:{Out[z]}."
    scope = core.Scope()
    for name in "ab":
        scope.var(name).get_tensor().set(np.arange(3, dtype=np.float32), paddle.CPUPlace())
    scope.var("z")
    operator.run(scope, paddle.CPUPlace())
    np.testing.assert_array_equal(np.asarray(scope.var("z").get_tensor()), [0, 2, 4])
    description.type = "none"
    with pytest.raises(RuntimeError, match=r"Operator \(none\) is not registered"):
        core.Operator.create(description.SerializeToString())
    with pytest.raises(ValueError, match="Cannot parse user input to OpDesc"):
        core.Operator.create(b"junk")


def test_capsules_become_values_of_scopes() -> None:
    tensor = core.LoDTensor()
    tensor.set(np.array([[1], [2]]), paddle.CPUPlace())
    values = core.from_dlpack(tensor._to_dlpack())
    assert isinstance(values, core.Tensor)
    np.testing.assert_array_equal(np.asarray(values), [[1], [2]])


def test_modules_that_programs_take_from_framework() -> None:
    assert importlib.import_module("framework.paddle.base.framework").unique_name is paddle.utils.unique_name
