"""Flags of PaddleOCR's tools of documents that are no options here: `ppstructure/predict_system.py` of 2.x and
`paddleocr pp_structurev3` of 3.x.

Each is taken as a setting of the recogniser, accepted with a line that it changes nothing, or refused with what does
the same here: a model that a user names is never passed over.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from framework.config.arguments import BooleanFlag, add_ignored, parse_boolean, setting
from framework.core.errors import ConfigError, InputError

# Stages of PaddleOCR's pipelines that are not there: False says so, True is refused.
_NOT_THERE = """
use_chart_recognition use_region_detection use_table_orientation_classify use_wired_table_cells_trans_to_html
use_wireless_table_cells_trans_to_html use_e2e_wired_table_rec_model use_e2e_wireless_table_rec_model invert binarize
""".split()  # noqa: SIM905
# Switches of what is always there: True says so, False is refused.
_ALWAYS = {
    "layout": "`oar ocr` gives lines without blocks",
    "ocr": "--text_layer always reads PDFs without OCR",
    "use_ocr_results_with_table_cells": "words are always divided between the cells that they stand in",
}
# Settings of the recogniser's config.
_DETECTOR = "pipeline.detector.options.postprocess."
_SETTINGS = {
    "use_dilation": (f"{_DETECTOR}use_dilation", parse_boolean),
    "det_db_score_mode": (f"{_DETECTOR}score_mode", str),
    "det_box_type": (f"{_DETECTOR}box_type", str),
    "cls_thresh": ("pipeline.orientation.options.thresh", float),
}
# Versions of the recogniser, by PaddleOCR's names of them.
_VERSIONS = {"PP-OCRv4": "pp_ocrv4_mobile", "PP-OCRv5": "pp_ocrv5_server", "PP-OCRv6": "pp_ocrv6_small"}
# Models and options that are said otherwise here.
_RECOGNISER = "name a config of configs/ocr with -c (`oar models names`); --opt changes its stages"
_SEALS = "--seal_model names the config that reads seals; change detector and recogniser there"
_RULES = "ruled tables are read from their lines; --table_model names a network for the others"
_CELLS = (
    "--cell_model names the detectors of cells, such as RT-DETR-L_table_cell_det for both kinds of tables"
)
_PAGES = (
    "--opt pipeline.document_orientation.weights=… or pipeline.unwarp.weights=… of the recogniser's config"
)
_NO_STAGE = "leave it out: there is no such stage"
_REFUSED = {
    **dict.fromkeys(("text_detection", "text_recognition", "textline_orientation"), _RECOGNISER),
    **dict.fromkeys(("seal_text_detection", "seal_text_recognition"), _SEALS),
    **dict.fromkeys(("doc_orientation_classify", "doc_unwarping"), _PAGES),
    **dict.fromkeys(
        ("wired_table_structure_recognition", "table_orientation_classify"),
        _RULES,
    ),
    **dict.fromkeys(("wired_table_cells_detection", "wireless_table_cells_detection"), _CELLS),
    **dict.fromkeys(("chart_recognition", "region_detection"), _NO_STAGE),
}
_REFUSED = {f"{stage}_model_{part}": fix for stage, fix in _REFUSED.items() for part in ("name", "dir")} | {
    **dict.fromkeys(("det_model_dir", "rec_model_dir", "cls_model_dir", "rec_char_dict_path"), _RECOGNISER),
    **dict.fromkeys(("e2e_model_dir", "sr_model_dir"), _NO_STAGE),
    **{f"seal_{name}": _SEALS for name in (
        "det_limit_side_len", "det_limit_type", "det_thresh", "det_box_thresh", "det_unclip_ratio", "rec_score_thresh"
    )},
}  # fmt: skip
# What PaddleOCR's models of these stages are told; what finds layout and tables here takes none of it.
_NO_MODELS = """
table_max_len table_algorithm table_char_dict_path merge_no_span_structure
layout_dict_path layout_score_threshold layout_nms_threshold layout_threshold layout_nms layout_unclip_ratio
layout_merge_bboxes_mode kie_algorithm use_visual_backbone ser_dict_path ocr_order_method
format_block_content markdown_ignore_labels use_pdf2docx_api
""".split()  # noqa: SIM905
# Batches, logs, and options of algorithms that are not there.
_NO_EFFECT = """
textline_orientation_batch_size formula_recognition_batch_size seal_text_recognition_batch_size
chart_recognition_batch_size max_batch_size cls_batch_num sr_batch_num enable_cinn alphacolor show_log save_log_path
vis_font_path draw_img_save_dir save_crop_res crop_res_save_dir process_id use_pdserving return_word_box label_list
cls_image_shape rec_image_shape rec_image_inverse max_text_length use_space_char sr_image_shape
det_east_score_thresh det_east_cover_thresh det_east_nms_thresh det_sast_score_thresh det_sast_nms_thresh det_pse_thresh
det_pse_box_thresh det_pse_min_area det_pse_scale scales alpha beta fourier_degree e2e_algorithm e2e_limit_side_len
e2e_limit_type e2e_pgnet_score_thresh e2e_char_dict_path e2e_pgnet_valid_set e2e_pgnet_mode
""".split()  # noqa: SIM905


def add_upstream_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that the functions below read, and those without effect."""
    for name in _NOT_THERE:
        parser.add_argument(f"--{name}", action=BooleanFlag, help="False: this stage is not there yet")
    for name in _ALWAYS:
        parser.add_argument(f"--{name}", action=BooleanFlag, help="True: this stage is always there")
    group = parser.add_argument_group("settings of the recogniser under PaddleOCR's names")
    for name, (key, kind) in _SETTINGS.items():
        group.add_argument(f"--{name}", type=kind, help=f"short for --opt {key}=…")
    group.add_argument("--ocr_version", choices=list(_VERSIONS), help="short for -c of a recogniser's config")
    for name in ("det_limit_type", "text_det_limit_type"):
        group.add_argument(f"--{name}", choices=("max", "min"), help="max; min by --opt")
    group = parser.add_argument_group("refused", "models and options that are named otherwise here")
    for name in _REFUSED:
        group.add_argument(f"--{name}", nargs="?", metavar="", help=argparse.SUPPRESS)
    add_ignored(parser, "no network finds layout and tables", _NO_MODELS)
    add_ignored(parser, "nothing here is told so", _NO_EFFECT)


