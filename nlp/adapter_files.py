"""Adapters of decoders in files: peft's both ways, and PaddleNLP's in.

peft        adapter_config.json, adapter_model.safetensors (or .bin): `base_model.model.<layer>.lora_A.weight`
            [rank, in], `.lora_B.weight` [out, rank], `.lora_magnitude_vector` [out]; whole layers beside them by their
            own names
PaddleNLP   lora_config.json, lora_model_state.pdparams or peft_model.safetensors: `<layer>.lora_A` [in, rank],
            `.lora_B` [rank, out]

Reference: peft 0.21 utils/save_and_load.py; PaddleNLP 3.0 paddlenlp/peft/lora
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from framework.config import build
from framework.core.bounded import SETTINGS, check_mapping, parse_json, read_text
from framework.core.disk import write_file
from framework.core.errors import ConfigError, FormatError, InputError, WeightError
from framework.interop import load_weights, write_safetensors
from framework.nn.adapters import LoRA, adapted_layers, adapter_state, ends_with
from zoo.layers.decoder import Decoder

PEFT_CONFIG, PADDLE_CONFIG = "adapter_config.json", "lora_config.json"
_PEFT_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_PADDLE_WEIGHTS = ("lora_model_state.pdparams", "peft_model.safetensors", "lora_model_state.safetensors")
_PREFIX, _HEAD = "base_model.model.", "lm_head.weight"
_FACTOR = re.compile(r"\.lora_embedding_([AB])(?:\.default)?$")
_ROWS = ".token_adapter.trainable_tokens_delta"
_NO_TARGETS = "dummy-target-modules"  # peft's name for none, beside modules_to_save
_LONGEST_PATTERN = 10_000
_SAFE_RANK = 1024  # layers of it are made whatever the arrays are, to tell which do not fit


def is_adapter_folder(folder: str | Path) -> bool:
    """Whether peft or PaddleNLP wrote an adapter there."""
    return any((Path(folder) / name).is_file() for name in (PEFT_CONFIG, PADDLE_CONFIG))


def read_adapter_config(folder: str | Path) -> LoRA:
    """The settings of an adapter's folder.

    Raises:
        InputError: there is no adapter. FormatError: its settings are damaged. ConfigError: it is none of LoRA.
    """
    settings, path = _read_settings(Path(folder))
    return _from_peft(settings, path) if path.name == PEFT_CONFIG else _from_paddle(settings, path)


def _read_settings(folder: Path) -> tuple[Mapping[str, object], Path]:
    for name in (PEFT_CONFIG, PADDLE_CONFIG):
        path = folder / name
        if path.is_file():
            parsed = parse_json(read_text(path, SETTINGS, "settings of an adapter"), path, name)
            return check_mapping(parsed, path, name), path
    raise InputError(
        "there is no adapter here", where=folder, allowed=f"a folder with {PEFT_CONFIG} or {PADDLE_CONFIG}"
    )


def _from_peft(settings: Mapping[str, object], path: Path) -> LoRA:
    kind = settings.get("peft_type", "LORA")
    unknown = {
        "peft_type": kind not in ("LORA", "DORA"),
        "fan_in_fan_out": settings.get("fan_in_fan_out"),
        "layer_replication": settings.get("layer_replication"),
        "target_parameters": settings.get("target_parameters"),
    }
    for name, is_set in unknown.items():
        if is_set:
            raise ConfigError(
                "the adapter is of a kind that is not read",
                where=f"{path}: {name}",
                received=repr(settings.get(name)),
                allowed="LoRA, rslora and DoRA of linear layers",
            )
    targets = settings.get("target_modules")
    return LoRA(
        rank=_rank(_number(settings, "r", 8, path), f"{path}: r"),
        alpha=_number(settings, "lora_alpha", 8, path),
        dropout=_number(settings, "lora_dropout", 0, path),
        targets=_pattern(targets, path),
        rslora=settings.get("use_rslora") is True,
        dora=settings.get("use_dora") is True,
        modules_to_save=tuple(re.escape(name) for name in _names(settings, "modules_to_save")),
        bias=_bias(settings, path),
        rank_pattern={
            end: _rank(rank, f"{path}: rank_pattern.{end}")
            for end, rank in _numbers(settings, "rank_pattern", path).items()
        },
        alpha_pattern=_numbers(settings, "alpha_pattern", path),
    )


def _number(settings: Mapping[str, object], name: str, default: float, path: Path) -> float:
    value = settings.get(name)
    if value is None:
        return default
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise FormatError("the entry is no number", where=f"{path}: {name}", received=repr(value)[:80])
    return float(value)


def _rank(value: float, where: str) -> int:
    if value < 1 or not float(value).is_integer():
        raise FormatError("a rank is a whole number", where=where, received=value, allowed="1 or more")
    return int(value)


def _names(settings: Mapping[str, object], name: str) -> list[str]:
    value = settings.get(name)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _numbers(settings: Mapping[str, object], name: str, path: Path) -> dict[str, float]:
    """By the ends of names that peft searches, behind a dot or at the beginning. A key that begins with ^ is of a whole
    name there, so that "^q_proj" is of none."""
    value = settings.get(name)
    return {str(key): _number(value, str(key), 0, path) for key in value} if isinstance(value, dict) else {}


def _bias(settings: Mapping[str, object], path: Path) -> Literal["none", "lora_only", "all"]:
    value = settings.get("bias") or "none"
    if value not in ("none", "lora_only", "all"):
        raise FormatError("these biases are not known", where=f"{path}: bias", received=repr(value)[:80])
    return value  # pyright: ignore[reportReturnType]


def _pattern(targets: object, path: Path) -> str:
    _check_length(targets, path)
    if targets in ("all-linear", _NO_TARGETS):
        return "all" if targets == "all-linear" else ""
    if isinstance(targets, str):
        return f"(?:.*\\.)?(?:{targets})" if not targets.startswith(".*") else targets
    if isinstance(targets, list) and targets and all(isinstance(one, str) for one in targets):
        return "|".join(sorted(map(re.escape, targets)))
    raise FormatError(
        "the adapter names no layers",
        where=f"{path}: target_modules",
        received=repr(targets)[:80],
        allowed="a list of names",
    )


def _check_length(targets: object, path: Path) -> None:
    """Raises: FormatError, where layers are named by an expression that takes long to compile."""
    texts = [targets] if isinstance(targets, str) else targets if isinstance(targets, list) else []
    if (longest := max((len(one) for one in texts if isinstance(one, str)), default=0)) > _LONGEST_PATTERN:
        raise FormatError(
            "the expression for names of layers is too long",
            where=f"{path}: target_modules",
            received=f"{longest:,} characters",
            allowed=f"{_LONGEST_PATTERN:,}",
        )


def _from_paddle(settings: Mapping[str, object], path: Path) -> LoRA:
    targets = settings.get("target_modules")
    _check_length(targets, path)
    targets = [targets] if isinstance(targets, str) else targets
    if not isinstance(targets, list) or not targets or not all(isinstance(one, str) for one in targets):
        raise FormatError(
            "the adapter names no layers", where=f"{path}: target_modules", received=repr(targets)[:80]
        )
    rank, scaling = (
        _rank(_number(settings, "r", 8, path), f"{path}: r"),
        _number(settings, "scaling", 0, path),
    )
    rslora, alpha = settings.get("rslora") is True, _number(settings, "lora_alpha", 0, path)
    alpha = alpha or scaling * (rank**0.5 if rslora else rank) or 8.0
    # Theirs are regular expressions that a whole name must have, such as ".*q_proj.*".
    pattern = "|".join(f"(?:.*\\.)?(?:{one.removeprefix('.*').removesuffix('.*')})" for one in targets)
    return LoRA(
        rank=rank,
        alpha=alpha,
        dropout=_number(settings, "lora_dropout", 0, path),
        targets=pattern,
        rslora=rslora,
    )


def read_adapter(model: Decoder, folder: str | Path) -> Decoder:
    """`model` with the adapter of a folder: a new decoder that shares its arrays.

    Raises:
        InputError, FormatError: there is no adapter, or it is damaged. ConfigError: it is of a kind that is not read.
        WeightError: it is of another model.
    """
    folder = Path(folder)
    adapter, (settings, _) = read_adapter_config(folder), _read_settings(folder)
    path = next(
        (folder / name for name in (*_PEFT_WEIGHTS, *_PADDLE_WEIGHTS) if (folder / name).is_file()), None
    )
    if path is None:
        raise InputError(
            "the adapter has no weights", where=folder, allowed=", ".join((*_PEFT_WEIGHTS, *_PADDLE_WEIGHTS))
        )
    arrays = load_weights(path)
    _check_ranks(adapter, arrays, path)
    is_paddle = not (folder / PEFT_CONFIG).is_file()
    if not is_paddle:
        adapter = _find_saved_layers(_choose_layers(adapter, settings, arrays), arrays)
        adapter, arrays = _read_token_rows(
            model, adapter, settings.get("trainable_token_indices"), arrays, path
        )
        adapter, arrays = _read_embedding_factors(model, adapter, arrays, path)
    if not is_paddle and model.size.tie_embeddings:
        model, adapter, arrays = _read_own_head(model, adapter, arrays)
    adapted = build(dataclasses.replace(model.config, adapter=adapter))
    _copy_parameters(model, adapted)
    ours = dict(adapted.named_parameters())
    for name, value in _as_ours(adapted, arrays, path, is_paddle).items():
        dtype = np.float32 if ours[name].trainable else np.dtype(ours[name].dtype)
        ours[name].set_value(value.astype(dtype))
    return adapted.train() if model.training else adapted.eval()


def _find_saved_layers(adapter: LoRA, arrays: Mapping[str, np.ndarray]) -> LoRA:
    """Whole layers by the names that the file has: in peft's settings "norm" is the end of input_layernorm, too."""
    owners = sorted({_our_name(key).rpartition(".")[0] for key in arrays if ".lora_" not in key})
    saved: list[str] = []
    for pattern in adapter.modules_to_save:
        saved += [re.escape(name) for name in owners if re.search(f"{pattern}$", name)] or [pattern]
    return dataclasses.replace(adapter, modules_to_save=tuple(dict.fromkeys(saved)))


