"""YOLO's format: a text file an image, a line an object; and a data.yaml with folders and names, as ultralytics has it.

Source: https://docs.ultralytics.com/datasets/detect/ and /datasets/segment/
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from framework.core.errors import FormatError, InputError
from framework.core.yaml_text import check_yaml, find_loader
from framework.vision.annotations.objects import (
    SUBSETS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    bounds,
    join_outlines,
)
from framework.vision.dataset_files import Orientation, abbreviate, find_missing, read_lines
from framework.vision.image import list_images, read_size

SPLITS = ("train", "val", "test")
_ALIASES = {"valid": "val", "validation": "val"}
_DARKNET = "obj.data"
_NAME_FILES = ("classes.txt", "obj.names", "predefined_classes.txt", "labels.txt", "darknet.labels")
_PIXELS = 4.0  # a share above it is no share of an object that reaches beyond its image
_TOLERANCE = 0.01  # by which shares may lie beyond 0 and 1, as tools round them


def read_yolo(source: Path, split: str = "", *, orientation: Orientation = "exif") -> AnnotatedSet:
    """The images of a data.yaml, or of a folder with images and text files.

    A folder is searched for a .yaml with `names`, then for darknet's obj.data; else for images in `images` (or beside
    the text files) and for names in classes.txt or obj.names. `path`, `train`, `val` and `test` of a data.yaml are
    folders, lists of them, or text files of images, seen from the file's folder; a leading "../" that leads nowhere is
    left out, as Roboflow writes it.
    The labels of images/a.jpg are labels/a.txt, or a.txt beside it or beside `images`. Images without one have no
    objects, but one of them must have one, or there must be a folder for them.

    A line is `class x y w h`, or `class x y x y x y …` of an outline, all shares of the image's sides; a sixth number
    is a score, and not read. Objects are cut at the edges of their image. Lines that come twice, and objects without an
    area in the image, are left out and told in `problems`.

    Args:
        split: "train", "val" or "test"; "" is all of them.

    Raises:
        InputError: there is no such data, an image is not there, no image has labels, a class has no name, or
            coordinates are pixels.
        FormatError: the .yaml is none, or a line has no such numbers.
    """
    source = Path(source)
    file = source if source.is_file() else _find_yaml(source)
    notes: list[str] = []
    names, images, keypoints = _read_folder(source, split) if file is None else _read_yaml(file, split, notes)
    if missing := find_missing(path for path, _ in images):
        raise InputError(
            f"{len(missing)} of {len(images)} images are not there",
            where=file or source,
            received=abbreviate([str(images[number][0]) for number in missing]),
        )
    reader = _LabelReader(names, orientation, keypoints)
    read = [reader.read(path, split_name) for path, split_name in images]
    reader.check_labels(file or source)
    notes += reader.notes()
    return AnnotatedSet(tuple(read), reader.all_names(file or source), tuple(reader.problems), tuple(notes))


def _find_yaml(folder: Path) -> Path | None:
    if not folder.is_dir():
        raise InputError(
            "there is no such file or folder",
            where=folder,
            allowed="a data.yaml, or a folder of images and text files",
            fix=f"the current folder is {Path.cwd()}",
        )
    files = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")], key=lambda one: one.stem != "data")
    return next((one for one in files if isinstance(_load_yaml(one).get("names"), list | dict)), None)


def has_names(folder: Path) -> bool:
    """Whether a folder has a .yaml with the names of classes, or darknet's obj.data."""
    return (folder / _DARKNET).is_file() or _find_yaml(folder) is not None


def _load_yaml(file: Path) -> Mapping[str, object]:
    text = "\n".join(read_lines(file, "data set"))
    try:
        check_yaml(text)
        content = yaml.load(text, find_loader())
        # YAML takes a class "no" for False, and 01 for 1.
        as_written = yaml.load(text, find_loader(scalars=False))
    except (yaml.YAMLError, ValueError) as error:  # such as numbers and dates that are none
        raise FormatError(
            "the file is no YAML",
            where=file,
            received="; ".join(line.strip() for line in str(error).splitlines()[:3]),
            fix="a path of Windows stands without quotes, in single ones or with /: in double ones \\ begins an escape"
            if "\\" in text
            else None,
        ) from error
    if not isinstance(content, dict):
        raise FormatError("the file describes no data set", where=file, allowed="train:, val: and names:")
    names = as_written.get("names")
    return {**content, "names": names} if isinstance(names, list | dict) else content


