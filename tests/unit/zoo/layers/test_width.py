import pytest

from zoo.layers.variants import scaled_width


@pytest.mark.parametrize(
    ("channels", "scale", "multiple", "want"),
    [
        (16, 0.5, 8, 8),
        (24, 0.5, 8, 16),  # 12 lies between 8 and 16: half rounds up
        (16, 0.35, 8, 8),  # at least one multiple
        (88, 0.35, 8, 32),  # 30.8
        (40, 0.35, 8, 16),  # 14
        (240, 0.35, 8, 88),  # 84 rounds up
        (19, 1.0, 16, 32),  # 16 would be less than nine tenths of 19
        (17, 1.0, 16, 16),
        (256, 0.95, 16, 240),  # 243.2
        (512, 0.95, 16, 480),  # 486.4
    ],
)
def test_scaled_width(channels: int, scale: float, multiple: int, want: int) -> None:
    assert scaled_width(channels, scale, multiple) == want
