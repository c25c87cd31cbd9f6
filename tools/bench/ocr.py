"""Time and score of reading receipts, against RapidOCR in the same run.

python tools/bench/ocr.py --data ../shared/data/sroie/test [--model pp_ocrv6_small] [--precision auto] [--rounds 3]
    [--engines xla onnxruntime openvino] [--peers onnxruntime openvino]

Every receipt is read by all, one after the other, `--rounds` times; the first round warms them up and does not
count. The score is the micro F1 of words [A-Z0-9]+ as multisets over all receipts. The last lines are the ratios of
the medians of the times per receipt, of each of our engines to each of RapidOCR's, and in brackets those of the CPU
time of the process, which tell more on a machine that does other work, too. `--networks` times the two networks alone
against ONNX Runtime and, where it is installed, OpenVINO.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import logging
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from framework.inference import keep_memory
from framework.vision import image as vision_image

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


def networks(model: str, precisions: list[str], rounds: int) -> None:
    """The detector at 640x640 and the recogniser at 6x48x320, against other runtimes on the official ONNX files."""
    import onnxruntime

    from framework import hub
    from framework.inference import XLAEngine
    from framework.workflow import find_artifact

    stages = find_artifact(model, domain="ocr").artifact.stages
    rng = np.random.default_rng(0)
    images = {"detector": (1, 640, 640), "recognizer": (6, 48, 320)}
    for name, (n, h, w) in images.items():
        image = rng.integers(0, 255, (n, h, w, 3), dtype=np.uint8)
        extra = (
            {"size": np.full((n, 2), 640, np.int32)}
            if name == "detector"
            else {"width": np.full(n, w, np.int32)}
        )
        runs: dict[str, Callable[[], Any]] = {}
        for precision in precisions:
            engine = XLAEngine(stages[name].programs[precision], stages[name].weights)
            runs[f"oar {precision}"] = lambda engine=engine, x={"image": image, **extra}: engine(x)
        path = str(hub.fetch(str(stages[name].config["name"])))
        options = onnxruntime.SessionOptions()
        # Its threads would otherwise spin between calls and take the cores from the others of this run.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(path, options)
        flat = np.ascontiguousarray((image.astype(np.float32) / 127.5 - 1).transpose(0, 3, 1, 2))
        runs["onnxruntime"] = lambda session=session, x=flat: session.run(
            None, {session.get_inputs()[0].name: x}
        )
        if importlib.util.find_spec("openvino"):
            import openvino

            for precision in ("f32", "bf16"):
                compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": precision})
                runs[f"openvino {precision}"] = lambda compiled=compiled, x=flat: compiled(x)
        times: dict[str, list[float]] = {key: [] for key in runs}
        for run in runs.values():
            run()
        for _ in range(5 * rounds):
            for key, run in runs.items():
                started = time.perf_counter()
                run()
                times[key].append(time.perf_counter() - started)
        base = statistics.median(times["onnxruntime"])
        for key, values in times.items():
            middle = statistics.median(values)
            print(f"{name:<11}{key:<16}{middle * 1e3:8.1f} ms  {middle / base:5.2f}x of onnxruntime")


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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="../shared/data/sroie/test")
    parser.add_argument("--model", default="pp_ocrv6_small")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=["xla"])
    parser.add_argument("--peers", nargs="+", default=["onnxruntime"], help="engines of RapidOCR")
    parser.add_argument("--networks", action="store_true", help="time the two networks alone")
    parser.add_argument("--crops", metavar="LIST", help="score line crops: a file of path<TAB>text rows")
    args = parser.parse_args()
    keep_memory()
    if args.networks:
        networks(args.model, ["float32", "bfloat16"], args.rounds)
        return 0
    if args.crops:
        logging.disable(logging.WARNING)
        line_crops(Path(args.crops), args.model, args.precision)
        return 0
    folder = Path(args.data)
    files = sorted((folder / "img").glob("*.jpg"))
    if not files:
        print(f"error: no receipts in {folder / 'img'}", file=sys.stderr)
        return 2
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
