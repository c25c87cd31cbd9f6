"""From a configuration or an artifact to the folder of a page that runs it in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.export import Artifact
from framework.vision.sample_transforms.crop import CenterCrop
from framework.vision.sample_transforms.pad import Pad, PadToMultiple, PadToSize
from framework.vision.sample_transforms.resize import LetterBox, Resize, ResizeShort
from framework.workflow.domain.capabilities import WebExport
from framework.workflow.domain.config_file import open_config
from framework.workflow.domain.domain import all_domains, find_domain
from framework.workflow.export.export import export_config
from framework.workflow.export.onnx import OnnxOptions
from framework.workflow.export.web.folder import PageOptions, write_page
from framework.workflow.open.artifacts import find_artifact
from framework.workflow.runners.image_runner import load_transforms

_TRANSFORMS = (Resize, ResizeShort, LetterBox, CenterCrop, Pad, PadToSize, PadToMultiple)
_OF_LABELS = ("ignore_index", "min_visible", "keypoint_flip_pairs")  # which a page has none of


def write_web(
    model: str | Path,
    output_dir: Path,
    settings: Sequence[str] = (),
    input_shape: Sequence[int] | None = None,
    *,
    named: bool = True,
    onnx: OnnxOptions | None = None,
    page: PageOptions | None = None,
) -> Path:
    """Writes the page of a configuration, or of an artifact's folder, to output_dir/<its name>_web; returns that.

    Args:
        named: Else the page is written to `output_dir` itself.
        onnx: How the program of a configuration is written.

    Raises:
        ConfigError: the domain has no page, or the page cannot do what the model needs. Others: as `export_config`,
            `find_artifact` and `write_page`.
    """
    if onnx is not None and onnx.layout != "NHWC":
        raise ConfigError(
            "the page gives images as uint8 NHWC", where="--onnx_layout", received=onnx.layout, allowed="NHWC"
        )
    if Path(model).is_dir():
        opened = find_artifact(model, settings)
        artifact = opened.artifact
        web = _page_of(opened.domain.name, str(model))
        name = str(artifact.config.get("name") or Path(model).name)
    else:
        config = open_config(model, settings)
        web = _page_of(config.experiment.domain, str(config.path))
        artifact, name = (
            export_config(config, input_shape=input_shape, onnx=onnx or OnnxOptions()),
            config.name,
        )
    folder = output_dir / f"{name}_web" if named else output_dir
    return write_page(artifact, web.module, web.describe(artifact), folder, page or PageOptions())


def _page_of(domain: str, where: str) -> WebExport:
    web = find_domain(domain).capability(WebExport)
    if web is None:
        names = sorted(one.name for one in all_domains() if one.capability(WebExport) is not None)
        raise ConfigError(
            "models of this domain have no page",
            where=where,
            received=f"domain: {domain}",
            allowed=f"models of {', '.join(names)}",
            fix="--format onnx writes the model alone",
        )
    return web


def page_transforms(artifact: Artifact, packages: Sequence[str]) -> list[JSON]:
    """The transforms of an artifact with all of their fields, as the page takes them.

    Raises:
        ConfigError: there is one that the page does not know, or the program takes no RGB images of 8 bits.
    """
    shape, dtype = artifact.config["inputs"]["image"]
    if dtype != "uint8" or shape[-1] != 3:
        raise ConfigError(
            "the page gives RGB images of 8 bits",
            where=artifact.source,
            received=f"a program that takes {dtype} {list(shape)}",
            allowed="uint8 [n, h, w, 3]",
        )
    return [_page_transform(one, artifact.source) for one in load_transforms(artifact, packages)]


def _page_transform(transform: object, where: str) -> JSON:
    name = type(transform).__name__
    if not isinstance(transform, _TRANSFORMS):
        raise ConfigError(
            "the page does not have this transform",
            where=where,
            received=name,
            allowed=", ".join(one.__name__ for one in _TRANSFORMS),
        )
    values: dict[str, JSON] = {
        one.name: getattr(transform, one.name) for one in fields(transform) if one.name not in _OF_LABELS
    }
    if values.get("interpolation") == "lanczos":
        raise ConfigError(
            "the page does not have this interpolation",
            where=where,
            received=f"{name}: lanczos",
            allowed="nearest, linear, cubic, area",
        )
    if name == "ResizeShort" and not isinstance(values["short"], int):
        raise ConfigError(
            "several lengths are drawn from in training alone",
            where=where,
            received=f"short: {values['short']}",
        )
    return {"type": name, **{key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}}
