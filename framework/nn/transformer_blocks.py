"""What a Transformer of layers does, whatever the layers are made of: residuals, norms, caches, stacks.

`framework.nn.transformer` makes its layers of it, on arrays, and `framework.paddle.nn` its own, on Tensors. A class of
either is one of these, then `Layer`, with the layers that it is made of in `kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from framework.core.errors import ShapeError
from framework.core.types import PyTree


class Module(Protocol):
    """A layer of arrays or of Tensors, which is called with its inputs."""

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree: ...


class Attention(Module, Protocol):
    """Called with (query, key, value, mask, cache)."""

    @property
    def StaticCache(self) -> type:
        """The class of the caches that hold projected keys and values."""
        ...

    def gen_cache(self, key: PyTree, value: PyTree = None, type: type = ...) -> PyTree:
        """An empty cache for the batch of `key`, or the projected key and value."""
        ...


class Stacked(Module, Protocol):
    """A layer of which a stack has copies: `_config` are its constructor's arguments by name."""

    @property
    def _config(self) -> Mapping[str, object]: ...

    def gen_cache(self, memory: PyTree, /) -> PyTree:
        """The caches for the batch of `memory`."""
        ...


class Kinds(NamedTuple):
    """Classes of layers, and the activation of a name, for the class that asks."""

    attention: Callable[..., Attention]
    linear: Callable[..., Module]
    dropout: Callable[[float], Module]
    norm: Callable[[int], Module]
    layer_list: Callable[..., Any]
    activation: Callable[[str, str], Callable[[PyTree], PyTree]]


def spread(attr: object, count: int, where: str) -> list[object]:
    """What an attr says of each of `count` parts: one for all, or a list of one, or of as many.

    Raises:
        ShapeError: a list of another length.
    """
    attrs = list(attr) if isinstance(attr, list | tuple) else [attr]
    if len(attrs) == 1:
        return attrs * count
    if len(attrs) != count:
        raise ShapeError(
            "the list has neither one attr nor one attr for each module",
            where=where,
            received=f"{len(attrs)} attrs",
            allowed=f"1 or {count}",
        )
    return attrs


def spread_over_both(attr: object, where: str) -> tuple[object, object]:
    """The attr of encoder layers (self-attention, MLP) and of decoder layers (self-, cross-attention, MLP), from one
    for all or a list of one to three."""
    if not isinstance(attr, list | tuple):
        return attr, attr
    if not 1 <= len(attr) <= 3:
        raise ShapeError("the list has one to three entries", where=where, received=len(attr))
    first, last = attr[0], attr[-1]
    return [first, last], list(attr) if len(attr) == 3 else [first, first, last]


class Block:
    """What encoder and decoder layers share: attentions and an MLP, each with a residual and a norm before or after."""

    kinds: ClassVar[Kinds]
    attentions: ClassVar[tuple[str, ...]]
    self_attn: Attention
    cross_attn: Attention
    norm1: Module
    norm2: Module
    norm3: Module
    dropout1: Module
    dropout2: Module
    dropout3: Module

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: object = None,
        bias_attr: object = None,
    ) -> None:
        config = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        where, kinds, parts = type(self).__name__, self.kinds, len(self.attentions) + 1
        for name in ("d_model", "nhead", "dim_feedforward"):
            if config[name] <= 0:
                raise ShapeError(f"{name} is positive", where=where, received=config[name])
        self._config = config  # copies of this layer, in an encoder or a decoder, are made from it
        self.activation, self.normalize_before = kinds.activation(activation, where), normalize_before
        weights = spread(weight_attr, parts, f"{where}.weight_attr")
        biases = spread(bias_attr, parts, f"{where}.bias_attr")
        inner = dropout if attn_dropout is None else attn_dropout
        for name, weight, bias in zip(self.attentions, weights, biases):
            setattr(self, name, kinds.attention(d_model, nhead, inner, weight_attr=weight, bias_attr=bias))
        self.linear1 = kinds.linear(d_model, dim_feedforward, weights[-1], bias_attr=biases[-1])
        self.dropout = kinds.dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = kinds.linear(dim_feedforward, d_model, weights[-1], bias_attr=biases[-1])
        for number in range(1, parts + 1):
            setattr(self, f"norm{number}", kinds.norm(d_model))
        for number in range(1, parts + 1):
            setattr(self, f"dropout{number}", kinds.dropout(dropout))

    if TYPE_CHECKING:  # a Layer has it

        def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree: ...

    def _residual(
        self, x: PyTree, norm: Module, dropout: Module, inner: Callable[[PyTree], PyTree]
    ) -> PyTree:
        if self.normalize_before:
            return x + dropout(inner(norm(x)))
        return norm(x + dropout(inner(x)))

    def _attend(
        self,
        x: PyTree,
        norm: Module,
        dropout: Module,
        attention: Attention,
        mask: PyTree,
        cache: PyTree,
        memory: PyTree = None,
    ) -> tuple[PyTree, PyTree]:
        """The residual of an attention over `memory`, or over x itself, and the new cache where there is one."""
        new_cache = cache

        def attend(x: PyTree) -> PyTree:
            nonlocal new_cache
            over = x if memory is None else memory
            out = attention(x, over, over, mask, cache)
            if cache is None:
                return out
            new_cache = out[-1]
            return out[0]

        return self._residual(x, norm, dropout, attend), new_cache

    def _feed_forward(self, x: PyTree) -> PyTree:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class EncoderLayer(Block):
    """Self-attention and an MLP, each with a residual; `normalize_before` puts the norms first."""

    attentions = ("self_attn",)

    def forward(self, src: PyTree, src_mask: PyTree = None, cache: PyTree = None) -> PyTree:
        """src [N, T, d_model]; with a cache the result is (output, new cache)."""
        x, new_cache = self._attend(src, self.norm1, self.dropout1, self.self_attn, src_mask, cache)
        x = self._residual(x, self.norm2, self.dropout2, self._feed_forward)
        return x if cache is None else (x, new_cache)

    def gen_cache(self, src: PyTree) -> PyTree:
        """An empty cache for the batch of `src`."""
        return self.self_attn.gen_cache(src)


