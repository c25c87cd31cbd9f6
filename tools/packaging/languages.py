"""Write into the rows of ocr/weights which languages each recogniser reads, from the dictionaries and
ocr/text/languages.py.

    pip download --no-deps --no-binary paddleocr paddleocr==3.7.0 && tar xzf paddleocr-3.7.0.tar.gz
    python -m tools.packaging.languages paddleocr-3.7.0/ppocr/utils

A row's dictionary is the file of the folder that has the SHA-256 of its `dict`. A row reads a language when its
dictionary has all letters of it and upstream trains the row for the language's script: the Thai dictionary has all of
French, and its recogniser was never shown any. `lacks` says what the nearest row lacks of a language that none reads.

--cldr FOLDER compares the letters with the main exemplar sets of Unicode CLDR (`npm pack cldr-misc-full`, its folder
`main`), and prints what the recogniser of each language cannot write of them; it writes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from framework import hub
from ocr.text.language_codes import GROUPS, LANGUAGES
from ocr.text.languages import (
    ARABIC,
    CYRILLIC,
    DEFAULT,
    DEVANAGARI,
    LATIN,
    missing_letters,
    recognisers_for,
    required_letters,
)

WEIGHTS = Path(__file__).resolve().parents[2] / "ocr" / "weights"
# What upstream trains recognisers for, by how their names begin. All are trained with English.
SCRIPTS = {
    "latin": {*LATIN},
    "eslav": {*GROUPS["eslav"]},
    "cyrillic": {*CYRILLIC},
    "arabic": {*ARABIC},
    "devanagari": {*DEVANAGARI},
    **{name: {code} for name, code in (("korean", "ko"), ("japan", "ja"), ("ka", "kn"), ("en", "en"))},
    **{code: {code} for code in ("th", "el", "ta", "te")},
    "chinese_cht": {"zh-Hant"},
    "pp_ocrv6": {*LATIN, "zh", "zh-Hant", "ja"},
    "pp_ocrv5": {"zh", "zh-Hant", "ja"},
    "pp_ocrv4": {"zh"},
}


def read_dictionaries(folder: Path) -> dict[str, set[str]]:
    """The symbols of every row that has a dictionary, by name. Raises: SystemExit where a file is not in the folder."""
    files = {}
    for path in folder.rglob("*.txt"):
        data = path.read_bytes()
        for content in (
            data,
            data.rstrip(b"\n"),
        ):  # ppocr_keys_v1.txt is about with and without its last line end
            files[hashlib.sha256(content).hexdigest()] = data.decode("utf-8")
    dictionaries = {}
    for name, entry in hub.entries("ocr").items():
        if "dict" in entry.files:
            hashes = [source.sha256 for source in entry.files["dict"].sources]
            text = next((files[sha256] for sha256 in hashes if sha256 in files), None)
            if text is None:
                sys.exit(f"{folder} has no file with a SHA-256 of the dictionary of {name}")
            dictionaries[name] = set(text.split("\n"))
    return dictionaries


def coverage(dictionaries: dict[str, set[str]]) -> tuple[dict[str, list[str]], dict[str, dict[str, str]]]:
    """The languages that each row reads, and the letters that the nearest row lacks of those that none reads."""
    missing = {
        name: {code: missing_letters(code, symbols) for code in LANGUAGES if code in trained_for(name)}
        for name, symbols in dictionaries.items()
    }
    reads = {name: [code for code, letters in of.items() if not letters] for name, of in missing.items()}
    lacks: dict[str, dict[str, str]] = {name: {} for name in dictionaries}
    for code in set(LANGUAGES).difference(*reads.values()):
        ready = {name: of for name, of in missing.items() if code in of and not name.endswith("_pretrained")}
        near = min(ready, key=lambda n: (len(ready[n][code]), -_version(n), n != DEFAULT), default="")
        if near and 2 * len(ready[near][code]) < len(required_letters(code)):
            lacks[near][code] = ready[near][code]
    return reads, lacks


def trained_for(name: str) -> set[str]:
    """The languages whose script upstream trains a row for."""
    return {"en"}.union(*(codes for start, codes in SCRIPTS.items() if name.startswith(f"{start}_")))


def _version(name: str) -> int:
    match = re.search(r"v(\d)", name)
    return int(match[1]) if match else 0


def write_rows(reads: dict[str, list[str]], lacks: dict[str, dict[str, str]]) -> None:
    """Puts the lines `languages` and `lacks` below `form` of each row."""
    for path in WEIGHTS.glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"^    languages:.*\n(?:      .*\n)*", "", text, flags=re.MULTILINE)
        text = re.sub(r"^    lacks:.*\n", "", text, flags=re.MULTILINE)
        for name, codes in reads.items():
            row = re.search(rf"^  {name}:.*\n    form: .*\n", text, flags=re.MULTILINE)
            if row is None:
                continue
            lines = textwrap.fill(f"languages: {' '.join(codes)}", 110, break_on_hyphens=False).split("\n")
            added = "".join(f"    {'  ' if i else ''}{line}\n" for i, line in enumerate(lines))
            if lacks[name]:
                inside = ", ".join(f"{code}: {letters}" for code, letters in sorted(lacks[name].items()))
                added += f"    lacks: {{{inside}}}\n"
            text = text[: row.end()] + added + text[row.end() :]
        path.write_text(text, encoding="utf-8", newline="\n")


def exemplars(main: Path, code: str) -> set[str]:
    """The letters and marks of a language's main exemplar set; empty where CLDR has none."""
    locale = {"kat": "ka", "tl": "fil", "zh": "zh-Hans", "pi": "pi-Latn"}.get(code, code)
    path = main / locale / "characters.json"
    if not path.is_file():
        return set()
    written = json.loads(path.read_text(encoding="utf-8"))["main"][locale]["characters"]["exemplarCharacters"]
    text = "".join(_expand(written[1:-1]))
    return {c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c)[0] in "LM"}


