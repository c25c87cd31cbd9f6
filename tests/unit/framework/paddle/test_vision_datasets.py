"""framework.paddle.vision.datasets: small files of each published format, what samples are, and every message."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework import vision
from framework.core.errors import ConfigError, FormatError, HubError, InputError
from framework.core.home import home
from framework.hub import transfer
from framework.io import DataLoader
from framework.nn.functional import boxes
from framework.paddle.vision import datasets
from framework.paddle.vision.datasets import cifar, files, flowers, formats, mnist, voc2012
from framework.vision import transforms as T

RNG = np.random.default_rng(0)


def write_idx(path: Path, array: np.ndarray) -> Path:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", size) for size in array.shape)
    path.write_bytes(
        gzip.compress(header + array.tobytes()) if path.suffix == ".gz" else header + array.tobytes()
    )
    return path


def write_tar(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # pyright: ignore[reportCallIssue, reportArgumentType]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def encode(pixels: np.ndarray, kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


# -- MNIST -------------------------------------------------------------------------------------------------------------

DIGITS, NAMES = RNG.integers(0, 256, (5, 28, 28)).astype(np.uint8), np.array([3, 0, 9, 1, 1], np.uint8)


@pytest.fixture
def idx(tmp_path: Path) -> tuple[Path, Path]:
    return write_idx(tmp_path / "images.gz", DIGITS), write_idx(tmp_path / "labels", NAMES)


@pytest.mark.parametrize("kind", [datasets.MNIST, datasets.FashionMNIST])
def test_mnist(kind: type[datasets.MNIST], idx: tuple[Path, Path]) -> None:
    data = kind(*idx, mode="test")
    image, label = data[2]
    assert len(data) == 5 and isinstance(image, Image.Image) and image.mode == "L"
    np.testing.assert_array_equal(np.asarray(image), DIGITS[2])
    assert label.tolist() == [9] and label.dtype == np.int64
    array, _ = kind(*idx, backend="cv2")[-1]
    assert array.dtype == np.float32 and array.shape == (28, 28) and (array == DIGITS[4]).all()
    transform = T.Normalize(mean=[127.5], std=[127.5], data_format="CHW")
    np.testing.assert_allclose(
        kind(*idx, transform=transform)[0][0], DIGITS[:1] / 127.5 - 1, rtol=1e-5, atol=1e-6
    )


def test_a_loader_reads_it(idx: tuple[Path, Path]) -> None:
    loader = DataLoader(datasets.MNIST(*idx, transform=T.ToTensor()), batch_size=4, num_workers=2)
    images, labels = next(iter(loader))
    assert images.shape == (4, 28, 28, 1) and np.asarray(labels).ravel().tolist() == [3, 0, 9, 1]


def test_mnist_of_the_shared_files(shared: Path) -> None:
    folder = shared / "data" / "mnist_t10k"
    data = datasets.MNIST(
        folder / "test-images-idx3-ubyte.gz", folder / "test-labels-idx1-ubyte.gz", mode="test"
    )
    assert len(data) > 100 and {int(data[place][1][0]) for place in range(100)} <= set(range(10))


def test_mnist_refuses_what_does_not_fit(tmp_path: Path, idx: tuple[Path, Path]) -> None:
    with pytest.raises(FormatError, match="do not belong together"):
        datasets.MNIST(idx[0], write_idx(tmp_path / "few", NAMES[:3]))
    with pytest.raises(FormatError, match="labels are no classes"):
        datasets.MNIST(idx[0], write_idx(tmp_path / "high", NAMES + 4))
    with pytest.raises(ConfigError, match=r"MNIST\.mode"):
        datasets.MNIST(*idx, mode="valid")
    with pytest.raises(ConfigError, match="unknown image backend"):
        datasets.MNIST(*idx, backend="tensor")


# -- CIFAR -------------------------------------------------------------------------------------------------------------


def python2_batch(pixels: np.ndarray, labels: list[int], key: bytes = b"labels") -> bytes:
    """A batch as Python 2 pickled it: strings of bytes, protocol 2."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    shape = b"J" + struct.pack("<i", len(pixels)) + b"J" + struct.pack("<i", 3072) + b"\x86"
    details = b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R" + details
    data = b"T" + struct.pack("<i", pixels.nbytes) + pixels.tobytes()
    state = b"(K\x01" + shape + dtype + b"\x89" + data + b"tb"
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R" + state
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(key) + numbers + b"u."


