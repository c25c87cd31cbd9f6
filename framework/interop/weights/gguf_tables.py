"""The kinds of GGUF's blocks whose numbers stand in tables: IQ1_S to IQ3_S, in blocks of 256.

A few bytes of a block are the number of a point: 8 levels (4 in IQ3) of a table of the kind, which a scale is
multiplied with. IQ2 and IQ3 give each number its sign, IQ1 adds an eighth of the scale to all of a group or takes it
off.

Sources: the structures block_iq* and the tables iq*_grid of
    https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
"""

from __future__ import annotations

import base64
import zlib
from functools import cache

import numpy as np

_IQ2_LEVELS = (8, 25, 43)
_IQ3_LEVELS = (4, 12, 20, 28, 36, 44, 52, 62)
_IQ3_S_LEVELS = (1, 3, 5, 7, 9, 11, 13, 15)
_IQ1_LEVELS = (-1, 0, 1)
_EIGHTH = np.float32(0.125)

# The points of the tables, in ascending order: a point is a number whose digits, the lowest first, are places in the
# levels of the kind; kept are the differences to the point before, uint16, deflated.
_IQ2_XXS = (
    "eNpVkcFKw0AURa8yhBCGICGEQcpQJEgoEkJxUaQLFyLSRZEupMt+iUs/wG/xW/wez7yOQQkzmffm3vvueyNd/vkKlpvPhZ0LW16l/Z1q"
    "RSJP1KjXtWWrmevz2c9xrZZTpWCMyPrV9bN+x23QBtRz1ivB+VwvIRsylSbWOjM9uistdQPiyViNFvhxRKPuLNPpynyv2Sf+rxlXawDb"
    "6kRVz8277v91XIB3uZPGdFMc2IP5iOahR70j2uqQkY5KK2NucHbuNPXXswe8jfSXPATtdAuyIr+Ev9Xe+AHlAW6E4fQGctSHvk29xcXC"
    "Jv+ol/kt0hukGXTcN2gedET7PP+R7KAHPLVUOuqLqXwaNoI5qbyY9APstxgE"
)
_IQ2_XS = (
    "eNqFkkFrwzAMhYUJxpgQQgihjFBKGKGMEkoZPYwdeuhpjJ3HTjvtuN+yn7zPshfapukwcSVVek96loiZOdkV357Y4fNXK+1ZhU2/1VnU"
    "651JIU7qf5jC7WcxPAitWoXGW1lcdJMpWugkB8GlaEWmhbvi3iSGW13Yk8ppFxXYhg5ivOLcT7KClWO3qWKP18g28ZR4NX4mgxzlYaLp"
    "H081WpaaFTUdE0eWknsPviee4z2n2T24Nd09EV3w9Zp/S/dL7a7PnMHhUlWh3NP9iNqUauWqdXixBmsYURynI16nmd5mNqgdt8bIoyxl"
    "N2rjVJfwuhZFraxBafBy7bBTTYx8627EjpzqbeQLtCVZhbxqLxt5B3snB6pC5dwGNCe6BW6LqvHVy7Fjo7pURGo4Bu5et66k2iuGk084"
    "ArIfpyz4f0FuKy/cNfE7VeFAtaG/D6breduVskWdHegDOV3SPlSHbtbyoxhx/7aKE14paN/D8wuWLBmh"
)
_IQ2_S = (
    "eNqdVUtqw0AMFWEQQzBmMCWYYEowxYRQsighiy57hp6hi9z/AJU0Y2f+cYKxPZalZ+k9aQywKRxqxTPSVWUjMYlSwRuMfBB0gNAKsiKr"
    "fpBHfGDhiymKepA3wjbKyLcjdJkaS2xwJW2QH1t8RE14jGutWxihyVauqvqoatU1Je9rs/CDLnd01nzNzzFZ82D8lOV9optOIvsMloEd"
    "rRihhWNRK5uFlg5UgUZzT2KQjSZdZnZ64UUVO65eGXfU4N4ZmAKe945phG+qoiE/7oa3lYr6s4DZrHLzUldm9saojv7lPlvTFbMCXZbR"
    "nXirSnxTjG1Fa15dn9rxwjl5rac5clgdnbMNSwddM+813YelOgMn6px09/CVLPNk6CuWr0O0Y/mZ8Fywp4Ef18FH+mZDffwLn8G8+juL"
    "vxOit/OU+UbnY72s5ZwwqVfzqGWmLOo1mMBJUHrqsQudG6qlE4vyJqek9h1FE461fkXcp314kswPFDku6l5oNdL9Jrj2jzjvThOdA+U2"
    "in6M+u54Ug5xFO0M/BGOoQzOVO0gfxfO4oOe/gGnvRmh"
)
_IQ3_XXS = (
    "eNpNkF1Pg0AQRS8g39AiFKnB1tbapBoToz77pr41/v9/45kpIYbsLjtz5s6dlUK+mHWlgD1Vrlu/XaIpf5GfpSplE516xKhCiRaciVeX"
    "OqjTCsLo0OOdGn1oIGqaPXQza19Oqwu09ojFXud8qgcUQmpy1dSVaBx0Ym/RrXQms/unZF5z3btmNCmMPlnmt4vLmr3Gj832wtqjsuZe"
    "wH67m0F384w9bDy7KDlH71aTabTEySd7B5HgaKR7S+bEWkEvYCt6nLkt6dtAXWsLdSRrnXtykau/03fAaQI1QNhsmZ60mebOiP7i2MjG"
    "KzYQW5QeqflB7ag3OlveXiDASQNf6BlfsW7wbP32RO2NWn3pD/JpD5k="
)
_IQ3_S = (
    "eNpVU2tPwzAMdNo82iZdV7bBxkACDWmC7xP//59xvjjTUJXEdvw4X1wRh6+XjqfD2VH2EiVA6s2icoLW3/08vdTiqSWZsQfEOVoc73r6"
    "aLaWaYY0QPe0JNaIjJiZp5dMTa2R+yIT9MLbYL4LpMwMG1mhJeZuPopk/4CzdVV70BjNPxJr7VGjEqsl3kfsk/HiDcnE1Vio+BwjV0jZ"
    "WJpZpXJyeMi5yJXd6f35zmiBTaOHfyi7OypnHFV9trfSFY3bumuNI7WJuRPxe2KubHr026pGdJixj7An3p0oBVi0RsY+0HuSN3LpiTvD"
    "8mp4Oka02ehZLzKqYyZFuyWGelPf8ERugvU28lQ0A+dNp2jlC8/MnYlggrbD92HsZrnYm9T+Ez6tFKx25JRE4lZ0gTwEvIDyVOgX7JUu"
    "OJ+Q0QFZIdJPSCsij5wwZenEXIqy1iv2b1SeR+BSJidWneUFp0OtGWexySm4LfKFtUPULzvZ4GwzewD+LXK9yzPQRPatXBaivsF3weqB"
    "ZA/fs3wj5kY0o2XQSpohw7PDm7V/Tvk8cTI2yF3/6qP8wPcDSK/yB74/D8E="
)
_IQ1 = (
    "eNqNV2uX4yAIrYIkk7Yzs9/3///ONbwETWb2eJoaHyhwuZDHo3qDR+tP7L/2IB7Zw4j18FF0tvbeuRJ9xka3H/afO6g/ZTXqyeBvT91J"
    "3JDP+9K3U3bpc7Ki6mzR8Zrah8qsPvvZV7/6P7m+hU8Uycgnr3fFWy3OXmNr7P0JOvJS6XSrO6ilpY3Zg29pMmuw7Cn9pavB729NVpHa"
    "wprM7Gync8e3e6QFX6Ha2mwutyx6JvJ5w7ZFb1j9dpCsL3tsxeoTGWvhjmVaWdJI9u3w/9AP025QuaCSC1tS0LWzb9C1rRf3FCQcHSk2"
    "Cx3LQ+txH2RJkO7x0ddu/X+bvGMYw77+SJgwBERUXM2Kfzc+l5ItzZ+keJujGG/ndtV4T16VETkRGHXk8TGwKGsP9/9oclLTXaRYborF"
    "4yaOjhADhklQrW2EwglNUTrvGhq321h+uabSvllTYZKBioGwOlm86rkZQ4LpZ4ikQ32PHRetv1E/GXqflljIkkwaqW0zRnF6NzwO1Bfl"
    "6BmzzWMEbk6FEJPGzmaZoZewwhbyQYwd6wHfpyQdMMRr5IbBnRZb5plvj3vZ/cl2jDyEgQGjvqQZghLPZ37JtqoXs/Gm40xa/IF+f8tL"
    "eceHx19hPBSXIX6DBWElebZMVqO0Wvw+W7bcsuysW7loddEelhlYZNaJfWfZ4FKuzxzsMsaAUWgjLUUmKg7r5FPpxzm8jCe6xMTqddA2"
    "1hAz1MboQUdc1HDE1ZYs9QrMSwl9gpB3yFCCNrEo6R2Kj0l2tkz80uqpMMuJtd/KeV+e0evEfnXJsruum+MUU910VlMzB9Wg56bjEE4W"
    "/zVl8Jx1IoJQJeX8Dvz7Uq+NrCBZZtcsmPMjuCdivILfwyqr0wvviVEK+3cLFs6ZpoWq4a4+rKG6jFo2nQHvrRKeavN15q1V5uaZGLW2"
    "pcBG0d8jB1zVZKfPP1MlLFazeAHWZgssF2tI8Ppk1PDRDqbtPtWtVkMcv1jwfZPJJQopZOhdv0fmfLRiHr3GLV5vjDyT/UYar8NWVcee"
    "CaU7R1qOG3nuGrFlyhQlRQ54LfV/fFRDvb/W2qSs2QIzGSeT+gU9QoyRDq9UMbBx4aoFXe+VO2YLx+oDUg6XOvCjtz19vbycid8/xNLV"
    "F9rInoXZIWZTqStBY0a+TPHXSvGP+p5CdQvO+38nLOSKgJbcf9Yx5g3gHSOTgPI2OsPVhWmeP+i+a5VO3EPf0dyKWcpq23+TJxmh"
)


