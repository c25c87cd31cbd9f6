"""The log of `fleet`."""

from __future__ import annotations

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.utils.log_utils import get_logger

logger = get_logger("INFO", __name__)


def set_log_level(level: int | str) -> None:
    """Show messages from this level on, by number or by name."""
    assert isinstance(level, str | int), "level's type must be str or int"
    logger.setLevel(level.upper() if isinstance(level, str) else level)


def get_log_level_code() -> int:
    """The number of the level."""
    return logger.getEffectiveLevel()


def layer_to_str(base: str, *args: object, **kwargs: object) -> str:
    """A call as text, "Linear(3, 4, bias=True)"."""
    arguments = [*map(str, args), *(f"{name}={value}" for name, value in kwargs.items())]
    return f"{base}({', '.join(arguments)})"


_complete(__name__)
