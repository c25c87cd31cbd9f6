"""Shapes that are parts of one object, as formats with groups tell them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from framework.vision.annotations.objects import AnnotatedObject, Box, bounds

_NEARLY = 1.5  # pixels: some tools write the last pixel of a mask, others the edge behind it


class GroupedShape(NamedTuple):
    """A shape, and the name of its group; "" where it is in none."""

    one: AnnotatedObject
    group: str
    is_polygon: bool


def join_groups(shapes: Iterable[GroupedShape]) -> list[AnnotatedObject]:
    """The objects. Of one group and one label, polygons are outlines of one object, and a box with the bounds of an
    outline or of a mask is none of its own: what comes from COCO's format has both of each object."""
    objects: list[GroupedShape] = []
    positions: dict[tuple[str, str], int] = {}
    for shape in shapes:
        one, group, is_polygon = shape
        position = len(objects)
        if is_polygon and group:
            position = positions.setdefault((one.label, group), position)
        if position == len(objects):
            objects.append(shape)
            continue
        first = objects[position].one
        outlines = (*first.outlines, *one.outlines)
        joined = replace(
            first,
            box=bounds(outlines),
            outlines=outlines,
            attributes={**one.attributes, **first.attributes},
            is_valid=first.is_valid and one.is_valid,
        )
        objects[position] = GroupedShape(joined, group, True)
    shaped: dict[tuple[str, str], list[Box]] = {}
    for one, group, _ in objects:
        if group and one.has_shape:
            shaped.setdefault((one.label, group), []).append(one.box)
    return [
        one
        for one, group, _ in objects
        if one.has_shape or not any(_are_near(one.box, box) for box in shaped.get((one.label, group), ()))
    ]


def _are_near(box: Box, other: Box) -> bool:
    return all(abs(a - b) <= _NEARLY for a, b in zip(box, other, strict=True))