@cache
def _points(steps: str, levels: tuple[int, ...], width: int) -> np.ndarray:
    """A table, [points, width] float32."""
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(steps)), "<u2").astype(np.int64).cumsum()
    digits = numbers[:, None] // len(levels) ** np.arange(width) % len(levels)
    return np.array(levels, np.float32)[digits]


def _words(blocks: np.ndarray, start: int, stop: int, dtype: str) -> np.ndarray:
    """These bytes of each block as whole numbers, [blocks, numbers] int64."""
    return np.ascontiguousarray(blocks[:, start:stop]).view(dtype).astype(np.int64)


def _scale(blocks: np.ndarray) -> np.ndarray:
    """The float16 at the beginning of each block, [blocks, 1] float32."""
    return np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)


def _fields(words: np.ndarray, width: int, count: int) -> np.ndarray:
    """[blocks, n] -> [blocks, n * count]: `count` fields of `width` bits of each number, the lowest first."""
    fields = words[..., None] >> np.arange(count) * width & (1 << width) - 1
    return fields.reshape(len(words), -1)


def _signs(bits: np.ndarray) -> np.ndarray:
    """[blocks, n] with a bit for each number, 1 where it is negative -> [blocks, n * 8] of 1 and -1."""
    return 1 - 2 * _fields(bits, 1, 8).astype(np.float32)


