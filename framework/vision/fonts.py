"""Text as an image of its own, with a glyph for every character that some font on the machine has.

The chain: the file named by the environment variable OAR_FONT, the Latin font inside Pillow, then fonts of the
system for accents and other scripts, looked for only when a character needs them. A character that no font has
becomes a hollow box, and a warning says once for each script what to install.
"""

from __future__ import annotations

import logging
import os
import sys
import unicodedata
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from framework.core.errors import InputError

log = logging.getLogger("oar")
FONT_VARIABLE = "OAR_FONT"
_EMBEDDED = ""  # stands for Pillow's own font in the chain

# The first words of Unicode's names of characters.
_EAST_ASIAN = frozenset(("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH"))
_INSTALL = {
    "linux": "Debian, Ubuntu: apt install {deb}; Fedora: dnf install {rpm}; Alpine: apk add {apk}",
    "darwin": "the fonts that come with macOS have them: look in Font Book whether some are turned off",
    "win32": "Settings, Optional features: the supplemental fonts of the language",
}
_PACKAGES = {
    True: {"deb": "fonts-noto-cjk", "rpm": "google-noto-sans-cjk-fonts", "apk": "font-noto-cjk"},
    False: {"deb": "fonts-noto-core", "rpm": "google-noto-sans-fonts", "apk": "font-noto-all"},
}

# Beginnings of file names, lower case, best first: wide Latin, Greek and Cyrillic, then Chinese, Japanese and Korean,
# then other scripts.
_WANTED = (
    "dejavusans",
    "notosans-",
    "liberationsans-",
    "segoeui",
    "arial unicode",
    "arial",
    "notosanscjk",
    "notosanssc",
    "notosanstc",
    "notosanshk",
    "notosansjp",
    "notosanskr",
    "sourcehansans",
    "pingfang",
    "hiragino sans gb",
    "stheiti",
    "applesdgothicneo",
    "msyh",
    "simhei",
    "simsun",
    "meiryo",
    "yugoth",
    "msgothic",
    "malgun",
    "deng",
    "wqy",
    "droidsansfallback",
    "sarasa",
    "notoserifcjk",
    "sourcehanserif",
    "ipaexg",
    "ipag",
    "takao",
    "vl-gothic",
    "nanumgothic",
    "baekmuk",
    "unbatang",
    "uming",
    "ukai",
    "unifont",
    "notosansarabic",
    "notosansdevanagari",
    "notosansthai",
    "tahoma",
    "nirmala",
    "leelawui",
)