PIXELS = RNG.integers(0, 256, (4, 3072)).astype(np.uint8)


def test_cifar10(tmp_path: Path) -> None:
    assert pickle.loads(python2_batch(PIXELS, [1, 2, 3, 9]), encoding="bytes")[b"labels"] == [1, 2, 3, 9]
    path = write_tar(
        tmp_path / "cifar-10-python.tar.gz",
        {
            "cifar-10-batches-py/data_batch_2": python2_batch(PIXELS[:2], [7, 8]),
            "cifar-10-batches-py/data_batch_1": python2_batch(PIXELS, [1, 2, 3, 9]),
            "cifar-10-batches-py/test_batch": python2_batch(PIXELS[2:], [0, 5]),
            "cifar-10-batches-py/batches.meta": b"not read",
        },
        "w:gz",
    )
    train, test = datasets.Cifar10(path), datasets.Cifar10(path, mode="test", backend="cv2")
    assert train.labels.tolist() == [1, 2, 3, 9, 7, 8] and len(test) == 2
    image, label = train[1]
    np.testing.assert_array_equal(np.asarray(image), PIXELS[1].reshape(3, 32, 32).transpose(1, 2, 0))
    assert label == 2 and label.dtype == np.int64
    assert test[0][0].dtype == np.float32 and test[0][0].shape == (32, 32, 3)


@pytest.mark.parametrize("protocol", [2, 4])
def test_cifar_written_again_by_python_3(tmp_path: Path, protocol: int) -> None:
    """`pickle.load(file, encoding="bytes")`, as the page of CIFAR says, gives bytes as keys; many write those again."""
    batch = pickle.loads(python2_batch(PIXELS, [1, 2, 3, 9]), encoding="bytes")
    path = write_tar(tmp_path / "c.tar", {"a/test_batch": pickle.dumps(batch, protocol)})
    test = datasets.Cifar10(path, mode="test")
    assert test.labels.tolist() == [1, 2, 3, 9]
    np.testing.assert_array_equal(test.images, PIXELS.reshape(4, 3, 32, 32).transpose(0, 2, 3, 1))


