import io
import pickle
import zipfile

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import load_weights, read_torch
from framework.interop.weights.torch_checkpoint import LEGACY_MAGIC


def test_a_state_dict(data, values):
    state = read_torch(data / "state.pt")
    base = values("base", (4, 6))
    np.testing.assert_array_equal(state["base"], base, strict=True)
    np.testing.assert_array_equal(state["transposed"], base.T, strict=True)
    np.testing.assert_array_equal(state["column"], base[:, 2], strict=True)
    assert np.shares_memory(state["base"], state["transposed"]) and not state["transposed"].flags.writeable
    np.testing.assert_array_equal(state["parameter"], values("parameter", (3,)), strict=True)
    assert state["half"].tolist() == [1, -0.5] and state["half"].dtype == np.float16
    assert state["bfloat16"].dtype.name == "bfloat16" and state["bfloat16"].astype(float).tolist() == [
        1,
        -2.5,
    ]
    assert state["steps"].shape == () and state["steps"] == 7 and state["steps"].dtype == np.int64
    assert state["empty"].shape == (0, 3)
    assert state["mask"].tolist() == [True, False]


def test_the_older_stream(data, values):
    checkpoint = read_torch(data / "legacy.pth")
    assert checkpoint["epoch"] == 3 and checkpoint["best"] == 0.5
    np.testing.assert_array_equal(checkpoint["state_dict"]["weight"], values("weight", (2, 3)), strict=True)
    assert set(load_weights(data / "legacy.pth")) == {"weight", "bias"}


# Files by hand: a pickle that names torch's functions, and storages ---------------------------------------------------


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode("utf-8")


def number(value: int) -> bytes:
    return (
        b"J" + value.to_bytes(4, "little", signed=True)
        if abs(value) < 2**31
        else b"\x8a\x09" + value.to_bytes(9, "little", signed=True)
    )


def numbers(values) -> bytes:
    return b"(" + b"".join(number(v) for v in values) + b"t"


def storage(key="0", kind="torch\nFloatStorage", extra=b"") -> bytes:
    return (
        b"("
        + text("storage")
        + b"c"
        + kind.encode("utf-8")
        + b"\n"
        + text(key)
        + text("cpu")
        + number(6)
        + extra
        + b"tQ"
    )


def tensor(
    offset=0, shape=(2, 3), strides=(3, 1), where=None, function="_rebuild_tensor_v2", rest=b"\x89N"
) -> bytes:
    return (
        f"ctorch._utils\n{function}\n(".encode()
        + (storage() if where is None else where)
        + number(offset)
        + numbers(shape)
        + numbers(strides)
        + rest
        + b"tR"
    )


def state(value: bytes) -> bytes:
    return b"\x80\x02}" + text("w") + value + b"s."


