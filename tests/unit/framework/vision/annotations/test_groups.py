from __future__ import annotations

import numpy as np

from framework.vision.annotations.groups import GroupedShape, join_groups
from framework.vision.annotations.objects import AnnotatedObject, bounds

BOX = (10.0, 5.0, 30.0, 25.0)


def polygon(x: float, y: float, group: str = "1") -> GroupedShape:
    """20 x 20 pixels."""
    outline = np.array([[x, y], [x + 20, y], [x + 20, y + 20], [x, y + 20]], np.float64)
    return GroupedShape(AnnotatedObject("cat", bounds([outline]), (outline,)), group, True)


def box(place: tuple[float, float, float, float] = BOX, group: str = "1", label: str = "cat") -> GroupedShape:
    return GroupedShape(AnnotatedObject(label, place), group, False)


def places(*shapes: GroupedShape) -> list[tuple[float, ...]]:
    return [one.box for one in join_groups(shapes)]


def test_a_box_around_the_shape_of_its_group_is_no_object_of_its_own():
    mask = GroupedShape(AnnotatedObject("cat", BOX, (), np.ones((20, 20), bool)), "1", False)
    for shape in (polygon(10, 5), mask):
        assert places(shape, box()) == places(box(), shape) == [BOX]
        assert join_groups([box(), shape])[0].has_shape
    assert places(mask, box((10, 5, 29, 24))) == [BOX]  # the edges of the last pixel or the pixel itself
    assert places(polygon(10, 5), polygon(40, 5), box((10, 5, 60, 25))) == [(10, 5, 60, 25)]


def test_other_boxes_stay():
    for other in (box(group="2"), box(group=""), box(label="dog"), box((10, 5, 33, 25))):
        assert len(places(polygon(10, 5), other)) == 2
    assert places(polygon(10, 5, ""), box(group="")) == [BOX, BOX] == places(box(), box())
    assert len(places(polygon(10, 5, "1"), polygon(40, 5, "2"))) == 2


def test_an_object_of_several_outlines_counts_where_all_of_them_do():
    difficult = GroupedShape(
        AnnotatedObject("cat", BOX, polygon(10, 5).one.outlines, is_valid=False), "1", True
    )
    (joined,) = join_groups([polygon(40, 5), difficult])
    assert len(joined.outlines) == 2 and not joined.is_valid
