"""Time and score of reading receipts against RapidOCR in the same run, and the time from a process's start.

ocr     every receipt (--data, ../shared/data/sroie/test) is read by all, one after the other, `--rounds` times; the
        first round warms them up and does not count. The score is the micro F1 of words [A-Z0-9]+ as multisets over
        all receipts. The last lines are ratios of the medians of the times a receipt, of each of our engines to each
        of RapidOCR's, and in brackets those of CPU time. `--networks` times the two networks alone against ONNX
        Runtime and OpenVINO; `--crops LIST` scores line crops, a file of path<TAB>text rows
start   each round starts one process of both, which imports, opens the default model and reads one image; the home
        folder is a new one, and a start before the rounds fills it (`--first` prints it). ONNX Runtime's threads spin
        while they wait. Python writes compiled modules as it does for users, whatever PYTHONDONTWRITEBYTECODE says
        here
fields  how many fields of the receipts of FOLDER (img/*.jpg and key/*.json, such as sroie/test) are exactly right, by
        rules or by `--model ARTIFACT` alone. A total is right where the amount is, a date where the day is (both also
        as written); company and address where letters and digits are. `--cache FOLDER` holds what OCR read
"""

from __future__ import annotations

import collections
import importlib.util
import json
import logging
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from framework.inference import keep_memory
from framework.vision import image as vision_image
from tools.bench.peers import REPO, arguments, onnxruntime_session, openvino_model, race

Counts = collections.Counter


def words(texts: Iterable[str]) -> Counts:
    return sum((Counts(re.findall("[A-Z0-9]+", text.upper())) for text in texts), Counts())


def truth(path: Path) -> Counts:
    rows = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return words(row.split(",", 8)[8] for row in rows if row.count(",") >= 8)


def scores(pairs: list[tuple[Counts, Counts]]) -> tuple[float, float, float]:
    """Precision, recall and F1 of (expected, found) over all pairs."""
    hit = sum((expected & found).total() for expected, found in pairs)
    found, expected = sum(f.total() for _, f in pairs), sum(e.total() for e, _ in pairs)
    return hit / max(found, 1), hit / max(expected, 1), 2 * hit / max(found + expected, 1)


def rapid(engine: str) -> Callable[[np.ndarray], list[str]]:
    """RapidOCR on one of its engines."""
    logging.disable(logging.WARNING)
    from rapidocr import EngineType, RapidOCR

    kind = EngineType(engine)
    read = RapidOCR(params={f"{stage}.engine_type": kind for stage in ("Det", "Cls", "Rec")})
    return lambda rgb: list(read(np.ascontiguousarray(rgb[..., ::-1])).txts or ())


def networks(model: str, rounds: int) -> None:
    """The detector at 640x640 and the recogniser at 6x48x320, against other runtimes on the official ONNX files."""
    from framework import hub
    from framework.inference import XLAEngine
    from framework.workflow import find_artifact

    stages, rng = find_artifact(model, domain="ocr").artifact.stages, np.random.default_rng(0)
    for name, (n, h, w) in {"detector": (1, 640, 640), "recognizer": (6, 48, 320)}.items():
        image = rng.integers(0, 255, (n, h, w, 3), dtype=np.uint8)
        sizes = {"size": np.full((n, 2), 640, np.int32)}
        feed = {"image": image, **(sizes if name == "detector" else {"width": np.full(n, w, np.int32)})}
        runs: dict[str, Callable[[], Any]] = {}
        for precision in ("float32", "bfloat16"):
            engine = XLAEngine(stages[name].programs[precision], stages[name].weights)
            runs[f"oar {precision}"] = lambda engine=engine, feed=feed: engine(feed)
        path = str(hub.fetch(str(stages[name].config["name"])))
        session = onnxruntime_session(path)
        flat = np.ascontiguousarray((image.astype(np.float32) / 127.5 - 1).transpose(0, 3, 1, 2))
        given = {session.get_inputs()[0].name: flat}
        runs["onnxruntime"] = lambda session=session, given=given: session.run(None, given)
        for precision in ("f32", "bf16") if importlib.util.find_spec("openvino") else ():
            compiled = openvino_model(path, precision)
            runs[f"openvino {precision}"] = lambda compiled=compiled, x=flat: compiled(x)
        print(name)
        race(runs, 5 * rounds, "onnxruntime")


def line_crops(listing: Path, model: str, precision: str) -> None:
    """Accuracy on line crops (`path<TAB>text` rows): exact, and by letters and digits alone without regard to case."""
    from rapidocr import RapidOCR

    from ocr import predictor

    rows = [row.split("\t", 1) for row in listing.read_text(encoding="utf-8").splitlines() if "\t" in row]
    images = [vision_image.read(listing.parent / name) for name, _ in rows]
    recognizer = predictor(model, precision=precision).pipeline.recognizer
    other = RapidOCR()

    def rapid_text(image: np.ndarray) -> str:
        found = other(np.ascontiguousarray(image[..., ::-1]), use_det=False, use_cls=False, use_rec=True)
        return (found.txts or ("",))[0]

    answers = {
        "oar": [text.text for text, _, _ in recognizer(images)],
        "rapidocr": list(map(rapid_text, images)),
    }

    def plain(text: str) -> str:
        return re.sub("[^a-z0-9]", "", text.lower())

    for name, texts in answers.items():
        exact = sum(text == want for text, (_, want) in zip(texts, rows))
        loose = sum(plain(text) == plain(want) for text, (_, want) in zip(texts, rows))
        print(
            f"{name:<10} {len(rows)} crops: exact {exact / len(rows):.4f}, letters and digits {loose / len(rows):.4f}"
        )


