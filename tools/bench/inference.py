"""Networks at batch 1 on our engines and on other runtimes, which run in turn: medians, and ratios of them.

The CPU time of the process stands beside the wall time, because machines are shared. Graphs of the peers are equal to
our networks: the official file of PicoDet-s (ESNet) at 320, and those of foreign_networks.py with weights drawn by
name for PP-YOLOE+ s at 640 and PP-LiteSeg-T at 512 x 1024; normalisations are folded on both sides. "net" is what the
graph computes; "detect" also makes boxes and suppresses, "labels" gives the class of each pixel.

detection, segmentation  our programs against ONNX Runtime and OpenVINO on the graphs; `--video FILE --model_dir DIR`
                         times `oar infer` on a video against its program alone, and prints the resident memory in its
                         quarters
exported                 our exported ONNX files against the official or reference ones in OpenVINO, PP-OCRv6 small
                         (det at 640 x 640, rec at 6 x 48 x 320) too; `--engines` runs our network on each of our
                         engines instead
engines                  ONNX files through our engines against the packages' own calls with the same settings
onnx_import              the official PP-OCRv6 small detector: imported from its file, as our own model, in the
                         runtimes
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from detection.models.picodet_esnet import PicoDetESNetConfig
from detection.models.pp_yoloe import REG_MAX, PPYOLOEConfig
from framework import nn
from framework.config import build
from framework.export import TensorSpec, lower_layer
from framework.export.formats.onnx import export_onnx
from framework.export.program import layer_function
from framework.inference import XLAEngine, keep_memory
from framework.inference.engines.onnx_runtime import ONNXRuntimeEngine
from framework.inference.engines.openvino import OpenVINOEngine
from framework.interop.named_weights import named_weights
from framework.nn.reparam import fold_norms
from framework.vision.sample import Sample
from framework.vision.video import VideoReader
from framework.workflow import ImageItem, ImageResult, VisionPredictor, open_predictor
from framework.workflow.domain.samples import apply_transforms
from framework.workflow.domain.weights import load_weights_into
from framework.workflow.files.predict_files import run_video
from segmentation.models.pp_liteseg import VARIANTS, PPLiteSegConfig
from segmentation.test_time_augmentation import best_class
from tools.bench.foreign_networks import pp_liteseg, pp_yoloe
from tools.bench.peers import (
    REPO,
    Run,
    arguments,
    difference,
    onnxruntime_session,
    openvino_model,
    others,
    race,
)

SHARED = Path(os.environ.get("OAR_SHARED", REPO.parent / "shared"))


def rapidocr_models() -> Path:
    """The folder of the files in rapidocr's wheel."""
    import rapidocr

    return Path(rapidocr.__file__).parent / "models"


class Flat(nn.Layer):
    """A model by one of its methods, or the labels of its logits, with outputs that have names."""

    def __init__(self, model: Any, method: str) -> None:
        super().__init__()
        self.model, self.method = model, method

    def forward(self, image: Any) -> dict[str, Any]:
        if self.method == "labels":
            return {"00": best_class(self.model(image)[0])}
        out = getattr(self.model, self.method)(image)
        return {f"{number:02}": leaf for number, leaf in enumerate(jax.tree.leaves(out))}


def program(layer: nn.Layer, shape: tuple[int, ...], precision: str = "float32") -> XLAEngine:
    specs = {"image": TensorSpec(shape)}
    return XLAEngine(*lower_layer(layer.eval(), specs, after=lambda out: out, precision=precision))  # type: ignore[arg-type]


def exported_bytes(layer: nn.Layer, shape: tuple[int, ...]) -> bytes:
    specs = {"image": TensorSpec(shape)}
    return export_onnx(*layer_function(layer.eval(), specs), specs).SerializeToString()


# -- networks: (model, ONNX graph or its file, size) ------------------------------------------------------------------


def picodet_s() -> tuple[Any, Any, tuple[int, int]]:
    file = SHARED / "weights" / "picodet_s_320" / "picodet_s_320_coco_sim.onnx"
    return load_weights_into(build(PicoDetESNetConfig(deploy=True)), file), file, (320, 320)


def pp_yoloe_plus_s() -> tuple[Any, Any, tuple[int, int]]:
    """Of drawn weights, whose scores spread so that the suppression has work."""
    model = build(PPYOLOEConfig(deploy=True))
    state = named_weights(model.state_shapes())
    state["yolo_head.proj_conv.weight"] = np.arange(REG_MAX + 1, dtype=np.float32).reshape(1, -1, 1, 1)
    for level in range(3):
        state[f"yolo_head.pred_cls.{level}.weight"] *= 10
        state[f"yolo_head.pred_cls.{level}.bias"] -= 6
    model.set_state_dict(state)
    return model, pp_yoloe(state, 640), (640, 640)


