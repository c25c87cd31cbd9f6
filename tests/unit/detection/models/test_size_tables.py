"""What the size tables of all detectors and pose models say of the published networks."""

from __future__ import annotations

from typing import Any

import pytest

from detection.models import (
    dino,
    higher_hrnet,
    picodet,
    picodet_esnet,
    pp_yoloe,
    rt_detr,
    top_down_hrnet,
    yolox,
)
from framework.config import build

TABLES = (
    (dino, dino.DINOConfig),
    (higher_hrnet, higher_hrnet.HigherHRNetConfig),
    (picodet, picodet.PicoDetConfig),
    (picodet_esnet, picodet_esnet.PicoDetESNetConfig),
    (pp_yoloe, pp_yoloe.PPYOLOEConfig),
    (rt_detr, rt_detr.RTDETRConfig),
    (top_down_hrnet, top_down_hrnet.TopDownHRNetConfig),
    (yolox, yolox.YOLOXConfig),
)
ROWS = [(config(variant), size) for table, config in TABLES for variant, size in table.VARIANTS.items()]


@pytest.mark.parametrize(("config", "size"), ROWS, ids=[f"{type(c).__name__}-{c.variant}" for c, _ in ROWS])
def test_published_counts(config: Any, size: Any) -> None:
    model = build(config)
    assert sum(parameter.size for parameter in model.parameters()) == size.params
    assert "entries" not in size._fields or len(model.state_shapes()) == size.entries
