import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import TensorSpec, read_pdmodel


def test_a_program_of_paddle(data):
    program = read_pdmodel(data / "network.pdmodel")
    assert (program.format, program.version) == ("pdmodel", "2.6.2")
    assert program.inputs == (TensorSpec("x", (None, 3, 8, 8), "float32"),)
    assert [(spec.shape, spec.dtype) for spec in program.outputs] == [((None, 8, 5), "float32")]
    assert program.parameters["conv2d_1.w_0"] == TensorSpec("conv2d_1.w_0", (4, 3, 3, 3), "float32")
    assert len(program.parameters) == 33

    conv, norm = program.nodes[:2]
    assert conv.op == "conv2d" and conv.name == "conv2d#1"
    assert dict(zip(conv.input_slots, conv.inputs)) == {"Filter": "conv2d_1.w_0", "Input": "x"}
    assert (
        conv.attrs["strides"] == (2, 2) and conv.attrs["groups"] == 1 and conv.attrs["data_format"] == "NCHW"
    )
    assert "op_callstack" not in conv.attrs and "op_role" not in conv.attrs
    assert norm.attrs["epsilon"] == pytest.approx(1e-5) and norm.attrs["is_test"] is True
    assert {node.op for node in program.nodes}.isdisjoint({"feed", "fetch"})
    assert list(program.walk()) == list(program.nodes)


def attribute(wire, name, kind, *content):
    return wire.bytes(4, wire.bytes(1, name), wire.number(2, kind), *content)


def test_every_kind_of_attribute(source, wire):
    f4, f8 = np.array([0.5, -1], "<f4").tobytes(), np.array([0.1], "<f8").tobytes()
    op = wire.bytes(
        4,
        wire.bytes(3, "op"),
        wire.bytes(1, wire.bytes(1, "X"), wire.bytes(2, "a"), wire.bytes(2, "b")),
        wire.bytes(2, wire.bytes(1, "Out"), wire.bytes(2, "c")),
        attribute(wire, "int", 0, wire.number(3, -3)),
        attribute(wire, "float", 1, b"\x25" + f4[:4]),
        attribute(wire, "text", 2, wire.bytes(5, "é")),
        attribute(wire, "ints", 3, wire.number(6, 1), wire.number(6, -1)),
        attribute(wire, "floats", 4, b"\x3d" + f4[:4], b"\x3d" + f4[4:]),
        attribute(wire, "texts", 5, wire.bytes(8, "a"), wire.bytes(8, "b")),
        attribute(wire, "flag", 6, wire.number(10, 1)),
        attribute(wire, "flags", 7, wire.number(11, 1), wire.number(11, 0)),
        attribute(wire, "long", 9, wire.number(13, 2**40)),
        attribute(wire, "longs", 11, wire.number(15, 2**40)),
        attribute(wire, "doubles", 12, b"\x81\x01" + f8),
        attribute(wire, "double", 15, b"\x99\x01" + f8),
        attribute(wire, "scalar", 16),
        attribute(wire, "number", 16, wire.bytes(20, wire.number(1, 2), wire.number(3, -5))),
        attribute(
            wire,
            "numbers",
            17,
            wire.bytes(21, wire.number(1, 1), wire.number(2, 1)),
            wire.bytes(21, wire.number(1, 3), b"\x21" + f8),
            wire.bytes(21, wire.number(1, 4)),
        ),
        attribute(wire, "op_role", 0, wire.number(3, 1)),
    )
    node = read_pdmodel(source(wire.bytes(1, op) + wire.bytes(4, wire.number(1, 0)))).nodes[0]
    assert node.attrs == {
        **{"int": -3, "float": 0.5, "text": "é", "ints": (1, -1), "floats": (0.5, -1), "texts": ("a", "b")},
        **{"flag": True, "flags": (True, False), "long": 2**40, "longs": (2**40,), "doubles": (0.1,)},
        **{"double": 0.1, "scalar": None, "number": -5, "numbers": (True, 0.1, None)},
    }
    assert (node.inputs, node.input_slots) == (("a", "b"), ("X", "X"))
    assert (node.outputs, node.output_slots) == (("c",), ("Out",))


def block_program(wire, *references):
    """Block 0 has one `while` for each reference; blocks 1 and 2 have one op."""
    ops = [
        wire.bytes(4, wire.bytes(3, "while"), attribute(wire, "sub_block", 8, wire.number(12, index)))
        for index in references
    ]
    blocks = [wire.bytes(1, *ops)] + [wire.bytes(1, wire.bytes(4, wire.bytes(3, f"op{i}"))) for i in (1, 2)]
    return b"".join(blocks) + wire.bytes(4, wire.number(1, 2_006_002))


def test_bodies_of_control_flow(source, wire):
    program = read_pdmodel(source(block_program(wire, 2, 1)))
    assert [node.op for node in program.nodes] == ["while", "while"]
    assert program.nodes[0].blocks[0][0].name == "op2#2.0"
    assert [node.op for node in program.walk()] == ["while", "op2", "while", "op1"]


@pytest.mark.parametrize("references", [(0,), (1, 1), (3,), (-1,)])
def test_blocks_that_are_no_tree(source, wire, references):
    with pytest.raises(
        FormatError, match=r"the blocks of the program do not form a tree(.|\n)*a reference to block"
    ):
        read_pdmodel(source(block_program(wire, *references)))


def test_parameters_are_the_persistable_tensors(source, wire):
    def variable(name, kind, persistable, *rest):
        return wire.bytes(3, wire.bytes(1, name), wire.bytes(2, wire.number(1, kind), *rest), *persistable)

    tensor = wire.bytes(3, wire.bytes(1, wire.number(1, 5), wire.number(2, 4)))
    keep = (wire.number(3, 1),)
    version = wire.bytes(4, wire.number(1, 0))
    block = variable("w", 7, keep, tensor) + variable("t", 7, (), tensor) + variable("feed", 9, keep)
    program = read_pdmodel(source(wire.bytes(1, block) + version))
    assert program.version == "develop"
    assert program.parameters == {"w": TensorSpec("w", (4,), "float32")}
    with pytest.raises(FormatError, match=r"the parameter 'rows' is no dense tensor(.|\n)*variable type 8"):
        read_pdmodel(source(wire.bytes(1, variable("rows", 8, keep)) + version))


def test_an_incomplete_program(source, wire):
    with pytest.raises(FormatError, match=r"not a complete ProgramDesc(.|\n)*1 blocks, no version"):
        read_pdmodel(source(wire.bytes(1, b"")))
    with pytest.raises(FormatError, match=r"not a complete ProgramDesc(.|\n)*0 blocks, a version"):
        read_pdmodel(source(wire.bytes(4, b"")))
