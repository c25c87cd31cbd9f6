"""The ids of a file in COCO's format: whole numbers, or texts as some tools write them; categories of one name; and the
names of images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from framework.core.errors import InputError
from framework.core.fields import read_text
from framework.core.types import JSON

Id = int | str
_MOST_DIGITS = 18  # of an id that is a text, with zeros in front: fewer than an integer of 64 bits has


def read_id(value: object, ids: Container[Id] | None = None) -> Id | None:
    """The id that a value is: a whole number, also where it is written as 3.0, or a text; None where it is neither.

    With `ids` it is the one of them that the value means, as one tool writes 17 where another writes "17" or
    "000017"; None where it means none of them.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str) or value == "":
        return None
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    number = value if isinstance(value, int) else _whole_number(value)
    if isinstance(ids, range):  # which compares a text with each of its numbers
        return number if number is not None and number in ids else None
    if ids is None or value in ids:
        return value
    if number is None or number in ids:
        return number
    texts = (str(number).zfill(digits) for digits in range(1, _MOST_DIGITS + 1))
    return next((text for text in texts if text in ids), None)


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def entries_by_id(
    entries: Sequence[Mapping[str, JSON]], what: str, file: Path
) -> dict[Id, Mapping[str, JSON]]:
    """The entries of a list by their ids, in the order of the ids, numbers before texts.

    Raises:
        InputError: the list is empty, an entry has no id, or one that another entry has.
    """
    by_id: dict[Id, Mapping[str, JSON]] = {}
    for number, one in enumerate(entries, start=1):
        key = read_id(one.get("id"))
        if key is None or key in by_id:
            raise InputError(
                f"a{'n' if what == 'image' else ''} {what} has no id of its own",
                where=f"{file}, {what} number {number}",
                received=f"id {one.get('id')!r}",
                allowed="a whole number or a text that no other entry of the list has",
            )
        by_id[key] = one
    if not by_id:
        raise InputError(f"the file lists no {what}", where=file, allowed="one or more")
    return dict(sorted(by_id.items(), key=lambda item: _order(item[0])))


def _order(key: Id) -> tuple[bool, int, str]:
    number = key if isinstance(key, int) else _whole_number(key)
    return number is None, number or 0, str(key)


def distinct_categories(
    data: Mapping[str, Sequence[Mapping[str, JSON]]], file: Path
) -> tuple[dict[Id, Mapping[str, JSON]], list[str]]:
    """The categories by id, and what is to be said of those that are left out.

    Of several categories of one name those without an annotation are left out: Roboflow lists the group of the classes
    as category 0, often under the name of a class.

    Raises:
        InputError: as `entries_by_id`; or two categories of one name have annotations.
    """
    categories = entries_by_id(data["categories"], "category", file)
    by_name: dict[str, list[Id]] = defaultdict(list)
    for key, one in categories.items():
        by_name[read_text(one, "name", f"{file}, category {key}", default=str(key)).strip()].append(key)
    repeated = {name: keys for name, keys in by_name.items() if len(keys) > 1}
    if not repeated:
        return categories, []
    used = {read_id(one.get("category_id"), categories) for one in data["annotations"]}
    notes = []
    for name, keys in repeated.items():
        annotated = [key for key in keys if key in used] or keys[-1:]
        listed = " and ".join(map(str, keys))
        if len(annotated) > 1:
            raise InputError(
                "two categories have one name, so results could not tell them apart",
                where=file,
                received=f"categories {listed} are both called {name!r}, and both have annotations",
                allowed="a name of its own for each category",
                fix="rename one of them, or give the annotations of both one category_id",
            )
        notes += [
            f"categories {listed} are both called {name!r}: category {key}, which has no annotation"
            for key in keys
            if key not in annotated
        ]
        for key in set(keys) - set(annotated):
            del categories[key]
    return categories, notes


def find_file_name(entry: Mapping[str, JSON]) -> JSON:
    """The name of an image as the entry says it; of LVIS, which has an address alone, its last folder and its file."""
    address = entry.get("coco_url")
    if "file_name" not in entry and isinstance(address, str) and address:
        return "/".join(address.split("/")[-2:])
    return entry.get("file_name")


def read_file_name(entry: Mapping[str, JSON], where: str) -> str:
    """The name of an image, see `find_file_name`. Raises: InputError, where there is none, or it is no text."""
    name = find_file_name(entry)
    return read_text(entry if name is None else {"file_name": name}, "file_name", where)
