"""Detection on images too large to be seen whole: overlapping tiles, and lines that a cut went through joined again.

A panorama of 30,000 x 1,000 pixels scaled to a longest side of 960 would be 32 rows high. So an image whose aspect is
above `max_aspect` is cut along its longer side into tiles of half that aspect, neighbours sharing a quarter. An image
of small letters is cut both ways. A line so long that a recogniser would see it squeezed is cut in turn, between words.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from framework.vision.contours import cut_quads, quad_sizes

Detect = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

_SHARED = 0.25  # of a tile's length lies in the next tile too
_TOUCH = 0.01  # of a tile's length: a quad that comes this close to a cut was probably cut
_LEAST_TILE = 160  # pixels along a strip: shorter tiles of a low one cost as much each, and cut its words
_FLAT = 12  # values between the darkest and the brightest of a tile in which nothing is written
_COMMON = 0.5  # of the shorter length of two quads on one line, above which they are one line
_GAP = 0.3  # of a line's height: the usual space between words
_SEARCH = 3.0  # line heights to either side in which a gap is looked for


def tile_starts(length: int, tile: int) -> list[int]:
    """Where tiles of `tile` pixels start so that they cover `length` and share about a quarter with the next."""
    if length <= tile:
        return [0]
    count = int(np.ceil((length - tile) / (tile * (1 - _SHARED)))) + 1
    return [round(i * (length - tile) / (count - 1)) for i in range(count)]


def detect_in_tiles(detect: Detect, image: np.ndarray, max_aspect: float) -> tuple[np.ndarray, np.ndarray]:
    """`detect(image)`, tile by tile where the image is longer than `max_aspect` times its other side; tiles of one
    colour are left out.

    Returns quads [N, 4, 2] float32 in pixels of `image` and scores [N].
    """
    height, width = image.shape[:2]
    if max(height, width) <= max_aspect * min(height, width):
        return detect(image)
    along = 0 if width >= height else 1
    tile = max(round(min(height, width) * max_aspect / 2), _LEAST_TILE)
    return _detect_along(_skip_flat(detect), image, tile, along)


def detect_in_grid(detect: Detect, image: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """`detect` on square tiles of `side` pixels that cover the image; tiles of one colour are left out.

    Returns quads [N, 4, 2] float32 in pixels of `image` and scores [N].
    """
    find = _skip_flat(detect)
    return _detect_along(lambda strip: _detect_along(find, strip, side, 0), image, side, 1)


def _skip_flat(detect: Detect) -> Detect:
    def find(tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if np.ptp(tile) < _FLAT:
            return np.zeros((0, 4, 2), np.float32), np.zeros(0, np.float32)
        return detect(tile)

    return find


def _detect_along(detect: Detect, image: np.ndarray, tile: int, along: int) -> tuple[np.ndarray, np.ndarray]:
    """`detect` on tiles of `tile` pixels along one axis of xy, 0 or 1."""
    length = image.shape[1 - along]
    starts = tile_starts(length, tile)
    if len(starts) == 1:
        return detect(image)
    # A line in the overlap is found twice; the middle of the overlap decides whose it is, unless it was cut.
    quads: list[np.ndarray] = []
    scores: list[float] = []
    cut: list[bool] = []
    for number, start in enumerate(starts):
        part = image[:, start : start + tile] if along == 0 else image[start : start + tile]
        found, values = detect(part)
        lower = -1.0 if number == 0 else (start + starts[number - 1] + tile) / 2
        upper = length + 1.0 if number == len(starts) - 1 else (starts[number + 1] + start + tile) / 2
        for quad, score in zip(found.astype(np.float32), values):
            low, high = quad[:, along].min(), quad[:, along].max()
            touches = (number > 0 and low < tile * _TOUCH) or (
                number < len(starts) - 1 and high > tile * (1 - _TOUCH) - 1
            )
            if high - low < min(tile * _SHARED / 2, np.ptp(quad[:, 1 - along])):
                touches = False  # a line across the cut: the next tile sees all of it
            quad[:, along] += start
            middle = (low + high) / 2 + start
            if touches or lower <= middle < upper:
                quads.append(quad)
                scores.append(float(score))
                cut.append(bool(touches))
    return _merge_tiles(quads, scores, cut, along)


def _merge_tiles(
    quads: list[np.ndarray], scores: list[float], cut: list[bool], along: int
) -> tuple[np.ndarray, np.ndarray]:
    """One quad for each line: quads of a line overlap along and across it, a little where one was cut, else by half or
    by more than the line's height.

    The latter are words of an overlap that one tile saw alone, or with what is before them, and the other together with
    what follows.
    """
    order = sorted(range(len(quads)), key=lambda i: float(quads[i][:, along].min()))
    merged = np.zeros((len(quads), 4, 2), np.float32)
    merged_scores = np.zeros(len(quads), np.float32)
    least = np.zeros(len(quads))  # the share of the shorter length that must be common; 0: one was cut
    count = 0
    for i in order:
        quad, least_here = quads[i], 0.0 if cut[i] else _COMMON
        same = _are_on_line(quad, merged[:count], along, np.minimum(least[:count], least_here))
        if same.any():
            j = int(same.argmax())
            merged[j] = _union(merged[j], quad, along)
            merged_scores[j], least[j] = max(scores[i], merged_scores[j]), 0.0
        else:
            merged[count], merged_scores[count], least[count] = quad, scores[i], least_here
            count += 1
    return merged[:count], merged_scores[:count]


def _are_on_line(quad: np.ndarray, others: np.ndarray, along: int, least: np.ndarray) -> np.ndarray:
    """Which of `others` [N, 4, 2] stand on the line of a quad [4, 2] and share more than `least` [N] of the shorter
    one's length, or a word: [N] bool."""
    lows, highs = others.min(axis=1, initial=np.inf), others.max(axis=1, initial=-np.inf)
    low, high = quad.min(axis=0), quad.max(axis=0)
    common = (np.minimum(highs, high) - np.maximum(lows, low)).astype(np.float64)  # [N, 2]
    shorter = np.maximum(np.minimum(highs - lows, high - low).astype(np.float64), 1e-6)
    least_pixels = np.minimum(least * shorter[:, along], shorter[:, 1 - along])
    return (common[:, along] > least_pixels) & (common[:, 1 - along] > 0.6 * shorter[:, 1 - along])