def _expand(written: str) -> Iterator[str]:
    """The members of a UnicodeSet such as `a b {ch} ä-ü \\u0301`."""
    tokens = re.findall(r"\{[^}]*\}|\\u[0-9A-Fa-f]{4}|\\.|[^ ]", written)
    plain = [
        chr(int(t[2:], 16)) if t.startswith("\\u") else t.strip("\\{}") if len(t) > 1 else t for t in tokens
    ]
    for i, token in enumerate(plain):
        if token == "-" and tokens[i] == "-" and 0 < i < len(plain) - 1:
            yield from map(chr, range(ord(plain[i - 1]), ord(plain[i + 1])))
        else:
            yield token


def compare(main: Path, dictionaries: dict[str, set[str]]) -> None:
    """Prints what CLDR has and the table or the recogniser of a language has not."""
    for code in LANGUAGES:
        letters = exemplars(main, code)
        names = recognisers_for(code)
        held = set("".join(dictionaries[names[0]])) if names else set()
        unwritten = {c for c in letters if c not in held and c.swapcase() not in held} if names else set()
        left_out = letters - set(required_letters(code))
        cells = [f"{code}: {names[0] if names else 'no recogniser'}", "" if letters else "not in CLDR"]
        cells.append(f"cannot write {_list_letters(unwritten)}" if unwritten else "")
        cells.append(f"not in the table {_list_letters(left_out)}" if left_out else "")
        print("; ".join(filter(None, cells)))


def _list_letters(letters: set[str]) -> str:
    return " ".join(f"{letter} U+{ord(letter):04X}" for letter in sorted(letters)[:12]) + f" ({len(letters)})"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dictionaries", type=Path, help="a folder with PaddleOCR's dictionaries")
    parser.add_argument("--cldr", type=Path, help="compare the letters with CLDR's, and write nothing")
    args = parser.parse_args(argv)
    dictionaries = read_dictionaries(args.dictionaries)
    if args.cldr:
        compare(args.cldr, dictionaries)
    else:
        write_rows(*coverage(dictionaries))


if __name__ == "__main__":
    main()
