"""Lines at the height that recognisers read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.vision.sample_transforms.apply import GeometricTransform
from framework.vision.warp import Size, Warp
from ocr.text.preprocess import line_width


@register("transform")
@dataclass(frozen=True)
class ResizeLine(GeometricTransform):
    """Scales a line to `height`, its width in proportion; wider lines are squeezed to `max_width`, as the reader does.

    Attributes:
        width_scale: How much wider than in proportion lines become.
        pad: Fill up to `max_width` with 0 on the right: for models of one size.

    Raises:
        ConfigError: a side is smaller than 1, or `width_scale` is not above 0.
    """

    height: int = 48
    max_width: int = 320
    width_scale: float = 1.0
    pad: bool = False

    def __post_init__(self) -> None:
        if self.height < 1 or self.max_width < 1:
            raise ConfigError(
                "a line has a size",
                where="ResizeLine",
                received=f"height {self.height}, max_width {self.max_width}",
                allowed="1 or more",
            )
        if not self.width_scale > 0:
            raise ConfigError(
                "a line has a width",
                where="ResizeLine",
                received=f"width_scale {self.width_scale}",
                allowed="above 0",
            )

    def line_width(self, size_hw: tuple[int, int]) -> int:
        """The columns of an image of this size afterwards."""
        return self.max_width if self.pad else self._filled(size_hw)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        width = self._filled(size_hw)
        warp = Warp.resize(size_hw, (self.height, width))
        if not self.pad or width == self.max_width:
            return warp
        return warp.then(Warp.pad((self.height, width), 0, 0, self.max_width - width, 0))

    def _filled(self, size_hw: Size) -> int:
        return min(line_width(size_hw, self.height, self.width_scale), self.max_width)
