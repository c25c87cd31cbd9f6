"""Which samples are held out: a share of all, whole groups of them, and of each class alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import numpy as np

from framework.core.errors import ConfigError, InputError

_FOLDER = "folder"


def choose(
    keys: Sequence[Sequence[Hashable]],
    share: float,
    seed: int,
    where: Path,
    classes: Sequence[Iterable[str]] | None = None,
) -> list[int]:
    """0 or 1 for each sample: 1 of about `share` of them, which are held out.

    Samples that share a key, such as the hash of their content or the name of their group, get the same number, also
    where others join them. With `classes` the samples of each class are divided by the share: of those with several
    classes the rarest class first (https://doi.org/10.1007/978-3-642-23808-6_10), so that a class with two groups or
    more is in both parts.

    Args:
        keys: Of each sample.
        classes: Of each sample: one of an image with a class, several of an image with objects.

    Raises:
        InputError: all samples belong together, so that a part would be empty.
    """
    groups = _join(keys)
    if len(groups) < 2:
        raise InputError(
            "a part would be empty",
            where=where,
            received=f"{len(groups)} different samples"
            if len(keys) < 2
            else f"{len(keys)} samples in one group",
            allowed="2 or more",
        )
    order = np.random.default_rng(seed).permutation(len(groups)).tolist()
    groups = [groups[number] for number in order]
    count = max(1, round(share * len(keys)))
    held_out = (
        _take_groups(groups, count) if classes is None else _take_by_class(groups, count, share, classes)
    )
    numbers = [0] * len(keys)
    for group in held_out:
        for index in group:
            numbers[index] = 1
    return numbers


def _take_groups(groups: list[list[int]], count: int) -> list[list[int]]:
    retained: list[list[int]] = []
    for group in groups[:-1]:  # one stays to train on
        if sum(map(len, retained)) >= count:
            break
        retained.append(group)
    return retained


def _take_by_class(
    groups: list[list[int]], count: int, share: float, classes: Sequence[Iterable[str]]
) -> list[list[int]]:
    """The groups that are held out, so that each class has its share there; samples without a class come last."""
    counts = [Counter(name for index in group for name in set(classes[index])) for group in groups]
    totals = sum(counts, Counter[str]())
    rest = {name: share * total for name, total in totals.items()}
    left, selection = list(range(len(groups))), list[int]()
    decided: set[int] = set()
    samples = 0
    while True:
        open_groups = [number for number in left if number not in decided]
        open_counts = sum((counts[number] for number in open_groups), Counter[str]())
        if not open_counts:
            break
        name = min(open_counts, key=lambda one: (open_counts[one], one))
        members = [number for number in open_groups if counts[number][name]]
        for number in members:
            needed = rest[name]
            whole = needed >= counts[number][name] / 2 and len(selection) < len(groups) - 1
            # A class of several groups is held out at least once, and not whole.
            last = number == members[-1]
            if totals[name] == open_counts[name] and len(members) > 1 and last:
                none_taken = not any(one in selection for one in members)
                whole = none_taken or (whole and any(one not in selection for one in members[:-1]))
            decided.add(number)
            if whole:
                selection.append(number)
                samples += len(groups[number])
                for other, amount in counts[number].items():
                    rest[other] -= amount
    for number in left:
        if number not in decided and samples < count and len(selection) < len(groups) - 1:
            selection.append(number)
            samples += len(groups[number])
    if not selection:
        selection.append(0)
    return [groups[number] for number in selection]


def _join(keys: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """The indices of the samples that share keys, in the order of the first of each group."""
    parents = list(range(len(keys)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    first: dict[Hashable, int] = {}
    for index, of_sample in enumerate(keys):
        for key in of_sample:
            one, other = root(first.setdefault(key, index)), root(index)
            parents[max(one, other)] = min(one, other)
    groups: dict[int, list[int]] = {}
    for index in range(len(keys)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


class GroupRule:
    """Tells the group of a file by its path.

    Args:
        pattern: "folder" for the folder that a file lies in; else a regular expression that is searched in the path
            with slashes, up to its suffix: the group is what its parentheses match, or all that it matches.

    Raises:
        ConfigError: it is no regular expression.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        try:
            self._expression = None if pattern == _FOLDER else re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                "this is no regular expression",
                where="group_by",
                received=f"{pattern}: {error}",
                allowed=r"such as '(.*)_\d+', which has the group in its parentheses; or folder",
            ) from error

    def groups(self, names: Sequence[str], where: Path) -> list[str]:
        """The group of each path. Raises: InputError, where the expression matches some of them nowhere."""
        if self._expression is None:
            return [name.rpartition("/")[0] for name in names]
        matches = [self._expression.search(re.sub(r"\.[^./]*$", "", name)) for name in names]
        missing = [name for name, match in zip(names, matches) if match is None]
        if missing:
            raise InputError(
                f"{len(missing)} of {len(names)} names have no group",
                where=where,
                received=", ".join(missing[:5]),
                allowed=f"paths in which {self.pattern!r} is found",
                fix="change the expression of --group_by",
            )
        return ["".join(match.groups(default="")) or match.group() for match in matches if match is not None]