def ocr(argv: list[str]) -> None:
    data, model = "../shared/data/sroie/test", "pp_ocrv6_small"
    parser = arguments(__doc__, data=data, model=model, precision="auto", rounds=3, crops="")
    parser.add_argument("--engines", nargs="+", default=["xla"])
    parser.add_argument("--peers", nargs="+", default=["onnxruntime"], help="engines of RapidOCR")
    parser.add_argument("--networks", action="store_true", help="time the two networks alone")
    args = parser.parse_args(argv)
    keep_memory()
    if args.networks:
        networks(args.model, args.rounds)
        return
    if args.crops:
        logging.disable(logging.WARNING)
        line_crops(Path(args.crops), args.model, args.precision)
        return
    folder = Path(args.data)
    files = sorted((folder / "img").glob("*.jpg"))
    if not files:
        raise SystemExit(f"error: no receipts in {folder / 'img'}")
    from ocr import predictor

    ours = {
        f"oar {engine}": predictor(args.model, precision=args.precision, engine=engine)
        for engine in args.engines
    }
    peers = {f"rapidocr {engine}": rapid(engine) for engine in args.peers}
    readers = {name: lambda rgb, one=one: one(rgb).text.split("\n") for name, one in ours.items()} | peers
    images = [vision_image.read(file) for file in files]
    expected = [truth(folder / "box" / f"{file.stem}.csv") for file in files]
    times: dict[str, list[float]] = {name: [] for name in readers}
    used: dict[str, list[float]] = {name: [] for name in readers}
    found: dict[str, list[Counts]] = {name: [] for name in readers}
    for round_ in range(args.rounds + 1):
        for number, image in enumerate(images):
            for name, run in readers.items():
                started, before = time.perf_counter(), time.process_time()
                texts = run(image)
                if round_ > 0:
                    times[name].append(time.perf_counter() - started)
                    used[name].append(time.process_time() - before)
                elif len(found[name]) <= number:
                    found[name].append(words(texts))
    middle, cpu = ({name: statistics.median(values) for name, values in one.items()} for one in (times, used))
    for name in readers:
        p, r, f = scores(list(zip(expected, found[name])))
        mean = statistics.fmean(times[name])
        print(
            f"{name:<21} P {p:.4f} R {r:.4f} F1 {f:.4f}  median {middle[name]:.3f} s, mean {mean:.3f} s,"
            f" CPU {cpu[name]:.3f} s a receipt"
        )
    for name, one in ours.items():
        ratios = ", ".join(
            f"{middle[name] / middle[peer]:.2f}x ({cpu[name] / cpu[peer]:.2f}x) of {peer}" for peer in peers
        )
        print(f"{name} takes {ratios}; {one.compile_count} of {one.bucket_count} shapes compiled")


OURS = """
import sys
from ocr import predictor
print(len(predictor(engine=sys.argv[2])(sys.argv[1]).text))
"""
THEIRS = """
import logging, sys
logging.disable(logging.WARNING)
from rapidocr import RapidOCR
print(sum(map(len, RapidOCR()(sys.argv[1]).txts)))
"""


def run_process(code: str, *args: str, home: str) -> tuple[float, float]:
    """(seconds, CPU seconds) of a process that runs this."""
    before, started = os.times(), time.perf_counter()
    env = {**os.environ, "OAR_HOME": home, "PYTHONPATH": str(REPO)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", code, *args], check=True, env=env, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - started, used


def start(argv: list[str]) -> None:
    parser = arguments(__doc__, image=str(REPO / "docs" / "images" / "receipt.png"), rounds=5, engine="xla")
    parser.add_argument("--first", action="store_true", help="print the first start of all as well")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as home:
        first = run_process(OURS, args.image, args.engine, home=home)
        if args.first:
            print(f"first start of all  {first[0]:6.2f} s  {first[1]:6.2f} s of CPU")
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(run_process(OURS, args.image, args.engine, home=home))
            theirs.append(run_process(THEIRS, args.image, home=home))
    for name, times in (("oar", ours), ("rapidocr", theirs)):
        wall, cpu = (statistics.median(column) for column in zip(*times))
        print(f"{name:<20}{wall:6.2f} s  {cpu:6.2f} s of CPU")
    wall, cpu = (
        statistics.median(mine) / statistics.median(peer) for mine, peer in zip(zip(*ours), zip(*theirs))
    )
    print(f"ratio {wall:.2f}, of CPU time {cpu:.2f}")


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


def fields(argv: list[str]) -> None:
    parser = arguments(__doc__, model=None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--show", action="store_true", help="print what is wrong")
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
        by_name = {field.name: field for field in reversed(found_fields)}
        count += 1
        for name in NAMES:
            found, want = by_name.get(name), truth.get(name, "")
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