def liteseg(variant: str, size_hw: tuple[int, int], labels: bool) -> tuple[Any, Any, tuple[int, int]]:
    model: Any = build(PPLiteSegConfig(variant))
    model.set_state_dict(named_weights(model.state_shapes()))
    fold_norms(model.eval())
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    return model, pp_liteseg(state, size_hw, labels), size_hw


DETECTORS = {"picodet_s": picodet_s, "pp_yoloe_plus_s": pp_yoloe_plus_s}


def ours(model: Any, image: np.ndarray, methods: Mapping[str, str]) -> dict[str, Run]:
    runs: dict[str, Run] = {}
    for precision in ("float32", "bfloat16"):
        for name, method in methods.items():
            engine = program(Flat(model, method), image.shape, precision)
            runs[f"oar {precision} {name}"] = lambda engine=engine: list(engine({"image": image}).values())
    return runs


def _video_options(parser: Any) -> None:
    parser.add_argument("--video", type=Path)
    parser.add_argument("--model_dir", type=Path, help="the artifact that looks at the video")


def detection(argv: list[str]) -> None:
    parser = arguments(__doc__, model=tuple(DETECTORS), rounds=20)
    _video_options(parser)
    args = parser.parse_args(argv)
    keep_memory()
    if args.video:
        video(args.video, args.model_dir, args.rounds, {"tracker": "bytetrack"})
        return
    for name in args.model:
        model, graph, (size, _) = DETECTORS[name]()
        image = np.random.default_rng(0).standard_normal((1, size, size, 3)).astype(np.float32)
        runs = ours(model.eval(), image, {"net": "forward", "detect": "detect"}) | others(graph, image, "net")
        apart = difference(runs["oar float32 net"](), runs["onnxruntime net"]())
        print(f"{name} at {size}, {os.cpu_count()} threads, outputs differ by {apart:.0e}")
        race(runs, args.rounds, "onnxruntime net")


def segmentation(argv: list[str]) -> None:
    parser = arguments(__doc__, rounds=20)
    parser.add_argument("--variant", choices=VARIANTS, default="t")
    parser.add_argument("--size", type=int, nargs=2, default=[512, 1024], metavar=("H", "W"))
    _video_options(parser)
    args = parser.parse_args(argv)
    keep_memory()
    if args.video:
        video(args.video, args.model_dir, args.rounds, {})
        return
    image = np.random.default_rng(0).standard_normal((1, *args.size, 3)).astype(np.float32)
    runs: dict[str, Run] = {}
    for name in ("logits", "labels"):
        model, graph, _ = liteseg(args.variant, tuple(args.size), name == "labels")
        runs |= ours(model, image, {name: "labels" if name == "labels" else "forward"})
        runs |= others(graph, image, name)
    apart = difference(runs["oar float32 logits"](), runs["onnxruntime logits"]())
    print(f"PP-LiteSeg-{args.variant} at {args.size}, {os.cpu_count()} threads, logits differ by {apart:.0e}")
    race(runs, args.rounds, "onnxruntime labels")


class Watched(VisionPredictor[ImageResult]):
    """A predictor that notes how the resident memory grows over the frames, in MB."""

    def __init__(self, predictor: VisionPredictor[Any]) -> None:
        self.predictor = predictor
        self.memory: list[float] = []

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[ImageResult]:
        return self.predictor.predict_stream(items)

    def predict_video(self, frames: Iterable[ImageItem], frame_rate: float) -> Iterator[ImageResult]:
        from tools.bench.peers import resident

        for result in self.predictor.predict_video(frames, frame_rate):
            self.memory.append(resident())
            yield result