def _read_yaml(
    file: Path, split: str, notes: list[str]
) -> tuple[tuple[str, ...], list[tuple[Path, str]], int]:
    """Names, images with their split, and how many numbers of keypoints a line has behind its box."""
    content = _load_yaml(file)
    locations = {_ALIASES.get(str(key), str(key)): value for key, value in content.items()}
    if not any(locations.get(name) for name in SPLITS):  # as supervision writes it: names alone
        return _read_names(content, file), _read_folder(file.parent, split)[1], 0
    part_name = _ALIASES.get(split, split)
    split_names = [part_name] if split else [name for name in SPLITS if locations.get(name)]
    if not split_names or not locations.get(split_names[0]):
        raise InputError(
            "the data set has no such part",
            where=file,
            received=split or "none of train, val, test",
            allowed=", ".join(name for name in SPLITS if locations.get(name)) or "train, val, test",
        )
    root = content.get("path")
    images: dict[Path, str] = {}
    for split_name in split_names:
        value = locations[split_name]
        for entry in value if isinstance(value, list) else [value]:
            location, folders = _find_entry(str(entry), file, None if root is None else str(root), notes)
            if not location.exists() and split_name == "test" and not split and images:
                notes.append(
                    f"there is no {entry}, as of data.yaml's test"
                )  # Roboflow always writes the line
                continue
            for path in _list_entry(location, file, folders, str(entry)):
                images.setdefault(path, split_name)
    shape = content.get("kpt_shape")
    sides = [side for side in shape if isinstance(side, int)] if isinstance(shape, list) else []
    return _read_names(content, file), list(images.items()), math.prod(sides) if sides else 0


def _read_names(content: Mapping[str, object], file: Path) -> tuple[str, ...]:
    names = content.get("names")
    if isinstance(names, dict):
        numbers = [int(key) if str(key).isdecimal() else -1 for key in names]
        if sorted(numbers) != list(range(len(numbers))):
            raise FormatError(
                "the numbers of the classes have gaps",
                where=f"{file}: names",
                received=abbreviate(list(map(str, names))),
                allowed=f"0 to {len(names) - 1}, each once",
            )
        names = [name for _, name in sorted(zip(numbers, names.values()))]
    if names is None and isinstance(content.get("nc"), int):
        return tuple(str(number) for number in range(int(str(content["nc"]))))
    if not isinstance(names, list) or not all(names) or len({"", *map(str, names)}) <= len(names):
        raise FormatError(
            "the data set needs a name of its own for each class",
            where=f"{file}: names",
            received=repr(names)[:80],
            allowed="names: [cat, dog], or a number and a name a line",
        )
    return tuple(map(str, names))


def _find_entry(entry: str, file: Path, root: str | None, notes: list[str]) -> tuple[Path, Sequence[Path]]:
    """Where an entry of a data.yaml leads, or would by its first spelling, and the folders that it is seen from. Of a
    path of another machine what of it lies beside the file is taken, with a note."""
    folders = [file.parent] if root is None else [file.parent / root, Path(root), file.parent]
    spellings = [text for one in _spellings(entry) for text in dict.fromkeys((one, one.removeprefix("../")))]
    candidates = [folder / one for one in spellings for folder in folders]
    if (location := next((path for path in candidates if path.exists()), None)) is not None:
        return location, folders
    beside = next((path for path in _list_ends(entry, file.parent) if path.exists()), None)
    if beside is not None:
        notes.append(f"there is no {entry}: {beside} is taken")
    return beside or candidates[0], folders


def _list_ends(path: str, folder: Path) -> list[Path]:
    """The ends of a path, of two names and more, seen from a folder: the longest first."""
    names = path.replace("\\", "/").split("/")
    return [folder.joinpath(*names[first:]) for first in range(1, len(names) - 1)]


