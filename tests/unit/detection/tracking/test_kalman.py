from __future__ import annotations

import numpy as np

from detection.tracking import kalman


def test_boxes_there_and_back():
    boxes = np.array([[10, 20, 30, 60], [0, 0, 1, 1], [-5, -5, 5, 0]], float)
    xyah = kalman.xyxy_to_xyah(boxes)
    assert xyah.tolist() == [[20, 40, 0.5, 40], [0.5, 0.5, 1, 1], [0, -2.5, 2, 5]]
    np.testing.assert_allclose(kalman.xyah_to_xyxy(xyah), boxes)
    assert kalman.xyxy_to_xyah(np.array([[0, 3, 4, 3]], float)).tolist() == [
        [2, 3, 4, 1]
    ]  # no height: one pixel
    assert kalman.xyxy_to_xyah(np.zeros((0, 4))).shape == (0, 4)


def test_a_box_seen_once_is_at_rest():
    means, covariances = kalman.start(np.array([[20.0, 40.0, 0.5, 40.0]]))
    assert means.tolist() == [[20, 40, 0.5, 40, 0, 0, 0, 0]]
    # Deviations: 2 * 40 / 20 = 4 of x, y and h; 10 * 40 / 160 = 2.5 of their velocities; 0.01 and 0.00001 of the ratio
    expected = np.diag([16, 16, 1e-4, 16, 6.25, 6.25, 1e-10, 6.25])
    np.testing.assert_allclose(covariances[0], expected)
    means, covariances = kalman.predict(means, covariances)
    assert means[0, :4].tolist() == [20, 40, 0.5, 40]
    # x: 16 + 6.25 of the motion + (40 / 20)^2 of noise; with its velocity 6.25, whose own is 6.25 + (40 / 160)^2
    assert (covariances[0, 0, 0], covariances[0, 0, 4]) == (26.25, 6.25)
    np.testing.assert_allclose(covariances[0, 4, 4], 6.3125)


def test_an_update_weighs_by_uncertainty():
    means, covariances = kalman.predict(*kalman.start(np.array([[20.0, 40.0, 0.5, 40.0]])))
    means, covariances = kalman.update(means, covariances, np.array([[30.25, 40.0, 0.5, 40.0]]))
    # A measurement has the deviation 40 / 20 = 2, so the gain of x is 26.25 / (26.25 + 4), that of its velocity
    # 6.25 / 30.25
    np.testing.assert_allclose(means[0, 0], 20 + 10.25 * 26.25 / 30.25)
    np.testing.assert_allclose(means[0, 4], 10.25 * 6.25 / 30.25)
    np.testing.assert_allclose(covariances[0, 0, 0], 26.25 - 26.25**2 / 30.25)
    np.testing.assert_allclose(covariances, covariances.transpose(0, 2, 1), atol=1e-12)
    assert means[0, 1] == 40 and means[0, 5] == 0


def test_the_velocity_is_learned_for_each_track_by_itself():
    means, covariances = kalman.start(np.array([[0, 50, 1.0, 40], [200, 50, 1.0, 40]], float))
    for frame in range(1, 30):
        means, covariances = kalman.predict(means, covariances)
        seen = np.array([[4 * frame, 50, 1.0, 40], [200 - 2 * frame, 50, 1.0, 40]])
        means, covariances = kalman.update(means, covariances, seen)
    np.testing.assert_allclose(means[:, 4], [4, -2], atol=0.02)
    ahead, _ = kalman.predict(means, covariances)
    np.testing.assert_allclose(ahead[:, 0], [120, 140], atol=0.3)
    assert (np.linalg.eigvalsh(covariances) > 0).all()
