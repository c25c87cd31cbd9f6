"""Keypoints become people: those whose tags are alike belong together. In fixed shapes, so that it can be exported.

Paper: Associative Embedding, https://arxiv.org/abs/1611.05424, section 3.3; HigherHRNet's differs in the costs
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/architectures/keypoint_hrhrnet.py (HrHRNetPostProcess)
Differs: people beyond `max_people` are dropped, where the reference goes on with people of one keypoint; two people of
    exactly the same tag stay two; the best come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from detection.contracts import Poses
from detection.layers.linear_assignment import FORBIDDEN, assign_rows
from framework.nn import functional as F

_WINDOW = 5  # a peak is the highest point of a square of this side
# Of a distance of 1 between tags; heights between 0 and 1 decide among what is about equally far
_TAG_COST = 100


class People(NamedTuple):
    """K people of one image, of whom the first `count` exist."""

    heights: jax.Array
    """[K, J]: 0 where a keypoint was not found"""
    places: jax.Array
    """[K, J] int32: row * W + column"""
    tag_sum: jax.Array
    """[K, T]: of the keypoints found"""
    tag_count: jax.Array
    """[K]"""
    count: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]
    """[] int32"""

    def tags(self) -> jax.Array:
        """[K, T]"""
        return self.tag_sum / jnp.maximum(self.tag_count, 1)[:, None]


def group_by_tags(
    heatmaps: jax.Array,
    tagmaps: Sequence[jax.Array],
    max_people: int = 30,
    heat_threshold: float = 0.1,
    tag_threshold: float = 1.0,
) -> Poses:
    """The people of each image. A person's score is the mean height of its peaks, a missing one counting 0.

    Args:
        heatmaps: [N, H, W, J] float32, of as many pixels as the network's input.
        tagmaps: T maps [N, H, W, J] float32, such as those of the image and of its mirror image.
        max_people: So many peaks of each keypoint are looked at, and so many people found, K.
        heat_threshold: Lower peaks are none.
        tag_threshold: A peak that is not nearer to a person in the tags begins a new one.

    Returns:
        Keypoints that no peak gave are where the height, less the rounded distance to the person's tags, is greatest;
        if nothing is above 0 their score is 0 and their place the origin.
    """
    n, height, width, keypoints = heatmaps.shape
    pooled = F.max_pool2d(heatmaps, _WINDOW, 1, _WINDOW // 2)
    peaks = jnp.where(heatmaps == pooled, heatmaps, 0).transpose(0, 3, 1, 2)
    heights, cells = lax.top_k(peaks.reshape(n, keypoints, height * width), max_people)
    cells = cells.astype(jnp.int32)
    maps, *tags = (x.transpose(0, 3, 1, 2) for x in (heatmaps, *tagmaps))
    flat = [x.reshape(n, keypoints, height * width) for x in tags]
    tags_at = jnp.stack([jnp.take_along_axis(x, cells, axis=2) for x in flat], axis=-1)  # [N, J, P, T]

    def one(
        heights: jax.Array, cells: jax.Array, tags_at: jax.Array, maps: jax.Array, tags: list[jax.Array]
    ) -> Poses:
        return _complete_people(
            _match_peaks(heights, cells, tags_at, heat_threshold, tag_threshold), maps, tags
        )

    return jax.vmap(one)(heights, cells, tags_at, maps, tags)


def _match_peaks(
    heights: jax.Array, cells: jax.Array, tags: jax.Array, heat_threshold: float, tag_threshold: float
) -> People:
    """One keypoint after the other: its peaks [J, P], highest first, go to the people found so far, or begin new
    ones."""
    keypoints, most = heights.shape
    people = People(
        jnp.zeros((most, keypoints)),
        jnp.zeros((most, keypoints), jnp.int32),
        jnp.zeros((most, tags.shape[-1])),
        jnp.zeros(most),
        jnp.zeros((), jnp.int32),
    )
    slots = jnp.arange(most, dtype=jnp.int32)

    def add(people: People, peak: tuple[jax.Array, ...]) -> tuple[People, None]:
        keypoint, heights, cells, tags = peak
        real = heights > heat_threshold
        rows = real.sum(dtype=jnp.int32)
        distances = jnp.sqrt(((tags[:, None] - people.tags()[None]) ** 2).sum(axis=-1))  # [P, K]
        costs = jnp.round(distances) * _TAG_COST - heights[:, None]
        # Where peaks are more than people some begin new ones, at no cost.
        free = jnp.where(slots < rows, 0.0, FORBIDDEN)
        person = assign_rows(jnp.where(slots < people.count, costs, free), rows)
        distance = distances[slots, jnp.maximum(person, 0)]
        matched = real & (person < people.count) & (distance < tag_threshold)
        new = real & ~matched
        person = jnp.where(matched, person, people.count + jnp.cumsum(new, dtype=jnp.int32) - 1)
        person = jnp.where(real, person, most)  # past the end, where nothing is written
        return (
            People(
                people.heights.at[person, keypoint].set(heights, mode="drop"),
                people.places.at[person, keypoint].set(cells, mode="drop"),
                people.tag_sum.at[person].add(tags, mode="drop"),
                people.tag_count.at[person].add(1, mode="drop"),
                jnp.minimum(people.count + new.sum(dtype=jnp.int32), most),
            ),
            None,
        )

    people, _ = lax.scan(add, people, (jnp.arange(keypoints), heights, cells, tags))
    return people


def _complete_people(people: People, maps: jax.Array, tags: Sequence[jax.Array]) -> Poses:
    """People on maps [J, H, W] and T tags [J, H, W]: missing keypoints are searched, places refined."""
    most, num_keypoints = people.heights.shape
    rows, columns = (jnp.asarray(side, jnp.int32) for side in maps.shape[1:])
    each = jnp.arange(num_keypoints)
    missing = (people.heights == 0).any(axis=1) & (jnp.arange(most) < people.count)
    searched = jnp.argsort(~missing)

    def search(number: jax.Array, best: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        person = searched[number]
        mean = people.tags()[person]

        def left(maps: jax.Array, tags: Sequence[jax.Array]) -> jax.Array:
            return maps - jnp.round(
                jnp.sqrt(sum((tag - own) ** 2 for tag, own in zip(tags, mean, strict=True)))
            )

        highest = left(maps, tags).max(axis=2)  # [J, H]: an argmax over all pixels takes twice as long
        y = highest.argmax(axis=1).astype(jnp.int32)
        x = left(maps[each, y], [tag[each, y] for tag in tags]).argmax(axis=1).astype(jnp.int32)
        return best[0].at[person].set(highest.max(axis=1)), best[1].at[person].set(y * columns + x)

    best = (jnp.zeros((most, num_keypoints)), jnp.zeros((most, num_keypoints), jnp.int32))
    heights, cells = lax.fori_loop(0, missing.sum(), search, best)

    present = people.heights > 0
    heights = jnp.where(present, people.heights, jnp.maximum(heights, 0))
    cells = jnp.where(present, people.places, cells)
    y, x = cells // columns, cells % columns

    def at(dx: int, dy: int) -> jax.Array:
        return maps[each, jnp.clip(y + dy, 0, rows - 1), jnp.clip(x + dx, 0, columns - 1)]

    # From the pixel's centre a quarter towards its higher neighbour.
    xs = x.astype(jnp.float32) + jnp.where(at(1, 0) > at(-1, 0), 0.75, 0.25)
    ys = y.astype(jnp.float32) + jnp.where(at(0, 1) > at(0, -1), 0.75, 0.25)
    keypoints = jnp.where(heights[..., None] > 0, jnp.stack([xs, ys, heights], axis=-1), 0)
    scores, order = lax.top_k(people.heights.mean(axis=1), most)
    return Poses(keypoints[order], jnp.clip(scores, 0, 1))
