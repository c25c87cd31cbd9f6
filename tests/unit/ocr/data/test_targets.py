"""The maps that a DB detector is trained on."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.data.targets import make_db_targets

LINE = np.array([[20, 20], [84, 20], [84, 36], [20, 36]], np.float32)
SHRINK = 64 * 16 * (1 - 0.4**2) / 160  # 5.4 pixels on each side


def test_a_line_is_shrunk_and_its_border_is_a_ridge() -> None:
    shrink, mask, threshold, near = make_db_targets([LINE], [True], (64, 128))
    rows, columns = np.nonzero(shrink)
    assert (columns.min(), columns.max()) == pytest.approx((20 + SHRINK, 84 - SHRINK), abs=1)
    assert (rows.min(), rows.max()) == pytest.approx((20 + SHRINK, 36 - SHRINK), abs=1)
    assert mask.all()
    assert threshold[20, 50] == pytest.approx(0.7) and threshold[28, 20] == pytest.approx(0.7)
    assert threshold[20 - 3, 50] == pytest.approx(0.7 - 0.4 * 3 / SHRINK, abs=0.01)
    assert threshold[20 + 3, 50] == pytest.approx(0.7 - 0.4 * 3 / SHRINK, abs=0.01)
    assert threshold[0, 0] == pytest.approx(0.3) and near[0, 0] == 0 and near[28, 50] == 1
    rows, columns = np.nonzero(near)
    assert (rows.min(), columns.max()) == pytest.approx((20 - SHRINK, 84 + SHRINK), abs=1)


@pytest.mark.parametrize(("polygon", "readable"), [(LINE, False), (LINE[:, ::1] * [1, 0.2], True)])
def test_what_cannot_be_read_is_masked(polygon: np.ndarray, readable: bool) -> None:
    shrink, mask, threshold, near = make_db_targets([polygon.astype(np.float32)], [readable], (64, 128))
    assert not shrink.any() and not near.any() and (threshold == np.float32(0.3)).all()
    y = int(polygon[0, 1]) + 1
    assert mask[y, 50] == 0 and mask[60, 100] == 1


def test_regions_over_the_edge_are_cut() -> None:
    shrink, mask, _, near = make_db_targets([LINE - np.float32([40, 0])], [True], (64, 128))
    assert shrink[28, 10] == 1 and near[28, 0] == 1 and mask.all()
    nothing = make_db_targets([LINE + np.float32([500, 0])], [True], (64, 128))
    assert not nothing.shrink.any() and not nothing.threshold_mask.any()


def test_a_page_without_text_has_targets() -> None:
    shrink, mask, threshold, near = make_db_targets([], [], (32, 32))
    assert shrink.dtype == mask.dtype == threshold.dtype == near.dtype == np.float32
    assert not shrink.any() and mask.all() and not near.any()
