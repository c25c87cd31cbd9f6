import os
import pickle
import struct

import pytest

from framework.core.errors import FormatError
from framework.interop.weights.pickled import CONTAINERS, NUMPY, to_plain
from framework.interop.weights.pickles import PickleReader


@pytest.fixture
def load(source):
    def load(content: bytes, allowed=None, **options):
        made = source(content)
        value, end = PickleReader(
            made, {**NUMPY, **CONTAINERS} if allowed is None else allowed, fix="resave", **options
        ).run()
        assert end == len(content)
        return to_plain(made, value)

    return load


class Call:
    """Pickles as a call of whatever it is given."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_plain_data_round_trips(load, protocol):
    shared = [1, 2]
    value = {
        "numbers": [0, 255, 65535, -1, 2**31, -(2**62), 2**200, 0.5, float("inf")],
        "texts": ["", "é", "字" * 100, "x" * 300],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "none": [None, True, False],
        7: {"shared": shared, "again": shared},
        "set": {1, "two"},
    }
    assert load(pickle.dumps(value, protocol)) == value
    assert load(pickle.dumps(list(range(3000)), protocol)) == list(range(3000))


@pytest.mark.parametrize("protocol", [3, 4])
def test_bytes(load, protocol):
    assert load(pickle.dumps([b"", b"abc", bytes(300)], protocol)) == [b"", b"abc", bytes(300)]


def test_text_of_python_2(load):
    assert load(b"\x80\x02U\x02\xe9aT\x01\x00\x00\x00b\x86.") == ("éa", "b")


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("function", "arguments"),
    [(os.system, ("echo harm",)), (eval, ("1",)), (exec, ("1",)), (getattr, ("a", "b"))],
)
def test_foreign_functions_are_refused_by_name(load, protocol, function, arguments):
    with pytest.raises(
        FormatError, match=r"names a class or function that a weight file does not need"
    ) as error:
        load(pickle.dumps({"w": Call(function, *arguments)}, protocol))
    assert function.__name__ in str(error.value) and "not touched" in str(error.value)
    assert "what to do: resave" in str(error.value)


def test_nothing_runs(load, tmp_path):
    victim = tmp_path / "made"
    with pytest.raises(FormatError):
        load(pickle.dumps(Call(os.mkdir, str(victim)), 4))
    assert not victim.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x05N.", "unknown pickle protocol(.|\n)*received: 5(.|\n)*2 to 4"),
        (b"\x80\x02", "the file ends inside a pickle"),
        (b"\x80\x02]", "the file ends inside a pickle"),
        (b"\x80\x02X\xff\xff\xff\xffab.", "the file ends inside a pickle(.|\n)*4294967295 bytes"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fab.", "the file ends inside a pickle"),
        (b"\x80\x02i.", "a pickle opcode that no weight file needs(.|\n)*opcode 0x69"),
        (b"\x80\x05\x96", "unknown pickle protocol"),
        (b"\x80\x02\x81.", "opcode 0x81"),
        (b"\x80\x02\x8b\x00\x00\x00\x40.", "too long(.|\n)*at most 64 bytes"),
        (b"\x80\x02cos", "a name in the pickle does not end(.|\n)*at most 512 bytes"),
        (b"\x80\x02NQ.", "refers to data outside of itself"),
        (b"\x80\x02.", "not a valid pickle of weights(.|\n)*opcode 0x2e: IndexError"),
        (b"\x80\x02h\x05.", "not a valid pickle of weights(.|\n)*KeyError"),
        (b"\x80\x02u.", "not a valid pickle"),
        (b"\x80\x02}(K\x01u.", "not a valid pickle"),
        (b"\x80\x02NNs.", "not a valid pickle"),
        (b"\x80\x02}]K\x01s.", "a list is used as a key"),
        (b"\x80\x02}))s.", "a tuple is used as a key"),
        (b"\x80\x03}B\x01\x02\x00\x00" + 513 * b"a" + b"K\x01s.", "a memoryview is used as a key"),
        (b"\x80\x02N(K\x01e.", "a NoneType is used as a list"),
        (b"\x80\x02K\x01)R.", "something is called that is not a function"),
        (b"\x80\x02cnumpy\nndarray\n)R.", "something is called that is not a function"),
        (b"\x80\x02NNb.", "AttributeError"),
        (b"\x80\x04NN\x93.", "the name of a class or function is not text"),
        (b"\x80\x02X\x01\x00\x00\x00\xff.", "UnicodeDecodeError"),
        (
            b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
            "another encoding than latin1",
        ),
    ],
)
def test_damaged_and_hostile_streams(load, content, message):
    with pytest.raises(FormatError, match=message) as error:
        load(content)
    assert "made.bin, byte " in str(error.value)


@pytest.mark.parametrize("opening", [b"]", b"}", b"(", b")\x85"])
def test_deep_nesting_is_refused_without_recursion(load, opening):
    closing = {b"]": b"a", b"}": b"", b"(": b"t", b")\x85": b"\x85"}[opening]
    depth = 200_000
    if opening == b"}":  # {"": {"": …}}
        content = b"\x80\x02" + b"}U\x00" * depth + b"N" + b"s" * depth + b"."
    elif opening == b")\x85":
        content = b"\x80\x02)" + b"\x85" * depth + b"."
    else:
        content = b"\x80\x02" + opening * depth + b"N" + closing * depth + b"."
    with pytest.raises(FormatError, match="nested too deeply"):
        load(content)


def test_a_deeply_nested_tuple_cannot_be_a_name_or_a_key(load):
    deep = b")" + b"\x85" * 200_000
    for content in (
        b"\x80\x04" + deep + b"N\x93.",
        b"\x80\x02}" + deep + b"Ns.",
        b"\x80\x04\x8f(" + deep + b"\x90.",
    ):
        with pytest.raises(FormatError, match="not a valid pickle"):
            load(content)


def test_a_list_inside_itself_is_refused(load):
    with pytest.raises(FormatError, match="nested too deeply"):
        load(b"\x80\x02]q\x00h\x00a.")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04K\x01" + b"2\x86" * 30 + b".",  # tuples: 54 bytes with the key of a state dict
        b"\x80\x02]q\x00" + b"".join(b"]q" + bytes([i + 1]) + b"(h%ch%ce" % (i, i) for i in range(40)) + b".",
        b"\x80\x02}q\x00" + b"".join(b"}q%c(K\x01h%cK\x02h%cu" % (i + 1, i, i) for i in range(40)) + b".",
    ],
)
def test_shared_containers_that_stand_for_millions_are_refused(load, content):
    with pytest.raises(FormatError, match="the same containers over and over"):
        load(content)


def test_shared_containers_stay_shared(load):
    shared = ["a", 1.5]
    value = load(pickle.dumps([shared] * 10_000, 4))
    assert value == [shared] * 10_000
    assert value[0] is value[-1]


@pytest.mark.parametrize(
    ("data", "call"),
    [
        (b"X\x00\x00\x10\x00" + b"a" * (1 << 20), b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R0"),
        (b"](" + b"K\x01K\x02\x86" * 40_000 + b"e", b"ccollections\nOrderedDict\nh\x00\x85R0"),
    ],
)
def test_one_text_or_list_is_not_handed_to_functions_for_ever(load, data, call):
    with pytest.raises(FormatError, match="the same data to functions over and over"):
        load(b"\x80\x02" + data + b"q\x00" + call * 20_000 + b".")


def test_a_set_of_containers_is_refused(load):
    for module in (b"builtins", b"__builtin__"):
        with pytest.raises(FormatError, match="a tuple is used as a key"):
            load(b"\x80\x02c" + module + b"\nset\n]()e\x85R.")
    assert load(b"\x80\x02cbuiltins\nset\n](K\x01K\x02e\x85R.") == {1, 2}


def test_ordered_dicts(load):
    assert load(b"\x80\x02ccollections\nOrderedDict\n)Rq\x00(U\x01aK\x01u}b.") == {"a": 1}
    assert load(b"\x80\x02ccollections\nOrderedDict\n]](U\x01aK\x01ea\x85R.") == {"a": 1}


def test_floats_are_big_endian(load):
    assert load(b"\x80\x02G" + struct.pack(">d", 0.1) + b".") == 0.1
