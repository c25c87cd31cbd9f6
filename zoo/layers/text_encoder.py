"""What the text encoders share: sizes, config.json of other toolkits, embeddings, blocks that normalise behind the
residual, the pooler, and the base class. A new encoder is one file in zoo/text; everything that lists encoders asks the
registry.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805; the block is that of https://arxiv.org/abs/1706.03762
Reference: PaddleNLP paddlenlp/transformers/{bert,ernie,roberta}/{modeling,configuration}.py; configuration.py of
    transformers 5
Weights: PaddleNLP's names; `HUGGING_FACE` turns those of the transformers library into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import available, find
from framework.core.errors import ConfigError, ShapeError, nearest
from framework.interop.weights.model_folder import (
    CONFIG,
    is_model_folder,
    is_paddles,
    read_settings,
    stored_weights,
)
from framework.nn import functional as F
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.mlp import NARROW, narrow_linear

_BLOCK = r"encoder\.layer\.(\d+)\."
HUGGING_FACE = (
    (r"LayerNorm\.gamma$", "LayerNorm.weight"),
    (r"LayerNorm\.beta$", "LayerNorm.bias"),
    (r"embeddings\.LayerNorm\.", "embeddings.layer_norm."),
    (_BLOCK + r"attention\.self\.(q|k|v)(?:uery|ey|alue)\.", r"encoder.layers.\1.self_attn.\2_proj."),
    (_BLOCK + r"attention\.output\.dense\.", r"encoder.layers.\1.self_attn.out_proj."),
    (_BLOCK + r"attention\.output\.LayerNorm\.", r"encoder.layers.\1.norm1."),
    (_BLOCK + r"intermediate\.dense\.", r"encoder.layers.\1.linear1."),
    (_BLOCK + r"output\.dense\.", r"encoder.layers.\1.linear2."),
    (_BLOCK + r"output\.LayerNorm\.", r"encoder.layers.\1.norm2."),
)
"""Patterns and replacements for `state_renames`, wherever the encoder stands in a model."""


class TextSize(NamedTuple):
    """What a variant says. Each entry can be set in the config as well.

    `max_positions` counts the rows of the position embedding, `epsilon` is that of every normalisation, `dropout` that
    of the hidden states and `attention_dropout` that of the attention's weights.
    """

    vocab_size: int
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    type_vocab_size: int = 2
    activation: str = "gelu"
    epsilon: float = 1e-12
    pad_id: int = 0
    """The token that fills up batches; NO_PADDING: none does"""
    dropout: float = 0.1
    attention_dropout: float = 0.1
    task_types: int = 0
    """Kinds of pre-training tasks that have an embedding; 0: none is added. ERNIE only."""
    embedding_size: int | None = None
    """Width of the embeddings where it is not `hidden_size`"""
    num_groups: int = 1
    """ALBERT only, as what follows"""
    layers_per_group: int = 1
    position_buckets: int = 0
    """MPNet only: distances between tokens that have a bias"""
    window: int = 0
    """ModernBERT only, as what follows; see ModernBertConfig"""
    global_every: int = 1
    global_theta: float = 0.0
    local_theta: float = 0.0
    classifier_pooling: str = "cls"
    params: int | None = None
    """Published number of values in the state dict, the pooler's included: of a row of a table, not of a model."""


class HeadNames(NamedTuple):
    """What PaddleNLP calls the parts of the heads on one family of encoders, in its modeling.py."""

    huggingface: str
    """The encoder in Hugging Face's models"""
    answers: str = "classifier"
    masked_lm: str = "cls.predictions"
    transform: str = "transform"
    bias: str = "cls.predictions.decoder_bias"
    """Of the words, by its path in the model"""
    pooler: bool = True
    """Whether the encoder has its pooler under a head"""
    activation: str = "tanh"
    """Where it has none: of the layer that stands before the classes of a text"""
    pretraining: str = "masked_lm"
    """The head, in nlp.pretrained, of the models that end in ForPreTraining"""
    unused: tuple[str, ...] = ()
    """Beginnings of names of other heads of pre-training, which files hold and no model here has"""
    renames: tuple[tuple[str, str], ...] = ()
    """Patterns and replacements that turn Hugging Face's names within heads into these"""


