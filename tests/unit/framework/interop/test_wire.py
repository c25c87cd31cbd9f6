import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop.wire import Message


def test_the_examples_of_the_specification(source):
    # 150 in field 1 and "testing" in field 2, from the encoding guide of protobuf
    message = Message(source(b"\x08\x96\x01\x12\x07testing"), "Test")
    assert message.integer(1) == 150
    assert message.text(2) == "testing"
    assert message.numbers == {1, 2}
    assert (3 in message, message.integer(3), message.integer(3, -1), message.text(3)) == (False, 0, -1, "")
    # 3, 270, 86942 packed in field 6
    assert Message(source(b"\x32\x06\x03\x8e\x02\x9e\xa7\x05"), "Test").integers(6) == (3, 270, 86942)


def test_the_last_of_a_singular_field_counts(source, wire):
    message = Message(source(wire.number(1, 5) + wire.number(1, -2)), "Test")
    assert message.integer(1) == -2
    assert message.integers(1) == (5, -2)


def test_negative_integers_packed_and_single(source, wire):
    packed = wire.bytes(6, b"\x03" + b"\xff" * 9 + b"\x01" + b"\xfe" + b"\xff" * 8 + b"\x01")
    assert Message(source(packed + wire.number(6, -3)), "Test").integers(6) == (3, -1, -2, -3)


def test_floats_packed_and_single(source, wire):
    packed = wire.bytes(4, np.array([1.5, -2], "<f4").tobytes())
    single = b"\x25" + np.float32(3).tobytes()
    assert Message(source(packed), "Test").reals(4).tolist() == [1.5, -2]
    assert Message(source(packed + single), "Test").reals(4).tolist() == [1.5, -2, 3]
    assert Message(source(packed + single), "Test").real(4) == 3
    assert Message(source(b""), "Test").real(4) is None
    assert Message(source(b"\x51" + np.float64(0.1).tobytes()), "Test").real(10, "<f8") == 0.1


def test_one_packed_run_is_not_copied(source, wire):
    made = source(wire.bytes(4, np.zeros(3, "<f4").tobytes()))
    assert np.shares_memory(Message(made, "Test").reals(4), np.frombuffer(made.data, np.uint8))


def test_nested_messages(source, wire):
    message = Message(source(wire.bytes(7, wire.number(1, 1)) + wire.bytes(7, wire.number(1, 2))), "Outer")
    assert [inner.integer(1) for inner in message.messages(7, "Inner")] == [1, 2]
    assert message.message(7, "Inner").integer(1) == 2
    assert message.message(8, "Inner") is None
    assert message.span(8) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x08\x80", "byte 1: not protobuf: the message ends inside a varint"),
        (b"\x08" + b"\xff" * 11, "byte 1: not protobuf: a varint is longer than 10 bytes"),
        (b"\x00", "Test: not protobuf: a field has no valid key(.|\n)*key 0"),
        (b"\x0b", "a field has no valid key(.|\n)*key 11"),
        (b"\x12\x05ab", "field 2 runs over the end(.|\n)*a declared size of 5 bytes(.|\n)*at most 2 bytes"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "runs over the end"),
        (b"\x0d\x00", "field 1 runs over the end"),
    ],
)
def test_damaged_messages(source, content, message):
    with pytest.raises(FormatError, match=message):
        Message(source(content), "Test")


def test_fields_of_another_kind_than_expected(source, wire):
    with pytest.raises(
        FormatError, match=r"Test: field 1 has the wrong wire type(.|\n)*a varint(.|\n)*length-delim"
    ):
        Message(source(wire.number(1, 3)), "Test").text(1)
    with pytest.raises(FormatError, match="field 1 is not UTF-8 text"):
        Message(source(wire.bytes(1, b"\xff")), "Test").text(1)
    with pytest.raises(FormatError, match=r"field 1 holds no whole number of values(.|\n)*a multiple of 4"):
        Message(source(wire.bytes(1, b"abc")), "Test").reals(1)
