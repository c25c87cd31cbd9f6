"""Reference outputs of STDC1 and STDC2, from PaddleSeg.

    python tools/golden/stdc.py        needs: paddlepaddle 2.6, paddleseg

As tools/golden/hrnet.py does; written to tests/golden/data/stdc/<variant>.npz. An odd size lets the borders speak.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hrnet import image, save
from paddleseg.models.backbones.stdcnet import STDC1, STDC2

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "stdc"


def main() -> None:
    for variant, build, blocks in (("stdc1", STDC1, (2, 2, 2)), ("stdc2", STDC2, (4, 5, 3))):
        ends = np.cumsum([1, 1, *blocks]) - 1
        model: Any = build()
        watched = tuple(f"features.{end}" for end in ends)
        save(model, image((65, 98)), model, watched, OUT / f"{variant}.npz")


if __name__ == "__main__":
    main()
