"""paddle.jit.dy2static.logging_utils: what the conversion of source tells, by levels that a program or the environment
sets (TRANSLATOR_VERBOSITY, TRANSLATOR_CODE_LEVEL)."""

from __future__ import annotations

import ast
import logging
import os

from framework.paddle._kernel.modules import complete as _complete

VERBOSITY_ENV_NAME = "TRANSLATOR_VERBOSITY"
CODE_LEVEL_ENV_NAME = "TRANSLATOR_CODE_LEVEL"
LOG_AllTransformer = 100  # the level of the converted source


class TranslatorLogger:
    """Messages and converted source for the log, and for stdout where that is asked for.

    Attributes:
        logger: Where they go.
        logger_name: Its name.
    """

    logger_name = "Dynamic-to-Static"

    def __init__(self) -> None:
        self.logger = logging.getLogger(self.logger_name)
        self._levels: dict[str, int | None] = {}
        self._to_stdout: dict[str, bool] = {}

    @property
    def verbosity_level(self) -> int:
        """Messages up to this level are written; -1: none but errors."""
        return self._level(VERBOSITY_ENV_NAME)

    @verbosity_level.setter
    def verbosity_level(self, level: int | None) -> None:
        self._levels[VERBOSITY_ENV_NAME] = self.check_level(level)

    @property
    def transformed_code_level(self) -> int:
        """Source of this level is written; -1: none."""
        return self._level(CODE_LEVEL_ENV_NAME)

    @transformed_code_level.setter
    def transformed_code_level(self, level: int | None) -> None:
        self._levels[CODE_LEVEL_ENV_NAME] = self.check_level(level)

    def _level(self, variable: str) -> int:
        level = self._levels.get(variable)
        return int(os.environ.get(variable, -1)) if level is None else level

    @property
    def need_to_echo_log_to_stdout(self) -> bool:
        """Whether messages go to stdout, too."""
        return self._to_stdout.get("log", False)

    @need_to_echo_log_to_stdout.setter
    def need_to_echo_log_to_stdout(self, echo: bool | None) -> None:
        self._to_stdout["log"] = _switch(echo)

    @property
    def need_to_echo_code_to_stdout(self) -> bool:
        """Whether source goes to stdout, too."""
        return self._to_stdout.get("code", False)

    @need_to_echo_code_to_stdout.setter
    def need_to_echo_code_to_stdout(self, echo: bool | None) -> None:
        self._to_stdout["code"] = _switch(echo)

    @staticmethod
    def check_level(level: int | None) -> int | None:
        """The level. Raises: TypeError: it is no integer."""
        if level is not None and not isinstance(level, int):
            raise TypeError(f"Level is not an integer: {level}")
        return level

    def has_code_level(self, level: int) -> bool:
        """Whether source of this level is written."""
        return self.check_level(level) == self.transformed_code_level

    def has_verbosity(self, level: int) -> bool:
        """Whether messages of this level are written."""
        self.check_level(level)
        return self.verbosity_level >= level

    def error(self, msg: str, *args: object) -> None:
        """Write an error, whatever the level."""
        self._write(logging.ERROR, msg, args, self.need_to_echo_log_to_stdout)

    def warn(self, msg: str, *args: object) -> None:
        """Write a warning where any level is set."""
        if self.verbosity_level != -1:
            self._write(logging.WARNING, msg, args, self.need_to_echo_log_to_stdout)

    def log(self, level: int, msg: str, *args: object) -> None:
        """Write a message of a level."""
        if self.has_verbosity(level):
            self._write(logging.INFO, f"(Level {level}) {msg}", args, self.need_to_echo_log_to_stdout)

    def log_transformed_code(self, level: int, ast_node: ast.AST | str, transformer_name: str) -> None:
        """Write source, or that of a tree, of a level."""
        if self.has_code_level(level):
            which = "the last level" if level == LOG_AllTransformer else f"the level {level}"
            source = ast_node if isinstance(ast_node, str) else f"{ast.unparse(ast_node)}\n"
            header = f"After {which} ast transformer: '{transformer_name}', the transformed code:\n"
            self._write(logging.INFO, "%s", (header + source,), self.need_to_echo_code_to_stdout)

    def _write(self, severity: int, msg: str, args: tuple[object, ...], to_stdout: bool) -> None:
        if self.logger.getEffectiveLevel() > severity:
            self.logger.setLevel(severity)  # levels here decide, not those of the root
        self.logger.log(severity, msg, *args)
        if to_stdout:
            text = msg % args if args else msg
            print(f"{self.logger_name} {logging.getLevelName(severity)}: {text}")


def _switch(echo: bool | None) -> bool:
    """Raises: AssertionError: it is no bool."""
    assert echo is None or isinstance(echo, bool), f"also_to_stdout is a bool, received {echo!r}"
    return bool(echo)


_TRANSLATOR_LOGGER = TranslatorLogger()


def set_verbosity(level: int | None = 0, also_to_stdout: bool = False) -> None:
    """Write messages of the conversion up to this level. Raises: TypeError, AssertionError: no integer, no bool."""
    _TRANSLATOR_LOGGER.verbosity_level = level  # type: ignore[assignment]
    _TRANSLATOR_LOGGER.need_to_echo_log_to_stdout = also_to_stdout


def get_verbosity() -> int:
    """The level of messages; -1: none."""
    return _TRANSLATOR_LOGGER.verbosity_level


def set_code_level(level: int | None = LOG_AllTransformer, also_to_stdout: bool = False) -> None:
    """Write the converted source of functions, whose level is 100; source is converted in one step here.

    Raises:
        TypeError: the level is no integer. AssertionError: `also_to_stdout` is no bool.
    """
    _TRANSLATOR_LOGGER.transformed_code_level = level  # type: ignore[assignment]
    _TRANSLATOR_LOGGER.need_to_echo_code_to_stdout = also_to_stdout


def get_code_level() -> int:
    """The level of source; -1: none."""
    return _TRANSLATOR_LOGGER.transformed_code_level


error, warn, log = _TRANSLATOR_LOGGER.error, _TRANSLATOR_LOGGER.warn, _TRANSLATOR_LOGGER.log
log_transformed_code = _TRANSLATOR_LOGGER.log_transformed_code

_complete(__name__)
