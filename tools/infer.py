"""Run a model on images, PDFs, videos and texts.

python tools/infer.py -c configs/ocr/pp_ocrv6_small.yml --image_file docs/images/receipt.png
python tools/infer.py --model_dir inference_model/pp_ocrv6_small --pdf_file scan.pdf --output_dir output
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.config.arguments import OUTPUT, add_config, add_settings, settings
from framework.core.errors import OarError
from framework.inference import keep_memory, runner


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run a model on images, PDFs, videos and texts.")
    model = parser.add_mutually_exclusive_group(required=True)
    add_config(model, required=False)
    model.add_argument("--model_dir", help="an artifact's folder, or transformers' or PaddleNLP's of a model")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--image_file")
    source.add_argument("--image_dir", help="every image of the folder")
    source.add_argument("--image_path", help="an image or a folder of them")
    source.add_argument("--pdf_file")
    source.add_argument("--video_file")
    source.add_argument("--camera_id", type=int, help="a camera, usually 0, until Ctrl+C")
    source.add_argument("--text")
    source.add_argument("--text_file", help="a text a line, UTF-8; of pairs two, a tab between them")
    parser.add_argument("--pair", help="the second text of a pair, with --text")
    parser.add_argument(*OUTPUT, default="output", help="default: output")
    parser.add_argument("--device", help="cpu, gpu, gpu:1, tpu; default: what jax takes")
    parser.add_argument("--precision", default="auto", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--no_draw", action="store_true", help="write no images, only JSON")
    parser.add_argument("--save_results", action="store_true", help="also one file: bbox.json, MOT's .txt")
    add_settings(parser)
    add = parser.add_argument_group("options", "each for the domains that take it").add_argument
    add("--threshold", type=float, help="least score of what is kept")
    add("--batch_size", type=int, help="how many run together")
    add("--tracker", choices=["bytetrack"], help="follow objects over the frames of a video")
    add("--det_model_dir", help="the detector that finds people for a pose model of one person's crop")
    add("--det_threshold", type=float, help="least score of what that detector finds, default: 0.5")
    add("--slice_infer", action="store_true", default=None, help="look at tiles of an image")
    add("--slice_size", type=int, nargs=2, metavar=("H", "W"), help="of a tile, default: 640 640")
    add("--overlap_ratio", type=float, nargs=2, metavar=("H", "W"), help="of tiles, default: 0.25 0.25")
    add("--combine_method", choices=["nmm", "nms", "concat"], help="of the boxes of tiles")
    add("--match_metric", choices=["ios", "iou"], help="tells whether two boxes show one object")
    add("--match_threshold", type=float, help="the metric from which they do")
    add("--opacity", type=float, help="of masks, 0 to 1")
    add("--background", help="behind what is cut out: blur, a colour or an image")
    return parser


def main(argv: list[str] | None = None) -> int:
    given = vars(arguments().parse_args(argv))
    if (path := given.pop("image_path")) is not None:
        given["image_dir" if Path(path).is_dir() else "image_file"] = path
    sources = {name: given.pop(name) for name in runner.SOURCES}
    model = [given.pop(name) for name in ("config", "model_dir", "device", "precision")]
    model.append(settings(given.pop("opt"), given.pop("model_path")))
    output_dir, draw = Path(given.pop("output_dir")), not given.pop("no_draw")
    save = given.pop("save_results")
    keep_memory()
    try:
        runner.check_sources(**sources)
        predictor = runner.open_predictor(*model, options=given)
        report = runner.run(predictor, output_dir, **sources, draw=draw, save=save)
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
