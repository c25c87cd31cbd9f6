"""zoo.classification.data: folders, archives and lists, and what is said when they are not right."""

import os
import pickle
import shutil
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.vision import image
from zoo.classification.data import ImageFolder, ListFile, read_class_names


def paint(path: Path, value: int) -> Path:
    image.write(path, np.full((2, 3, 3), value, np.uint8))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes, three images, and what is to be left out."""
    paint(tmp_path / "set/train/dog/b.png", 2)
    paint(tmp_path / "set/train/dog/a.png", 1)
    paint(tmp_path / "set/train/cat/deep/c.PNG", 3)
    paint(tmp_path / "set/train/cat/.hidden.png", 9)
    paint(tmp_path / "set/train/.cache/x.png", 9)
    (tmp_path / "set/train/cat/notes.txt").write_text("x", encoding="utf-8")
    (tmp_path / "set/train/readme.txt").write_text("x", encoding="utf-8")
    return tmp_path / "set"


def pack(folder: Path, target: Path, prefix: str = "", compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(target, "w", compression) as archive:
        for path in folder.rglob("*"):
            archive.write(path, prefix + path.relative_to(folder).as_posix())
    return target


def values(dataset) -> list[tuple[int, int]]:
    return [(int(sample.image[0, 0, 0]), int(sample.labels)) for sample in dataset]


# -- folders -----------------------------------------------------------------------------------------------------------


def test_folder(folder):
    dataset = ImageFolder(folder, "train")
    assert dataset.class_names == ("cat", "dog") and len(dataset) == 3
    assert values(dataset) == [(3, 0), (1, 1), (2, 1)]
    sample = dataset[-1]
    assert sample.labels.shape == () and sample.labels.dtype == np.int32
    assert sample.id == str(folder / "train" / "dog" / "b.png") and sample.image.shape == (2, 3, 3)
    with pytest.raises(IndexError):
        dataset[3]


def test_links_are_followed(folder, tmp_path):
    paint(tmp_path / "elsewhere/more/e.png", 4)
    (folder / "train/cat/linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "train/cat/deep/loop").symlink_to(folder / "train/cat", target_is_directory=True)
    assert values(ImageFolder(folder, "train")) == [(3, 0), (4, 0), (1, 1), (2, 1)]


def test_one_extension(folder):
    paint(folder / "train/cat/photo.jpg", 4)
    paint(folder / "train/dog/photo.JPG", 5)
    assert values(ImageFolder(folder / "train", extensions=(".jpg",))) == [(4, 0), (5, 1)]
    for extensions in ((), ("jpg",)):
        with pytest.raises(
            ConfigError, match=r"ImageFolder.extensions: extensions must begin with a dot[\s\S]*\.jpg"
        ):
            ImageFolder(folder, extensions=extensions)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives(folder, tmp_path, compression):
    split = pack(folder / "train", tmp_path / "train.zip", compression=compression)
    whole = pack(folder, tmp_path / "whole.zip", compression=compression)
    for dataset in (ImageFolder(split), ImageFolder(tmp_path, "train"), ImageFolder(whole, "train")):
        assert dataset.class_names == ("cat", "dog")
        assert values(dataset) == [(3, 0), (1, 1), (2, 1)]
    assert ImageFolder(split)[1].id == str(split / "dog" / "a.png")


def test_archive_of_a_mac(folder, tmp_path):
    split = pack(folder / "train", tmp_path / "train.zip")
    with zipfile.ZipFile(split, "a") as archive:
        archive.writestr("__MACOSX/dog/._a.png", b"x")
    assert ImageFolder(split).class_names == ("cat", "dog") and len(ImageFolder(split)) == 3


def test_classes_from_a_file(folder, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("dog\nbird\ncat\n", encoding="utf-8")
    dataset = ImageFolder(folder, "train", labels_file=names)
    assert dataset.class_names == ("dog", "bird", "cat") and values(dataset) == [(3, 2), (1, 0), (2, 0)]
    names.write_text("dog\nbird\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"folders of unknown classes[\s\S]*received: cat[\s\S]*names.txt"):
        len(ImageFolder(folder, "train", labels_file=names))
    names.write_text("dog\ncat\ndog\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"names.txt: labels_file names a class twice[\s\S]*received: dog"):
        len(ImageFolder(folder, "train", labels_file=names))


def test_nothing_there(tmp_path):
    lost = ImageFolder(tmp_path / "lost", "train")  # making one reads nothing
    with pytest.raises(
        InputError, match=r"lost.train: there is no such folder or zip archive[\s\S]*root and split"
    ):
        len(lost)
    (tmp_path / "x.zip").write_bytes(b"no archive")
    with pytest.raises(InputError, match="there is no such folder or zip archive"):
        len(ImageFolder(tmp_path / "x.zip"))
    paint(tmp_path / "flat/a.png", 1)
    with pytest.raises(InputError, match=r"flat: there are no class folders[\s\S]*<class>[\s\S]*set split"):
        len(ImageFolder(tmp_path / "flat"))


def test_valid_is_read_where_there_is_no_val(folder, tmp_path):
    """As Roboflow names it (ultralytics#21311)."""
    shutil.copytree(folder / "train", folder / "valid")
    assert values(ImageFolder(folder, "val")) == values(ImageFolder(folder, "train"))
    archive = pack(folder / "train", tmp_path / "roboflow.zip", "valid/")
    assert values(ImageFolder(archive, "val")) == values(ImageFolder(folder, "train"))


def test_splits_are_no_classes(folder):
    with pytest.raises(
        InputError, match=r"names of parts of a data set[\s\S]*received: train[\s\S]*set split"
    ):
        len(ImageFolder(folder))


def test_folders_that_systems_make_are_no_classes(folder):
    expected = values(ImageFolder(folder, "train"))
    for name in (".ipynb_checkpoints", "__MACOSX", "@eaDir", "cat/@eaDir/1.png"):
        paint(folder / "train" / name / "again.png", 9)
    assert values(ImageFolder(folder, "train")) == expected


def test_empty_class_folders(folder, tmp_path):
    for index in range(7):
        (folder / f"train/empty{index}").mkdir()
    message = r"train\S*: 7 of 9 class folders hold no image[\s\S]*empty0, .*empty4, and 2 more[\s\S]*\.jpg"
    with pytest.raises(InputError, match=message):
        len(ImageFolder(folder, "train"))
    with pytest.raises(InputError, match=message):
        len(ImageFolder(pack(folder / "train", tmp_path / "train.zip")))


def test_damaged_image(folder, tmp_path):
    (folder / "train/dog/a.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    message = (
        r"dog.a.png: an image of the data set cannot be read: .*[\s\S]*what to do: repair the file, or delete"
    )
    for dataset in (
        ImageFolder(folder, "train"),
        ImageFolder(pack(folder / "train", tmp_path / "train.zip")),
    ):
        assert dataset[0].image[0, 0, 0] == 3
        with pytest.raises(InputError, match=message):
            dataset[1]


def test_damaged_archive(folder, tmp_path):
    split = pack(folder / "train", tmp_path / "train.zip", compression=zipfile.ZIP_STORED)
    data = bytearray(split.read_bytes())
    data[data.index(b"\x89PNG", data.index(b"dog/a.png")) + 20] ^= 255
    split.write_bytes(data)
    dataset, failed = ImageFolder(split), []
    for index in range(len(dataset)):
        try:
            dataset[index]
        except InputError as error:
            failed.append(str(error))
    assert len(failed) == 1 and "an image cannot be taken out of the archive" in failed[0]
    assert "train.zip" in failed[0] and "test the archive" in failed[0]


def test_archive_without_its_directory(folder, tmp_path):
    split = pack(folder / "train", tmp_path / "train.zip")
    split.write_bytes(split.read_bytes().replace(b"PK\x01\x02", b"PK\xff\xff"))
    with pytest.raises(InputError, match=r"train.zip: the archive is damaged[\s\S]*test the archive"):
        len(ImageFolder(split))


def test_pickles_carry_settings_alone(folder, tmp_path):
    split = pack(folder / "train", tmp_path / "train.zip")
    for dataset in (ImageFolder(folder, "train"), ImageFolder(split)):
        before = pickle.dumps(dataset)
        assert len(dataset) == 3 and dataset[0].image is not None
        after = pickle.dumps(dataset)
        assert after == before and pickle.loads(after) == dataset
        assert values(pickle.loads(after)) == values(dataset)


# -- lists -------------------------------------------------------------------------------------------------------------


def listed(tmp_path: Path, text: str, **settings) -> ListFile:
    (tmp_path / "list.txt").write_text(text, encoding="utf-8")
    return ListFile(tmp_path, tmp_path / "list.txt", **settings)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    paint(tmp_path / "my images/a b.png", 1)
    paint(tmp_path / "c.png", 2)
    return tmp_path


def test_list(images):
    dataset = listed(images, "\ufeffmy images/a b.png 2\n\n  c.png 0  \n")
    assert dataset.class_names == ("0", "1", "2") and values(dataset) == [(1, 2), (2, 0)]
    assert dataset[0].id == str(images / "my images/a b.png")
    assert dataset[0].labels.shape == () and pickle.loads(pickle.dumps(dataset)) == dataset
    assert values(listed(images, "c.png\t1\n", separator="\t")) == [(2, 1)]
    assert values(listed(images, f"{images / 'c.png'} 1")) == [(2, 1)]
    with pytest.raises(IndexError):
        dataset[2]


def test_a_tab_goes_before_blanks(images):
    dataset = listed(images, "my images/a b.png\twild cat\r\nc.png\tdog\n")
    assert dataset.class_names == ("dog", "wild cat") and values(dataset) == [(1, 1), (2, 0)]


def test_windows_separators(images):
    dataset = listed(images, "my images\\a b.png 1\nc.png 0\n")
    assert values(dataset) == [(1, 1), (2, 0)] and dataset[0].id == str(images / "my images/a b.png")


@pytest.mark.parametrize("separator", [" ", ","])
def test_quotes_of_a_table(images, separator):
    """pandas puts them around a path with a blank or a comma, to_csv(sep=" ") too."""
    text = f'"my images/a b.png"{separator}1\nc.png{separator}"0"\n'
    dataset = listed(images, text, separator=separator)
    assert values(dataset) == [(1, 1), (2, 0)] and dataset.class_names == ("0", "1")


def test_list_with_names(images):
    (images / "names.txt").write_text("cat\ndog\n", encoding="utf-8")
    dataset = listed(images, "c.png 1", labels_file=images / "names.txt")
    assert dataset.class_names == ("cat", "dog")


def test_labels_outside_the_classes(images):
    (images / "names.txt").write_text("cat\ndog\n", encoding="utf-8")
    bad = listed(images, "c.png 1\nc.png 2\n", labels_file=images / "names.txt")
    with pytest.raises(
        InputError, match=r"1 lines of the list[\s\S]*list.txt:2: label 2[\s\S]*0 to 1 [\s\S]*names"
    ):
        len(bad)
    with pytest.raises(InputError, match=r"list.txt:1: label 123456789123"):
        len(listed(images, "c.png 123456789123"))


def test_lines_that_are_no_entries(images):
    lines = ["c.png", "c.png -1", "c.png x", "c.png 1.5", "\t1", " 3", "c.png 0"]
    with pytest.raises(InputError, match=r"6 lines of the list cannot be used") as caught:
        len(listed(images, "\n".join(lines)))
    text = str(caught.value)
    assert "list.txt:2: 'c.png -1' is no path and class index" in text and "and 1 more" in text
    assert "list.txt:7" not in text and "set separator" in text


def test_missing_images(images):
    lines = "".join(f"lost/{index}.png 0\n" for index in range(8)) + "c.png 0\ngone.png 0\n"
    with pytest.raises(InputError, match=r"9 of the 10 images in .*list.txt are not there") as caught:
        len(listed(images, lines))
    assert "lost/0.png, " in str(caught.value) and "and 4 more" in str(caught.value)


def test_empty_and_unreadable_lists(images):
    with pytest.raises(InputError, match=r"list.txt: the list names no image"):
        len(listed(images, "\n \n"))
    with pytest.raises(InputError, match=r"nowhere.txt: there is no such list of images file"):
        len(ListFile(images, images / "nowhere.txt"))
    (images / "latin.txt").write_bytes("é.png 0".encode("latin-1"))
    with pytest.raises(
        InputError, match=r"latin.txt, line 1: the list of images is not UTF-8[\s\S]*save it as UTF-8"
    ):
        len(ListFile(images, images / "latin.txt"))
    with pytest.raises(ConfigError, match=r"ListFile.separator: the separator is empty"):
        ListFile(images, images / "list.txt", separator="")


def test_damaged_image_of_a_list(images):
    dataset = listed(images, "c.png 0")
    assert len(dataset) == 1
    (images / "c.png").unlink()
    with pytest.raises(
        InputError, match=r"c.png: an image of the data set cannot be read: there is no such image"
    ):
        dataset[0]
    (images / "c.png").write_bytes(b"text")
    with pytest.raises(InputError, match=r"cannot be read: .*[\s\S]*take it out of .*list.txt"):
        dataset[0]


# -- names of classes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat\ndog", ("cat", "dog")),
        ("0 cat\n1 hot dog\n\n", ("cat", "hot dog")),
        ("0 cat\n2 dog", ("0 cat", "2 dog")),  # not its own number
        ("0\n1\n", ("0", "1")),
        ("crane\ncrane\n", ("crane", "crane")),  # ImageNet has a bird and a machine
    ],
)
def test_class_names(tmp_path, text, expected):
    (tmp_path / "names.txt").write_text(text, encoding="utf-8")
    assert read_class_names(tmp_path / "names.txt") == expected