def _copy_parameters(model: Decoder, other: Decoder) -> None:
    """What has the same names, in the same types; arrays are shared."""
    ours = dict(other.named_parameters())
    for name, parameter in model.named_parameters():
        if name in ours:
            ours[name].dtype = parameter.dtype
            ours[name].set_value(parameter.value)


def _choose_layers(adapter: LoRA, settings: Mapping[str, object], arrays: Mapping[str, np.ndarray]) -> LoRA:
    """Where the settings leave layers out of their targets, by names or by numbers, or embeddings are among these, the
    linear ones that the file has."""
    keys = ("layers_to_transform", "exclude_modules")
    names = {_our_name(key) for key in arrays}
    if all(settings.get(name) in (None, [], "") for name in keys) and not any(map(_FACTOR.search, names)):
        return adapter
    layers = sorted(name.removesuffix(".lora_A") for name in names if name.endswith(".lora_A"))
    targets = "|".join(map(re.escape, layers))
    if not layers:  # of embeddings alone; where the settings name other layers too, the file lacks these
        owners = [name[: match.start()] for name in names if (match := _FACTOR.search(name))]
        listed = settings.get("target_modules")
        others = [
            one
            for one in (listed if isinstance(listed, list) else [])
            if not any(ends_with(owner, re.escape(str(one))) for owner in owners)
        ]
        targets = adapter.targets if others or not owners else ""
    return dataclasses.replace(adapter, targets=targets)