def _list_entry(location: Path, file: Path, folders: Sequence[Path], entry: str) -> list[Path]:
    """The images of a folder, or those that a text file names."""
    if not location.exists():
        raise InputError(
            "there is no such folder of images",
            where=file,
            received=entry,
            allowed="a folder or a list of images, seen from `path` or from the file's folder",
            fix=f"looked for in {abbreviate([str(folder / entry) for folder in folders])}",
        )
    if location.is_dir():
        if location.resolve().parent == location.resolve():  # all files of the machine, as of "path: /"
            raise InputError(
                "the folder of images is the whole file system",
                where=file,
                received=entry,
                allowed="the folder of the images",
            )
        try:
            return list_images(location, recursive=True)
        except OSError as error:
            raise InputError(
                "a folder of images cannot be read", where=location, received=error, fix=f"check {file}"
            ) from error
    lines = [line.strip() for line in read_lines(location, "list of images") if line.strip()]
    return [_list_line(line, location, folders) for line in lines]


def _list_line(line: str, file: Path, folders: Sequence[Path]) -> Path:
    candidates = [folder / text for text in _spellings(line) for folder in (file.parent, *folders)]
    ends = (path for folder in (file.parent, *folders) for path in _list_ends(line, folder))
    return next((path for path in itertools.chain(candidates, ends) if path.is_file()), candidates[0])


def _spellings(path: str) -> tuple[str, ...]:
    """A path as it is written, and with the separators of this machine where it has those of Windows."""
    return (path, path.replace("\\", "/")) if "\\" in path else (path,)


def _read_folder(folder: Path, split: str) -> tuple[tuple[str, ...], list[tuple[Path, str]], int]:
    """Images and names of a folder without a .yaml."""
    if (folder / _DARKNET).is_file():
        return _read_darknet(folder, split)
    options = [
        *([folder / "images" / split, folder / split / "images", folder / split] if split else []),
        *([folder / "images"] if not split else []),
        *([folder] if not split else []),
    ]
    image_folder = next((one for one in options if one.is_dir() and list_images(one, recursive=True)), None)
    if image_folder is None:
        raise InputError(
            "there are no images",
            where=folder / split,
            allowed="data.yaml, images/ and labels/, or images and text files side by side",
        )
    names = _names_of_folder((folder, folder / "labels", image_folder))
    paths = list_images(image_folder, recursive=True)
    return names, [(path, split or _split_below(path, image_folder)) for path in paths], 0


def _split_below(path: Path, folder: Path) -> str:
    """The split that the first folder of an image below `folder` is named after."""
    first, *names = path.relative_to(folder).parts
    return SUBSETS.get(first.lower(), "") if names else ""


def _read_darknet(folder: Path, split: str) -> tuple[tuple[str, ...], list[tuple[Path, str]], int]:
    """What obj.data tells, as darknet and CVAT's "YOLO 1.1" write it: `train = data/train.txt` and the like.

    Paths are seen from the folder; a leading "data/" that leads nowhere is left out.
    """
    lines = [line.partition("=") for line in read_lines(folder / _DARKNET, "data set")]
    settings = {key.strip(): value.strip() for key, equals, value in lines if equals}
    settings = {_ALIASES.get(key, key): value for key, value in settings.items()}
    names = [
        line.strip()
        for line in read_lines(_strip(settings.get("names", "obj.names"), folder), "list of classes")
    ]
    split_names = [_ALIASES.get(split, split)] if split else [name for name in SPLITS if name in settings]
    if not split_names or split_names[0] not in settings:
        raise InputError(
            "the data set has no such part",
            where=folder / _DARKNET,
            received=split or "none of train, valid, test",
            allowed=", ".join(name for name in SPLITS if name in settings) or "train = train.txt",
        )
    images = [
        (_strip(line.strip(), folder), split_name)
        for split_name in split_names
        for line in read_lines(_strip(settings[split_name], folder), "list of images")
        if line.strip()
    ]
    return tuple(name for name in names if name), images, 0


def _strip(name: str, folder: Path) -> Path:
    path = folder / name
    return path if path.exists() else folder / name.removeprefix("data/")


def find_names(folder: Path) -> tuple[str, ...]:
    """The names of the classes of a folder: in a .yaml, classes.txt or obj.names; none where there is no such file."""
    file = _find_yaml(folder)
    return (
        _names_of_folder((folder, folder / "labels")) if file is None else _read_names(_load_yaml(file), file)
    )


def _names_of_folder(folders: Sequence[Path]) -> tuple[str, ...]:
    files = (one / name for one in folders for name in _NAME_FILES)
    names_file = next((file for file in files if file.is_file()), None)
    lines = [] if names_file is None else read_lines(names_file, "list of classes")
    return tuple(line.strip() for line in lines if line.strip())


