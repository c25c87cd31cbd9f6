"""Options of a domain's predictor, defined once: a frozen dataclass whose fields are the keywords of `predictor(...)`,
the flags of `oar infer` and the fields of a request to a server.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Union, get_args, get_origin, get_type_hints

from framework.config.arguments import BooleanFlag
from framework.core.errors import ConfigError, InputError, did_you_mean
from framework.vision.deep_samples import check_value_range

if TYPE_CHECKING:
    from framework.export import Artifact

O = TypeVar("O")  # noqa: E741
T = TypeVar("T")


def option(
    default: T,
    help: str,
    *,
    flag: bool = True,
    aliases: tuple[str, ...] = (),
    metavar: tuple[str, ...] | None = None,
    request: bool = True,
) -> T:
    """A field of an options class.

    Args:
        help: What `--help` says.
        flag: Whether the command line has it; what only Python can give, such as an object, has none.
        aliases: Other spellings of the flag.
        metavar: Names of the values in the help.
        request: Whether a request to a server may give it; not what names files or models of the server's machine, or
            decides how much is computed at once.
    """
    return dataclasses.field(
        default=default,
        metadata={
            "help": help,
            "flag": flag,
            "aliases": aliases,
            "metavar": metavar,
            "request": request,
        },
    )


def check_range(value: float | None, name: str, low: float, high: float) -> None:
    """Raises: InputError, where a given value is outside of [low, high]."""
    if value is not None and not low <= value <= high:
        raise InputError(
            f"{name} is out of range", where=name, received=value, allowed=f"{low:g} to {high:g}"
        )


def value_range_option() -> tuple[float, float] | None:
    """The field `value_range` of the options of domains that read images."""
    return option(
        None, "black and white of images of more than 8 bits, such as 0 4095", metavar=("BLACK", "WHITE")
    )


def choose_value_range(
    given_range: tuple[float, float] | None, artifact: Artifact
) -> tuple[float, float] | None:
    """The value range that an option says, else that of the data that the artifact's model learnt from."""
    if given_range is None:
        return artifact.setting("value_range", tuple[float, float] | None, None)
    check_value_range((given_range[0], given_range[1]), "value_range")
    return given_range[0], given_range[1]


def select_classes(
    names: Sequence[str] | None, labels: Sequence[str], where: object
) -> frozenset[int] | None:
    """The indices of classes that are asked for by their names or numbers, several in one text with commas between
    them too; None where all are.

    Raises:
        ConfigError: there is no such class.
    """
    if names is None:
        return None
    whole = frozenset(labels)
    split = [part for name in names for part in ([name] if name in whole else name.split(","))]
    selected = set()
    for name in (one.strip() for one in split):
        if name in whole:
            selected.add(list(labels).index(name))
        elif name.isascii() and name.isdigit() and int(name) < len(labels):
            selected.add(int(name))
        elif name:
            raise ConfigError(
                "the model has no such class",
                where=where,
                received=f"--classes {name}",
                allowed=", ".join(labels[:20])
                + (f" and {len(labels) - 20} more" if len(labels) > 20 else ""),
                fix=did_you_mean(name, labels),
            )
    return frozenset(selected)


def make_options(cls: type[O], given: Mapping[str, object], where: object) -> O:
    """The options of `given` by name; None stands for one that was not given.

    Args:
        where: What takes them, for messages.

    Raises:
        ConfigError: an option that `cls` does not have, or a value that is none of an option's choices.
    """
    names, hints = _names(cls), get_type_hints(cls)
    values = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in names:
            allowed = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
            raise ConfigError(
                "unknown option",
                where=where,
                received=f"{name} (--{name})",
                allowed=", ".join(allowed) or "no options",
                fix=did_you_mean(name, names),
            )
        choices = _choices(hints[names[name]])
        if choices and value not in choices:
            raise ConfigError(
                f"unknown {name}", where=where, received=value, allowed=", ".join(map(str, choices))
            )
        values[names[name]] = value
    return cls(**values)


def _choices(hint: object) -> tuple[object, ...]:
    """The values that a type hint such as `Literal["a", "b"] | None` allows; none where it is no choice."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(value for member in members if get_origin(member) is Literal for value in get_args(member))


def _names(cls: type) -> dict[str, str]:
    """Every spelling of every option, to its field."""
    spellings = {}
    for field in dataclasses.fields(cls):
        if field.init:
            spellings |= dict.fromkeys((field.name, *field.metadata.get("aliases", ())), field.name)
    return spellings


def options_signature(cls: type, function: Callable[..., object]) -> inspect.Signature:
    """The signature of `function(model, ..., **options)` with the fields of `cls` in the place of `options`."""
    parameters = list(inspect.signature(function).parameters.values())
    fields = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in dataclasses.fields(cls)
        if field.init
    ]
    fixed = [p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return inspect.Signature([*fixed, *fields])


def add_option_flags(parser: argparse.ArgumentParser, classes: Iterable[type]) -> tuple[str, ...]:
    """A flag for every spelling of every option of the classes, one for those of several that share it.

    Returns the spellings, under which the parsed values stand; `make_options` knows which options they are of.

    Raises:
        ConfigError: two classes give one spelling to options of different types.
    """
    group = parser.add_argument_group("options", "each for the domains that take it")
    added: dict[str, _FlagArguments] = {}
    for cls in classes:
        hints = get_type_hints(cls)
        for field in dataclasses.fields(cls):
            if not field.init or not field.metadata.get("flag", True):
                continue
            arguments = _arguments(hints[field.name])
            for name in (field.name, *field.metadata.get("aliases", ())):
                if name not in added:
                    help = field.metadata.get("help", "") if name == field.name else f"as --{field.name}"
                    more = {"metavar": m} if (m := field.metadata.get("metavar")) else {}
                    group.add_argument(
                        f"--{name}", default=None, help=help.replace("%", "%%"), **arguments, **more
                    )
                    added[name] = arguments
                elif added[name] != arguments:
                    raise ConfigError(
                        "two domains have an option of one name and of different types",
                        where=f"{cls.__module__}.{cls.__name__}",
                        received=name,
                    )
    return tuple(added)


class _FlagArguments(TypedDict, total=False):
    """What `add_argument` takes besides the name and the help."""

    action: type[argparse.Action]
    choices: Sequence[str]
    type: Callable[[str], object]
    nargs: int | str


def _arguments(hint: type) -> _FlagArguments:
    """What argparse needs for a type hint: a scalar, a choice, a pair, a list of any length, or None beside them."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [member for member in members if member is not NoneType]
    kind = kinds[0]
    if kind is bool:
        return {"action": BooleanFlag}
    if get_origin(kind) is Literal:
        return {"choices": list(get_args(kind))}
    if get_origin(kind) is tuple:
        first, *others = get_args(kind)
        return {"type": first, "nargs": "+" if others == [Ellipsis] else 1 + len(others)}
    return {"type": kind}