def _read_token_rows(
    model: Decoder, adapter: LoRA, indices: object, arrays: Mapping[str, np.ndarray], path: Path
) -> tuple[LoRA, Mapping[str, np.ndarray]]:
    """The rows of single tokens that peft trains, within the whole embeddings that this adapter then saves."""
    rows = {key: _our_name(key).removesuffix(_ROWS) for key in arrays if key.endswith(_ROWS)}
    if not rows:
        return adapter, arrays
    result = {key: value for key, value in arrays.items() if key not in rows}
    saved = [*adapter.modules_to_save]
    for key, owner in rows.items():
        name, leaf = f"{owner}.weight", owner.rpartition(".")[2]
        numbers = indices.get(leaf) if isinstance(indices, dict) else indices
        values = _stored(model, name)
        array, listed = np.asarray(arrays[key]), numbers if isinstance(numbers, list) else []
        tokens = [one for one in listed if type(one) is int and 0 <= one < len(values)]
        if not tokens or len(tokens) != len(listed) or array.shape != (len(tokens), values.shape[1]):
            raise WeightError(
                "rows of single tokens do not fit the model",
                where=f"{path}: {key}",
                received=f"{array.shape} for the tokens {numbers!r}"[:120],
                allowed=f"a row of {values.shape[1]} for each token below {len(values)}",
            )
        values[tokens] = array
        result[_PREFIX + name] = values
        saved.append(re.escape(leaf))
        if model.size.tie_embeddings and name == model.embedding_name:
            result[_PREFIX + _HEAD] = values
    return dataclasses.replace(adapter, modules_to_save=tuple(dict.fromkeys(saved))), result