def check_upstream_flags(values: Mapping[str, object]) -> None:
    """Raises: ConfigError, where a flag asks for what is not there or is named otherwise."""
    for name in _NOT_THERE:
        if values[name]:
            raise ConfigError("this stage is not there yet", where=f"--{name}", received=True, allowed=False)
    for name, fix in _ALWAYS.items():
        if values[name] is False:
            raise ConfigError(
                "this stage is always there", where=f"--{name}", received=False, allowed=True, fix=fix
            )
    for name, fix in _REFUSED.items():
        if values[name] is not None:
            raise ConfigError(
                "this is named otherwise here", where=f"--{name}", received=values[name], fix=fix
            )
    for name in ("det_limit_type", "text_det_limit_type"):
        if values[name] == "min":
            raise ConfigError(
                "the shortest side is a setting of the recogniser",
                where=f"--{name}",
                received="min",
                allowed="max",
                fix="--opt pipeline.detector.options.size.limit_type=min pipeline.detector.options.size.limit_side=736",
            )


def upstream_settings(values: Mapping[str, object]) -> tuple[str, ...]:
    """Settings of the recogniser's config that the flags ask for."""
    return tuple(text for name, (key, _) in _SETTINGS.items() for text in setting(key, values[name]))


def upstream_model(values: Mapping[str, Any]) -> str | None:
    """The recogniser's config that `--ocr_version` stands for. Raises: InputError, where a model is named beside it."""
    version = values["ocr_version"]
    if version is not None and (values["config"] or values["model_dir"]):
        raise InputError(
            "the recogniser is named twice",
            where="--ocr_version",
            received=f"{version}, and {values['config'] or values['model_dir']}",
            fix="leave one of them out",
        )
    return None if version is None else _VERSIONS[version]
