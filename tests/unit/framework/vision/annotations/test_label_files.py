"""Text files of objects beside images: which files are found."""

from pathlib import Path

import numpy as np

from framework.vision import image
from framework.vision.annotations.label_files import has_lines, read_label_files


def test_folders_behind_links(tmp_path: Path) -> None:
    """An image without its file would be told, and then learnt, as one without objects."""
    image.write(tmp_path / "more/images/a.png", np.zeros((4, 4, 3), np.uint8))
    (tmp_path / "more/labels").mkdir()
    (tmp_path / "more/labels/a.txt").write_text("0 0.5 0.5 1 1\n", encoding="utf-8")
    for kind in ("images", "labels"):
        (tmp_path / "set" / kind).mkdir(parents=True)
        (tmp_path / "set" / kind / "train").symlink_to(tmp_path / "more" / kind, target_is_directory=True)
    images, labels = tmp_path / "set/images", tmp_path / "set/labels"
    problems: list[str] = []
    assert has_lines(labels, lambda line: line.startswith("0 "))
    found = list(read_label_files(images, labels, lambda line: None, problems))
    assert [one.name for one in found] == ["train/a.png"] and found[0].split == "train" and not problems