def _read_embedding_factors(
    model: Decoder, adapter: LoRA, arrays: Mapping[str, np.ndarray], path: Path
) -> tuple[LoRA, Mapping[str, np.ndarray]]:
    """LoRA of embeddings, within the whole embeddings that this adapter then saves: W + scale (B A)^T, of A [rank,
    tokens] and B [width, rank]; with DoRA, each of the `width` columns has the length that its magnitude says."""
    factors: dict[str, dict[str, np.ndarray]] = {}
    result: dict[str, np.ndarray] = {}
    for key, value in arrays.items():
        name = _our_name(key)
        if match := _FACTOR.search(name):
            factors.setdefault(name[: match.start()], {})[match[1]] = np.asarray(value, np.float32)
        else:
            result[key] = value
    if not factors:
        return adapter, arrays
    saved = [*adapter.modules_to_save]
    for owner, pair in factors.items():
        name = f"{owner}.weight"
        values, rank = _stored(model, name), adapter.rank_of(owner)
        allowed = {"A": (rank, values.shape[0]), "B": (values.shape[1], rank)}
        shapes = {letter: value.shape for letter, value in pair.items()}
        magnitudes = [one for one in result if _our_name(one) == f"{owner}.lora_magnitude"]
        if adapter.dora:
            allowed["magnitude"] = (values.shape[1],)
            if magnitudes:
                shapes["magnitude"] = np.shape(result[magnitudes[0]])
        if shapes != allowed:
            raise WeightError(
                "the adapter of an embedding does not fit the model",
                where=f"{path}: {owner}",
                received=shapes,
                allowed=str(allowed),
            )
        key = next((one for one in result if _our_name(one) == name), _PREFIX + name)
        result[key] = (
            np.asarray(result.get(key, values), np.float32)
            + adapter.scale_of(owner) * (pair["B"] @ pair["A"]).T
        )
        if adapter.dora:
            (magnitude,) = (np.asarray(result.pop(one), np.float32) for one in magnitudes)
            result[key] = result[key] * (magnitude / np.linalg.norm(result[key], axis=0))
        saved.append(re.escape(owner))
    return dataclasses.replace(adapter, modules_to_save=tuple(dict.fromkeys(saved))), result


