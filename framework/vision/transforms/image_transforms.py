"""paddle.vision.transforms' classes: callables of one image, an array [H, W, C] or a PIL image, or a tuple.

    transform = Compose([Resize(256), CenterCrop(224), ToTensor(), Normalize(mean=[0.5] * 3, std=[0.5] * 3)])
    pixels = transform(image)  # [224, 224, 3]: channels-last, where Paddle's default is [3, 224, 224]

What is random comes from `framework.core.host_rng`: after `framework.seed(s)` a program draws the same again, and in a
loader a sample draws the same whatever the number of workers. A config's transforms of Samples, which also move boxes,
masks and keypoints, have some of the same names and other arguments; they are in `framework.vision.sample_transforms`.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from framework.core.errors import ConfigError, SettingTypeError, ShapeError
from framework.core.host_rng import host_rng
from framework.vision.transforms import functional as F
from framework.vision.transforms.array_backend import Color
from framework.vision.transforms.functional import ImageLike

Keys = Sequence[str] | None
Range = float | Sequence[float]
# By the transform's id: what `_get_params` gave for the call that is running here, in this thread.
_params: contextvars.ContextVar[Mapping[int, object]] = contextvars.ContextVar("oar_transform_params")


class Compose:
    """Transforms one after another; an error says in which of them it came up."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, data: Any) -> Any:
        for transform in self.transforms:
            try:
                data = transform(data)
            except Exception as error:
                error.add_note(f"in the transform {transform!r} of Compose")
                raise
        return data

    def __repr__(self) -> str:
        return "\n".join(["Compose(", *(f"    {transform!r}" for transform in self.transforms), ")"])


class BaseTransform:
    """The base of one's own transforms: give it `_apply_image`, and `_apply_<key>` for other kinds of input.

    A call takes one input or a tuple. `keys` say what each is, ("image",) where they are None; what `_get_params` makes
    of the tuple is `self.params` while the inputs go through their `_apply_<key>`. Inputs beyond the keys stay as they
    are.

    Raises:
        ConfigError: there is no `_apply_<key>` for a key.
    """

    def __init__(self, keys: Keys = None) -> None:
        self.keys: Sequence[str] = ("image",) if keys is None else keys
        is_sequence = isinstance(self.keys, Sequence) and not isinstance(keys, str)
        for key in self.keys if is_sequence else ("name",):
            if not is_sequence or self._get_apply(key) is None:
                raise ConfigError(
                    "this transform takes no such input",
                    where=f"{type(self).__name__}.keys",
                    received=repr(keys),
                    allowed="a sequence of names, each with a method _apply_<name>",
                    fix=f"define _apply_{key}(self, value) in a subclass",
                )

    @property
    def params(self) -> Any:
        """What `_get_params` gave for the call that is running; None outside of one."""
        return _params.get({}).get(id(self))

    def _get_params(self, inputs: tuple[object, ...]) -> object:
        return None

    def _get_apply(self, key: str) -> Callable[[Any], Any] | None:
        return getattr(self, f"_apply_{key}", None)

    def __call__(self, inputs: Any) -> Any:
        values = inputs if isinstance(inputs, tuple) else (inputs,)
        token = _params.set({**_params.get({}), id(self): self._get_params(values)})
        try:
            outputs = [
                value if (apply := self._get_apply(key)) is None else apply(value)
                for key, value in zip(self.keys, values)
            ]
        finally:
            _params.reset(token)
        outputs.extend(values[len(self.keys) :])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if name != "keys")
        return f"{type(self).__name__}({fields})"


class ToTensor(BaseTransform):
    """An array of float32 [H, W, C], bytes divided by 255; with `data_format` "CHW" [C, H, W], Paddle's default."""

    def __init__(self, data_format: str = "HWC", keys: Keys = None) -> None:
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, img: ImageLike) -> np.ndarray:
        return F.to_tensor(img, self.data_format)


