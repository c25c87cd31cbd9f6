"""With what settings a page was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingSettings:
    """Those of the run that gave a page.

    Attributes:
        limit_side, limit_type, max_side: At what size lines were looked for; see `DetSize`.
        thresh, box_thresh, unclip_ratio: How lines were taken from the probability map; see `DBPostprocess`.
        drop_score: Lines whose mean character probability is below it were dropped.
        turns_lines: Whether lines on their heads were looked for.
        prepares_pages: Whether pages that are turned or bent were looked for.
    """

    limit_side: int
    limit_type: str
    max_side: int | None
    thresh: float
    box_thresh: float
    unclip_ratio: float
    drop_score: float
    turns_lines: bool
    prepares_pages: bool