def _stored(model: Decoder, name: str) -> np.ndarray:
    """A parameter as torch stores it, float32; [0, 0] where the model has none of this name."""
    parameters, sources = dict(model.named_parameters()), model.weight_sources()
    if name not in parameters:
        return np.zeros((0, 0), np.float32)
    values = np.asarray(parameters[name].value, np.float32)
    return np.array(values.T if name in sources and sources[name].transposed else values)


def _read_own_head(
    model: Decoder, adapter: LoRA, arrays: Mapping[str, np.ndarray]
) -> tuple[Decoder, LoRA, Mapping[str, np.ndarray]]:
    """What peft makes of tied word embeddings: where the file has a whole embedding or anything of lm_head, the two are
    one no longer, and what it does not have stays as in the model below. A file with both, equal, leaves them tied."""
    keys = {_our_name(key): key for key in arrays}
    embedding, of_head = (
        keys.get(model.embedding_name),
        [name for name in keys if name.startswith("lm_head.")],
    )
    if embedding is None and not of_head:
        return model, adapter, arrays
    if embedding and of_head == [_HEAD] and np.array_equal(arrays[embedding], arrays[keys[_HEAD]]):
        saved = tuple(name for name in adapter.modules_to_save if name != "lm_head")
        rest = {key: value for key, value in arrays.items() if key != keys[_HEAD]}
        return model, dataclasses.replace(adapter, modules_to_save=saved), rest
    untied = build(dataclasses.replace(model.config, tie_embeddings=False))
    _copy_parameters(model, untied)
    parameters = dict(untied.named_parameters())
    parameters[_HEAD].dtype = parameters[model.embedding_name].dtype
    parameters[_HEAD].set_value(parameters[model.embedding_name].value.T)
    return untied.train() if model.training else untied.eval(), adapter, arrays


def _our_name(key: str) -> str:
    """Of an array in a file."""
    name = re.sub(
        r"\.(?:base_layer|original_module|modules_to_save(?:\.default)?)\.", ".", key.removeprefix(_PREFIX)
    )
    name = re.sub(r"\.(lora_[AB])(?:\.default)?\.weight$", r".\1", name)
    return re.sub(r"\.lora_magnitude_vector(?:\.default)?(?:\.weight)?$", ".lora_magnitude", name)


