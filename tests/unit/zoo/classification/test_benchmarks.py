"""zoo.classification.benchmarks: the binary formats byte by byte."""

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from zoo.classification.benchmarks import Cifar10, Mnist

IMAGES = bytes([0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2]) + bytes([1, 2, 3, 4, 5, 6])
LABELS = bytes([0, 0, 8, 1, 0, 0, 0, 3]) + bytes([7, 0, 9])


def mnist(folder: Path, images: bytes = IMAGES, labels: bytes = LABELS, **settings) -> Mnist:
    (folder / "images").write_bytes(images)
    (folder / "labels").write_bytes(labels)
    return Mnist(folder / "images", folder / "labels", **settings)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_mnist(tmp_path, pack):
    dataset = mnist(tmp_path, pack(IMAGES), pack(LABELS))
    assert len(dataset) == 3 and dataset.class_names == tuple("0123456789")
    sample = dataset[1]
    assert sample.image.tolist() == [[[3, 3, 3], [4, 4, 4]]] and sample.image.dtype == np.uint8
    assert sample.labels.shape == () and int(sample.labels) == 0
    assert sample.id == f"{tmp_path / 'images'}:1" and dataset[-1].id == f"{tmp_path / 'images'}:2"
    assert [int(s.labels) for s in dataset] == [7, 0, 9]
    assert len(pickle.dumps(dataset)) < 1000 and pickle.loads(pickle.dumps(dataset)) == dataset


def test_part_of_mnist(tmp_path):
    part = mnist(tmp_path, start=1)
    assert [int(sample.labels) for sample in part] == [0, 9] and part[0].id.endswith("images:1")
    assert [int(sample.labels) for sample in mnist(tmp_path, start=1, stop=2)] == [0]
    for bad in ({"start": -1}, {"start": 2, "stop": 2}):
        with pytest.raises(ConfigError, match=r"Mnist.start, stop: start and stop are out of order"):
            mnist(tmp_path, **bad)
    for beyond in ({"stop": 4}, {"start": 3}):
        with pytest.raises(InputError, match=r"beyond the last image[\s\S]*stop <= 3"):
            len(mnist(tmp_path, **beyond))


def test_names_of_other_classes(tmp_path):
    (tmp_path / "names.txt").write_text("\n".join("abcdefghij"), encoding="utf-8")
    assert mnist(tmp_path, labels_file=tmp_path / "names.txt").class_names[9] == "j"
    (tmp_path / "names.txt").write_text("a\nb", encoding="utf-8")
    with pytest.raises(FormatError, match=r"labels: 2 labels are no classes[\s\S]*7 at index 0[\s\S]*0 to 1"):
        len(mnist(tmp_path, labels_file=tmp_path / "names.txt"))


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (LABELS, IMAGES, r"images: the file is not an IDX file[\s\S]*00 00 08 01[\s\S]*00 00 08 03[\s\S]*exchanged"),
        (b"", LABELS, r"not an IDX file"),
        (b"\xff\xd8\xff\xe0" + bytes(40), LABELS, r"not an IDX file[\s\S]*ff d8 ff e0"),
        (IMAGES[:-1], LABELS, r"images: the file is cut off[\s\S]*5 bytes[\s\S]*6 for the shape \[3, 1, 2\]"),
        (IMAGES[:4] + b"\xff" * 12, LABELS, r"the file is cut off[\s\S]*0 bytes"),
        (gzip.compress(IMAGES, mtime=0)[:-12], LABELS, r"images: the file cannot be unpacked"),
        (b"\x1f\x8bxxxxxxxxxxxxxxxx", LABELS, r"images: the file cannot be unpacked"),
        (IMAGES, LABELS[:7] + bytes([2, 7, 0]), r"labels: images and labels do not[\s\S]*2 labels[\s\S]*3, "),
        (IMAGES, LABELS[:-1] + b"\x0a", r"labels: 1 labels are no classes[\s\S]*10 at index 2[\s\S]*0 to 9"),
    ],
)  # fmt: skip
def test_damaged_mnist(tmp_path, images, labels, message):
    with pytest.raises(FormatError, match=message):
        len(mnist(tmp_path, images, labels))


def test_missing_mnist(tmp_path):
    with pytest.raises(InputError, match="there is no such IDX file"):
        len(Mnist(tmp_path / "images", tmp_path / "labels"))


def test_real_mnist(shared):
    folder = shared / "data/mnist_t10k"
    train = Mnist(folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz")
    assert len(train) == 6000 and train[0].size_hw == (28, 28) and int(train[0].labels) == 7


def record(label: int, red: int, green: int, blue: int) -> bytes:
    return bytes([label]) + bytes([red]) * 1024 + bytes([green]) * 1024 + bytes([blue]) * 1023 + b"\x00"


def cifar(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(1, 6):
        (folder / f"data_batch_{number}.bin").write_bytes(record(number, number, 20, 30) * number)
    (folder / "test_batch.bin").write_bytes(record(9, 1, 2, 3))
    return folder


def test_cifar10(tmp_path):
    cifar(tmp_path / "cifar-10-batches-bin")
    train = Cifar10(tmp_path)
    assert len(train) == 15 and train.class_names[3] == "cat" and len(train.class_names) == 10
    assert [int(sample.labels) for sample in train] == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5]
    sample = train[3]
    assert sample.image.shape == (32, 32, 3) and sample.image.flags.c_contiguous
    assert sample.image[0, 0].tolist() == [3, 20, 30] and sample.image[31, 31].tolist() == [3, 20, 0]
    assert sample.id.endswith("data_batch_3.bin:0") and train[-1].id.endswith("data_batch_5.bin:4")
    assert train[14].id == train[-1].id and sample.labels.shape == ()
    for index in (15, -16):
        with pytest.raises(IndexError):
            train[index]
    test = Cifar10(tmp_path / "cifar-10-batches-bin", "test")
    assert len(test) == 1 and int(test[0].labels) == 9
    assert len(pickle.dumps(train)) < 1000


def test_missing_and_damaged_cifar10(tmp_path):
    with pytest.raises(
        InputError, match=r"files of CIFAR-10 are missing[\s\S]*no test_batch.bin[\s\S]*cifar-10-binary"
    ):
        len(Cifar10(tmp_path, "test"))
    (tmp_path / "test_batch.bin").write_bytes(record(1, 2, 3, 4)[:-1])
    with pytest.raises(FormatError, match=r"whole records[\s\S]*3072 bytes[\s\S]*multiple of 3073"):
        len(Cifar10(tmp_path, "test"))
    (tmp_path / "test_batch.bin").write_bytes(record(1, 2, 3, 4) + record(10, 0, 0, 0))
    with pytest.raises(FormatError, match=r"test_batch.bin: 1 labels are no classes[\s\S]*10 at index 1"):
        len(Cifar10(tmp_path, "test"))