NO_PADDING = -1
# Keys of config.json, and what both libraries take where it says nothing.
SETTINGS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_positions",
    "type_vocab_size": "type_vocab_size",
    "hidden_act": "activation",
    "layer_norm_eps": "epsilon",
    "pad_token_id": "pad_id",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
DEFAULTS: Mapping[str, int | float | str] = {
    theirs: getattr(TextSize(vocab_size=30522), ours) for theirs, ours in SETTINGS.items()
}
REQUIRED: Mapping[str, object] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "tie_word_embeddings": True,
    "pool_act": "tanh",
}


@dataclass(frozen=True)
class TextEncoderConfig:
    """A row of `variants`, or a folder with the config.json of such a model, as transformers and PaddleNLP write it.

    What is not None replaces an entry of it (see TextSize).

    `pooler` makes `Encoded.pooled`: a linear layer and tanh on the first token.
    """

    variants: ClassVar[Mapping[str, TextSize]]
    """The module's size table"""
    model_type: ClassVar[str]
    """Upstream's, in config.json"""
    settings: ClassVar[Mapping[str, str]] = SETTINGS
    """Our names of the entries of config.json"""
    defaults: ClassVar[Mapping[str, int | float | str]] = DEFAULTS
    """What upstream takes where config.json says nothing"""
    required: ClassVar[Mapping[str, object]] = REQUIRED
    """What config.json may say of other settings, where it says anything"""
    has_types: ClassVar[bool] = True
    """Whether tokens have types, such as that of the first and of the second text of a pair"""
    counts_padding: ClassVar[bool] = False
    """Whether positions follow from which tokens are padding"""

    variant: str = ""
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    intermediate_size: int | None = None
    max_positions: int | None = None
    type_vocab_size: int | None = None
    activation: str | None = None
    epsilon: float | None = None
    pad_id: int | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    pooler: bool = True

    @classmethod
    def from_pretrained_config(
        cls, settings: Mapping[str, object], where: str = CONFIG, paddle: bool = False
    ) -> Self:
        """The config that a config.json of this family comes to.

        Args:
            paddle: The weights beside it are PaddleNLP's.

        Raises:
            ConfigError: it describes no encoder of zoo.text.
        """
        for key, allowed in cls.required.items():
            if settings.get(key, allowed) != allowed:
                raise ConfigError(
                    "the encoder cannot do this",
                    where=f"{where}: {key}",
                    received=repr(settings[key]),
                    allowed=repr(allowed),
                )
        said = {
            key: cls.defaults[key] if (value := settings.get(key)) is None else value for key in cls.settings
        }
        if settings.get("pad_token_id", 0) is None:  # no word is padding, also not the one that is by default
            said["pad_token_id"] = NO_PADDING
        for key, value in said.items():
            example = cls.defaults[key]
            if type(value) not in ((int, float) if isinstance(example, float) else (type(example),)):
                kind = "name of a function" if isinstance(example, str) else "number of an encoder"
                raise ConfigError(
                    f"the {kind} has the wrong type",
                    where=f"{where}: {key}",
                    received=repr(value)[:80],
                    allowed=f"such as {example!r}",
                )
        return cls(**{ours: said[theirs] for theirs, ours in cls.settings.items()})  # type: ignore[arg-type]

    def size(self) -> TextSize:
        """The row of `variants` with this config's own entries.

        Raises:
            ConfigError: the variant is unknown, a size below 1, heads that do not divide the width, an unknown
                activation, a dropout that is no probability, or a padding token outside of the vocabulary.
        """
        size = self._row()._replace(**self._entries(), params=None)
        for name, (fits, allowed) in self.checks(size).items():
            if not fits:
                raise ConfigError(
                    "the size of the text encoder is out of range",
                    where=f"{type(self).__name__}.{name}",
                    received=repr(getattr(size, name)),
                    allowed=allowed,
                )
        return size

    def checks(self, size: TextSize) -> dict[str, tuple[bool, str]]:
        """Of entries of a size: whether each is in its range, and the range."""
        checks = {
            "activation": (size.activation in ACTIVATIONS, ", ".join(ACTIVATIONS)),
            "num_heads": (
                size.num_heads > 0 and size.hidden_size % size.num_heads == 0,
                "a divisor of hidden_size",
            ),
            "dropout": (0 <= size.dropout < 1, "from 0, below 1"),
            "attention_dropout": (0 <= size.attention_dropout < 1, "from 0, below 1"),
            "pad_id": (
                (0 if self.counts_padding else NO_PADDING) <= size.pad_id < size.vocab_size,
                "a token of the vocabulary" + ("" if self.counts_padding else f", or {NO_PADDING}: none"),
            ),
            "num_groups": (
                0 < size.num_groups <= max(size.num_layers, 0) and size.num_layers % size.num_groups == 0,
                "a divisor of num_layers",
            ),
        }
        counts = ("vocab_size", "hidden_size", "num_layers", "intermediate_size", "layers_per_group")
        for name in (*counts, "max_positions"):
            checks[name] = (getattr(size, name) > 0, "from 1")
        fits = size.type_vocab_size > 0 if self.has_types else size.type_vocab_size == 0
        return {
            **checks,
            "type_vocab_size": (fits, "from 1" if self.has_types else "0: tokens have no types"),
        }

    def _entries(self) -> dict[str, int | float | str]:
        """The entries of TextSize that are set."""
        entries = {name: getattr(self, name, None) for name in TextSize._fields}
        return {name: value for name, value in entries.items() if value is not None}

    def _row(self) -> TextSize:
        if self.variant in self.variants:
            return self.variants[self.variant]
        name, folder = type(self).__name__.removesuffix("Config"), Path(self.variant).expanduser()
        if is_model_folder(folder):
            return self._read_folder(folder)
        near = nearest(self.variant, self.variants)
        raise ConfigError(
            f"unknown variant of {name}",
            received=repr(self.variant),
            allowed=f"{', '.join(self.variants)}; or a folder with a config.json",
            fix=f"did you mean {near!r}?" if near else None,
        )

    def _read_folder(self, folder: Path) -> TextSize:
        """What the folder's config.json says; weights need not be there."""
        settings, where = read_settings(folder), str(folder / CONFIG)
        encoder, config = encoder_family(settings, where)
        if config is not type(self):
            raise ConfigError(
                "the folder holds an encoder of another kind",
                where=f"{where}: model_type",
                received=repr(config.model_type),
                allowed=repr(self.model_type),
                fix=f"write type: {encoder.__name__} in the config",
            )
        weights = stored_weights(folder)
        said = self.from_pretrained_config(settings, where, weights is not None and is_paddles(weights))
        return TextSize(**said._entries())  # type: ignore[arg-type]


