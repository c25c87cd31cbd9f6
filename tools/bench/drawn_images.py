"""Images that are drawn here and read by Oar and RapidOCR: short texts, small letters of a big image, memory.

short_texts   52 short texts that read otherwise on their heads (99, 86, SIX), on pages of four fonts in three sizes:
              how many are read as they stand, and how many as if they stood on their heads. `--directions` has Oar read
              the pages turned by 90, 180 and 270 degrees as well
screenshot    72 entries of 14 pixels on images of 3840 x 2160 pixels, dark on light and light on dark, of each font:
              how many are read exactly
image_memory  resident memory of a process that reads `--count` images, no two of a size, and its ratio to that after
              `--early` of them. Each of `--engines` has a process of its own

`--fonts` are font files apart by spaces; by default Pillow's own font and three of this machine.
"""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from framework.vision.fonts import find_fonts
from tools.bench.peers import REPO, arguments

SHORT = """
66 99 68 89 98 86 06 60 90 09 6 9 16 91 18 81 19 61 106 866 996 688 908 806 116 911 819 188 1866 6186 8066 9901 0.6 9.8
8.6 0.9 99% 66% SIX XIS NO ON SHOW MOHS OX XO WON NOW HIM WIH 6X X9
""".split()  # noqa: SIM905
UPRIGHT, ON_ITS_HEAD = "0168925HINOSXZMWunpdbq", "0198625HINOSXZWMnudpqb"
TURN = str.maketrans(UPRIGHT, ON_ITS_HEAD)
SIZES = (18, 26, 40)
WORDS = ("Queue", "Total", "Order", "Server", "Disk", "User", "File")


@dataclass(frozen=True)
class DrawnText:
    """A text and the box that it was drawn in, xyxy in pixels."""

    text: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class ReadText:
    """A text and the centre of its polygon, xy in pixels."""

    text: str
    centre: tuple[float, float]


Reader = Callable[[np.ndarray], list[ReadText]]


def latin_fonts(files: Sequence[str], count: int) -> list[str]:
    """`files`, or up to `count` fonts of this machine that draw letters of different widths; Pillow's own is ""."""
    if files:
        return list(files)
    different = [
        file for file in find_fonts() if len({typeface(file, 40).getbbox(one) for one in "IMWo8g"}) > 4
    ]
    return different[:count]