def archive(body: bytes, entries=None, compression=zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    entries = {"m/data/0": np.arange(6, dtype="<f4").tobytes()} if entries is None else entries
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, content in {"m/data.pkl": body, **entries}.items():
            file.writestr(name, content)
    return out.getvalue()


def test_tensors_by_hand(source):
    assert read_torch(source(archive(state(tensor()))))["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert read_torch(source(archive(state(tensor(1, (2, 2), (1, 2))))))["w"].tolist() == [[1, 3], [2, 4]]
    assert read_torch(source(archive(state(tensor(5, (), ())))))["w"] == 5
    assert read_torch(source(archive(state(tensor(2, (3,), (0,))))))["w"].tolist() == [2, 2, 2]
    assert read_torch(source(archive(state(tensor(function="_rebuild_tensor", rest=b"")))))["w"].shape == (
        2,
        3,
    )
    parameter = b"ctorch._utils\n_rebuild_parameter\n(" + tensor() + b"\x88NtR"
    assert read_torch(source(archive(state(parameter))))["w"].shape == (2, 3)


def test_version_3_names_the_dtype(source):
    where = storage(kind="torch.storage\nUntypedStorage")
    made = tensor(0, (2, 3), (3, 1), where, "_rebuild_tensor_v3", b"\x89Nctorch\nfloat32\n")
    assert read_torch(source(archive(state(made))))["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    made = tensor(0, (2,), (1,), where, "_rebuild_tensor_v3", b"\x89Nctorch\nfloat8_e4m3fn\n")
    read = read_torch(source(archive(state(made), {"m/data/0": b"\x38\xb8"})))["w"]
    assert read.dtype.name == "float8_e4m3fn" and read.astype(float).tolist() == [1, -1]


def test_big_endian_files(source):
    entries = {"m/data/0": np.arange(6, dtype=">f4").tobytes(), "m/byteorder": b"big"}
    assert read_torch(source(archive(state(tensor()), entries)))["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_markers_and_containers(source):
    body = (
        b"\x80\x02(ctorch\nfloat32\nctorch\nSize\n(K\x02K\x03t\x85Rctorch\ndevice\n"
        + text("cpu")
        + b"\x85Rccollections\nOrderedDict\n)Rt."
    )
    assert read_torch(source(archive(body))) == ("torch.float32", (2, 3), "cpu", {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            tensor(1),
            "the pickle is incomplete: a tensor of shape .2, 3. and strides .3, 1. at 1 reaches beyond its st",
        ),
        (tensor(0, (2, 3), (2**40, 1)), "reaches beyond its storage of 24 bytes"),
        (tensor(0, (2**30,), (0,)), "is declared over 24 bytes of storage"),
        (tensor(0, (2**30, 2**30), (0, 0)), "the shape of a tensor is impossible"),
        (tensor(0, (2, 3), (-3, 1)), "offset, shape or strides of a tensor are not numbers of 0 and above"),
        (tensor(-1), "offset, shape or strides of a tensor are not numbers of 0 and above"),
        (tensor(0, (2, 3), (1,)), "shape and strides of different lengths"),
        (tensor(where=b"N"), "a tensor without storage or dtype"),
        (tensor(where=storage(kind="torch.storage\nUntypedStorage")), "a tensor without storage or dtype"),
        (tensor(rest=b"\x89N}" + text("conj") + b"\x88s"), "a tensor with lazy conjugation or negation"),
        (tensor(function="_rebuild_tensor_v3", rest=b"\x89NN"), "with lazy conjugation or without dtype"),
        (tensor(where=storage("9")), "a reference to something other than a storage of this file"),
        (tensor(where=storage("../0")), "a reference to something other than a storage of this file"),
        (tensor(where=storage(kind="torch\nSize")), "a storage of an unknown class"),
        (
            b"cos\nsystem\n" + text("echo harm") + b"\x85R",
            "names a class or function(.|\n)*received: os.system",
        ),
        (b"ctorch._utils\n_rebuild_sparse_tensor\n", "torch._utils._rebuild_sparse_tensor(.|\n)*torch.save"),
        (b"cmodels.yolo\nDetect\n)\x81", "names a class or function(.|\n)*models.yolo.Detect"),
    ],
)
def test_hostile_pickles(source, value, message):
    with pytest.raises(FormatError, match=message) as error:
        read_torch(source(archive(state(value))))
    assert "made.bin: m/data.pkl" in str(error.value)


def damaged(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(state(tensor()))[:-30], "the zip directory at the end of the file cannot be read"),
        (
            archive(b"", {"weights.npy": b""}).replace(b"data.pkl", b"data.npy"),
            "this zip file is not a torch checkpoint",
        ),
        (archive(b"", {"n/data.pkl": b""}), "this zip file is not a torch checkpoint(.|\n)*2 entries"),
        (archive(b"", {"m/code/a.py": b""}), "this is a TorchScript program, not a checkpoint"),
        (archive(state(tensor()) * 9, compression=zipfile.ZIP_DEFLATED), "is compressed or encrypted"),
        (
            damaged(archive(state(tensor())), np.arange(6, dtype="<f4").tobytes(), bytes(24)),
            "is damaged: its checksum",
        ),
        (
            damaged(archive(state(tensor())), b"PK\x03\x04", b"PK\x03\x05"),
            "does not start where the directory says",
        ),
    ],
)
def test_damaged_archives(source, content, message):
    with pytest.raises(FormatError, match=message):
        read_torch(source(content))


def test_a_size_beyond_the_file_in_the_zip_directory(source):
    content = bytearray(archive(state(tensor())))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (2**31).to_bytes(4, "little")
    with pytest.raises(FormatError, match="the file ends inside the entry 'm/data/0'"):
        read_torch(source(bytes(content)))


# The older stream ----------------------------------------------------------------------------------------------------


def legacy(value: bytes, keys=("0",), content=None, head=1001, system=None) -> bytes:
    system = {"little_endian": True, "protocol_version": 1001} if system is None else system
    body = (
        LEGACY_MAGIC
        + pickle.dumps(head, 2)
        + pickle.dumps(system, 2)
        + state(value)
        + pickle.dumps(list(keys), 2)
    )
    run = np.arange(6, dtype="<f4").tobytes()
    return body + ((6).to_bytes(8, "little") + run if content is None else content)


def old(offset=0, shape=(2, 3), strides=(3, 1), **options) -> bytes:
    return tensor(offset, shape, strides, storage(extra=b"N", **options), "_rebuild_tensor", b"")


def test_the_older_stream_by_hand(source):
    assert read_torch(source(legacy(old())))["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (legacy(old(), head=1000), "a torch stream of an unknown version or byte order"),
        (
            legacy(old(), system={"little_endian": False}),
            "a torch stream of an unknown version or byte order",
        ),
        (legacy(old(), keys=("1",)), "the list of storages does not fit the tensors"),
        (
            legacy(old(), keys=(), content=b""),
            "the storages do not end where the file ends(.|\n)*0 of 1 storages",
        ),
        (legacy(old()) + b"\0", "the storages do not end where the file ends(.|\n)*1 bytes left"),
        (legacy(old(), content=(2**62).to_bytes(8, "little")), "the file ends inside the storage '0'"),
        (legacy(old(), content=b""), "the file ends inside the size of a storage"),
        (
            legacy(tensor(where=storage(extra=numbers((1, 2))))),
            "a reference to something other than a whole storage",
        ),
        (legacy(old(shape=(3, 3))), "reaches beyond its storage"),
    ],
)
def test_damaged_streams(source, content, message):
    with pytest.raises(FormatError, match=message):
        read_torch(source(content))


@pytest.mark.parametrize(
    ("path", "tensors", "elements"),
    [
        ("cgnet_camvid/model_800.pth", 498, 504_564),
        ("espnet_camvid/espnet_p_2_q_8_camvid.pth", 189, 358_193),
        ("lprnet/Final_LPRNet_model.pth", 62, 449_038),
        ("resnet20_cifar10/resnet20-12fca82f.th", 97, 271_098),
        ("mobilenetv1_x0.25_imagenet/mobilenetV1X0.25_pretrain.tar", 164, 475_571),
    ],
)
def test_real_checkpoints(weights, path, tensors, elements):
    state = load_weights(weights / path)
    assert (len(state), sum(array.size for array in state.values())) == (tensors, elements)
    assert all(np.isfinite(array).all() for array in state.values())
