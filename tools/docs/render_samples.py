"""Draw images for the examples of the documents: a blood smear under a microscope, a tissue slice, a T-shirt.

    python -m tools.docs.render_samples [FOLDER]    writes cells.png, tissue.png and shirt.png, by default to samples/

They need nothing but this file and look enough like what the packaged models learnt from to give results.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter


def cells(width: int = 640, height: int = 480) -> Image.Image:
    """Red cells with pale centres, and one white cell with a dark nucleus."""
    rng = np.random.default_rng(5)
    image = Image.new("RGB", (width, height), (226, 216, 210))
    draw = ImageDraw.Draw(image)
    for x, y in _spread(rng, 16, 105, width, height):
        radius = rng.uniform(46, 54)
        for share, colour in ((1.0, (188, 122, 128)), (0.92, (204, 148, 150)), (0.45, (218, 178, 176))):
            draw.ellipse(_circle(x, y, radius * share), colour)
    x, y = width * 0.5, height * 0.48
    draw.ellipse(_circle(x, y, 92), (198, 172, 196))
    for dx, dy, radius in ((-22, -18, 42), (24, 8, 40), (-12, 30, 34)):
        draw.ellipse(_circle(x + dx, y + dy, radius), (104, 62, 140))
    return _expose(image, rng, blur=2.0, noise=3.0)


def tissue(size: int = 512) -> Image.Image:
    """Grey cells between dark membranes, as an electron microscope shows a slice."""
    rng = np.random.default_rng(3)
    points = rng.uniform(0, size, (60, 2))
    y, x = np.mgrid[0:size, 0:size]
    bent = np.stack([x + 9 * np.sin(y / 31), y + 9 * np.sin(x / 37)], axis=-1)
    distance = np.sqrt(((bent[:, :, None] - points) ** 2).sum(axis=-1))
    nearest = np.sort(distance, axis=-1)
    membrane = np.exp(-(((nearest[..., 1] - nearest[..., 0]) / 5) ** 2))
    tone = rng.uniform(150, 185, len(points))[distance.argmin(axis=-1)]
    grey = tone * (1 - membrane) + 60 * membrane
    return _expose(Image.fromarray(grey.astype(np.uint8)).convert("RGB"), rng, blur=1.0, noise=10.0)


def shirt(width: int = 400, height: int = 480) -> Image.Image:
    """A plain T-shirt on a light floor."""
    rng = np.random.default_rng(1)
    image = Image.new("RGB", (width, height), (214, 206, 196))
    outline = [(150, 90), (250, 90), (308, 104), (392, 190), (340, 240), (300, 206), (302, 410), (98, 410)]
    outline += [(100, 206), (60, 240), (8, 190), (92, 104)]
    draw = ImageDraw.Draw(image)
    draw.polygon(outline, (38, 62, 112))
    draw.ellipse((155, 66, 245, 118), (214, 206, 196))
    draw.arc((151, 62, 249, 122), 10, 170, (26, 44, 84), 6)
    return _expose(image, rng, blur=1.2, noise=4.0)


def _spread(
    rng: np.random.Generator, count: int, gap: float, width: int, height: int
) -> list[tuple[float, float]]:
    """Up to `count` points xy with at least `gap` between them, and more around the middle of the image."""
    points: list[tuple[float, float]] = []
    for _ in range(4000):
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        free = all(np.hypot(x - a, y - b) > gap for a, b in points)
        if free and np.hypot(x - width * 0.5, y - height * 0.48) > 150:
            points.append((x, y))
        if len(points) == count:
            break
    return points


def _circle(x: float, y: float, radius: float) -> tuple[float, float, float, float]:
    return x - radius, y - radius, x + radius, y + radius


def _expose(image: Image.Image, rng: np.random.Generator, blur: float, noise: float) -> Image.Image:
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(blur)), np.float64)
    pixels = pixels + rng.normal(0, noise, (*pixels.shape[:2], 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("samples")
    folder.mkdir(parents=True, exist_ok=True)
    for name, image in (("cells", cells()), ("tissue", tissue()), ("shirt", shirt())):
        image.save(folder / f"{name}.png")
        print(f"wrote {folder / name}.png")
