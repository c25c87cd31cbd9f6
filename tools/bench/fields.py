"""Fields by rules, or by a trained model, on the receipts of SROIE: how many are exactly right.

python tools/bench/fields.py FOLDER [--cache FOLDER] [--show] [--model ARTIFACT]

FOLDER has img/*.jpg and key/*.json, such as sroie/test. A total is right where the amount is, a date where the day is
(both also as written); company and address where letters and digits are. What OCR read is kept in the cache. With
--model what the model finds is scored alone, without rules.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

NAMES = ("company", "date", "address", "total")


def read_document(image: Path, cache: Path | None, opened: list) -> object:
    import ocr
    from ocr.results.pages import Document

    kept = None if cache is None else cache / f"{image.stem}.json"
    if kept is not None and kept.is_file():
        return Document.from_dict(json.loads(kept.read_text(encoding="utf-8")))
    if not opened:
        opened.append(ocr.predictor())
    found = opened[0](image)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(found.to_json(), encoding="utf-8")
    return found


def plain(name: str, text: str) -> str:
    from ocr.fields.values import find_amounts, find_dates

    if name == "date":
        return dates[0].day.isoformat() if (dates := find_dates(text)) else text
    if name == "total":
        return amounts[0].value if (amounts := list(find_amounts(text))) else text
    return re.sub(r"[^A-Z0-9]", "", text.upper())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    parser.add_argument("--model", help="an artifact's folder, in place of the rules")
    args = parser.parse_args(argv)
    from ocr.documents.field_model import open_fields
    from ocr.fields.rules import find_fields

    read_fields = None if args.model is None else open_fields(args.model)

    right, written, count, opened = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0), 0, []
    for image in sorted((args.folder / "img").glob("*.jpg")):
        truth = json.loads((args.folder / "key" / f"{image.stem}.json").read_text(encoding="utf-8"))
        document = read_document(image, args.cache, opened)
        if read_fields is None:
            found_fields = find_fields(document.pages)
        else:
            found_fields = [field for page in document.pages for field in read_fields(page)]
        fields = {field.name: field for field in reversed(found_fields)}
        count += 1
        for name in NAMES:
            found, want = fields.get(name), truth.get(name, "")
            value = "" if found is None else found.value
            is_right = plain(name, value) == plain(name, want)
            right[name] += is_right
            written[name] += found is not None and found.text.strip().upper() == want.strip().upper()
            if args.show and not is_right:
                print(f"{image.stem} {name}: {value!r} for {want!r}")
    for name in NAMES:
        print(
            f"{name:8} {right[name]:3d} of {count} = {right[name] / count:.3f}, as written {written[name] / count:.3f}"
        )


if __name__ == "__main__":
    main()
