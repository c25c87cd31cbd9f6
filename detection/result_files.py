"""One file for all results, which `--save_results` of the tools asks for: COCO's for images, MOT's for video."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from detection.results import DetectionResult
from detection.tracking.mot import mot_line


class CocoFile:
    """A list of COCO's results, each with the image's file name too.

    An image's id is the number that its name is (000000000139.jpg is 139); where that does not tell all `files` apart
    they are numbered from 0.

    Args:
        category_ids: See `DetectionResult.to_coco`.
        name: Of the file.
    """

    head, tail = "[", "\n]\n"

    def __init__(
        self, files: Sequence[str], category_ids: Sequence[int] | None = None, name: str = "bbox.json"
    ) -> None:
        self.name = name
        names = [Path(file).stem for file in files]
        ids = [int(name) for name in names if name.isascii() and name.isdecimal()]
        has_ids = len(set(ids)) == len(files)
        self.image_ids = {file: ids[i] if has_ids else i for i, file in enumerate(files)}
        self.category_ids = category_ids
        self._first = True

    def text(self, result: DetectionResult, number: int) -> str:
        """What to write of one result."""
        records = result.to_coco(self.image_ids[result.source], self.category_ids)
        name = Path(result.source).name
        lines = [json.dumps({**record, "file_name": name}, ensure_ascii=False) for record in records]
        before = "\n" if self._first else ",\n"
        self._first = self._first and not lines
        return before + ",\n".join(lines) if lines else ""


class MotFile:
    """<name of the video>.txt: a line a box; see `mot_line`. Boxes without a track have the number -1, or no line in a
    file of tracks alone, whose numbers programs for MOTChallenge take for one object each."""

    head = tail = ""

    def __init__(self, stem: str, *, classes: bool, tracks_alone: bool = False) -> None:
        """`classes`: whether the lines tell the class."""
        self.name, self.classes, self.tracks_alone = f"{stem}.txt", classes, tracks_alone

    def text(self, result: DetectionResult, number: int) -> str:
        """What to write of the frame of this number, from 0."""
        return "".join(
            mot_line(
                number + 1,
                -1 if box.track_id is None else box.track_id,
                box.bbox,
                box.score,
                box.category_id if self.classes else None,
            )
            for box in result.boxes
            if box.track_id is not None or not self.tracks_alone
        )