def test_cifar100_has_fine_labels(tmp_path: Path) -> None:
    members = {"cifar-100-python/train": python2_batch(PIXELS, [99, 0, 5, 7], b"fine_labels")}
    assert datasets.Cifar100(write_tar(tmp_path / "c.tar", members)).labels.tolist() == [99, 0, 5, 7]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "holds no such data"),
        ({"a/data_batch_1": python2_batch(PIXELS, [1])}, "no batch of CIFAR"),
        ({"a/data_batch_1": python2_batch(PIXELS, [1, 2, 3, 10])}, "labels are no classes"),
        ({"a/data_batch_1": b"cos\nsystem\n(S'true'\ntR."}, "class or function"),
        ({"a/data_batch_1": b"\x80\x02K\x01."}, "no batch of CIFAR"),
    ],
)
def test_cifar_refuses_what_is_not_its_data(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        datasets.Cifar10(write_tar(tmp_path / "c.tar", members))


def test_cifar_of_damaged_archives(tmp_path: Path) -> None:
    whole = write_tar(
        tmp_path / "c.tar.gz", {"a/data_batch_1": python2_batch(PIXELS, [1, 2, 3, 4])}, "w:gz"
    ).read_bytes()
    for name, data in (("cut", whole[: len(whole) // 2]), ("none", b"no archive at all")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match="cannot be read"):
            datasets.Cifar10(tmp_path / name)
    with pytest.raises(InputError, match="there is no such CIFAR archive"):
        datasets.Cifar10(tmp_path / "absent.tar.gz")


# -- Flowers -----------------------------------------------------------------------------------------------------------


def write_mat(path: Path, arrays: dict[str, np.ndarray], packed: bool = True) -> Path:
    """Row vectors of uint8, uint16 or double, as MATLAB 5 and 7 write them."""

    def element(kind: int, data: bytes) -> bytes:
        return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)

    out = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    for name, values in arrays.items():
        code, kind = {"uint8": (2, 9), "uint16": (4, 11), "float64": (9, 6)}[values.dtype.name]
        short = struct.pack("<HH", 1, len(name)) + name.encode().ljust(
            4
        )  # names of up to 4 letters: the small form
        named = short if len(name) <= 4 else element(1, name.encode())
        matrix = (
            element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack("<ii", 1, values.size)) + named
        )
        matrix = element(14, matrix + element(code, values.tobytes()))
        out += (
            struct.pack("<II", 15, len(zlib.compress(matrix))) + zlib.compress(matrix) if packed else matrix
        )
    path.write_bytes(out)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_mat_files(tmp_path: Path, packed: bool) -> None:
    arrays = {
        "labels": np.arange(5, dtype=np.uint8),
        "ids": np.array([7, 300], np.uint16),
        "wide": np.array([1.5, -2]),
    }
    found = formats.read_mat(write_mat(tmp_path / "a.mat", arrays, packed))
    assert found.keys() == arrays.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values[None])


def test_damaged_mat_files(tmp_path: Path) -> None:
    data = write_mat(tmp_path / "a.mat", {"labels": np.arange(50, dtype=np.uint8)}).read_bytes()
    for name, damaged in (
        ("short", data[:100]),
        ("cut", data[:-9]),
        ("flipped", data[:140] + b"\xff" * 8 + data[148:]),
    ):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(FormatError, match="MAT file"):
            formats.read_mat(tmp_path / name)


def write_flowers(folder: Path, labels: int = 6) -> tuple[Path, Path, Path]:
    photos = {
        f"jpg/image_{n:05d}.jpg": encode(np.full((8, 10, 3), 30 * n, np.uint8), "JPEG") for n in range(1, 7)
    }
    photos |= {"../../jpg/escape.jpg": b"outside", "readme.txt": b"no image"}
    splits = {
        "trnid": np.array([2, 1], np.uint16),
        "valid": np.array([3], np.uint16),
        "tstid": np.array([6, 4, 5], np.uint16),
    }
    return (
        write_tar(folder / "102flowers.tgz", photos, "w:gz"),
        write_mat(folder / "imagelabels.mat", {"labels": np.arange(1, labels + 1, dtype=np.uint8) * 10}),
        write_mat(folder / "setid.mat", splits),
    )


def test_flowers(tmp_path: Path) -> None:
    paths = write_flowers(tmp_path)
    left = tmp_path / ".102flowers.0123456789ab"  # of a process that was killed while it unpacked
    (left / "new/jpg").mkdir(parents=True)
    (left / "lock").touch()
    (left / "target").write_text("102flowers", encoding="utf-8")
    train, test = (
        datasets.Flowers(*paths),
        datasets.Flowers(*paths, mode="test", backend="cv2", transform=T.hflip),
    )
    assert len(train) == 3 and len(datasets.Flowers(*paths, mode="valid")) == 1
    image, label = train[0]
    assert np.abs(np.asarray(image).astype(int) - 180).max() < 3 and label.tolist() == [60]
    assert test[0][0].shape == (8, 10, 3) and test[0][0].dtype == np.float32 and test[0][1].tolist() == [20]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "102flowers", "102flowers.tgz", "imagelabels.mat", "setid.mat"]  # fmt: skip
    assert not (tmp_path.parent / "jpg").exists()


