"""Convolutions as layers: the constructors, weights and first values of the core's."""

from __future__ import annotations

import functools
from typing import Any

from framework import nn as core
from framework.core.axes import per_axis
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.errors import AssertedError, DivisorError, ShapeError, require
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.faces import ParametricFace, parametric_face
from framework.paddle.nn.functional.layout import is_last


class _Conv(ParametricFace):
    """Settings with a number for each axis, how they print, and the call after padding that is not zeros."""

    _takes_name, _own_forward = False, True
    output_padding: Any = 0
    _padding_mode: str = "zeros"

    def _settled(self, settings: dict[str, Any]) -> dict[str, object]:
        where, padding, mode = type(self).__name__, settings["padding"], settings.get("padding_mode", "zeros")
        channels, groups, attr = (settings[name] for name in ("in_channels", "groups", "weight_attr"))
        axes = int(self._row.function.__name__[4])
        kernel = per_axis(settings["kernel_size"], axes, "kernel_size")
        sizes = (channels, settings["out_channels"], *kernel)
        require(min(sizes) > 0, "channels and kernel_size are numbers from 1", where, sizes, AssertedError)
        require(groups > 0, "groups is a number from 1", where, groups, DivisorError)
        if channels % groups or attr is False:
            raise ShapeError(
                f"{where}: channels divide into groups, and there is a weight",
                received=f"{channels} channels, {groups} groups, weight_attr={attr}",
                allowed="a multiple of groups, and another weight_attr than False",
            )
        if mode != "zeros" and not isinstance(padding, int):
            raise TypeError(f"{where}: padding_mode {mode} takes one number as padding")
        self._channel_dim = axes + 1 if is_last(settings["data_format"], where, axes) else 1
        self._edges = [padding] * (2 * axes) if mode != "zeros" else []
        for name in ("stride", "dilation", "kernel_size"):
            settings[name] = list(per_axis(settings[name], axes, name))
        return settings

    def forward(self, x: Tensor) -> Tensor:
        padding = self._padding
        if self._edges:
            x, padding = F.pad(x, self._edges, self._padding_mode, 0.0, self._data_format), 0
        settings = (self._stride, padding, self._dilation, self._groups, self._data_format)
        return self._row.function(x, self.weight, self.bias, *settings)

    def extra_repr(self) -> str:
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        usual = [1] * len(self._kernel_size)
        for name, value, default in (
            ("stride", self._stride, usual),
            ("padding", self._padding, 0),
            ("padding_mode", self._padding_mode, "zeros"),
            ("output_padding", self.output_padding, 0),
            ("dilation", self._dilation, usual),
            ("groups", self._groups, 1),
        ):
            if value != default:
                text += f", {name}={value}"
        return f"{text}, data_format={self._data_format}"


class _ConvTranspose(_Conv):
    """The call with a size of the output."""

    def forward(self, x: Tensor, output_size: Integers | None = None) -> Tensor:
        return self._row.function(
            x,
            self.weight,
            self.bias,
            stride=self._stride,
            padding=self._padding,
            output_padding=0 if output_size is not None else self.output_padding,
            dilation=self._dilation,
            groups=self._groups,
            output_size=output_size,
            data_format=self._data_format,
        )


_ATTRIBUTES = {"weight_attr": "_param_attr", "output_padding": "output_padding"}
_face = functools.partial(parametric_face, module=__name__, attributes=_ATTRIBUTES)

Conv1D = _face(core.Conv1D, F.conv1d, _Conv)
Conv2D = _face(core.Conv2D, F.conv2d, _Conv)
Conv3D = _face(core.Conv3D, F.conv3d, _Conv)
Conv1DTranspose = _face(core.Conv1DTranspose, F.conv1d_transpose, _ConvTranspose)
Conv2DTranspose = _face(core.Conv2DTranspose, F.conv2d_transpose, _ConvTranspose)
Conv3DTranspose = _face(core.Conv3DTranspose, F.conv3d_transpose, _ConvTranspose)
