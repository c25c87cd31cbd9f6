"""Sizes of decoders, and config.json of such models both ways. A new family is one file in zoo/decoder; everything that
lists families asks the registry.

Reference: configuration files of transformers 5
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from framework.config import available, find
from framework.core.errors import ConfigError, did_you_mean
from framework.interop.weights.model_folder import CONFIG, is_model_folder, read_settings
from framework.nn.adapters import LoRA
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.rope import RopeOptions, read_rope, write_rope

if TYPE_CHECKING:
    from zoo.layers.decoder_weights import AnyDecoder


@dataclass(frozen=True)
class DecoderSize:
    """What a variant says. Each entry can be set in the config as well.

    Attributes:
        num_kv_heads: Heads of keys and values, which divide `num_heads`; None: as many.
        head_dim: None: hidden_size / num_heads.
        max_positions: The longest text that the model was made for.
        activation: Of the feed-forward part, a key of zoo.layers.hidden_activations.
        tie_embeddings: The word embeddings score the next token.
        attention_bias, output_bias, mlp_bias: Whether q, k and v, the attention's output and the feed-forward part have
            biases.
        window: How many tokens a layer of `windowed` sees, itself included; None: all before it.
        windowed: Of each layer, whether `window` holds there; (): in all, where there is one.
        init_std: The deviation that weights start with.
        bos_id, eos_ids, pad_id: Tokens that begin and end texts, and that pad; -1: none.
        params: Published number of values, tied ones counted once; of a row of a table, not of a model.
    """

    vocab_size: int = 32000
    hidden_size: int = 4096
    num_layers: int = 32
    num_heads: int = 32
    intermediate_size: int = 11008
    num_kv_heads: int | None = None
    head_dim: int | None = None
    max_positions: int = 2048
    epsilon: float = 1e-6
    activation: str = "silu"
    tie_embeddings: bool = False
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    window: int | None = None
    windowed: tuple[bool, ...] = ()
    rope: RopeOptions = field(default_factory=RopeOptions)
    init_std: float = 0.02
    bos_id: int = -1
    eos_ids: tuple[int, ...] = ()
    pad_id: int = -1
    params: int | None = None

    @property
    def kv_heads(self) -> int:
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    @property
    def longest_text(self) -> int:
        """Tokens of a text, at most: `max_positions`, or more where `rope` is stretched for longer ones."""
        return max(self.max_positions, self.rope.stretched(self.max_positions))

    @property
    def head_width(self) -> int:
        return self.hidden_size // self.num_heads if self.head_dim is None else self.head_dim

    def window_of(self, layer: int) -> int | None:
        """How many tokens this layer sees; None: all before."""
        return self.window if not self.windowed or self.windowed[layer] else None


# Keys of config.json by entries of DecoderSize. The first one is written; those behind it are read where it is missing.
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "num_layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "num_heads": ("num_attention_heads", "n_head", "num_heads"),
    "num_kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "intermediate_size": ("intermediate_size",),
    "max_positions": ("max_position_embeddings", "n_positions"),
    "epsilon": ("rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"),
    "activation": ("hidden_act", "hidden_activation", "activation_function"),
    "tie_embeddings": ("tie_word_embeddings",),
    "window": ("sliding_window",),
    "init_std": ("initializer_range",),
}
_TOKENS = {"bos_id": "bos_token_id", "pad_id": "pad_token_id"}


@dataclass(frozen=True)
class DecoderConfig:
    """A row of `variants`, or a folder with the config.json of such a model. What is not None replaces an entry of it
    (see DecoderSize)."""

    variants: ClassVar[Mapping[str, DecoderSize]]
    """The module's size table"""
    model_types: ClassVar[tuple[str, ...]]
    """Upstream's, in config.json; the first one is written"""
    architecture: ClassVar[str]
    """The class of transformers, `architectures` of config.json"""
    size_type: ClassVar[type[DecoderSize]] = DecoderSize
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = SETTINGS
    defaults: ClassVar[Mapping[str, object]] = {}
    """Entries that upstream takes where config.json says nothing, where they are not those of `size_type`"""

    variant: str = ""
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    intermediate_size: int | None = None
    num_kv_heads: int | None = None
    head_dim: int | None = None
    max_positions: int | None = None
    epsilon: float | None = None
    activation: str | None = None
    tie_embeddings: bool | None = None
    attention_bias: bool | None = None
    output_bias: bool | None = None
    mlp_bias: bool | None = None
    window: int | None = None
    windowed: tuple[bool, ...] | None = None
    rope: RopeOptions | None = None
    init_std: float | None = None
    bos_id: int | None = None
    eos_ids: tuple[int, ...] | None = None
    pad_id: int | None = None
    dropout: float = 0.0
    """Of the attention's weights, in training"""
    adapter: LoRA | None = None
    """Low-rank matrices beside the weights, which alone are trained"""

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        """Entries of `size_type` that a config.json of this family says; families add theirs."""
        entries: dict[str, object] = {}
        for ours, names in cls.settings.items():
            key = next((name for name in names if settings.get(name) is not None), None)
            if key is not None:
                entries[ours] = _typed(
                    settings[key], getattr(cls.size_type, ours, None), ours, f"{where}: {key}"
                )
        for ours, key in _TOKENS.items():
            if isinstance(settings.get(key), int):
                entries[ours] = settings[key]
        ends = settings.get("eos_token_id")
        if ends is not None:
            entries["eos_ids"] = tuple(ends) if isinstance(ends, list) else (ends,)
        entries["rope"] = read_rope(settings, where, _theta(cls))
        return entries

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        """What `read_entries` reads, of a size; families add theirs."""
        result: dict[str, object] = {names[0]: getattr(size, ours) for ours, names in cls.settings.items()}
        result |= {"num_key_value_heads": size.kv_heads, "head_dim": size.head_width}
        result |= {key: value for ours, key in _TOKENS.items() if (value := getattr(size, ours)) >= 0}
        if size.eos_ids:
            result["eos_token_id"] = size.eos_ids[0] if len(size.eos_ids) == 1 else list(size.eos_ids)
        result["rope_parameters"] = write_rope(size.rope)
        return result

    @classmethod
    def from_pretrained_config(cls, settings: Mapping[str, object], where: str = CONFIG) -> Self:
        """The config that a config.json of this family comes to.

        Raises:
            ConfigError: an entry has the wrong type, or the family cannot do what it asks for.
        """
        return cls(**{**cls.defaults, **cls.read_entries(settings, where)})  # type: ignore[arg-type]

    def to_pretrained_config(self, dtype: str = "float32") -> dict[str, object]:
        """A config.json that transformers loads."""
        size = self.size()
        return {
            "architectures": [self.architecture],
            "model_type": self.model_types[0],
            "dtype": dtype,
            **self.write_entries(size),
        }

    def size(self) -> DecoderSize:
        """The row of `variants` with this config's own entries.

        Raises:
            ConfigError: the variant is unknown, a size below 1, heads that do not divide, or an unknown activation.
        """
        names = {one.name for one in dataclasses.fields(self.size_type)}
        entries = {name: value for name in names if (value := getattr(self, name, None)) is not None}
        size = dataclasses.replace(self._row(entries), **entries, params=None)
        checks = {
            "activation": (size.activation in ACTIVATIONS, ", ".join(ACTIVATIONS)),
            "num_kv_heads": (
                size.kv_heads > 0 and size.num_heads % size.kv_heads == 0,
                "a divisor of num_heads",
            ),
            "head_dim": (size.head_width > 0, "above 0"),
            "window": (size.window is None or size.window > 0, "above 0, or null"),
            "windowed": (
                not size.windowed or len(size.windowed) == size.num_layers,
                f"a value for each of {size.num_layers} layers",
            ),
            "dropout": (0 <= self.dropout < 1, "from 0, below 1"),
        }
        for name in (
            "vocab_size",
            "hidden_size",
            "num_layers",
            "num_heads",
            "intermediate_size",
            "max_positions",
        ):
            checks[name] = (getattr(size, name) > 0, "from 1")
        for name, (fits, allowed) in checks.items():
            if not fits:
                raise ConfigError(
                    "the size of the decoder is out of range",
                    where=f"{type(self).__name__}.{name}",
                    received=repr(getattr(size, name, getattr(self, name, None))),
                    allowed=allowed,
                )
        return size

    def _row(self, entries: Mapping[str, object]) -> DecoderSize:
        if self.variant in self.variants:
            return self.variants[self.variant]
        if not self.variant and entries:
            return self.size_type(**self.defaults)  # type: ignore[arg-type]
        folder = Path(self.variant).expanduser()
        if self.variant and is_model_folder(folder):
            settings, where = read_settings(folder), str(folder / CONFIG)
            family = decoder_family(settings, where)
            if family.config is not type(self):
                raise ConfigError(
                    "the folder holds a decoder of another family",
                    where=f"{where}: model_type",
                    received=repr(settings.get("model_type")),
                    allowed=" or ".join(map(repr, self.model_types)),
                    fix=f"write type: {family.decoder.__name__} in the config",
                )
            return self.from_pretrained_config(settings, where).size()
        raise ConfigError(
            f"unknown variant of {type(self).__name__.removesuffix('Config')}",
            received=repr(self.variant),
            allowed=f"{', '.join(self.variants)}; or a folder with a {CONFIG}",
            fix=did_you_mean(self.variant, self.variants),
        )