def _even_signs(seven: np.ndarray) -> np.ndarray:
    """The signs of 8 numbers in 7 bits: an even number of them is negative."""
    return _signs(seven | (_fields(seven, 1, 7).reshape(*seven.shape, 7).sum(-1) & 1) << 7)


def _signed(scales: np.ndarray, points: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """[blocks, 256] of scales [blocks, groups], points [blocks, n, width] and signs [blocks, 256]."""
    shape = (*scales.shape, -1)
    return (scales[..., None] * points.reshape(shape) * signs.reshape(shape)).reshape(len(scales), -1)


def iq2_xxs(blocks: np.ndarray) -> np.ndarray:
    """8 groups of 32: four points of a byte, then four signs of 7 bits and a scale of 4."""
    words = _words(blocks, 2, 66, "<u4").reshape(-1, 8, 2)
    points = _fields(words[..., 0], 8, 4)
    signs = _even_signs(_fields(words[..., 1], 7, 4))
    scales = _scale(blocks) * (np.float32(0.5) + (words[..., 1] >> 28).astype(np.float32)) * np.float32(0.25)
    return _signed(scales, _points(_IQ2_XXS, _IQ2_LEVELS, 8)[points], signs)


def iq2_xs(blocks: np.ndarray) -> np.ndarray:
    """16 groups of 16: two points of 9 bits with 7 bits of signs each; a scale of 4 bits."""
    words = _words(blocks, 2, 66, "<u2")
    scales = _half_scales(blocks, 66, np.float32(0.25))
    return _signed(scales, _points(_IQ2_XS, _IQ2_LEVELS, 8)[words & 511], _even_signs(words >> 9))


def iq2_s(blocks: np.ndarray) -> np.ndarray:
    """16 groups of 16: two points of 10 bits, the two high ones apart; a bit for each sign; a scale of 4 bits."""
    points = _words(blocks, 2, 34, "u1") | _fields(_words(blocks, 66, 74, "u1"), 2, 4) << 8
    scales = _half_scales(blocks, 74, np.float32(0.25))
    return _signed(scales, _points(_IQ2_S, _IQ2_LEVELS, 8)[points], _signs(_words(blocks, 34, 66, "u1")))


def iq3_xxs(blocks: np.ndarray) -> np.ndarray:
    """8 groups of 32: eight points of a byte; four signs of 7 bits and a scale of 4."""
    words = _words(blocks, 66, 98, "<u4")
    scales = _scale(blocks) * (np.float32(0.5) + (words >> 28).astype(np.float32)) * np.float32(0.5)
    points = _points(_IQ3_XXS, _IQ3_LEVELS, 4)[_words(blocks, 2, 66, "u1")]
    return _signed(scales, points, _even_signs(_fields(words, 7, 4)))


def iq3_s(blocks: np.ndarray) -> np.ndarray:
    """8 groups of 32: eight points of 9 bits, the highest apart; a bit for each sign; an odd scale of 4 bits."""
    points = _words(blocks, 2, 66, "u1") | _fields(_words(blocks, 66, 74, "u1"), 1, 8) << 8
    scales = _scale(blocks) * (1 + 2 * _fields(_words(blocks, 106, 110, "u1"), 4, 2)).astype(np.float32)
    return _signed(scales, _points(_IQ3_S, _IQ3_S_LEVELS, 4)[points], _signs(_words(blocks, 74, 106, "u1")))


def _half_scales(blocks: np.ndarray, at: int, factor: np.float32) -> np.ndarray:
    """[blocks, 16] of the 8 bytes from `at` on."""
    four = _fields(_words(blocks, at, at + 8, "u1"), 4, 2).astype(np.float32)
    return _scale(blocks) * (np.float32(0.5) + four) * factor


def iq1_s(blocks: np.ndarray) -> np.ndarray:
    """8 groups of 32: four points of 11 bits, the three high ones in a word with an odd scale of 3 bits and whether an
    eighth is taken off."""
    high = _words(blocks, 34, 50, "<u2")
    points = _words(blocks, 2, 34, "u1") | _fields(high & 4095, 3, 4) << 8
    scales = _scale(blocks) * (2 * (high >> 12 & 7) + 1).astype(np.float32)
    return _shifted(scales, points, np.repeat(high >> 15, 4, 1))


def iq1_m(blocks: np.ndarray) -> np.ndarray:
    """16 groups of 16: two points of 11 bits, the three high ones in four bits with whether an eighth is taken off;
    odd scales of 3 bits, four in a word, whose high bits are the four of the float16 that multiplies all."""
    high, words = _fields(_words(blocks, 32, 48, "u1"), 4, 2), _words(blocks, 48, 56, "<u2")
    points = _words(blocks, 0, 32, "u1") | (high & 7) << 8
    half = ((words >> 12) << np.arange(4) * 4).sum(1, keepdims=True).astype("<u2")
    scales = half.view("<f2").astype(np.float32) * (2 * _fields(words & 4095, 3, 4) + 1).astype(np.float32)
    return _shifted(scales, points, high >> 3)


def _shifted(scales: np.ndarray, points: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """[blocks, 256] of scales [blocks, groups], and of points and whether an eighth is taken off, [blocks, 32]."""
    eighths = np.where(lower == 0, _EIGHTH, -_EIGHTH)[..., None]
    levels = (_points(_IQ1, _IQ1_LEVELS, 8)[points] + eighths).reshape(*scales.shape, -1)
    return (scales[..., None] * levels).reshape(len(scales), -1)