def label_file(path: Path) -> Path:
    """The text file of an image: in `labels` in the place of the last folder `images`, else beside it or beside that
    folder."""
    folders = list(path.parts)
    positions = [number for number, name in enumerate(folders[:-1]) if name == "images"]
    if positions:
        folders[positions[-1]] = "labels"
        replaced = Path(*folders).with_suffix(".txt")
        above = Path(*folders[: positions[-1]], *folders[positions[-1] + 1 :]).with_suffix(".txt")
        others = [one for one in (path.with_suffix(".txt"), above) if one.is_file()]
        return others[0] if others and not replaced.is_file() else replaced
    return path.with_suffix(".txt")


class _LabelReader:
    """Reads the text files of images, and notes what is left out."""

    def __init__(self, names: tuple[str, ...], orientation: Orientation, keypoints: int) -> None:
        self.names, self.orientation, self.keypoints = names, orientation, keypoints
        self.problems: list[str] = []
        self._images = 0
        self._without: list[str] = []
        self._folders: dict[Path, Path] = {}
        self._skipped: Counter[str] = Counter()
        self._highest = -1

    def read(self, path: Path, split: str) -> AnnotatedImage:
        """An image with its objects. Raises: InputError, FormatError."""
        name = _name_of(path)
        labels = label_file(path)
        self._images += 1
        self._folders[path.parent] = labels.parent
        try:
            size_hw = read_size(path, orient=self.orientation == "exif")
        except InputError:  # whoever reads its pixels says so
            self.problems.append(f"{path}: the image cannot be read, its objects are left out")
            return AnnotatedImage(path, name, None, (), split)
        if not labels.is_file():
            self._without.append(str(path))
            return AnnotatedImage(path, name, size_hw, (), split)
        lines_read: set[str] = set()
        objects = []
        for number, line in enumerate(read_lines(labels, "label file"), start=1):
            text = " ".join(line.split())
            if not text:
                continue
            where = f"{labels}, line {number}"
            if text in lines_read:
                self.problems.append(f"{where}: it comes twice")
                continue
            lines_read.add(text)
            if (one := self._read_line(text, size_hw, where)) is not None:
                objects.append(one)
        return AnnotatedImage(path, name, size_hw, tuple(objects), split)

    def _read_line(self, text: str, size_hw: tuple[int, int], where: str) -> AnnotatedObject | None:
        _check_number(text, self.names, where)
        index, values = _parse_line(text, where)
        if self.names and index >= len(self.names):
            raise InputError(
                "a class has no name",
                where=where,
                received=f"class {index}",
                allowed=f"0 to {len(self.names) - 1}: {abbreviate(list(self.names))}",
                fix="add the name to data.yaml or classes.txt; classes are counted from 0",
            )
        self._highest = max(self._highest, index)
        label = self.names[index] if self.names else str(index)
        if self.keypoints and len(values) == 4 + self.keypoints:
            self._skipped["keypoints behind a box are not read"] += 1
            values = values[:4]
        elif len(values) == 5:
            self._skipped["a score at the end of a line is not read"] += 1
            values = values[:4]
        if len(values) == 4:
            x, y, width, height = values
            if width < 0 or height < 0:
                self.problems.append(f"{where}: {text[:60]} has a side below 0")
                return None
            shares = np.array([[x - width / 2, y - height / 2], [x + width / 2, y + height / 2]])
        elif len(values) % 2:
            raise _misfit(text, where)
        else:
            shares = np.array(values, np.float64).reshape(-1, 2)
        if shares.size and float(np.abs(shares).max()) > _PIXELS:
            raise InputError(
                "coordinates are pixels, and YOLO's are shares of the image's sides",
                where=where,
                received=text[:80],
                allowed="numbers from 0 to 1",
                fix="divide x and width by the image's width, y and height by its height",
            )
        if shares.min() < -_TOLERANCE or shares.max() > 1 + _TOLERANCE:
            self._skipped["an object reaches beyond its image and is cut there"] += 1
        points = np.clip(shares, 0, 1) * (size_hw[1], size_hw[0])
        box = bounds([points])
        if box[2] <= box[0] or box[3] <= box[1]:
            self.problems.append(f"{where}: {text[:60]} has no area in its image")
            return None
        return AnnotatedObject(label, box, () if len(values) == 4 else (points,))

    def all_names(self, where: Path) -> tuple[str, ...]:
        """The names, or numbers where there are none. Raises: InputError, where no line tells a class either."""
        names = self.names or tuple(str(number) for number in range(self._highest + 1))
        if not names:
            raise InputError(
                "there are neither names of classes nor objects",
                where=where,
                allowed="names in data.yaml, classes.txt or obj.names",
            )
        return names

    def check_labels(self, where: Path) -> None:
        """Raises: InputError, where no image has a text file, and there is no folder for them: they lie elsewhere."""
        folders = [labels for images, labels in self._folders.items() if images != labels and labels.is_dir()]
        if self._images and len(self._without) == self._images and not folders:
            raise InputError(
                "no image has a text file of its objects",
                where=where,
                received=abbreviate([str(label_file(Path(one))) for one in self._without]) + ": not there",
                allowed="labels/a.txt of images/a.jpg, or a.txt beside a.jpg",
            )

    def _find_labels_alone(self) -> list[str]:
        """Text files in `labels` that belong to no image: the images are called otherwise, or are not there."""
        alone: list[str] = []
        for images, labels in self._folders.items():
            if images != labels and labels.is_dir():
                stems = {path.stem for path in list_images(images)}
                files = (path for path in sorted(labels.glob("*.txt")) if path.name not in _NAME_FILES)
                alone += [str(path) for path in files if path.stem not in stems]
        return alone

    def notes(self) -> tuple[str, ...]:
        notes = [f"{count} times: {what}" for what, count in self._skipped.items()]
        if alone := self._find_labels_alone():
            notes.append(f"{len(alone)} text files have no image of their name: {abbreviate(alone)}")
        if self._without:
            notes.append(
                f"{len(self._without)} images have no text file and count as images without objects: "
                f"{abbreviate(self._without)}"
            )
        return tuple(notes)