def test_flowers_refuses_what_does_not_fit(tmp_path: Path) -> None:
    images, labels, splits = write_flowers(tmp_path, labels=5)
    with pytest.raises(FormatError, match="do not belong together"):
        datasets.Flowers(images, labels, splits)
    with pytest.raises(FormatError, match="a row of numbers 'labels'"):
        datasets.Flowers(images, splits, splits)
    labels = write_mat(tmp_path / "six.mat", {"labels": np.arange(1, 7, dtype=np.uint8)})
    images.write_bytes(images.read_bytes()[:200])
    with pytest.raises(FormatError, match="cannot be unpacked"):
        datasets.Flowers(images, labels, splits)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


# -- VOC ---------------------------------------------------------------------------------------------------------------


def test_voc2012(tmp_path: Path) -> None:
    root, masks = "VOCdevkit/VOC2012", RNG.integers(0, 21, (2, 6, 9)).astype(np.uint8)
    members = {f"{root}/ImageSets/Segmentation/{split}.txt": text.encode() for split, text in
               (("trainval", "a\nb\n"), ("train", "a\n"), ("val", "b\n"))}  # fmt: skip
    for name, mask in zip("ab", masks, strict=True):
        indexed = Image.fromarray(mask)
        indexed.putpalette([value % 256 for value in range(768)])
        out = io.BytesIO()
        indexed.save(out, "PNG")
        members[f"{root}/SegmentationClass/{name}.png"] = out.getvalue()
        members[f"{root}/JPEGImages/{name}.jpg"] = encode(np.full((6, 9, 3), 90, np.uint8), "JPEG")
    path = write_tar(tmp_path / "voc.tar", members)
    train = datasets.VOC2012(path)
    assert [len(datasets.VOC2012(path, mode)) for mode in ("train", "valid", "test")] == [2, 1, 1]
    image, mask = train[1]
    assert image.mode == "RGB" and mask.mode == "P"
    np.testing.assert_array_equal(np.asarray(mask), masks[1])
    image, mask = pickle.loads(pickle.dumps(datasets.VOC2012(path, backend="cv2", transform=T.ToTensor())))[0]
    assert (
        image.shape == (6, 9, 3) and image.max() < 1 and mask.dtype == np.float32 and (mask == masks[0]).all()
    )

    with pytest.raises(FormatError, match="no such file"):
        datasets.VOC2012(write_tar(tmp_path / "less.tar", {"a": b""}))
    (tmp_path / "no.tar").write_bytes(b"x" * 600)
    with pytest.raises(FormatError, match="this is no tar"):
        datasets.VOC2012(tmp_path / "no.tar")
    members[f"{root}/JPEGImages/a.jpg"] = members[f"{root}/JPEGImages/a.jpg"][:-40]
    with pytest.raises(InputError, match=r"JPEGImages/a\.jpg"):
        datasets.VOC2012(write_tar(tmp_path / "cut.tar", members))[0]


# -- folders -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cat/b.PNG", "cat/deep/a.jpg", "dog/c.png", "dog/notes.txt"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(np.full((4, 5), 100, np.uint8), "PNG"))
    (tmp_path / "data" / "empty").mkdir()
    return tmp_path / "data"


def test_folders(folder: Path) -> None:
    data = datasets.DatasetFolder(folder, transform=T.Grayscale())
    assert data.classes == ["cat", "dog", "empty"] and data.class_to_idx["dog"] == 1
    assert [(Path(path).name, target) for path, target in data.samples] == [
        ("b.PNG", 0),
        ("a.jpg", 0),
        ("c.png", 1),
    ]
    image, target = data[1]
    assert image.mode == "L" and target == 0 and data.targets == [0, 0, 1] and len(data) == 3
    images = datasets.ImageFolder(folder, loader=lambda path: Path(path).name)
    assert [images[place] for place in range(len(images))] == [["b.PNG"], ["a.jpg"], ["c.png"]]
    assert len(datasets.ImageFolder(folder, is_valid_file=lambda path: path.endswith(".txt"))) == 1
    assert len(datasets.DatasetFolder(folder, extensions=(".JPG",))) == 1
    for kind in (datasets.DatasetFolder, datasets.ImageFolder):
        with pytest.raises(InputError, match=r"endings: \.webm"):
            kind(folder, extensions=(".webm",))
        with pytest.raises(InputError, match="there is no such folder"):
            kind(folder / "absent")


