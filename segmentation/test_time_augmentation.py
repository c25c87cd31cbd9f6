"""How an image is given to a segmentation network: at which scales, mirrored, whole or window by window.

One algorithm for the device, where sizes are fixed while tracing, and for the host, which brings images of any size
to a program of one size. Source: Chen et al., "DeepLab" (scales), PaddleSeg's test-time augmentation (logits averaged).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from framework.core.errors import ConfigError
from framework.core.lazy import LazyModule
from framework.vision import image as vision_image

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp

    from framework.nn import functional as F
    from framework.nn.functional import lowering
else:
    F, lowering = LazyModule("framework.nn.functional"), LazyModule("framework.nn.functional.lowering")
    jax = LazyModule("jax")
    jnp = LazyModule("jax.numpy")

Size = tuple[int, int]  # (height, width); jax types symbolic sizes as int too
Forward = Callable[["jax.Array"], "jax.Array"]
Stream = Callable[[Iterable[np.ndarray]], Iterator[np.ndarray]]
_UNROLLED = 64  # classes; a longer program takes longer to compile
_Array = TypeVar("_Array", "jax.Array", np.ndarray)


@dataclass(frozen=True)
class Slide:
    """Windows of `crop_hw` every `stride_hw` pixels; the last of a row and of a column end with the image.

    An image that is smaller than a window is filled up with its edge pixels. Where windows overlap, logits are
    averaged.

    Raises:
        ConfigError: a side is smaller than 1, or the stride leaves gaps.
    """

    crop_hw: tuple[int, int]
    stride_hw: tuple[int, int]

    def __post_init__(self) -> None:
        if not all(1 <= stride <= crop for crop, stride in zip(self.crop_hw, self.stride_hw)):
            raise ConfigError(
                "these windows do not cover an image",
                where="Slide",
                received=f"crop_hw {list(self.crop_hw)}, stride_hw {list(self.stride_hw)}",
                allowed="1 <= stride <= crop, for height and width",
            )

    def corners(self, size_hw: tuple[int, int]) -> list[tuple[int, int]]:
        """(top, left) of each window on an image at least as large as one, row by row."""
        rows, columns = (
            [min(start, side - crop) for start in range(0, side - crop + stride, stride)]
            for side, crop, stride in zip(size_hw, self.crop_hw, self.stride_hw)
        )
        return [(top, left) for top in rows for left in columns]


@dataclass(frozen=True)
class TestTimeAugmentation:
    """Logits are averaged over `scales` and, with `flip`, over each image and its mirror image.

    Attributes:
        scales: Of the image's sides; the logits are brought back to its own size.
        slide: Windows instead of the whole image.
        output: "labels", or "scores": the averaged logits. Export chooses it; leave it at "labels".

    Raises:
        ConfigError: there is no scale, or one is not above 0.
    """

    __test__: ClassVar[bool] = False  # to pytest its name looks like that of a test

    scales: tuple[float, ...] = (1.0,)
    flip: bool = False
    slide: Slide | None = None
    output: Literal["labels", "scores"] = "labels"

    def __post_init__(self) -> None:
        if not self.scales or min(self.scales) <= 0:
            raise ConfigError(
                "scales must be numbers above 0",
                where="TestTimeAugmentation.scales",
                received=list(self.scales),
                allowed="one or more numbers above 0",
            )

    def on_device(self, forward: Forward, images: jax.Array) -> dict[str, jax.Array]:
        """{"labels": [N, H, W] uint8, from 257 classes on uint16} or {"scores": [N, H, W, num_classes] float32}.

        Args:
            forward: Logits [N, h, w, num_classes] of images [N, h, w, C] of any size. Pure.
            images: [N, H, W, C]; sizes may be symbolic unless there is a `slide`.
        """
        scores = self._scores(images, _Device(forward))
        if self.output == "scores":
            return {"scores": scores}
        return {"labels": best_class(scores)}

    def on_host(self, forward: Stream, image: np.ndarray) -> np.ndarray:
        """The scores [H, W, num_classes] float32 of one image [H, W, C].

        Args:
            forward: Logits [h, w, num_classes] of each image [h, w, C], in order; with a `slide` of each window.
        """
        return self._scores(image[None], _Host(forward))[0]

    def _scores(self, images: _Array, steps: _Backend[_Array]) -> _Array:
        size_hw = _size(images)
        total, count = None, 0
        for scale in self.scales:
            scaled = images if scale == 1 else steps.resize(images, _scale(size_hw, scale))
            for mirrored in (False, True) if self.flip else (False,):
                logits = self._logits(scaled[:, :, ::-1] if mirrored else scaled, steps)
                logits = steps.resize(logits[:, :, ::-1] if mirrored else logits, size_hw)
                total, count = logits if total is None else total + logits, count + 1
        assert total is not None
        return total if count == 1 else total / count

    def _logits(self, images: _Array, steps: _Backend[_Array]) -> _Array:
        """Of the images, whole or by windows."""
        if self.slide is None:
            return steps.run(images)
        crop_h, crop_w = self.slide.crop_hw
        height, width = _size(images)
        below, right = max(crop_h - height, 0), max(crop_w - width, 0)
        if below or right:
            images = steps.pad(images, ((0, 0), (0, below), (0, right), (0, 0)), mode="edge")
        size_hw = _size(images)
        corners = self.slide.corners(size_hw)
        windows = [images[:, top : top + crop_h, left : left + crop_w] for top, left in corners]
        total = steps.sum(steps.run_each(windows), corners, size_hw)
        return (total / _hits((crop_h, crop_w), corners, size_hw))[:, :height, :width]


def best_class(scores: jax.Array) -> jax.Array:
    """The index of the greatest of [..., num_classes], the first of equal ones: uint8, from 257 classes on uint16.

    For a CPU it is written class by class: of [512, 1024, 19] in 8 ms, where argmax takes 28 on one core (jax 0.10.2).
    """
    count = scores.shape[-1]
    kind = jnp.uint8 if count <= 256 else jnp.uint16

    def plain(scores: jax.Array) -> jax.Array:
        return scores.argmax(axis=-1).astype(kind)

    def by_class(scores: jax.Array) -> jax.Array:
        best = scores[..., 0]
        labels = jnp.zeros(best.shape, kind)
        for index in range(1, count):
            chosen_scores = scores[..., index]
            better = chosen_scores > best
            best, labels = jnp.where(better, chosen_scores, best), jnp.where(better, kind(index), labels)
        return labels

    return (
        plain(scores) if count > _UNROLLED else lowering.choose(lowering.platform(), by_class, plain, scores)
    )


def _scale(size_hw: Size, scale: float) -> Size:
    """Rounded to whole pixels; symbolic sizes stay products where they can, which models can reason about."""
    exact = Fraction(scale).limit_denominator(1000)
    above, below = exact.numerator, exact.denominator

    def side(size: int) -> int:
        if isinstance(size, int):  # else symbolic
            return max(1, (2 * size * above + below) // (2 * below))
        return size * above // below

    return side(size_hw[0]), side(size_hw[1])


def _size(images: jax.Array | np.ndarray) -> Size:
    return images.shape[1], images.shape[2]


class _Backend(Protocol[_Array]):
    """What device and host write differently; arrays are [N, H, W, C]."""

    def run(self, images: _Array, /) -> _Array:
        """Logits of the whole images."""
        ...

    def run_each(self, windows: list[_Array]) -> Iterable[_Array]:
        """Logits of each window."""
        ...

    @property
    def pad(self) -> Callable[..., _Array]: ...
    def resize(self, x: _Array, size_hw: Size) -> _Array: ...
    def sum(self, tiles: Iterable[_Array], corners: list[tuple[int, int]], size_hw: Size) -> _Array: ...


class _Device:
    def __init__(self, forward: Forward) -> None:
        self.run = forward
        self.pad = jnp.pad

    def run_each(self, windows: list[jax.Array]) -> Iterable[jax.Array]:
        """One after the other: all at once would take the memory of all."""
        return self.run(windows[0])[None] if len(windows) == 1 else jax.lax.map(self.run, jnp.stack(windows))

    def resize(self, x: jax.Array, size_hw: Size) -> jax.Array:
        if size_hw == x.shape[1:3]:
            return x
        return F.interpolate(x.astype(jnp.float32), size=size_hw, mode="bilinear")

    def sum(self, tiles: Iterable[jax.Array], corners: list[tuple[int, int]], size_hw: Size) -> jax.Array:
        total = jnp.zeros(())
        for scores, (top, left) in zip(tiles, corners):
            count, height, width, classes = scores.shape
            if total.ndim == 0:
                total = jnp.zeros((count, *size_hw, classes), jnp.float32)
            total = total.at[:, top : top + height, left : left + width].add(scores)
        return total


class _Host:
    pad = staticmethod(np.pad)

    def __init__(self, forward: Stream) -> None:
        self.forward = forward

    def run(self, images: np.ndarray) -> np.ndarray:
        return next(iter(self.forward([images[0]])))[None]

    def run_each(self, windows: list[np.ndarray]) -> Iterable[np.ndarray]:
        return self.forward(window[0] for window in windows)

    def resize(self, x: np.ndarray, size_hw: Size) -> np.ndarray:
        if size_hw == x.shape[1:3]:
            return x
        return np.stack([resize_channels(one.astype(np.float32, copy=False), size_hw) for one in x])

    def sum(self, tiles: Iterable[np.ndarray], corners: list[tuple[int, int]], size_hw: Size) -> np.ndarray:
        total = np.zeros(())
        for scores, (top, left) in zip(tiles, corners):
            height, width, classes = scores.shape
            if total.ndim == 0:
                total = np.zeros((1, *size_hw, classes), np.float32)
            total[0, top : top + height, left : left + width] += scores
        return total


def _hits(crop_hw: tuple[int, int], corners: list[tuple[int, int]], size_hw: tuple[int, int]) -> np.ndarray:
    """How many windows hold each pixel, [H, W, 1] float32."""
    count = np.zeros((*size_hw, 1), np.float32)
    for top, left in corners:
        count[top : top + crop_hw[0], left : left + crop_hw[1]] += 1
    return count


def resize_channels(x: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """`x` [H, W, C] float32 at `size_hw`, bilinear between pixel centres, for any number of channels."""
    if x.shape[2] <= 4:
        return vision_image.resize(x, size_hw)
    return np.stack(
        [vision_image.resize(one, size_hw) for one in np.ascontiguousarray(x.transpose(2, 0, 1))], -1
    )