def _name_of(path: Path) -> str:
    """The path from the last folder `images` on."""
    folders = path.parts[:-1]
    positions = [number for number, name in enumerate(folders) if name == "images"]
    return Path(*path.parts[positions[-1] + 1 :]).as_posix() if positions else path.name


def _parse_line(text: str, where: str) -> tuple[int, list[float]]:
    fields = text.split(" ")
    try:
        values = [float(field) for field in fields]
    except ValueError:
        values = []
    count = len(values) - 1
    usable = count in (4, 5) or count >= 6
    if not usable or not all(map(math.isfinite, values)) or values[0] < 0 or not values[0].is_integer():
        raise _misfit(text, where)
    return int(values[0]), values[1:]


def _check_number(text: str, names: tuple[str, ...], where: str) -> None:
    """Raises: FormatError, where the name of a class stands in the place of its number."""
    name = max((one for one in names if text.startswith(f"{one} ")), key=len, default=None)
    if name is not None and not name.isdecimal():
        raise FormatError(
            "the line is no object of YOLO's format: it has the name of a class in the place of its number",
            where=where,
            received=text[:80],
            allowed=f"{names.index(name)} for {name!r}; classes are numbered from 0 as data.yaml lists them",
        )


def _misfit(text: str, where: str) -> FormatError:
    return FormatError(
        "the line is no object of YOLO's format",
        where=where,
        received=text[:80],
        allowed="class x y w h, or class x y x y x y … of an outline, with blanks between them",
    )


def yolo_lines(
    objects: Sequence[AnnotatedObject], names: Sequence[str], size_hw: tuple[int, int], *, segments: bool
) -> Iterator[str]:
    """A line an object: its outline with `segments`, else its box; shares with six decimals, cut at the image."""
    number = {name: index for index, name in enumerate(names)}
    sides = np.array([size_hw[1], size_hw[0]], np.float64)
    for one in objects:
        outlines = one.find_rings() if segments else ()
        if outlines:
            shares = np.clip(join_outlines(outlines) / sides, 0, 1).reshape(-1)
        else:
            low, high = np.clip(np.array(one.box, np.float64).reshape(2, 2) / sides, 0, 1)
            shares = np.concatenate([(low + high) / 2, high - low])
        yield " ".join([str(number[one.label]), *(f"{share:.6f}" for share in shares.tolist())]) + "\n"