class Resize(BaseTransform):
    """Scales to `size` (height, width), or the short side to one number."""

    def __init__(self, size: int | Sequence[int], interpolation: str = "bilinear", keys: Keys = None) -> None:
        super().__init__(keys)
        if not isinstance(size, int):
            F.check_pair(size, "Resize.size")
        self.size, self.interpolation = size, interpolation

    def _apply_image(self, img: ImageLike) -> ImageLike:
        return F.resize(img, self.size, self.interpolation)


class CenterCrop(BaseTransform):
    """Cuts `size` (height, width), or a square, out of the middle."""

    def __init__(self, size: int | Sequence[int], keys: Keys = None) -> None:
        super().__init__(keys)
        self.size = F.check_pair(size, "CenterCrop.size")

    def _apply_image(self, img: ImageLike) -> ImageLike:
        return F.center_crop(img, self.size)


class RandomCrop(BaseTransform):
    """Cuts `size` out at a random place, of the image with `padding` as of `pad` around it.

    With `pad_if_needed` a side that is too short is padded on both ends by what it lacks.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Color = 0,
        padding_mode: str = "constant",
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.size = F.check_pair(size, "RandomCrop.size")
        if padding is not None:
            F.expand_borders(padding)
        self.padding, self.pad_if_needed, self.fill, self.padding_mode = (
            padding,
            pad_if_needed,
            fill,
            padding_mode,
        )

    def _apply_image(self, img: ImageLike) -> ImageLike:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        lack_h, lack_w = self._lack(img, self.size)
        if self.pad_if_needed and lack_w > 0:
            img = F.pad(img, (lack_w, 0), self.fill, self.padding_mode)
        if self.pad_if_needed and lack_h > 0:
            img = F.pad(img, (0, lack_h), self.fill, self.padding_mode)
        return F.crop(img, *self._get_param(img, self.size))

    def _get_param(self, img: ImageLike, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a part that is drawn: programs call it to cut an image and its labels alike.

        Raises:
            ShapeError: the image is smaller.
        """
        lack_h, lack_w = self._lack(img, output_size)
        if lack_h > 0 or lack_w > 0:
            raise ShapeError(
                "the image is smaller than the part that is to be cut out",
                where="RandomCrop",
                received=F.image_size(img),
                allowed=f"at least {tuple(output_size)}",
                fix="give pad_if_needed=True, or scale the image first",
            )
        rng = host_rng()
        top, left = int(rng.integers(-lack_h + 1)), int(rng.integers(-lack_w + 1))
        return top, left, output_size[0], output_size[1]

    def _lack(self, img: ImageLike, output_size: Sequence[int]) -> tuple[int, int]:
        height, width = F.image_size(F.check_image(img, "RandomCrop"))
        return output_size[0] - height, output_size[1] - width


