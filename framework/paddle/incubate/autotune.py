"""paddle.incubate.autotune: settings of Paddle's tuning of kernels, layouts and readers. XLA tunes by itself."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path

_enabled = {"kernel": False, "layout": False, "dataloader": False}


def _read(path: str | Path) -> Mapping[str, Mapping[str, object]]:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        warnings.warn(f"Load config error: {error}. Use default configuration for auto-tuning.", stacklevel=3)
        return {}


def set_config(config: Mapping[str, Mapping[str, object]] | str | Path | None = None) -> None:
    """Record which parts are to be tuned; results and speed are the same with all of them.

    Args:
        config: {"kernel", "layout" or "dataloader": {"enable": bool}}, or a JSON file of it; None: all of them.
    """
    if config is None:
        _enabled.update(dict.fromkeys(_enabled, True))
        return
    settings = _read(config) if isinstance(config, str | Path) else config
    for name in _enabled:
        enable = settings.get(name, {}).get("enable")
        if isinstance(enable, bool):
            _enabled[name] = enable
        elif enable is not None:
            warnings.warn(
                f"The auto-tuning configuration of the {name} is incorrect. `enable` should be bool, "
                f"but received {type(enable).__name__}.",
                stacklevel=2,
            )


def use_layout_autotune() -> bool:
    """Whether layouts are to be tuned, as recorded."""
    return _enabled["layout"]


def enable_layout_autotune() -> None:
    """Record that layouts are to be tuned."""
    _enabled["layout"] = True


def disable_layout_autotune() -> None:
    """Record that layouts are not to be tuned."""
    _enabled["layout"] = False