class EncoderFamily(NamedTuple):
    """An encoder and what it is built from."""

    encoder: type[TextEncoder]
    config: type[TextEncoderConfig]


def encoder_families() -> dict[str, EncoderFamily]:
    """All encoders of zoo.text by upstream's `model_type`."""
    found = {}
    for name, module in available("backbone", ("zoo",)).items():
        if module.startswith("zoo.text."):
            entry = find("backbone", name, ("zoo",))
            assert entry.layer is not None and issubclass(entry.layer, TextEncoder)
            assert issubclass(entry.config, TextEncoderConfig)
            found[entry.config.model_type] = EncoderFamily(entry.layer, entry.config)
    return found


def encoder_family(settings: Mapping[str, object], where: str = CONFIG) -> EncoderFamily:
    """The encoder that a config.json names. Raises: ConfigError, where there is none."""
    families, name = encoder_families(), str(settings.get("model_type", ""))
    if name not in families:
        near = nearest(name, families)
        raise ConfigError(
            "no encoder of this kind",
            where=f"{where}: model_type",
            received=repr(settings.get("model_type")),
            allowed=", ".join(families),
            fix=f"did you mean {near!r}?" if near else None,
        )
    return families[name]


def check_ids(input_ids: jax.Array, limit: int, where: str) -> None:
    """Raises: ShapeError, where ids are not [N, T] or there are more tokens than positions."""
    if input_ids.ndim != 2:
        raise ShapeError(
            "a text encoder takes one id a token", where=where, received=input_ids.shape, allowed="[N, T]"
        )
    count = input_ids.shape[1]
    if isinstance(count, int) and not 1 <= count <= limit:
        raise ShapeError(
            "there are not as many positions as tokens",
            where=where,
            received=f"{count} tokens",
            allowed=f"from 1 to {limit}",
            fix="cut the texts: max_length of the tokenizer's transform",
        )