class RandomResizedCrop(BaseTransform):
    """Cuts out a random part, with a share of the area from `scale` and width / height from `ratio`, and scales it.

    After ten parts that did not fit it is the middle, with the nearest possible ratio.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4, 4.0 / 3),
        interpolation: str = "bilinear",
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.size = F.check_pair(size, "RandomResizedCrop.size")
        self.scale = check_range(scale, "RandomResizedCrop.scale", 0.0)
        self.ratio = check_range(ratio, "RandomResizedCrop.ratio", 0.0)
        self.interpolation = interpolation

    def _apply_image(self, img: ImageLike) -> ImageLike:
        part = self._draw(*F.image_size(F.check_image(img, "RandomResizedCrop")))
        return F.resize(F.crop(img, *part), self.size, self.interpolation)

    def _draw(self, height: int, width: int) -> tuple[int, int, int, int]:
        """(top, left, height, width)."""
        rng = host_rng()
        for _ in range(10):
            area = rng.uniform(*self.scale) * height * width
            ratio = math.exp(rng.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < h <= height and 0 < w <= width:
                return int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1)), h, w
        ratio = min(max(width / height, self.ratio[0]), self.ratio[1])
        h, w = min(height, max(1, round(width / ratio))), min(width, max(1, round(height * ratio)))
        return (height - h) // 2, (width - w) // 2, h, w


class _RandomFlip(BaseTransform):
    def __init__(self, prob: float = 0.5, keys: Keys = None) -> None:
        super().__init__(keys)
        self.prob = check_probability(prob, f"{type(self).__name__}.prob")


class RandomHorizontalFlip(_RandomFlip):
    """Exchanges left and right with probability `prob`."""

    def _apply_image(self, img: ImageLike) -> ImageLike:
        return F.hflip(img) if host_rng().random() < self.prob else img


class RandomVerticalFlip(_RandomFlip):
    """Exchanges top and bottom with probability `prob`."""

    def _apply_image(self, img: ImageLike) -> ImageLike:
        return F.vflip(img) if host_rng().random() < self.prob else img


class Normalize(BaseTransform):
    """(img - mean) / std, a number for each channel or one for all; `data_format` "CHW" is Paddle's default.

    Mean and std are in the image's units: 0 to 255 before `ToTensor`, 0 to 1 after it.
    """

    def __init__(
        self,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        data_format: str = "HWC",
        to_rgb: bool = False,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.mean, self.std, self.data_format, self.to_rgb = mean, std, data_format, to_rgb

    def _apply_image(self, img: ImageLike) -> np.ndarray:
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(BaseTransform):
    """The axes [H, W, C] in another order: by default channels first."""

    def __init__(self, order: Sequence[int] = (2, 0, 1), keys: Keys = None) -> None:
        super().__init__(keys)
        if sorted(axis % 3 if -3 <= axis < 3 else axis for axis in order) != [0, 1, 2]:
            raise ConfigError(
                "order must name each of three axes once",
                where="Transpose.order",
                received=order,
                allowed="each of 0, 1 and 2 once",
            )
        self.order = tuple(order)

    def _apply_image(self, img: ImageLike) -> np.ndarray:
        values = np.asarray(F.check_image(img, "Transpose"))
        return (values[..., None] if values.ndim == 2 else values).transpose(self.order)


class _RandomFactor(BaseTransform):
    """Changes an image by a random factor from the range that `value` stands for."""

    _centre, _bounds = 1.0, (0.0, float("inf"))
    _change: Callable[[ImageLike, float], ImageLike]

    def __init__(self, value: Range, keys: Keys = None) -> None:
        super().__init__(keys)
        where = f"{type(self).__name__}.value"
        if isinstance(value, int | float):
            low, high = self._bounds
            if not 0 <= value < float("inf"):
                raise ConfigError(
                    "a range about the unchanged image is no negative number", where=where, received=value
                )
            value = (max(low, self._centre - value), min(high, self._centre + value))
        self.value = check_range(value, where, *self._bounds)

    def _apply_image(self, img: ImageLike) -> ImageLike:
        if self.value[0] == self.value[1] == self._centre:
            return img
        return type(self)._change(img, host_rng().uniform(*self.value))


class BrightnessTransform(_RandomFactor):
    """`adjust_brightness` by a random factor: a range, or a number for (max(0, 1 - number), 1 + number)."""

    _change = staticmethod(F.adjust_brightness)


class ContrastTransform(_RandomFactor):
    """`adjust_contrast` by a random factor: a range, or a number for (max(0, 1 - number), 1 + number)."""

    _change = staticmethod(F.adjust_contrast)


class SaturationTransform(_RandomFactor):
    """`adjust_saturation` by a random factor: a range, or a number for (max(0, 1 - number), 1 + number)."""

    _change = staticmethod(F.adjust_saturation)


class HueTransform(_RandomFactor):
    """`adjust_hue` by a random share of the circle: a range within -0.5 to 0.5, or a number for (-number, number)."""

    _centre, _bounds = 0.0, (-0.5, 0.5)
    _change = staticmethod(F.adjust_hue)


class ColorJitter(BaseTransform):
    """Changes brightness, contrast, saturation and hue by random factors, in random order; ranges as of each alone."""

    def __init__(
        self,
        brightness: Range = 0,
        contrast: Range = 0,
        saturation: Range = 0,
        hue: Range = 0,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.steps: tuple[BaseTransform, ...] = (
            BrightnessTransform(brightness),
            ContrastTransform(contrast),
            SaturationTransform(saturation),
            HueTransform(hue),
        )

    def _apply_image(self, img: ImageLike) -> ImageLike:
        for index in host_rng().permutation(len(self.steps)):
            img = self.steps[index](img)
        return img


class Grayscale(BaseTransform):
    """The grey image in one channel, or three equal ones."""

    def __init__(self, num_output_channels: int = 1, keys: Keys = None) -> None:
        super().__init__(keys)
        self.num_output_channels = num_output_channels

    def _apply_image(self, img: ImageLike) -> ImageLike:
        return F.to_grayscale(img, self.num_output_channels)


class Pad(BaseTransform):
    """Adds a border, as `pad`."""

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: Color = 0,
        padding_mode: str = "constant",
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        F.expand_borders(padding)
        F.check_choice(padding_mode, F.PADDING_MODES, "Pad.padding_mode")
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def _apply_image(self, img: ImageLike) -> ImageLike:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class RandomRotation(BaseTransform):
    """`rotate` by a random angle: a range of degrees, anticlockwise, or a number for (-number, number)."""

    def __init__(
        self,
        degrees: Range,
        interpolation: str = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Color = 0,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.degrees = check_angles(degrees, "RandomRotation.degrees")
        if center is not None:
            F.check_numbers(center, 2, "RandomRotation.center")
        self.interpolation, self.expand, self.center, self.fill = interpolation, expand, center, fill

    def _apply_image(self, img: ImageLike) -> ImageLike:
        angle = host_rng().uniform(*self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)


class RandomAffine(BaseTransform):
    """`affine` by random numbers.

    `degrees` and `shear` are ranges, or numbers for (-number, number); a `shear` of four has a range for x and one for
    y. `translate` (x, y) are the greatest shifts as shares of width and height, `scale` is a range of factors.
    """

    def __init__(
        self,
        degrees: Range,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Range | None = None,
        interpolation: str = "nearest",
        fill: Color | None = 0,
        center: Sequence[float] | None = None,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.degrees = check_angles(degrees, "RandomAffine.degrees")
        self.translate = (0.0, 0.0)
        if translate is not None:
            x, y = F.check_numbers(translate, 2, "RandomAffine.translate")
            self.translate = (
                check_probability(x, "RandomAffine.translate"),
                check_probability(y, "RandomAffine.translate"),
            )
        self.scale = check_range((1.0, 1.0) if scale is None else scale, "RandomAffine.scale", 1e-6)
        pair, other = (0.0, 0.0), (0.0, 0.0)
        if isinstance(shear, Sequence) and len(shear) == 4:
            pair, other = (check_angles(part, "RandomAffine.shear") for part in (shear[:2], shear[2:]))
        elif shear is not None:
            pair = check_angles(shear, "RandomAffine.shear")
        self.shear = (pair, other)
        F.check_choice(interpolation, ("nearest", "bilinear", "bicubic"), "RandomAffine.interpolation")
        if center is not None:
            F.check_numbers(center, 2, "RandomAffine.center")
        self.interpolation, self.center = interpolation, center
        self.fill = 0 if fill is None else fill

    def _apply_image(self, img: ImageLike) -> ImageLike:
        rng, (height, width) = host_rng(), F.image_size(F.check_image(img, "RandomAffine"))
        angle = rng.uniform(*self.degrees)
        x, y = self.translate[0] * width, self.translate[1] * height
        shift = (int(rng.uniform(-x, x)), int(rng.uniform(-y, y)))
        scale = rng.uniform(*self.scale)
        shear = [rng.uniform(*part) for part in self.shear]
        return F.affine(img, angle, shift, scale, shear, self.interpolation, self.fill, self.center)


class RandomPerspective(BaseTransform):
    """`perspective` with probability `prob`; corners move inwards by up to `distortion_scale` of half a side."""

    def __init__(
        self,
        prob: float = 0.5,
        distortion_scale: float = 0.5,
        interpolation: str = "nearest",
        fill: Color = 0,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.prob = check_probability(prob, "RandomPerspective.prob")
        self.distortion_scale = check_probability(distortion_scale, "RandomPerspective.distortion_scale")
        F.check_choice(interpolation, ("nearest", "bilinear", "bicubic"), "RandomPerspective.interpolation")
        self.interpolation, self.fill = interpolation, fill

    def get_params(
        self, width: int, height: int, distortion_scale: float
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The corners and where they go, top left, top right, bottom right, bottom left, as (x, y)."""
        rng = host_rng()
        reach_x, reach_y = (int(distortion_scale * (side // 2)) for side in (width, height))

        def near(reach: int) -> int:
            return int(rng.uniform(0, reach + 1))

        def far(side: int, reach: int) -> int:
            return int(rng.uniform(side - reach - 1, side))

        end = [
            [near(reach_x), near(reach_y)],
            [far(width, reach_x), near(reach_y)],
            [far(width, reach_x), far(height, reach_y)],
            [near(reach_x), far(height, reach_y)],
        ]
        start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return start, end

    def _apply_image(self, img: ImageLike) -> ImageLike:
        height, width = F.image_size(F.check_image(img, "RandomPerspective"))
        if host_rng().random() >= self.prob:
            return img
        start, end = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, start, end, self.interpolation, self.fill)


class RandomErasing(BaseTransform):
    """Paints over a random rectangle with probability `prob`.

    It has a share of the area from `scale` and height / width from `ratio`; after ten that did not fit nothing is
    painted. `value` is a number, one a channel, or "random": any level of an integer image, normal noise in others.
    """

    def __init__(
        self,
        prob: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
        inplace: bool = False,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.prob = check_probability(prob, "RandomErasing.prob")
        self.scale = check_range(scale, "RandomErasing.scale", 0, 1)
        self.ratio = check_range(ratio, "RandomErasing.ratio", 1e-6)
        if isinstance(value, str):
            F.check_choice(value, ("random",), "RandomErasing.value")
        self.value, self.inplace = value, inplace

    def _apply_image(self, img: ImageLike) -> ImageLike:
        img, rng = F.check_image(img, "RandomErasing"), host_rng()
        if rng.random() >= self.prob:
            return img
        height, width = F.image_size(img)
        for _ in range(10):
            area = rng.uniform(*self.scale) * height * width
            ratio = math.exp(rng.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < h < height and 0 < w < width:
                top, left = int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1))
                return F.erase(img, top, left, h, w, self._paint(img, h, w), self.inplace)
        return img

    def _paint(self, img: ImageLike, h: int, w: int) -> np.ndarray:
        if not isinstance(self.value, str):
            return np.asarray(self.value)
        pixel, dtype = F.describe_pixels(img)
        if dtype.kind in "iu":
            return host_rng().integers(0, np.iinfo(dtype).max, (h, w, *pixel), endpoint=True)
        return host_rng().standard_normal((h, w, *pixel))


def check_range(
    value: Range, where: str, low: float = float("-inf"), high: float = float("inf")
) -> tuple[float, float]:
    """(least, most), both from `low` to `high`. Raises: ConfigError; SettingTypeError where it is no two numbers."""
    kind: type[ConfigError] = ConfigError
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        kind = SettingTypeError
    elif low <= value[0] <= value[1] <= high:
        return float(value[0]), float(value[1])
    raise kind(
        "the range must be two ascending numbers",
        where=where,
        received=value,
        allowed=f"(least, most) with {low} <= least <= most <= {high}",
    )


def check_angles(value: Range, where: str) -> tuple[float, float]:
    """(least, most) in degrees; a number >= 0 stands for (-number, number). Raises: ConfigError."""
    return check_range((-value, value) if isinstance(value, int | float) else value, where)


def check_probability(value: float, where: str) -> float:
    """Raises: ConfigError, where the value is not from 0 to 1."""
    if not 0 <= value <= 1:
        raise ConfigError("the value is out of range", where=where, received=value, allowed="0 to 1")
    return value