def _theta(config: type[DecoderConfig]) -> float:
    rope = config.defaults.get("rope")
    return rope.theta if isinstance(rope, RopeOptions) else RopeOptions().theta


def _typed(value: object, example: object, name: str, where: str) -> object:
    """Raises: ConfigError, where a value of config.json is of another type than the entry."""
    kinds: tuple[type, ...] = (int,)
    if isinstance(example, bool):
        kinds = (bool,)
    elif isinstance(example, float):
        kinds = (int, float)
    elif isinstance(example, str):
        kinds = (str,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ConfigError(
            "an entry of the decoder has the wrong type",
            where=where,
            received=repr(value)[:80],
            allowed=" or ".join(one.__name__ for one in kinds),
        )
    return value


class DecoderFamily(NamedTuple):
    """A decoder and what it is built from."""

    decoder: type[AnyDecoder]
    config: type[DecoderConfig]


def decoder_families() -> dict[str, DecoderFamily]:
    """All decoders of zoo.decoder by upstream's `model_type`."""
    families = {}
    for name, module in available("model", ("zoo",)).items():
        if module.startswith("zoo.decoder."):
            entry = find("model", name, ("zoo",))
            assert entry.layer is not None and issubclass(entry.config, DecoderConfig)
            for model_type in entry.config.model_types:
                families[model_type] = DecoderFamily(entry.layer, entry.config)
    return families


def decoder_family(settings: Mapping[str, object], where: str = CONFIG) -> DecoderFamily:
    """The family that a config.json names. Raises: ConfigError, where there is none."""
    families, name = decoder_families(), str(settings.get("model_type", ""))
    if name not in families:
        raise ConfigError(
            "no decoder of this kind",
            where=f"{where}: model_type",
            received=repr(settings.get("model_type")),
            allowed=", ".join(sorted(families)),
            fix=did_you_mean(name, families),
        )
    return families[name]
