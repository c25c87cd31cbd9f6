"""Frequencies of rotary embeddings, with the ways in which they are stretched for longer texts.

Papers: RoPE: Su et al. 2021, https://arxiv.org/abs/2104.09864; linear: Chen et al. 2023,
    https://arxiv.org/abs/2306.15595; YaRN, and dynamic NTK: Peng et al. 2023, https://arxiv.org/abs/2309.00071;
    LongRoPE: Ding et al. 2024, https://arxiv.org/abs/2402.13753; llama3: section 3.2 of https://arxiv.org/abs/2407.21783
Reference: transformers 5 modeling_rope_utils.py, for names of settings and what is taken where one is missing
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ConfigError, did_you_mean

KINDS = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")
LENGTH_KINDS = ("dynamic", "longrope")
"""Whose angles depend on the length of the text"""


@dataclass(frozen=True)
class RopeOptions:
    """How the angles of positions follow from a head's width. Names are those of config.json's `rope_parameters`.

    Attributes:
        theta: The base of the wavelengths, 2 pi theta^(2i/D).
        kind: One of KINDS, `rope_type` there.
        factor: How many times longer texts become; None: as the model's length is to the original one.
        original_positions: `original_max_position_embeddings`: how long texts were in the training before; 0: those of
            the model.
        low_frequency, high_frequency: llama3: wavelengths between original_positions over these are interpolated.
        beta_fast, beta_slow, truncate: yarn: turns over the original length between which frequencies are interpolated,
            and whether the bounds are rounded to whole channels.
        attention_factor: yarn, longrope: what cosines and sines are multiplied by; None: by the papers' formulas.
        mscale, mscale_all_dim: yarn of DeepSeek: of that factor.
        short_factor, long_factor: longrope: divisors of the frequencies, one a pair of channels.
        partial: The share of a head's channels that turn, the first ones.
    """

    theta: float = 10000.0
    kind: str = "default"
    factor: float | None = None
    original_positions: int = 0
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()
    partial: float = 1.0

    def stretch(self, max_positions: int) -> float:
        """`factor`; where it is None, `max_positions` over the original length, of the kinds that are stretched."""
        if self.factor is not None:
            return self.factor
        return max_positions / (self.original_positions or max_positions)

    def stretched(self, max_positions: int) -> int:
        """How long texts become by `factor`, which `max_position_embeddings` does not count for these kinds.

        Source: vLLM. It counts "dynamic" as well, whose angles change with the length: keys that a cache holds would
        not fit to later ones.
        """
        if self.kind not in ("linear", "yarn"):
            return max_positions
        return int((self.original_positions or max_positions) * self.stretch(max_positions))

    def regime(self, length: int, max_positions: int) -> int:
        """Texts of lengths with one regime have the same angles; cached keys of another one do not fit to theirs."""
        original = self.original_positions or max_positions
        if self.kind not in LENGTH_KINDS or length <= original:
            return 0
        return 1 if self.kind == "longrope" else length

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(
                "unknown kind of rotary embedding",
                where="rope_type",
                received=repr(self.kind),
                allowed=", ".join(KINDS),
                fix=did_you_mean(str(self.kind), KINDS),
            )
        checks = {
            "rope_theta": (self.theta > 0, "above 0"),
            "factor": (self.factor is None or self.factor > 0, "above 0"),
            "partial_rotary_factor": (0 < self.partial <= 1, "above 0, at most 1"),
            "original_max_position_embeddings": (self.original_positions >= 0, "from 0"),
        }
        for name, (fits, allowed) in checks.items():
            if not fits:
                raise ConfigError(
                    "a setting of the rotary embedding is out of range", where=name, allowed=allowed
                )


_KEYS = {
    "rope_theta": "theta",
    "factor": "factor",
    "original_max_position_embeddings": "original_positions",
    "low_freq_factor": "low_frequency",
    "high_freq_factor": "high_frequency",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "truncate": "truncate",
    "attention_factor": "attention_factor",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
    "short_factor": "short_factor",
    "long_factor": "long_factor",
    "partial_rotary_factor": "partial",
}


def read_rope(settings: Mapping[str, object], where: str, theta: float = 10000.0) -> RopeOptions:
    """The options that config.json comes to: `rope_parameters` of transformers 5, else `rope_theta` and `rope_scaling`.

    Args:
        theta: Where nothing says it.

    Raises:
        ConfigError: an unknown kind, or a setting of another type.
    """
    nested = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    if not isinstance(nested, Mapping):
        raise ConfigError(
            "the settings of the rotary embedding are no mapping", where=where, received=repr(nested)[:80]
        )
    result: dict[str, object] = {"rope_theta": theta}
    outer = ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")
    beside = {key: settings[key] for key in outer if settings.get(key) is not None}
    within = {key: value for key, value in nested.items() if key in _KEYS and value is not None}
    # Upstream's order: of what stands twice, only the theta of the mapping counts.
    result |= within | beside | {key: within[key] for key in outer[:1] if key in within}
    options: dict[str, object] = {}
    for key, value in result.items():
        if key.endswith("_factor") and isinstance(value, list | tuple):
            fits = all(isinstance(one, int | float) for one in value)
            options[_KEYS[key]] = tuple(float(one) for one in value) if fits else ()
        elif isinstance(value, int | float) and isinstance(value, bool) == (key == "truncate"):
            fits = True
            options[_KEYS[key]] = int(value) if key.startswith("original") else value
        else:
            fits = False
        if not fits:
            raise ConfigError(
                "a setting of the rotary embedding has the wrong type",
                where=f"{where}: {key}",
                received=repr(value)[:80],
                allowed="numbers",
            )
    kind = nested.get("rope_type", nested.get("type", "default"))
    if not isinstance(kind, str):
        raise ConfigError("unknown kind of rotary embedding", where=where, received=repr(kind)[:80])
    kind = {"su": "longrope", "mrope": "default"}.get(kind, kind)
    if kind in ("default", "linear", "dynamic"):
        options.pop("original_positions", None)  # which nothing reads there
    return RopeOptions(kind=kind, **options)  # type: ignore[arg-type]


def write_rope(options: RopeOptions) -> dict[str, object]:
    """`rope_parameters` of config.json: only what its kind reads."""
    read = {
        "default": (),
        "linear": ("factor",),
        "dynamic": ("factor",),
        "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
        "yarn": (
            *("factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate"),
            *("attention_factor", "mscale", "mscale_all_dim"),
        ),
        "longrope": (
            *(
                "factor",
                "original_max_position_embeddings",
                "attention_factor",
                "short_factor",
                "long_factor",
            ),
        ),
    }[options.kind]
    result: dict[str, object] = {"rope_type": options.kind, "rope_theta": options.theta}
    if options.partial != 1:
        result["partial_rotary_factor"] = options.partial
    for key in read:
        value = getattr(options, _KEYS[key])
        if value not in (None, 0, 0.0, ()):
            result[key] = list(value) if isinstance(value, tuple) else value
    if options.kind == "yarn" and options.factor is None:
        result["factor"] = None  # upstream reads the key in any case
    return result


def _turns_channel(turns: float, width: int, theta: float, length: int) -> float:
    """The pair of channels that turns so many times over `length` positions. Source: YaRN, section 3.2."""
    return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(theta))


def _yarn(options: RopeOptions, width: int, length: int, stretch: float) -> tuple[np.ndarray, float]:
    plain = options.theta ** -(np.arange(0, width, 2, dtype=np.float64) / width)
    low, high = (
        _turns_channel(t, width, options.theta, length) for t in (options.beta_fast, options.beta_slow)
    )
    if options.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    high = high + 0.001 if low == high else high
    ramp = np.clip((np.arange(width // 2) - low) / (high - low), 0, 1)
    frequencies = plain / stretch * ramp + plain * (1 - ramp)

    def scale(mscale: float) -> float:
        return 1.0 if stretch <= 1 else 0.1 * mscale * math.log(stretch) + 1.0

    if options.attention_factor is not None:
        return frequencies, options.attention_factor
    if options.mscale and options.mscale_all_dim:
        return frequencies, scale(options.mscale) / scale(options.mscale_all_dim)
    return frequencies, scale(1.0)


def _llama3(options: RopeOptions, plain: np.ndarray, length: int, stretch: float) -> np.ndarray:
    wavelengths = 2 * np.pi / plain
    low, high = options.low_frequency, options.high_frequency
    smooth = np.clip((length / wavelengths - low) / (high - low), 0, 1)
    return (1 - smooth) * plain / stretch + smooth * plain


def rotary_tables(
    options: RopeOptions,
    head_dim: int,
    max_positions: int,
    positions: jax.Array,
    valid: jax.Array | None = None,
    lengths: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Cosines and sines [N, T, R / 2] float32 of positions [N, T] int32, where R channels of a head turn.

    Args:
        max_positions: The longest text of the model: the original length where the options say none.
        valid: [N, T] bool: positions that are of the text; those of dynamic and longrope follow from the largest one
            of a row.
        lengths: [N] int32: tokens of the whole text, of whose positions these are some; None: up to the largest one.
    """
    width = int(head_dim * options.partial)
    length = options.original_positions or max_positions
    plain = options.theta ** -(np.arange(0, width, 2, dtype=np.float64) / width)
    factor = options.stretch(max_positions)
    scale = 1.0
    frequencies: np.ndarray | jax.Array = plain
    if options.kind == "linear":
        frequencies = plain / factor
    elif options.kind == "llama3":
        frequencies = _llama3(options, plain, length, factor)
    elif options.kind == "yarn":
        frequencies, scale = _yarn(options, width, length, factor)
    elif options.kind in LENGTH_KINDS:
        real = positions if valid is None else jnp.where(valid, positions, 0)
        longest = real.max(-1) + 1
        longest = longest if lengths is None else jnp.maximum(longest, lengths)
        longest = longest[:, None, None].astype(jnp.float32)
        if options.kind == "dynamic":
            stretch = factor * jnp.maximum(longest, length) / length - (factor - 1)
            theta = options.theta * stretch ** (width / (width - 2))
            frequencies = theta ** -jnp.asarray(np.arange(0, width, 2) / width, jnp.float32)
        else:
            short, long = (np.asarray(f, np.float64) for f in (options.short_factor, options.long_factor))
            if len(short) != width // 2 or len(long) != width // 2:
                raise ConfigError(
                    "longrope has a factor for each pair of channels",
                    where="short_factor, long_factor",
                    received=f"{len(short)} and {len(long)}",
                    allowed=str(width // 2),
                )
            pair = [jnp.asarray(plain / factors, jnp.float32) for factors in (short, long)]
            frequencies = jnp.where(longest > length, pair[1], pair[0])
            if options.attention_factor is not None:
                scale = options.attention_factor
            elif factor > 1:
                scale = math.sqrt(1 + math.log(factor) / math.log(length))
    angles = positions[..., None].astype(jnp.float32) * jnp.asarray(frequencies, jnp.float32)
    return jnp.cos(angles) * scale, jnp.sin(angles) * scale
