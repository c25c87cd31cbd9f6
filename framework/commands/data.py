"""Split a data set, draw its samples, measure them.

oar data split photos data/photos
oar data show -c pp_lcnet_x0_25_clothing -o data.train.dataset.root=data/photos
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar data`; returns the exit status."""
    from framework.workflow import data_commands

    return data_commands.main(argv, "oar data")