def _union(first: np.ndarray, second: np.ndarray, along: int) -> np.ndarray:
    """The quad from the near end of `first` to the far end of whichever reaches farther; corners clockwise."""
    far = second if second[:, along].max() >= first[:, along].max() else first
    out = first.copy()
    ends = (1, 2) if along == 0 else (2, 3)  # the corners on the far side
    out[list(ends)] = far[list(ends)]
    return out


def split_long(image: np.ndarray, quads: np.ndarray, longest: float) -> np.ndarray:
    """Quads [N, 4, 2] of which those longer than `longest` times their height are cut into parts of about one length.

    Each cut goes through the emptiest place near where it should be, in the image [H, W, 3] uint8.
    """
    sizes = quad_sizes(quads)
    counts = np.ceil(sizes.max(axis=1) / (sizes.min(axis=1) * longest)).astype(int)
    if (counts <= 1).all():
        return quads
    parts: list[np.ndarray] = []
    for quad, count, (height, width) in zip(quads, counts.tolist(), sizes.tolist()):
        near, far = ((0, 3), (1, 2)) if width >= height else ((0, 1), (3, 2))
        cuts = [0.0, *(_gap(image, quad, near, far, i / count) for i in range(1, count)), 1.0]
        parts += [_between(quad, near, far, low, high) for low, high in pairwise(cuts)]
    return np.stack(parts)


def _between(
    quad: np.ndarray, near: tuple[int, int], far: tuple[int, int], low: float, high: float
) -> np.ndarray:
    """The part of a quad from `low` to `high`, shares of the way from its `near` corners to its `far` ones."""
    out = quad.copy()
    for a, b in zip(near, far):
        out[a], out[b] = quad[a] + low * (quad[b] - quad[a]), quad[a] + high * (quad[b] - quad[a])
    return out


def _gap(
    image: np.ndarray, quad: np.ndarray, near: tuple[int, int], far: tuple[int, int], wanted: float
) -> float:
    """Where near `wanted`, a share of the quad's length, the image changes least across the line."""
    height, length = sorted(quad_sizes(quad[None])[0].tolist())
    reach = _SEARCH * height / length
    low, high = max(wanted - reach, 0.0), min(wanted + reach, 1.0)
    (crop,) = cut_quads(image, _between(quad, near, far, low, high)[None])
    ink = np.ptp(crop.astype(np.float32).mean(axis=2), axis=0 if near == (0, 3) else 1)
    window = max(1, round(_GAP * height))
    if len(ink) < window:
        return wanted
    means = np.convolve(ink, np.full(window, 1 / window), "valid")
    middles = np.arange(len(means)) + window / 2
    # Of places that are as empty, the one closest to where it is wanted.
    best = np.argmin(means + abs(middles / len(ink) - 0.5))
    return low + (high - low) * float(middles[best]) / len(ink)