def typeface(file: str, size: int) -> ImageFont.FreeTypeFont:
    """A font file, or Pillow's own font for ""."""
    font = ImageFont.truetype(file, size) if file else ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def draw_texts(
    texts: Sequence[str], hw: tuple[int, int], columns: int, font: str, size: int, *, dark: bool = False
) -> tuple[np.ndarray, list[DrawnText]]:
    """The texts in rows and columns on an image [H, W, 3] uint8, and where each is."""
    height, width = hw
    ground, ink = ((30, 32, 38), (220, 222, 226)) if dark else ((255, 255, 255), (20, 20, 20))
    image = Image.new("RGB", (width, height), ground)
    draw, face = ImageDraw.Draw(image), typeface(font, size)
    rows = -(-len(texts) // columns)
    drawn = []
    for number, text in enumerate(texts):
        row, column = divmod(number, columns)
        corner = (width * (column + 0.1) / columns, height * (row + 0.3) / rows)
        draw.text(corner, text, font=face, fill=ink)
        drawn.append(DrawnText(text, draw.textbbox(corner, text, font=face)))
    return np.asarray(image), drawn


def read_as_drawn(drawn: Sequence[DrawnText], found: Sequence[ReadText]) -> Iterator[tuple[str, str]]:
    """(text drawn, text read) of each: what has its centre in the box of the drawn text or up to 8 pixels beside it."""
    for one in drawn:
        left, top, right, bottom = one.box
        inside = [
            text.text
            for text in sorted(found, key=lambda text: text.centre)
            if left - 8 < text.centre[0] < right + 8 and top - 8 < text.centre[1] < bottom + 8
        ]
        yield one.text, " ".join(inside)


def is_turned(drawn: str, read: str) -> bool:
    """Whether the text was read as it would be read on its head."""
    return read != drawn and read.upper() == drawn.translate(TURN)[::-1].upper()


def our_reader(engine: str) -> Reader:
    from ocr import predictor

    read_page = predictor(engine=engine)

    def read(rgb: np.ndarray) -> list[ReadText]:
        lines = read_page(rgb).pages[0].lines
        return [ReadText(line.text, tuple(np.asarray(line.polygon).mean(0).tolist())) for line in lines]

    return read


def rapid_reader() -> Reader:
    logging.disable(logging.WARNING)
    from rapidocr import RapidOCR

    read_page = RapidOCR()

    def read(rgb: np.ndarray) -> list[ReadText]:
        found = read_page(np.ascontiguousarray(rgb[..., ::-1]))
        quads = () if found.boxes is None else found.boxes
        return [ReadText(text, tuple(quad.mean(0).tolist())) for text, quad in zip(found.txts or (), quads)]

    return read


def turned_points(found: Sequence[ReadText], quarters: int, hw: tuple[int, int]) -> list[ReadText]:
    """Texts of an image that `np.rot90` turned so many quarters, with centres in pixels of the image of this size."""
    height, width = hw
    back = {
        0: lambda x, y: (x, y),
        1: lambda x, y: (width - y, x),
        2: lambda x, y: (width - x, height - y),
        3: lambda x, y: (y, height - x),
    }[quarters]
    return [ReadText(one.text, back(*one.centre)) for one in found]


def short_texts(argv: list[str]) -> None:
    parser = arguments(__doc__, engine="auto", fonts="")
    parser.add_argument(
        "--directions", action="store_true", help="pages turned by 90, 180 and 270 degrees, too"
    )
    parser.add_argument("--peers", nargs="*", default=["rapidocr"], choices=("rapidocr",))
    parser.add_argument("--show", action="store_true", help="print what was not read as it stands")
    args = parser.parse_args(argv)
    pages = [
        draw_texts(SHORT, (1200, 900), 4, font, size)
        for font in latin_fonts(args.fonts.split(), 4)
        for size in SIZES
    ]
    readers = {"oar": our_reader(args.engine)} | {peer: rapid_reader() for peer in args.peers}
    for name, read in readers.items():
        for quarters in (0, 1, 2, 3) if args.directions and name == "oar" else (0,):
            pairs = []
            for image, drawn in pages:
                found = read(np.ascontiguousarray(np.rot90(image, quarters)))
                pairs += read_as_drawn(drawn, turned_points(found, quarters, image.shape[:2]))
            turned = [pair for pair in pairs if is_turned(*pair)]
            right = sum(text == drawn for drawn, text in pairs)
            print(
                f"{name:<9} pages turned by {90 * quarters:3}: {len(pages)} pages, {len(pairs)} texts, {right} right,"
                f" {len(turned)} turned"
            )
            if args.show:
                print(*(f"  {drawn!r} is read {text!r}" for drawn, text in pairs if text != drawn), sep="\n")


def screenshot(argv: list[str]) -> None:
    parser = arguments(__doc__, engine="auto", fonts="", size=14)
    parser.add_argument("--peers", nargs="*", default=["rapidocr"], choices=("rapidocr",))
    parser.add_argument("--show", action="store_true", help="print what was not read exactly")
    args = parser.parse_args(argv)
    dice = random.Random(0)
    readers = {"oar": our_reader(args.engine)} | {peer: rapid_reader() for peer in args.peers}
    for font in latin_fonts(args.fonts.split(), 4):
        for dark in (False, True):
            entries = [f"{dice.choice(WORDS)} {dice.randint(100, 9999)}" for _ in range(72)]
            image, drawn = draw_texts(entries, (2160, 3840), 6, font, args.size, dark=dark)
            for name, read in readers.items():
                pairs = list(read_as_drawn(drawn, read(image)))
                right = sum(text == entry for entry, text in pairs)
                style = " ".join(typeface(font, args.size).getname())
                print(
                    f"{name:<9} {style}, {'dark' if dark else 'light'}: {right} of {len(pairs)}", flush=True
                )
                if args.show:
                    print(
                        *(f"  {entry!r} is read {text!r}" for entry, text in pairs if text != entry), sep="\n"
                    )


def image_memory(argv: list[str]) -> None:
    parser = arguments(__doc__, count=1000, early=100)
    parser.add_argument("--engines", nargs="+", default=["openvino", "onnxruntime", "xla"])
    args = parser.parse_args(argv)
    for engine in args.engines:
        call = f"watch_memory({engine!r}, {args.count}, {args.early})"
        code = f"from tools.bench.drawn_images import watch_memory; {call}"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=REPO)


def watch_memory(engine: str, count: int, early: int) -> None:
    """Read `count` images of one page between 300 x 200 and 900 x 700 pixels and print the resident memory."""
    import psutil

    from ocr import predictor

    read_page, process, dice = predictor(engine=engine), psutil.Process(), random.Random(0)
    page = Image.new("RGB", (760, 560), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(30)
    for row in range(9):
        text = f"Line {row}: 1,{row}34.50 EUR on 2024-0{row + 1}-11"
        draw.text((40, 30 + 58 * row), text, font=font, fill="black")
    first = 0
    for number in range(1, count + 1):
        read_page(np.asarray(page.resize((dice.randint(300, 900), dice.randint(200, 700)))))
        if number == early:
            first = process.memory_info().rss
        if number % early == 0:
            resident = process.memory_info().rss
            print(
                f"{engine:<12}{number:6} images {resident / 1e6:6.0f} MB {resident / first:.3f}x", flush=True
            )