class TextEmbeddings(nn.Layer):
    """The sum of the embeddings of words, positions and types, normalised: [N, T] -> [N, T, width].

    With `padding` the padding token's vector is zero and not trained.
    """

    def __init__(self, size: TextSize, padding: bool) -> None:
        super().__init__()
        width = size.embedding_size or size.hidden_size
        pad = size.pad_id if padding and size.pad_id != NO_PADDING else None
        self.word_embeddings = nn.Embedding(size.vocab_size, width, pad, weight_attr=NARROW)
        self.position_embeddings = nn.Embedding(size.max_positions, width, weight_attr=NARROW)
        if size.type_vocab_size:
            self.token_type_embeddings = nn.Embedding(size.type_vocab_size, width, weight_attr=NARROW)
        self.has_types = size.type_vocab_size > 0
        if size.task_types:
            self.task_type_embeddings = nn.Embedding(size.task_types, width, weight_attr=NARROW)
        self.has_tasks = size.task_types > 0
        self.layer_norm = nn.LayerNorm(width, size.epsilon)
        self.dropout = nn.Dropout(size.dropout)

    def forward(
        self,
        input_ids: jax.Array,
        token_type_ids: jax.Array | None,
        positions: jax.Array,
        task_type_ids: jax.Array | None = None,
    ) -> jax.Array:
        """`positions` [T], or [N, T]; types are 0 where None."""
        zero = jnp.zeros((), jnp.int32)
        x = self.word_embeddings(input_ids) + self.position_embeddings(positions)
        if self.has_types:
            x = x + self.token_type_embeddings(zero if token_type_ids is None else token_type_ids)
        if self.has_tasks:
            x = x + self.task_type_embeddings(zero if task_type_ids is None else task_type_ids)
        return self.dropout(self.layer_norm(x))


class Block(nn.Layer):
    """Attention and a feed-forward part on [N, T, hidden_size]; each is added to its input, and the sum normalised."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        width = size.hidden_size
        self.self_attn = nn.MultiHeadAttention(
            width, size.num_heads, size.attention_dropout, weight_attr=NARROW
        )
        self.linear1 = narrow_linear(width, size.intermediate_size)
        self.linear2 = narrow_linear(size.intermediate_size, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, size.epsilon), nn.LayerNorm(width, size.epsilon)
        self.dropout = nn.Dropout(size.dropout)
        self.activation = ACTIVATIONS[size.activation]

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """`mask` broadcasts to [N, heads, T, T]: bool, the tokens that are seen, or float, what is added to scores."""
        x = self.norm1(x + self.dropout(self.self_attn(x, attn_mask=mask)))
        return self.norm2(x + self.dropout(self.linear2(self.activation(self.linear1(x)))))


class Blocks(nn.BlockChain):
    """`layers`, one after the other."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.layers = nn.LayerList([Block(size) for _ in range(size.num_layers)])

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        return nn.run_blocks(self.blocks(), x, mask)


