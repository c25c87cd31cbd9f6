"""Overrides that one number of a command line stands for: they depend on what the config says already, which the
functions take as plain mappings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from framework.config.arguments import setting
from framework.core.errors import ConfigError
from framework.core.types import JSON

# Fields of schedules that say how fast a schedule is as a whole; the first that there is, is its learning rate.
_BASES = ("learning_rate", "max_learning_rate", "values")
# All fields of schedules that are learning rates: they are scaled together.
_RATES = (*_BASES, "base_learning_rate", "end_learning_rate", "start_lr", "end_lr", "eta_min", "min_lr")


def _find(settings: JSON, key: str) -> JSON:
    """What stands under a dotted key; None where nothing does."""
    for name in key.split("."):
        settings = settings.get(name) if isinstance(settings, dict) else None
    return settings


def learning_rate_overrides(settings: Mapping[str, JSON], value: float) -> tuple[str, ...]:
    """Overrides that make `value` the learning rate of a config; its schedule keeps its form, as do its warmup's rates.

    Raises:
        ConfigError: the value is not above 0, or the config has no learning rate.
    """
    if not value > 0:
        raise ConfigError(
            "a learning rate is above 0", where="--learning_rate", received=value, allowed="such as 0.001"
        )
    schedule = {"learning_rate": _find(settings, "optim.learning_rate")}
    base = _base_rate(schedule)
    if base is None:
        raise ConfigError(
            "the config has no learning rate to change",
            where="optim.learning_rate",
            received=schedule["learning_rate"],
            allowed="a number above 0, or a schedule with one",
            fix=f"-o optim.learning_rate={value:g}",
        )
    return tuple(_scale(schedule, "optim", base, value))


def _base_rate(schedule: dict[str, JSON]) -> float | None:
    """The number above 0 that stands for the learning rate of a schedule, of the innermost where they are nested."""
    rate = next((schedule[name] for name in _BASES if schedule.get(name) is not None), None)
    if isinstance(rate, dict):
        return _base_rate(rate)
    if isinstance(rate, list):
        rate = rate[0] if rate else None
    if not isinstance(rate, int | float) or isinstance(rate, bool):
        return None
    return float(rate) if rate > 0 else None


def _scale(schedule: Mapping[str, JSON], path: str, base: float, value: float) -> list[str]:
    changes = []
    for name, child in schedule.items():
        key = f"{path}.{name}"
        if isinstance(child, dict):
            changes += _scale(child, key, base, value)
        elif name in _RATES and isinstance(child, list):
            changes.append(
                f"{key}={[_rate(rate, base, value) for rate in child if isinstance(rate, int | float)]}"
            )
        elif name in _RATES and isinstance(child, int | float):
            changes.append(f"{key}={_rate(child, base, value)!r}")
    return changes


def _rate(rate: float, base: float, value: float) -> float:
    return float(value) if rate == base else rate / base * value


def data_overrides(settings: Mapping[str, JSON], root: str) -> tuple[str, ...]:
    """Overrides that take the data sets of a config from another folder.

    Where the config has two, such as data/cells/train and data/cells/val, those of the same names in `root` are meant.

    Raises:
        ConfigError: none of its data sets has a `root`.
    """
    keys = [f"data.{part}.dataset.root" for part in ("train", "eval")]
    before = {key: Path(str(told)) for key in keys if (told := _find(settings, key)) is not None}
    if not before:
        there = _find(settings, "data.train.dataset") or None
        raise ConfigError(
            "the data of this config are not one folder",
            where="--data",
            received=", ".join(there) if isinstance(there, Mapping) else "no data.train.dataset",
            allowed="a config whose data sets have a `root`",
            fix="set the keys of its data sets with -o data.train.dataset.…=…",
        )
    common = Path(os.path.commonpath(before.values()))
    replaced = {key: Path(root) / path.relative_to(common) for key, path in before.items()}
    return tuple(text for key, path in replaced.items() for text in setting(key, path.as_posix()))


def class_overrides(
    settings: Mapping[str, JSON], names: Sequence[str], type_around: Callable[[str], str | None]
) -> tuple[str, ...]:
    """Overrides that let the data sets of a config have the classes of these names alone, and its model as many.

    Args:
        type_around: For the type of a data set that of the one around it which has some of its classes; None for those
            that take `classes` themselves.

    Raises:
        ConfigError: a class is named twice, or the config has no data.
    """
    if len(set(names)) < len(names):
        raise ConfigError("classes must be different names", where="--classes", received=", ".join(names))
    splits = [name for name in ("train", "eval") if _find(settings, f"data.{name}.dataset") is not None]
    if not splits:
        raise ConfigError("the config has no data whose classes could be chosen", where="--classes")
    changes: list[str] = []
    for split in splits:
        key = f"data.{split}.dataset"
        dataset = _find(settings, key)
        around = type_around(str(_find(settings, f"{key}.type")))
        if around is None:
            changes += setting(f"{key}.classes", list(names))
        else:
            changes += (
                f"{key}=null",
                *setting(key, {"type": around, "dataset": dataset, "classes": list(names)}),
            )
    return (*changes, *setting("model.num_classes", len(names)))


def evaluation_overrides(recipe: Mapping[str, JSON], settings: Mapping[str, JSON]) -> tuple[str, ...]:
    """Overrides that evaluate a short run at the end of each epoch, as the steps between two evaluations of its recipe
    are meant for a long one.

    A run is short with a quarter of the recipe's epochs or less, with other units of length, or where the recipe's
    steps would leave the last evaluation alone.

    Args:
        recipe: The config as it is in its file.
        settings: The config with all that is asked for.
    """
    every = _find(settings, "train.eval_every")
    if every is None or every != _find(recipe, "train.eval_every"):
        return ()
    before, now = (
        tuple(_find(one, f"train.{unit}") for unit in ("epochs", "iters")) for one in (recipe, settings)
    )
    if before == now:
        return ()
    (recipe_epochs, _), (epochs, iters) = before, now
    if isinstance(epochs, int):
        is_short = 4 * epochs <= recipe_epochs if isinstance(recipe_epochs, int) else True
    else:
        is_short = isinstance(iters, int) and isinstance(every, int) and iters <= every
    return ("train.eval_every=null", "train.save_every=null") if is_short else ()


def worker_overrides(settings: Mapping[str, JSON], count: int) -> tuple[str, ...]:
    """Overrides that give each data set of a config so many workers."""
    splits = [name for name in ("train", "eval") if _find(settings, f"data.{name}")]
    return tuple(f"data.{name}.num_workers={count}" for name in splits)


def callback_overrides(settings: Mapping[str, JSON], *added: dict[str, str]) -> tuple[str, ...]:
    """Overrides that add callbacks, as mappings with their `type`, to those of a config."""
    there = _find(settings, "train.callbacks") or []
    return setting("train.callbacks", [*(there if isinstance(there, list) else [there]), *added])


def ema_overrides(settings: Mapping[str, JSON]) -> tuple[str, ...]:
    """Overrides that average the parameters of a config, with the config's own rule where it has one."""
    return () if _find(settings, "train.ema") is not None else ("train.ema={}",)