@lru_cache(maxsize=256)
def text_alpha(text: str, size: int, max_width: int | None = None) -> np.ndarray:
    """`text` on one line as `[round(1.25 * size), width]` uint8 coverage, at least one pixel wide; read-only.

    `size` is the font size in pixels. Text wider than `max_width` is cut and ends in "...".

    Raises:
        InputError: OAR_FONT names no font file.
    """
    text = "".join(" " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text)
    text = unicodedata.normalize("NFC", text)
    runs = _runs(text, size)
    width = _width(runs, size)
    if max_width is not None and width > max_width:
        keep = len(text)
        while keep > 1 and width > max_width:
            keep = min(keep - 1, max(1, int(keep * max_width / width)))
            runs = _runs(text[:keep].rstrip() + "...", size)
            width = _width(runs, size)
    height, baseline = round(1.25 * size), round(0.98 * size)
    image = Image.new("L", (max(1, width if max_width is None else min(width, max_width)), height))
    pen, x = ImageDraw.Draw(image), 0.0
    for source, piece in runs:
        if source is not None:
            font = open_font(source, size)
            pen.text((x, baseline), piece, fill=255, font=font, anchor="ls")
            x += font.getlength(piece)
            continue
        for _ in piece:
            line = max(1, size // 16)
            pen.rectangle(
                (x + line, baseline - 0.7 * size, x + 0.6 * size - line, baseline), outline=255, width=line
            )
            x += 0.6 * size
    alpha = np.array(image)
    alpha.flags.writeable = False
    return alpha


def _runs(text: str, size: int) -> list[tuple[str | None, str]]:
    """`text` in pieces with the font of each: one font for all of it if there is one, None where there is none."""
    chain = _chain(os.environ.get(FONT_VARIABLE, ""))
    for source in chain:
        if all(_has(source, char) for char in text):
            return [(source, text)] if text else []
    sources = [next((source for source in chain if _has(source, char)), None) for char in text]
    for source, char in zip(sources, text, strict=True):
        if source is None:
            _warn_missing(_script(char))
    return [
        (source, "".join(char for _, char in piece))
        for source, piece in groupby(zip(sources, text, strict=True), key=lambda pair: pair[0])
    ]


def _script(char: str) -> str:
    """The script of a character, one for Chinese, Japanese and Korean."""
    first = unicodedata.name(char, "OTHER").split()[0]
    return "Chinese, Japanese or Korean" if first in _EAST_ASIAN else first.capitalize()


@cache
def _warn_missing(script: str) -> None:
    east_asian = script.startswith("Chinese")
    install = _INSTALL.get(sys.platform, _INSTALL["linux"]).format(**_PACKAGES[east_asian])
    log.warning(
        "no font on this machine has the characters (%s) of a text that is drawn: hollow boxes stand for them. "
        "Install one (%s), or name a font file in the environment variable %s",
        script,
        install,
        FONT_VARIABLE,
    )


def _width(runs: list[tuple[str | None, str]], size: int) -> int:
    widths = (
        open_font(source, size).getlength(piece) if source is not None else 0.6 * size * len(piece)
        for source, piece in runs
    )
    return int(np.ceil(sum(widths)))


class _Chain:
    """The fonts in order; the folders of the system are searched when the iteration gets that far."""

    def __init__(self, own: str) -> None:
        self._first = (own, _EMBEDDED) if own else (_EMBEDDED,)

    def __iter__(self):
        yield from self._first
        yield from _system_fonts()


@lru_cache(maxsize=8)
def _chain(own: str) -> _Chain:
    if own:
        try:
            ImageFont.truetype(own, 10)
        except (OSError, ValueError) as error:
            raise InputError(
                "the file is not a font",
                where=f"environment variable {FONT_VARIABLE}",
                received=f"{own!r}: {error}",
                allowed="the path of a TrueType or OpenType file",
            ) from error
    return _Chain(own)


def find_fonts() -> tuple[str, ...]:
    """The chain's fonts as `open_font` takes them: OAR_FONT's file, Pillow's own, then those of the system.

    Raises:
        InputError: OAR_FONT names no font file.
    """
    return tuple(_chain(os.environ.get(FONT_VARIABLE, "")))


def has_ink(source: str, char: str) -> bool:
    """Whether the font has a glyph for `char` that shows something: a blank or an empty glyph does not."""
    return not char.isspace() and _has(source, char) and any(_glyph(source, char)[1])


@lru_cache(maxsize=256)
def open_font(source: str, size: int) -> ImageFont.FreeTypeFont:
    """The font of a file ("": Pillow's own) at `size` pixels. Raises: OSError, ValueError, where it is no font."""
    if source == _EMBEDDED:
        return ImageFont.load_default(size)  # pyright: ignore[reportReturnType]  FreeType is in every Pillow wheel
    return ImageFont.truetype(source, size)


@cache
def _has(source: str, char: str) -> bool:
    """Whether the font has a glyph for `char`: Pillow does not tell, so its image is held against the missing one."""
    return char.isspace() or _glyph(source, char) != _glyph(source, "\ufffe")


@lru_cache(maxsize=4096)
def _glyph(source: str, char: str) -> tuple[tuple[int, int], bytes]:
    mask = open_font(source, 20).getmask(char)
    return mask.size, bytes(mask)  # pyright: ignore[reportArgumentType]  it has the buffer protocol


@cache
def _system_fonts() -> tuple[str, ...]:
    """One file for each wanted font that is installed, the regular weight where there are several."""
    found: dict[str, Path] = {}
    for folder in _font_folders():
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            name = path.name.lower()
            if path.suffix.lower() not in (".ttf", ".ttc", ".otf", ".otc"):
                continue
            wanted = next((wanted for wanted in _WANTED if name.startswith(wanted)), None)
            if (
                wanted
                and (wanted not in found or _plainness(path) < _plainness(found[wanted]))
                and is_font(path)
            ):
                found[wanted] = path
    return tuple(str(found[wanted]) for wanted in _WANTED if wanted in found)


def _plainness(path: Path) -> tuple[bool, int]:
    return "regular" not in path.stem.lower(), len(path.stem)


def is_font(path: Path) -> bool:
    """Whether the file is a font that can be drawn with."""
    try:
        ImageFont.truetype(str(path), 10)
    except (OSError, ValueError):
        return False
    return True


def _font_folders() -> list[Path]:
    home = Path.home()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", str(home / "AppData" / "Local"))
        return [
            Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts",
            Path(local) / "Microsoft" / "Windows" / "Fonts",
        ]
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library" / "Fonts"]
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    return [
        *(Path(folder) / "fonts" for folder in shared.split(":") if folder),
        Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "fonts",
        home / ".fonts",
        Path(sys.prefix) / "fonts",  # conda's
    ]