class Pooler(nn.Layer):
    """tanh of a linear layer on the first token: [N, T, D] -> [N, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = narrow_linear(width, width)

    def forward(self, hidden: jax.Array) -> jax.Array:
        return F.tanh(self.dense(hidden[:, 0]))


class Encoded(NamedTuple):
    """What a text encoder gives: `hidden` [N, T, D], and `pooled` [N, D], or None where the encoder has no pooler."""

    hidden: jax.Array
    pooled: jax.Array | None


class TextEncoder(nn.Model[TextEncoderConfig]):
    """Base of the networks that read N texts of up to T tokens. What is padded does not change the result of a token.

    The methods are those of BERT; a subclass has its own where it differs.
    """

    prefix: ClassVar[str]
    """The name under which upstream's models hold the encoder, such as `bert`"""
    heads: ClassVar[HeadNames]
    pads: ClassVar[bool] = True
    """Whether the padding token's word vector is zero and not trained"""
    projects: ClassVar[bool] = False
    """Whether `embeddings_project` maps embeddings of another width to `hidden_size`"""
    names: ClassVar[tuple[str, ...]] = ("embeddings.", "embeddings_project.", "encoder.", "pooler.")
    """Beginnings of all names in files of the encoder alone"""
    training_only: ClassVar[tuple[str, ...]] = ("embeddings.position_ids", "embeddings.token_type_ids")
    """Names that files may hold besides: constants in older ones"""

    def __init__(self, config: TextEncoderConfig) -> None:
        super().__init__(config)
        self.size = config.size()
        self.embeddings = self.build_embeddings()
        width = self.size.embedding_size or self.size.hidden_size
        self.projected = self.projects and width != self.size.hidden_size
        if self.projected:
            self.embeddings_project = narrow_linear(width, self.size.hidden_size)
        self.encoder = self.build_blocks()
        self.pooler = self.build_pooler(self.size.hidden_size) if config.pooler else None

    def build_embeddings(self) -> nn.Layer:
        """See TextEmbeddings; the vectors of words are its `word_embeddings`."""
        return TextEmbeddings(self.size, self.pads)

    def build_prediction_head(self) -> nn.Layer | None:
        """A layer [..., hidden_size] that stands under every head on the encoder; None where there is none"""
        return None

    def build_blocks(self) -> nn.Layer:
        """(x [N, T, width of the embeddings, or hidden_size where they are projected], mask [N, 1, 1, T]) ->
        [N, T, hidden_size]"""
        return Blocks(self.size)

    def build_pooler(self, width: int) -> nn.Layer | None:
        """[N, T, width] -> [N, width]; None in a family that has none"""
        return Pooler(width)

    @property
    def max_tokens(self) -> int:
        """The longest text that has a position for each token."""
        return self.size.max_positions

    def positions(self, input_ids: jax.Array) -> jax.Array:
        """The rows of the position embedding that the tokens get, [T] or [N, T] int32."""
        return jnp.arange(input_ids.shape[1])

    def forward(
        self,
        input_ids: jax.Array,
        token_type_ids: jax.Array | None = None,
        mask: jax.Array | None = None,
        task_type_ids: jax.Array | None = None,
    ) -> Encoded:
        """`input_ids` and the types [N, T] int32, types 0 where None; `task_type_ids` are read where the size has
        `task_types`. `mask` [N, T] bool is False at what no token may read, and where None at `size.pad_id`."""
        check_ids(input_ids, self.max_tokens, type(self).__name__)
        seen = input_ids != self.size.pad_id if mask is None else mask
        x = self.embeddings(input_ids, token_type_ids, self.positions(input_ids), task_type_ids)
        if self.projected:
            x = self.embeddings_project(x)
        hidden = self.encoder(x, seen[:, None, None])
        return Encoded(hidden, None if self.pooler is None else self.pooler(hidden))