def test_class_names_that_are_none(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("cat\n\ndog\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"names.txt:2: a class has no name"):
        read_class_names(path)
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"names.txt: the list of classes is empty"):
        read_class_names(path)


# -- real data ---------------------------------------------------------------------------------------------------------


def test_real_folders_and_archives(shared):
    clothes = ImageFolder(shared / "data/clothing_cls", "train")
    assert len(clothes) == 280 and len(clothes.class_names) == 10
    assert np.bincount([int(label) for label in clothes._index.labels]).tolist() == [28] * 10
    assert min(clothes[0].size_hw) == 224
    cifar = ImageFolder(shared / "data/cifar10_jpg", "test")
    assert len(cifar) == 2000 and cifar.class_names[:2] == ("airplane", "automobile")
    assert cifar[1999].size_hw == (32, 32) and int(cifar[1999].labels) == 9


def test_real_list(shared):
    folder = shared / "data/imagenet_samples"
    dataset = ListFile(folder, folder / "labels.txt", separator="\t")
    assert len(dataset) == 300 and int(dataset[0].labels) == 2 and len(dataset.class_names) <= 1000


def test_list_with_a_header_and_names_of_classes(images):
    text = "file,class\nmy images/a b.png,dog\nc.png,cat\n"
    dataset = listed(images, text, separator=",", header=True)
    assert dataset.class_names == ("cat", "dog") and values(dataset) == [(1, 1), (2, 0)]
    assert [labels.tolist() for labels in dataset.read_labels()] == [[1], [0]]
    (images / "names.txt").write_text("dog\ncat\n", encoding="utf-8")
    dataset = listed(images, text, separator=",", header=True, labels_file=images / "names.txt")
    assert values(dataset) == [(1, 0), (2, 1)]
    with pytest.raises(InputError, match=r"list.txt:1: 'file,class' is no path[\s\S]*header: true"):
        len(listed(images, text, separator=",", labels_file=images / "names.txt"))


def test_a_label_of_too_many_digits(images):
    with pytest.raises(InputError, match=r"list.txt:1: label 9{40}\n"):
        len(listed(images, "c.png " + "9" * 5000))


def test_an_image_that_unpacks_to_more_than_memory(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("zoo.classification.data._MAX_IMAGE_BYTES", 10)
    with pytest.raises(
        InputError, match=r"cannot be taken out[\s\S]*bytes once it is unpacked, more than 10"
    ):
        ImageFolder(pack(folder / "train", tmp_path / "train.zip"))[0]


def test_a_folder_that_cannot_be_read(folder, monkeypatch):
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("dog"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(
        InputError, match=r"dog: a folder of the data set cannot be read[\s\S]*Permission denied"
    ):
        len(ImageFolder(folder, "train"))


# -- some of the classes -----------------------------------------------------------------------------------------------


def test_some_of_the_folders(folder, caplog):
    paint(folder / "train/bird/d.png", 4)
    dataset = ImageFolder(folder, "train", classes=("dog", "bird"))
    assert dataset.class_names == ("dog", "bird") and values(dataset) == [(1, 0), (2, 0), (4, 1)]
    assert "1 images of other classes are left out: cat 1" in caplog.text
    rare = ImageFolder(folder, "train", classes=("dog", "horse"))
    assert rare.class_names == ("dog", "horse") and values(rare) == [(1, 0), (2, 0)]
    with pytest.raises(InputError, match=r"no image is of the class 'dogs'(?s:.)*did you mean 'dog'"):
        len(ImageFolder(folder, "train", classes=("dogs", "cat")))
    with pytest.raises(ConfigError, match=r"ImageFolder\.classes"):
        ImageFolder(folder, "train", classes=("dog", "dog"))


def test_an_empty_folder_of_a_class_that_another_split_has(folder):
    paint(folder / "val/dog/e.png", 5)
    (folder / "val/cat").mkdir()
    (folder / "val/cow").mkdir()
    with pytest.raises(InputError, match="2 of 3 class folders hold no image"):
        len(ImageFolder(folder, "val"))
    (folder / "val/cow").rmdir()
    dataset = ImageFolder(folder, "val")
    assert dataset.class_names == ("cat", "dog") and values(dataset) == [(5, 1)]


# -- names of other systems --------------------------------------------------------------------------------------------


def test_a_zip_of_windows_has_its_separators(folder, tmp_path):
    """.NET Framework and PowerShell's Compress-Archive write them, and say that MS-DOS made the entries."""
    for system, names in ((0, ("cat", "dog")), (3, ())):
        with zipfile.ZipFile(tmp_path / f"{system}.zip", "w") as archive:
            for name, file in (("dog\\a.png", "dog/a.png"), ("cat\\c.png", "cat/deep/c.PNG")):
                entry = zipfile.ZipInfo()
                entry.filename, entry.create_system = name, system
                archive.writestr(entry, (folder / "train" / file).read_bytes())
        dataset = ImageFolder(tmp_path / f"{system}.zip")
        if names:
            assert dataset.class_names == names and values(dataset) == [(3, 0), (1, 1)]
        else:
            with pytest.raises(InputError, match="no class folders"):
                len(dataset)


def test_classes_in_another_form_of_unicode(tmp_path):
    """macOS' archives keep a letter and its accent apart."""
    for number, form in enumerate(("NFD", "NFC")):
        paint(tmp_path / form / unicodedata.normalize(form, "é") / "a.png", number)
        (tmp_path / f"{form}.txt").write_text(unicodedata.normalize(form, "é") + "\n", encoding="utf-8")
    dataset = ImageFolder(tmp_path / "NFD", labels_file=tmp_path / "NFC.txt")
    assert dataset.class_names == ("\xe9",) and values(dataset) == [(0, 0)]
    assert values(ImageFolder(tmp_path / "NFC", classes=(unicodedata.normalize("NFD", "é"),))) == [(1, 0)]
    shutil.copytree(tmp_path / "NFD", tmp_path / "both")
    shutil.copytree(tmp_path / "NFC", tmp_path / "both", dirs_exist_ok=True)
    assert len(ImageFolder(tmp_path / "both")) == 2