class DecoderLayer(Block):
    """Self-attention, attention over the encoder's output and an MLP, each with a residual."""

    attentions = ("self_attn", "cross_attn")

    def forward(
        self,
        tgt: PyTree,
        memory: PyTree,
        tgt_mask: PyTree = None,
        memory_mask: PyTree = None,
        cache: PyTree = None,
    ) -> PyTree:
        """tgt [N, T, d_model], memory [N, S, d_model]; with a cache pair the result is (output, new pair)."""
        growing, static = (None, None) if cache is None else cache
        x, growing = self._attend(tgt, self.norm1, self.dropout1, self.self_attn, tgt_mask, growing)
        x, static = self._attend(x, self.norm2, self.dropout2, self.cross_attn, memory_mask, static, memory)
        x = self._residual(x, self.norm3, self.dropout3, self._feed_forward)
        return x if cache is None else (x, (growing, static))

    def gen_cache(self, memory: PyTree) -> tuple[PyTree, PyTree]:
        """(empty self-attention cache, projected keys and values of the memory)."""
        static = self.cross_attn.gen_cache(memory, memory, type=self.cross_attn.StaticCache)
        return self.self_attn.gen_cache(memory), static


class _Stack:
    """`num_layers` layers like the given one, each with its own initial values, and a norm at the end."""

    kinds: ClassVar[Kinds]
    layers: Any

    def _build(self, layer: Stacked, num_layers: int, norm: Module | None) -> None:
        copies = [type(layer)(**layer._config) for _ in range(num_layers - 1)]  # type: ignore[call-arg]
        self.layers = self.kinds.layer_list([layer, *copies])
        self.num_layers, self.norm = num_layers, norm

    def _run(self, x: PyTree, cache: PyTree, call: Callable[[Stacked, PyTree, PyTree], PyTree]) -> PyTree:
        caches = []
        for index, layer in enumerate(self.layers):
            if cache is None:
                x = call(layer, x, None)
            else:
                x, new = call(layer, x, cache[index])
                caches.append(new)
        x = x if self.norm is None else self.norm(x)
        return x if cache is None else (x, caches)


class Encoder(_Stack):
    """`num_layers` encoder layers and an optional norm."""

    def __init__(self, encoder_layer: Stacked, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self._build(encoder_layer, num_layers, norm)

    def forward(self, src: PyTree, src_mask: PyTree = None, cache: PyTree = None) -> PyTree:
        """src [N, T, d_model]; with a list of caches the result is (output, new caches)."""

        def call(layer: Stacked, x: PyTree, own: PyTree) -> PyTree:
            return layer(x, src_mask=src_mask) if own is None else layer(x, src_mask=src_mask, cache=own)

        return self._run(src, cache, call)

    def gen_cache(self, src: PyTree) -> list[PyTree]:
        """A cache for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class Decoder(_Stack):
    """`num_layers` decoder layers and an optional norm."""

    def __init__(self, decoder_layer: Stacked, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self._build(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: PyTree,
        memory: PyTree,
        tgt_mask: PyTree = None,
        memory_mask: PyTree = None,
        cache: PyTree = None,
    ) -> PyTree:
        """tgt [N, T, d_model], memory [N, S, d_model]; with a list of caches the result is (output, new caches)."""

        def call(layer: Stacked, x: PyTree, own: PyTree) -> PyTree:
            return layer(x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, cache=own)

        return self._run(tgt, cache, call)

    def gen_cache(self, memory: PyTree, do_zip: bool = False) -> list[PyTree]:
        """A pair of caches for each layer; with `do_zip` all own ones, then all of the memory."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches, strict=True)) if do_zip else caches


class EncoderDecoder:
    """An encoder of `src` and a decoder of `tgt` that looks at it, each ending in a norm."""

    parts: ClassVar[tuple[type[EncoderLayer], type[Encoder], type[DecoderLayer], type[Decoder]]]
    """The classes of encoder layers, encoders, decoder layers and decoders."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: object = None,
        bias_attr: object = None,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
    ) -> None:
        super().__init__()
        encoder_layer, encoder, decoder_layer, decoder = self.parts
        weights = spread_over_both(weight_attr, "nn.Transformer(weight_attr)")
        biases = spread_over_both(bias_attr, "nn.Transformer(bias_attr)")
        common = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout)
        if custom_encoder is None:
            first = encoder_layer(*common, normalize_before, weights[0], biases[0])
            custom_encoder = encoder(first, num_encoder_layers, encoder.kinds.norm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            last = decoder_layer(*common, normalize_before, weights[1], biases[1])
            custom_decoder = decoder(last, num_decoder_layers, decoder.kinds.norm(d_model))
        self.decoder = custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self,
        src: PyTree,
        tgt: PyTree,
        src_mask: PyTree = None,
        tgt_mask: PyTree = None,
        memory_mask: PyTree = None,
    ) -> PyTree:
        """src [N, S, d_model], tgt [N, T, d_model] -> [N, T, d_model]."""
        memory = self.encoder(src, src_mask=src_mask)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask)