def _check_ranks(adapter: LoRA, arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Before layers of them are made. Raises: WeightError, where the settings say more than any array has."""
    largest = max((max(np.shape(value), default=0) for value in arrays.values()), default=0)
    if (rank := max(adapter.rank, *adapter.rank_pattern.values(), 0)) > max(largest, _SAFE_RANK):
        raise WeightError(
            "the adapter does not fit its settings",
            where=path,
            received=f"arrays of {largest} rows or columns at most",
            allowed=f"arrays of the rank {rank} that the settings say",
        )


def _as_ours(
    model: Decoder, arrays: Mapping[str, np.ndarray], path: Path, is_paddle: bool
) -> dict[str, np.ndarray]:
    """The arrays of a file by our names, in our layouts. Raises: WeightError."""
    needed = {name: value.shape for name, value in adapter_state(model).items()}
    transposed_names = {name for name, source in model.weight_sources().items() if source.transposed}
    # peft writes word embeddings and heads beside the adapters, where these are of them or where their size changed.
    whole = {
        name: value.shape for name, value in model.named_parameters() if name in (model.embedding_name, _HEAD)
    }
    state, left_over = {}, []
    for key, value in arrays.items():
        name = _our_name(key)
        if name not in needed and name not in whole:
            left_over.append(key)
            continue
        leaf = name.rpartition(".")[2]
        is_turned = leaf in ("lora_A", "lora_B") or name in transposed_names
        state[name] = np.asarray(value).T if is_turned and not is_paddle else np.asarray(value)
    wrong = [
        f"{name}: {state[name].shape}, ours {shape}"
        for name, shape in {**whole, **needed}.items()
        if name in state and state[name].shape != shape
    ]
    missing = sorted(needed.keys() - state.keys())
    if wrong or missing or left_over:
        raise WeightError(
            "the adapter does not fit the model",
            where=path,
            received="; ".join(
                f"{len(names)} {label}: {', '.join(names[:5])}"
                for label, names in (
                    ("missing", missing),
                    ("left over", left_over),
                    ("of another shape", wrong),
                )
                if names
            ),
            allowed=f"the {len(needed)} arrays of the adapter, for this model",
        )
    return state


def save_adapter(model: Decoder, folder: str | Path, base: str | None = None) -> Path:
    """Write the adapter of a model as peft reads it.

    Args:
        base: The name or the folder of the model under it, for `base_model_name_or_path`.

    Raises:
        WeightError: the model has none.
    """
    adapter, layers, folder = model.config.adapter, adapted_layers(model), Path(folder)
    if adapter is None or not (layers or adapter.modules_to_save):
        raise WeightError("the model has no adapter", where="save_adapter", received=type(model).__name__)
    sources = model.weight_sources()
    arrays = {}
    for name, value in adapter_state(model).items():
        owner, _, leaf = name.rpartition(".")
        if leaf in ("lora_A", "lora_B"):
            arrays[f"{_PREFIX}{owner}.{leaf}.weight"] = value.T
        elif leaf == "lora_magnitude":
            arrays[f"{_PREFIX}{owner}.lora_magnitude_vector"] = value
        else:
            arrays[f"{_PREFIX}{name}"] = value.T if sources[name].transposed else value
    saved = _saved_modules(model, adapter)
    embedding = arrays.get(f"{_PREFIX}{model.embedding_name}")
    if model.size.tie_embeddings and embedding is not None:  # peft's head stays the old embedding else
        arrays[f"{_PREFIX}{_HEAD}"] = embedding
        saved = [*saved, "lm_head"]
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(
        folder / _PEFT_WEIGHTS[0],
        {key: np.ascontiguousarray(value) for key, value in arrays.items()},
        {"format": "pt"},
    )
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": adapter.dropout,
        "target_modules": _suffixes(model, list(layers)) if layers else _NO_TARGETS,
        "bias": adapter.bias,
        "use_rslora": adapter.rslora,
        "use_dora": adapter.dora,
        "modules_to_save": saved or None,
        "rank_pattern": {
            name: adapter.rank_of(name) for name in layers if adapter.rank_of(name) != adapter.rank
        },
        "alpha_pattern": {
            name: alpha for name in layers if (alpha := _alpha(adapter, name)) != adapter.alpha
        },
        "fan_in_fan_out": False,
        "init_lora_weights": True,
    }
    write_file(folder / PEFT_CONFIG, json.dumps(settings, indent=2).encode("utf-8"))
    return folder


def _alpha(adapter: LoRA, name: str) -> float:
    return next(
        (alpha for end, alpha in adapter.alpha_pattern.items() if ends_with(name, end)), adapter.alpha
    )


def _suffixes(model: Decoder, adapted_names: Sequence[str]) -> list[str]:
    """Ends of the names of these layers that no other layer has; whole names where there are none."""
    ends = sorted({name.rpartition(".")[2] for name in adapted_names})
    others = [name for name, _ in model.named_sublayers() if name not in set(adapted_names)]
    clear = not any(ends_with(name, "|".join(map(re.escape, ends))) for name in others)
    return ends if clear else sorted(adapted_names)


def _saved_modules(model: Decoder, adapter: LoRA) -> list[str]:
    names = [name for name, _ in model.named_sublayers()]
    saved_names = {
        name.rpartition(".")[2]
        for name in names
        for pattern in adapter.modules_to_save
        if ends_with(name, pattern)
    }
    return sorted(saved_names)