def test_the_backend_is_one_setting(folder: Path) -> None:
    assert vision.get_image_backend() == "pil"
    try:
        vision.set_image_backend("cv2")
        assert isinstance(datasets.ImageFolder(folder)[0][0], np.ndarray)
    finally:
        vision.set_image_backend("pil")
    assert isinstance(vision.image_load(folder / "dog" / "c.png"), Image.Image)
    with pytest.raises(ConfigError, match="pil: PIL images; cv2: arrays"):
        vision.set_image_backend("tensor")


def test_the_former_paths_lead_here() -> None:
    assert vision.datasets.MNIST is datasets.MNIST
    assert vision.ops.nms is boxes.nms and set(dir(vision.ops)) > {"roi_align", "deform_conv2d", "yolo_loss"}
    with pytest.raises(AttributeError, match=r"no 'RoIAlign'; framework\.paddle\.vision\.ops"):
        _ = vision.ops.RoIAlign


# -- published files ---------------------------------------------------------------------------------------------------


def test_a_missing_file_says_where_it_comes_from_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HubError) as caught:
        datasets.Cifar10()
    message = str(caught.value)
    for part in ("OAR_OFFLINE is set", cifar.Cifar10.file.url, cifar.Cifar10.file.md5, "Cifar10.data_file=",
                 str(home() / "datasets" / "cifar" / "cifar-10-python.tar.gz")):  # fmt: skip
        assert part in message
    with pytest.raises(HubError, match="download=False"):
        datasets.FashionMNIST(download=False)
    monkeypatch.delenv("OAR_OFFLINE")

    def fail(*_: Any) -> bool:
        raise HubError("cannot connect: no route")

    monkeypatch.setattr(transfer, "download", fail)
    with pytest.raises(HubError, match="no route"):
        datasets.Flowers()


def test_every_published_file_has_an_address_and_a_hash() -> None:
    published = [
        file for kind in (mnist.MNIST, mnist.FashionMNIST) for pair in kind.files.values() for file in pair
    ]
    published += [
        cifar.Cifar10.file,
        cifar.Cifar100.file,
        flowers.IMAGES,
        flowers.LABELS,
        flowers.SPLITS,
        voc2012.ARCHIVE,
    ]
    assert len({file.path for file in published}) == len(published) == 14
    assert all(file.url.startswith("http") and len(file.md5) == 32 for file in published)


def test_files_are_downloaded_once_and_verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path))
    monkeypatch.delenv("OAR_OFFLINE")
    calls: list[str] = []

    def receive(content: bytes) -> Callable[..., bool]:
        def download(url: str, part: Path, size: int | None, label: str) -> bool:
            calls.append(url)
            part.write_bytes(content)
            return False

        return download

    file = files.RemoteFile("small", "http://example.org/a/data.bin", hashlib.md5(b"right").hexdigest())
    monkeypatch.setattr(transfer, "download", receive(b"wrong"))
    with pytest.raises(HubError, match="not the published one"):
        files.find_file(None, file, True, "Small.data_file")
    assert not list(file.path.parent.glob("data.bin*"))
    monkeypatch.setattr(transfer, "download", receive(b"right"))
    for download in (True, True, False):
        assert (
            files.find_file(None, file, download, "Small.data_file")
            == tmp_path / "datasets" / "small" / "data.bin"
        )
    assert len(calls) == 2
    file.path.write_bytes(b"other")
    with pytest.raises(HubError, match="remove it"):
        files.find_file(None, file, True, "Small.data_file")
    assert files.find_file("here.bin", file, False, "Small.data_file") == Path("here.bin")
