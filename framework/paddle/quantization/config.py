"""Which layers of a model are quantised, and how."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.paddle import nn
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.nn import quant
from framework.paddle.nn.layer import Layer
from framework.paddle.quantization.base_quanter import BaseQuanter
from framework.paddle.quantization.factory import QuanterFactory

DEFAULT_QAT_LAYER_MAPPINGS: dict[type[Layer], type[Layer]] = {
    quant.Stub: quant.stub.QuanterStub,
    nn.Linear: quant.qat.QuantedLinear,
    nn.Conv2D: quant.qat.QuantedConv2D,
}
DEFAULT_LEAVES = (nn.ReLU, nn.AvgPool2D)


@dataclass(frozen=True)
class SingleLayerConfig:
    """The factories of one layer's quanters; None: it has none."""

    activation: QuanterFactory | None
    weight: QuanterFactory | None

    def __str__(self) -> str:
        return f"activation: {self.activation}\nweight: {self.weight}"


class QuantConfig:
    """How the layers of a model are quantised.

    A layer takes, in this order: what was set for it or for its full name, for its type, for the layer that it lies
    in, and for all.

    Args:
        activation, weight: For all layers: factories of quanters or observers, or None.
    """

    def __init__(self, activation: QuanterFactory | None, weight: QuanterFactory | None) -> None:
        nothing = activation is None and weight is None
        self._global_config = None if nothing else SingleLayerConfig(activation, weight)
        self._layer2config: dict[Layer, SingleLayerConfig] = {}
        self._prefix2config: dict[str, SingleLayerConfig] = {}
        self._type2config: dict[type[Layer], SingleLayerConfig] = {}
        self._model: Layer | None = None
        self._qat_layer_mapping = dict(DEFAULT_QAT_LAYER_MAPPINGS)
        self._customized_leaves: list[type[Layer]] = []

    def add_layer_config(
        self,
        layer: Layer | list[Layer],
        activation: QuanterFactory | None = None,
        weight: QuanterFactory | None = None,
    ) -> None:
        """For one layer, or several."""
        for one in layer if isinstance(layer, list) else [layer]:
            self.add_name_config(one.full_name(), activation, weight)

    def add_name_config(
        self,
        layer_name: str | list[str],
        activation: QuanterFactory | None = None,
        weight: QuanterFactory | None = None,
    ) -> None:
        """For layers by their full names, such as "linear_0"."""
        for name in [layer_name] if isinstance(layer_name, str) else layer_name:
            self._prefix2config[name] = SingleLayerConfig(activation, weight)

    def add_type_config(
        self,
        layer_type: type[Layer] | list[type[Layer]],
        activation: QuanterFactory | None = None,
        weight: QuanterFactory | None = None,
    ) -> None:
        """For layers of these types."""
        for one in layer_type if isinstance(layer_type, list) else [layer_type]:
            _check_layer_type(one, "add_type_config")
            self._type2config[one] = SingleLayerConfig(activation, weight)

    def add_qat_layer_mapping(self, source: type[Layer], target: type) -> None:
        """Replace layers of type `source` by `target(layer, config)`, of any class.

        Raises:
            AssertionError: `source` is no class of layers, or `target` no class.
        """
        for kind, name, base in ((source, "source", Layer), (target, "target", object)):
            if not (isinstance(kind, type) and issubclass(kind, base)):
                raise AssertionError(
                    f"QuantConfig.add_qat_layer_mapping: {name} must be a subclass of {base.__name__}, "
                    f"received {kind!r}"
                )
        self._qat_layer_mapping[source] = target

    def add_customized_leaf(self, layer_type: type[Layer]) -> None:
        """Observe layers of this type as one: what is in them is left as it is."""
        self._customized_leaves.append(layer_type)

    @property
    def customized_leaves(self) -> list[type[Layer]]:
        """Types that are observed as one layer."""
        return self._customized_leaves

    @property
    def qat_layer_mappings(self) -> dict[type[Layer], type[Layer]]:
        """What stands for which layers."""
        return self._qat_layer_mapping

    @property
    def default_qat_layer_mapping(self) -> dict[type[Layer], type[Layer]]:
        """What stands for which layers, if nothing was added."""
        return DEFAULT_QAT_LAYER_MAPPINGS

    @property
    def global_config(self) -> SingleLayerConfig | None:
        """What holds for all layers."""
        return self._global_config

    def _specify(self, model: Layer) -> None:
        """Work out what holds for each layer of the model."""
        self._model = model
        self._specify_children(model)

    def _specify_children(self, model: Layer) -> None:
        inherited = self._layer2config.get(model, self._global_config)
        for child in model.children():
            by_type = self._type2config.get(type(child), inherited)
            config = self._prefix2config.get(child.full_name(), by_type)
            if config is not None:
                self._layer2config[child] = config
            self._specify_children(child)

    def _get_config_by_layer(self, layer: Layer) -> SingleLayerConfig | None:
        return self._layer2config.get(layer)

    def _is_quantifiable(self, layer: Layer) -> bool:
        return layer in self._layer2config

    def _get_qat_layer(self, layer: Layer) -> Layer:
        """What stands for a layer that is quantifiable and mapped."""
        return self._qat_layer_mapping[type(layer)](layer, self._layer2config[layer])  # type: ignore[arg-type]

    def _need_observe(self, layer: Layer) -> bool:
        config = self._layer2config.get(layer)
        is_leaf = type(layer) in (*DEFAULT_LEAVES, *self._customized_leaves)
        return (
            (is_leaf or not any(True for _ in layer.children()))
            and config is not None
            and config.activation is not None
        )

    def _get_observer(self, layer: Layer) -> BaseQuanter | None:
        config = self._layer2config.get(layer)
        factory = None if config is None else config.activation
        return None if factory is None else factory._instance(layer)

    def details(self) -> str:
        """The layers of the model with what holds for each; before `quantize` what was set."""
        return str(self) if self._model is None else self._details(self._model)

    def _details(self, layer: Layer) -> str:
        rows = list(self._rows(layer))
        inner = "\n  " + "\n  ".join(rows) + "\n" if rows else ""
        return f"{type(layer).__name__}({inner})"

    def _rows(self, layer: Layer) -> Iterator[str]:
        for name, child in layer.named_children():
            if child in self._layer2config:
                text = textwrap.indent(self._details(child), "  ").lstrip()
                yield f"({name}): {text}, {self._layer2config[child]}"

    def __str__(self) -> str:
        text = f"Global config:\n{self._global_config}\n"
        if self._type2config:
            text += f"Layer type config:\n{self._type2config}\n"
        if self._prefix2config:
            text += f"Layer prefix config: \n{self._prefix2config}\n"
        return text


def _check_layer_type(kind: object, where: str) -> None:
    if not (isinstance(kind, type) and issubclass(kind, Layer)):
        raise TypeError(f"QuantConfig.{where}: a subclass of paddle.nn.Layer, received {kind!r}")


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
