"""Draw docs/images/receipt.png: an invented shop's receipt on a table, as a phone would photograph it.

    python -m tools.docs.render_receipt [OUT.png]

The font is the one inside Pillow and the noise is seeded, so the image needs nothing but this file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "receipt.png"
SIZE, SLIP = (700, 1100), (520, 980)  # width and height of the image and of the paper in it
MARGIN, INK, PAPER, SHADOW = 36, (46, 44, 52), (243, 240, 231), (38, 32, 28)

HEAD = ((34, "HARBOUR STREET GROCERS"), (21, "14 Harbour Street, Port Ellery"), (21, "Tel 020 7946 0123"))
ITEMS = (
    ("Sourdough loaf", "3.80"),
    ("Whole milk 2 L", "2.15"),
    ("Free range eggs, dozen", "4.20"),
    ("Tomatoes 0.745 kg x 3.20", "2.38"),
    ("Ground coffee 250 g", "6.95"),
    ("Dark chocolate 2 x 1.95", "3.90"),
    ("Olive oil 500 ml", "8.49"),
    ("Paper towels", "3.25"),
)
SUMS = (("Subtotal, 9 items", "35.12"), ("Loyalty discount", "-1.50"))
PAID = (("Cash", "40.00"), ("Change", "6.38"), ("incl. VAT 20 % on 3.25", "0.54"))


def slip() -> Image.Image:
    """The paper, seen straight on."""
    width = SLIP[0]
    paper = Image.new("RGB", SLIP, PAPER)
    draw = ImageDraw.Draw(paper)
    y = 34

    def centred(text: str, size: int) -> None:
        nonlocal y
        draw.text((width / 2, y), text, INK, ImageFont.load_default(size), anchor="ma")
        y += round(1.45 * size)

    def row(left: str, right: str, size: int = 24) -> None:
        nonlocal y
        font = ImageFont.load_default(size)
        draw.text((MARGIN, y), left, INK, font)
        draw.text((width - MARGIN, y), right, INK, font, anchor="ra")
        y += round(1.5 * size)

    def rule() -> None:
        nonlocal y
        for x in range(MARGIN, width - MARGIN, 12):
            draw.line((x, y + 6, x + 7, y + 6), INK, 2)
        y += 22

    for size, text in HEAD:
        centred(text, size)
    y += 8
    row("Date 17.05.2024  14:32", "Receipt 004817", 21)
    rule()
    for item in ITEMS:
        row(*item)
    rule()
    for line in SUMS:
        row(*line)
    row("TOTAL EUR", "33.62", 38)
    rule()
    for line in PAID:
        row(*line)
    y += 6
    centred("Served by Mara at till 2", 21)
    centred("Thank you for your visit!", 24)
    x = 128
    for digit in "40170520244817351233628":  # bars and gaps as wide as the digits say
        draw.rectangle((x, y + 8, x + int(digit) // 2, y + 70), INK)
        x += 8 + int(digit)
    return paper.filter(ImageFilter.GaussianBlur(0.5))


def photograph(paper: Image.Image) -> Image.Image:
    """The paper on a table: turned by a degree, a little in perspective, with a shadow, uneven light and noise."""
    rng = np.random.default_rng(17)
    width, height = SIZE
    grain = Image.fromarray(rng.integers(0, 256, (height // 4, 8), np.uint8)).resize(
        SIZE, Image.Resampling.BICUBIC
    )
    table = np.array([112.0, 84.0, 62.0]) + (np.asarray(grain, np.float64)[..., None] - 128) * 0.10
    corners = np.array([[97.0, 55.0], [614.0, 67.0], [600.0, 1047.0], [76.0, 1032.0]])
    placed = Image.fromarray(table.clip(0, 255).astype(np.uint8))
    cover = Image.new("L", SLIP, 255)
    moved = corners + np.array([9.0, 12.0])
    shade = warped(cover, moved).filter(ImageFilter.GaussianBlur(9)).point(lambda v: v * 0.6)
    placed.paste(Image.new("RGB", SIZE, SHADOW), mask=shade)
    placed.paste(warped(paper, corners), mask=warped(cover, corners).filter(ImageFilter.GaussianBlur(0.7)))
    light = 1.02 - 0.14 * np.linspace(0, 1, width)[None, :] - 0.08 * np.linspace(0, 1, height)[:, None]
    pixels = np.asarray(placed, np.float64) * light[..., None] + rng.normal(0, 1.6, (height, width, 1))
    # Few colours: noise in all of them would make the file ten times as large.
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).quantize(64, dither=Image.Dither.NONE)


def warped(image: Image.Image, corners: np.ndarray) -> Image.Image:
    """`image` with its corners moved to these points xy of the image, clockwise from the upper left."""
    w, h = image.size
    rows = []
    for (x, y), (u, v) in zip(corners, ((0, 0), (w, 0), (w, h), (0, h))):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y, u], [0, 0, 0, x, y, 1, -v * x, -v * y, v]]
    system = np.array(rows)
    matrix = np.linalg.solve(system[:, :8], system[:, 8])
    return image.transform(SIZE, Image.Transform.PERSPECTIVE, matrix.tolist(), Image.Resampling.BICUBIC)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    target.parent.mkdir(parents=True, exist_ok=True)
    photograph(slip()).save(target, optimize=True)
    print(f"wrote {target}, {target.stat().st_size // 1000} kB")