def video(file: Path, model_dir: Path | None, rounds: int, options: Mapping[str, Any]) -> None:
    """Frame rates of the program alone, on the same batches, and of everything, and the memory of everything."""
    if model_dir is None:
        raise SystemExit("error: --video needs --model_dir")
    predictor: Any = open_predictor(model_dir, options=options)
    model, watched = predictor.runner, Watched(predictor)
    with VideoReader(file) as reader:
        frames = itertools.islice(reader, 64)
        samples = [apply_transforms(Sample(frame), model.transforms).image for frame in frames]
    size = min(model.batch_size, len(samples))
    batches = [{"image": np.stack(samples[at : at + size])} for at in range(0, len(samples) - size + 1, size)]

    def alone() -> int:
        for batch in batches:
            model.engine(batch)
        return sum(len(batch["image"]) for batch in batches)

    with tempfile.TemporaryDirectory() as folder:

        def everything() -> int:
            watched.memory.clear()
            report = run_video(watched, file, Path(folder))
            if report.failed:
                raise SystemExit(f"error: {report.failed}")
            return len(watched.memory)

        rates: dict[str, list[tuple[float, float]]] = {"program": [], "tool": []}
        for turn in range(rounds + 1):
            for name, run in (("program", alone), ("tool", everything)):
                started, used = time.perf_counter(), time.process_time()
                count = run()
                spent = time.perf_counter() - started, time.process_time() - used
                rates[name] += [(spent[0] / count, spent[1] / count)] * (turn > 0)
        with VideoReader(Path(folder) / f"{file.stem}.mp4") as written, VideoReader(file) as source:
            for _ in written:
                pass
            print(f"written: {written.frames_read} frames at {written.fps} a second")
            print(f"source:  {source.frame_count} frames at {source.fps} a second")
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in rates.items()}
    for name, (wall, cpu) in medians.items():
        print(f"{name:8} {1 / wall:7.1f} frames a second, {cpu * 1e3:6.2f} ms of CPU a frame")
    print(f"the tool runs at {medians['program'][0] / medians['tool'][0]:.0%} of the program's own rate")
    quarter = max(len(watched.memory) // 4, 1)
    peaks = [max(watched.memory[at : at + quarter]) for at in range(0, 4 * quarter, quarter)]
    print("resident memory, MB, in the quarters: " + ", ".join(f"{peak:.0f}" for peak in peaks))


# -- exported files ---------------------------------------------------------------------------------------------------

Shapes = Mapping[str, tuple[int, ...]]
Files = dict[
    str, tuple[Any, Shapes]
]  # by name, the reference first, ours behind it: path or bytes, shapes of inputs


def exported_files(name: str, folder: Path, text: Any) -> tuple[Files, Callable[[], Any]]:
    """The files, and our program for XLA."""
    if text is not None:
        stage, file, theirs, shapes = {
            "det": ("detector", "PP-OCRv6_det_small.onnx", (1, 3, 640, 640), {"size": (1, 2)}),
            "rec": ("recognizer", "PP-OCRv6_rec_small.onnx", (6, 3, 48, 320), {"width": (6,)}),
        }[name]
        image = (theirs[0], *theirs[2:], 3)
        one = text.stages[stage]
        files = {
            "official": (rapidocr_models() / file, {"x": theirs}),
            "ours": (folder / stage / "model.onnx", {"image": image, **shapes}),
        }
        return files, lambda: XLAEngine(one.programs["float32"], one.weights)
    if name == "pp_liteseg":
        (model, graph, size_hw), methods = liteseg("t", (512, 1024), True), {"labels": "labels"}
    else:
        model, graph, size_hw = DETECTORS[{"picodet": "picodet_s", "pp_yoloe": "pp_yoloe_plus_s"}[name]]()
        methods = {"net": "forward", "detect": "detect"}
    shape = (1, *size_hw, 3)
    made = {what: (exported_bytes(Flat(model, method), shape), {}) for what, method in methods.items()}
    first = next(iter(methods.values()))
    return {"reference": (graph, {}), **made}, lambda: program(Flat(model, first), shape)


def _feed(inputs: Mapping[str, tuple[Any, Any]], shapes: Shapes) -> dict[str, np.ndarray]:
    """Drawn inputs by name from (shape, dtype)."""
    rng, feed = np.random.default_rng(0), {}
    for name, (shape, dtype) in inputs.items():
        shape, dtype = shapes.get(name) or tuple(shape), np.dtype(dtype)
        values = rng.integers(0, 255, shape) if dtype.kind in "iu" else rng.standard_normal(shape)
        feed[name] = values.astype(dtype)
    return feed


def exported(argv: list[str]) -> None:
    from framework.workflow.export.export import export_config
    from framework.workflow.export.onnx import OnnxOptions

    parser = arguments(
        __doc__, models=("det", "rec", "picodet", "pp_yoloe", "pp_liteseg"), precisions=("f32", "bf16"),
        rounds=20, threads=1,
    )  # fmt: skip
    parser.add_argument("--engines", action="store_true", help="time our network on each of our engines")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder, text = Path(name), None
        if {"det", "rec"} & set(args.models):
            text = export_config("pp_ocrv6_small", onnx=OnnxOptions())
            folder = text.save(folder)
        for model in args.models:
            files, make_program = exported_files(model, folder, text if model in ("det", "rec") else None)
            if args.engines:
                print(f"{model}, {args.threads} of {os.cpu_count()} threads (XLA has all)")
                file, shapes = list(files.values())[1]
                if isinstance(file, bytes):
                    (Path(name) / "own.onnx").write_bytes(file)
                    file = Path(name) / "own.onnx"
                engines: dict[str, Any] = {
                    "xla": make_program(),
                    "onnxruntime": ONNXRuntimeEngine(file, threads=args.threads),
                    "openvino": OpenVINOEngine(file, threads=args.threads),
                    "openvino bf16": OpenVINOEngine(file, precision="bfloat16", threads=args.threads),
                }
                feed = _feed(
                    {n: (t.shape, t.dtype) for n, t in engines["onnxruntime"].inputs.items()}, shapes
                )
                runs = {key: lambda engine=engine, feed=feed: engine(feed) for key, engine in engines.items()}
                race(runs, args.rounds, "xla")
                continue
            for precision in args.precisions:
                print(f"{model}, OpenVINO {precision}, {args.threads} threads")
                runs = {}
                for key, (file, shapes) in files.items():
                    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": args.threads}
                    compiled = openvino_model(file, precision, **hints)
                    inputs = {p.any_name: (p.shape, p.element_type.to_dtype()) for p in compiled.inputs}
                    feed, request = _feed(inputs, shapes), compiled.create_infer_request()
                    runs[key] = lambda request=request, feed=feed: request.infer(feed, share_inputs=True)
                race(runs, args.rounds, next(iter(files)))


def engines(argv: list[str]) -> None:
    folder = rapidocr_models()
    models: dict[str, tuple[Path, Any]] = {  # file, and the shape of its first input
        "det": (folder / "PP-OCRv6_det_small.onnx", (1, 3, 640, 640)),
        "rec": (folder / "PP-OCRv6_rec_small.onnx", (6, 3, 48, 320)),
        "cls": (folder / "ch_ppocr_mobile_v2.0_cls_mobile.onnx", (6, 3, 48, 192)),
    }
    for name in ("picodet_s_320", "nanodet_m_320", "yolox_nano", "resnet20_cifar10", "cgnet_camvid"):
        for path in sorted((SHARED / "weights" / name).glob("*.onnx"))[:1]:
            models[name] = (path, None)
    args = arguments(__doc__, models=tuple(models), rounds=30).parse_args(argv)
    for model in args.models:
        path, shape = models[model]
        for name, precision in (
            ("onnxruntime", "float32"),
            ("openvino", "float32"),
            ("openvino", "bfloat16"),
        ):
            engine: Any = (ONNXRuntimeEngine if name == "onnxruntime" else OpenVINOEngine)(
                path, precision=precision
            )
            first = next(iter(engine.inputs))
            sizes = {
                key: shape
                if shape and key == first
                else [n if isinstance(n, int) else 1 for n in tensor.shape]
                for key, tensor in engine.inputs.items()
            }
            feed = _feed({key: (sizes[key], tensor.dtype) for key, tensor in engine.inputs.items()}, {})
            if name == "onnxruntime":
                session = onnxruntime_session(path)
                alone: Run = lambda session=session, feed=feed: session.run(None, feed)  # noqa: E731
            else:
                alone = openvino_model(path, precision.replace("float", "f")[:4], PERFORMANCE_HINT="LATENCY")
                alone = lambda model=alone, feed=feed: model(feed)  # noqa: E731
            print(f"{model}, {name} {precision}")
            race(
                {"alone": alone, "ours": lambda engine=engine, feed=feed: engine(feed)}, args.rounds, "alone"
            )


def onnx_import(argv: list[str]) -> None:
    from framework.interop.programs import onnx
    from ocr.models.dbnet import DBNet, DBNetConfig

    args = arguments(__doc__, size=640, rounds=15).parse_args(argv)
    path = rapidocr_models() / "PP-OCRv6_det_small.onnx"
    image = np.random.default_rng(0).uniform(-1, 1, (1, args.size, args.size, 3)).astype(np.float32)

    def compiled(layer: nn.Layer, image: np.ndarray) -> Run:
        """The layer as a program with a free batch; the map of probabilities, with which outputs of ours begin."""
        spec = {"image": TensorSpec(("n", *image.shape[1:]))}
        after = lambda out: {"map": jax.tree.leaves(out)[0]}  # noqa: E731
        engine = XLAEngine(*lower_layer(layer, spec, after=after, platforms=("cpu",)))
        return lambda: list(engine({"image": image}).values())

    own = load_weights_into(DBNet(DBNetConfig("PP-OCRv6_small_det", deploy=True)), path)
    runs = {
        "imported": compiled(onnx.load(path), np.ascontiguousarray(image.transpose(0, 3, 1, 2))),
        "own model": compiled(own, image),
        **others(path.read_bytes(), image),
    }
    for name, run in runs.items():
        print(f"largest difference of {name} to the imported: {difference(run(), runs['imported']()):.1e}")
    race(runs, args.rounds, "imported")
