"""From a configuration and weights to an artifact: one way for every domain that trains one model."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import jax

from framework import hub, nn
from framework.config import plain
from framework.core.bounded import VOCABULARY, read_text
from framework.core.disk import check_place
from framework.core.dtypes import Precision
from framework.core.errors import ConfigError, InputError, OarError
from framework.core.transform import Transform
from framework.core.types import JSON
from framework.engine.experiment import Experiment
from framework.engine.task import Pipeline, Stage, Task, check_transforms
from framework.export import Artifact, TensorSpec
from framework.export.artifact import FormatFiles, pack_assets
from framework.export.formats.onnx.check import NamedArrays
from framework.export.formats.onnx.model import OPSET
from framework.export.program import lower_layer, program_weights
from framework.export.program_bytes import Program
from framework.io.checkpoint import STATE, read_meta, run_folder
from framework.nn.reparam import fold_norms, reparameterize
from framework.vision.sample_transforms.resize import Resize
from framework.workflow.domain.capabilities import ExportExtras, FixedProgram, FixedSizes, FolderExport
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.domain import find_domain
from framework.workflow.domain.weights import load_model, resolve_weights
from framework.workflow.export.bundled import find_program, note_graph, note_program, program_key
from framework.workflow.export.examples import example_inputs
from framework.workflow.export.onnx import OnnxFile, OnnxOptions, with_onnx
from framework.workflow.export.tflite import TfliteFile, TfliteOptions, sizes_of_inputs

log = logging.getLogger("oar")
_EXAMPLES = 6  # images of the data that an ONNX file is compared on


class ExportedModel(nn.Layer):
    """A model with its task's inference around it: what is exported."""

    def __init__(self, model: nn.Layer, task: Task, order: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.task, self.order = model, task, order

    def forward(self, *inputs: jax.Array) -> dict[str, jax.Array]:
        return self.task.infer(self.model, dict(zip(self.order, inputs)))


def trained_model(experiment: Experiment, config: Path) -> tuple[nn.Layer, Path, tuple[str, ...]]:
    """The model of an experiment with its weights, where they come from, and the labels that came with them.

    Weights are those that the experiment names, else those of its training run, else the published ones of its name.

    Raises:
        ConfigError: there are none of these.
    """
    model_config, task = experiment.model_and_task()
    run = run_folder(config)
    spec = experiment.weights or (str(run) if run.is_dir() else hub.find_name(config.stem, experiment.domain))
    if spec is None:
        raise ConfigError(
            "there are no weights",
            where=config,
            received=f"no `weights`, no training run in {run}, and none published as {config.stem}",
            allowed="a name of the hub, a file, a checkpoint or an address",
            fix="-o weights=… (`overrides` of a predictor), or train first: oar train -c "
            + config.as_posix(),
        )
    if experiment.weights is None and not run.is_dir():
        log.warning("%s: no training run in %s: the published weights %s are taken", config.name, run, spec)
    path = resolve_weights(spec, experiment.domain)
    model = load_model(task.adapt_model(model_config), path)
    labels = read_meta(path).meta.get("labels", []) if (path / STATE).is_file() else _published(spec)
    return model, path, tuple(labels)


def _published(spec: str) -> list[str]:
    """The labels that come with weights of the hub, one a line."""
    entries = hub.entries()
    if spec not in entries or "labels" not in entries[spec].files:
        return []
    return read_text(hub.fetch(spec, "labels"), VOCABULARY, "file of labels").splitlines()


def labels_of(experiment: Experiment, kept: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the classes: those kept with the weights, else those of the data set, if it is here."""
    if kept:
        return kept
    for loader in (experiment.data.eval, experiment.data.train):
        with contextlib.suppress(InputError):  # the data need not be on the machine that exports
            if loader is not None:
                return tuple(getattr(loader.dataset, "class_names", ()))
    return ()


def with_input_shape(experiment: Experiment, input_shape: tuple[int, ...]) -> Experiment:
    """The experiment with a program for images of `input_shape` (N, C, H, W); -1 leaves a number free.

    A fixed height and width take the place of those in the transforms that made the program's size. Where none did,
    images are scaled to it last of all, and results are brought back as from every transform.

    Raises:
        ConfigError: the shape does not fit, or the program's input is no image.
    """
    spec = experiment.export.inputs.get("image")
    if spec is None or len(spec.shape) != 4:
        raise ConfigError(
            "this model has no shape of images",
            where="--input_shape",
            received="inputs "
            + (
                ", ".join(f"{name} {list(one.shape)}" for name, one in experiment.export.inputs.items())
                or "none"
            ),
            fix="leave --input_shape out",
        )
    count, channels, height, width = input_shape if len(input_shape) == 4 else (0, 0, 0, 0)
    if (
        min(input_shape) < -1
        or 0 in (count, height, width)
        or (height == -1) != (width == -1)
        or (channels not in (-1, spec.shape[3]))
    ):
        raise ConfigError(
            "--input_shape does not fit the program's images",
            where="--input_shape",
            received=" ".join(map(str, input_shape)),
            allowed=f"N {spec.shape[3]} H W, each 1 or more, or -1 where it stays free (H and W together)",
        )
    options, transforms = experiment.predict, tuple(experiment.predict.transforms or ())
    n, old_hw = spec.shape[0] if count == -1 else count, spec.shape[1:3]
    size_hw = old_hw if height == -1 else (height, width)
    if size_hw != old_hw:
        makers = [getattr(transform, "size_hw", None) == old_hw for transform in transforms]
        if any(makers):
            transforms = tuple(
                replace(transform, size_hw=size_hw)  # type: ignore[type-var]  # they are dataclasses
                if makes
                else transform
                for transform, makes in zip(transforms, makers)
            )
        else:
            transforms = (*transforms, Resize(size_hw=(height, width)))
    export = replace(experiment.export, inputs={"image": replace(spec, shape=(n, *size_hw, spec.shape[3]))})
    batch_size = options.batch_size if count == -1 else count
    return replace(
        experiment, export=export, predict=replace(options, transforms=transforms, batch_size=batch_size)
    )


def export_config(
    config: str | Path | ConfigFile,
    settings: Sequence[str] = (),
    input_shape: Sequence[int] | None = None,
    onnx: OnnxOptions | None = None,
    tflite: TfliteOptions | None = None,
) -> Artifact:
    """The artifact of a configuration file: programs, weights, transforms, labels, provenance.

    That of a pipeline is composed of those of its stages.

    Args:
        settings: Overrides, as `-o` of the tools.
        input_shape: See `with_input_shape`.
        onnx: Write the program as ONNX, too, when the artifact is saved.
        tflite: Write the program as `.tflite`, too; `export_tflite` also gives it what it is compared on.

    Raises:
        MissingExtraError: the packages that write ONNX or .tflite are not installed.
        ConfigError: the file names no weights or no inputs, or the model has another number of classes than labels.
    """
    if onnx is not None and not onnx.for_engine:
        onnx.check_packages()
    if tflite is not None:
        tflite.check_packages()
    config = open_config(config, settings)
    experiment = config.experiment
    domain = find_domain(experiment.domain)
    if experiment.pipeline is not None:
        return _export_pipeline(config, experiment.pipeline, input_shape, onnx, tflite)
    experiment = settle_predict_options(experiment)
    if input_shape is not None:
        experiment = with_input_shape(experiment, tuple(input_shape))
    elif tflite is not None and tflite.input_size is not None and domain.capability(FixedSizes) is None:
        experiment = with_input_shape(experiment, (-1, -1, *tflite.input_size))
    extras = domain.capability(ExportExtras)
    prepared = experiment if extras is None else extras.prepare(experiment)
    model, path, class_names = trained_model(prepared, config.path)
    labels, (model_config, task) = labels_of(prepared, class_names), prepared.model_and_task()
    task.check(model, labels)
    specs = {name: TensorSpec(spec.shape, spec.dtype) for name, spec in prepared.export.inputs.items()}
    if not specs:
        raise ConfigError(
            "nothing says what the exported program takes",
            where=config.path,
            received="no `export.inputs`",
            allowed="such as export: {inputs: {image: {shape: [n, 224, 224, 3], dtype: uint8}}}",
        )
    predict, buckets = prepared.predict, prepared.predict.buckets
    about = {
        "domain": experiment.domain,
        "name": config.name,
        **_needed_imports(experiment),
        "model": plain(task.adapt_model(model_config)),
        "batch_size": predict.batch_size,
        **({} if buckets is None else {"buckets": list(buckets)}),
        "labels": list(labels),
        "bf16_verified": prepared.export.bf16_verified,
        **_engine_table(experiment, prepared.export.bf16_engines),
        "provenance": {"weights": path.name, "config": config.text},
    }
    if path.is_file():
        about["provenance"]["sha256"] = hub.digest(path)
    # Keys that programs written for Paddle's infer_cfg.yml read.
    about |= {"mode": "xla", "arch": about["model"]["type"], "label_list": about["labels"]}
    about |= _value_range(experiment)
    about |= domain.describe(experiment, model, labels)
    export, transforms = prepared.export, predict.transforms or ()
    artifact = model_artifact(
        *(model, task, specs, transforms, about, export.precisions, export.constraints, onnx),
        examples=lambda: read_examples(prepared, tuple(specs)),
        tflite=tflite,
    )
    artifact.files |= {} if extras is None else extras.files(artifact.config)
    return artifact


def _value_range(experiment: Experiment) -> dict[str, JSON]:
    """Black and white of images of more than 8 bits, as the data were read; nothing where they say none."""
    loaders = (experiment.data.eval, experiment.data.train)
    ranges = [getattr(one.dataset, "value_range", None) for one in loaders if one is not None]
    stated = next((one for one in ranges if one is not None), None)
    return {} if stated is None else {"value_range": [float(value) for value in stated]}


def _fixed_program(
    config: Mapping[str, JSON],
    specs: Mapping[str, TensorSpec],
    options: TfliteOptions,
    examples: Callable[[], Iterable[NamedArrays]] | None,
) -> FixedProgram:
    """The sizes of a program for a phone: as the domain says, else as its inputs and its data have them."""
    fixed = find_domain(str(config["domain"])).capability(FixedSizes)
    program = None if fixed is None else fixed.choose(config, options.input_size)
    if program is not None:
        return program
    listed = config.get("buckets")
    buckets = [int(str(length)) for length in listed] if isinstance(listed, list | tuple) else None

    def first() -> NamedArrays | None:
        return None if examples is None else next(iter(examples()), None)

    return FixedProgram(sizes_of_inputs(specs, buckets, first, str(config.get("name", ""))))


def read_examples(experiment: Experiment, names: Sequence[str], count: int = _EXAMPLES) -> list[NamedArrays]:
    """Inputs of a program from the data of its configuration, one sample each; none where the data are not here."""
    try:
        batches = list(example_inputs(experiment, names, count))
    except (OarError, OSError, KeyError):  # the data need not be on the machine that exports
        return []
    return [
        {name: array[index : index + 1] for name, array in batch.items()}
        for batch in batches
        for index in range(len(batch[names[0]]))
    ]


def _engine_table(experiment: Experiment, low: Sequence[str]) -> dict[str, JSON]:
    """What was measured of engines, for the config of an artifact, `low` in bfloat16; nothing where nothing was."""
    table = experiment.export.engines
    return {
        **({"engines": {kind: list(engines) for kind, engines in table.items()}} if table else {}),
        **({"bf16_engines": list(low)} if low else {}),
    }


def _needed_imports(experiment: Experiment) -> dict[str, list[str]]:
    """The user's own files that an opened artifact needs: those of its transforms and its task."""
    components = (*(experiment.predict.transforms or ()), experiment.task)
    modules = {type(part).__module__ for part in components}
    needed = [name for name in experiment.imports if Path(name).stem in modules or name in modules]
    return {"imports": needed} if needed else {}


def settle_predict_options(experiment: Experiment) -> Experiment:
    """The experiment whose `predict` has the transforms and buckets of `data.eval` where it names none."""
    predict, loader = experiment.predict, experiment.data.eval
    if predict.transforms is None:
        predict = replace(predict, transforms=loader.transforms if loader else ())
    if predict.buckets is None and loader is not None:
        predict = replace(predict, buckets=loader.buckets)
    return replace(experiment, predict=predict)


def _export_pipeline(
    config: ConfigFile,
    pipeline: Pipeline,
    input_shape: Sequence[int] | None,
    onnx: OnnxOptions | None,
    tflite: TfliteOptions | None,
) -> Artifact:
    """The artifact of a pipeline: one of each stage, and nothing else."""
    experiment = config.experiment
    if experiment.weights is not None or input_shape is not None:
        names = pipeline.stage_names
        raise ConfigError(
            "a pipeline has several models",
            where=config.path,
            received="weights without the model that they are for"
            if input_shape is None
            else "--input_shape",
            allowed=", ".join(f"pipeline.{name}.weights=…" for name in names),
            fix="write the whole key"
            if input_shape is None
            else "leave it out: the stages say what they take",
        )
    if experiment.export.bf16_engines:
        raise ConfigError(
            "what was measured in bfloat16 are the weights of a stage",
            where=config.path,
            received="export.bf16_engines of a pipeline",
            allowed=", ".join(f"pipeline.{name}.bf16_engines" for name in pipeline.stage_names),
        )
    stages = {
        name: _export_stage(stage, name, experiment, onnx, tflite)
        for name, stage in pipeline.stages().items()
    }
    about = {"domain": experiment.domain, "kind": "pipeline", "name": config.name, "config": config.text}
    return Artifact({**about, **pipeline.describe()}, stages=stages)


def _export_stage(
    stage: Stage, name: str, experiment: Experiment, onnx: OnnxOptions | None, tflite: TfliteOptions | None
) -> Artifact:
    provenance = {"weights": stage.weights, "file": stage.path.name}
    if stage.path.is_file():
        provenance["sha256"] = hub.digest(stage.path)
    about: dict[str, JSON] = {
        "domain": experiment.domain,
        "kind": name,
        "name": stage.weights,
        "model": plain(stage.model),
        **stage.config,
        "bf16_verified": stage.bf16_verified,
        **_engine_table(experiment, stage.bf16_engines),
        "provenance": provenance,
    }
    model, precisions = load_model(stage.model, stage.path), experiment.export.precisions
    return model_artifact(
        *(model, stage.task, stage.inputs, (), about, precisions, stage.constraints, onnx), tflite=tflite
    )


def write_artifact(
    config: str | Path | ConfigFile,
    output_dir: Path,
    settings: Sequence[str] = (),
    input_shape: Sequence[int] | None = None,
    *,
    named: bool = True,
    onnx: OnnxOptions | None = None,
) -> Path:
    """Write the artifact of a configuration to output_dir/<name of the config or run>; returns that folder.

    Without `named` it is written to `output_dir` itself; with `onnx` the program stands in it as ONNX, too, and so it
    does where the configuration ranks an engine that runs ONNX files: the folder then runs as the configuration does.
    A domain may write another folder instead (FolderExport).
    """
    config = open_config(config, settings)
    if onnx is None and any(set(names) - {"xla"} for names in config.experiment.export.engines.values()):
        onnx = OnnxOptions(for_engine=True, optional=True)
    folder = output_dir / config.name if named else output_dir
    check_place(folder)  # before minutes are spent
    folders = find_domain(config.experiment.domain).capability(FolderExport)
    if folders is not None and folders.takes(config.experiment):
        return folders.write(config.experiment, config.path, folder)
    return export_config(config, input_shape=input_shape, onnx=onnx).save(folder)


def model_artifact(
    model: nn.Layer,
    task: Task,
    specs: Mapping[str, TensorSpec],
    transforms: Iterable[Transform],
    about: Mapping[str, JSON],
    precisions: Sequence[Precision],
    constraints: Sequence[str] = (),
    onnx: OnnxOptions | None = None,
    examples: Callable[[], Iterable[NamedArrays]] | None = None,
    tflite: TfliteOptions | None = None,
) -> Artifact:
    """The artifact of a model with its weights, whose program is the task's inference.

    Args:
        specs: The program's inputs, by name.
        transforms: What is done to a sample before the program.
        about: The rest of the artifact's config, such as domain, labels and provenance.
        constraints: What holds for symbolic sizes of the inputs; see `lower_program`.
        onnx, tflite: As of `export_config`.
        examples: Inputs of the program from the data, to compare an ONNX file with it.

    Raises:
        ConfigError: the model and the transforms do not fit.
    """
    transforms = tuple(transforms)
    check_transforms(model, transforms)
    whole = ExportedModel(fold_norms(reparameterize(model)), task, tuple(specs))
    weights = program_weights(whole)
    programs: dict[str, Program] = {}
    for precision in precisions:
        key = program_key(about.get("model"), plain(task), specs, weights, precision, constraints)
        program = find_program(key)
        if program is None:
            program, _ = lower_layer(
                whole, specs, after=lambda out: out, precision=precision, constraints=constraints
            )
            note_program(key, program)
        programs[precision] = program
    transforms, files = pack_assets(transforms)
    meanings = {name: dict(meaning) for name, meaning in task.describe_outputs().items()}
    config = {
        **about,
        "task": plain(task),
        "inputs": {name: [list(spec.shape), spec.dtype] for name, spec in specs.items()},
        **({"outputs": meanings} if meanings else {}),
        "transforms": [plain(transform) for transform in transforms],
    }
    metadata = {"name": str(about.get("name", "")), "domain": str(about.get("domain", ""))}
    if about.get("labels"):
        metadata["labels"] = json.dumps(about["labels"], ensure_ascii=False)
    if meanings:
        metadata["outputs"] = json.dumps(meanings, ensure_ascii=False)
    file = OnnxFile(whole, specs, constraints, OnnxOptions(), "model.", metadata, examples=examples)
    key = program_key(about.get("model"), plain(task), specs, weights, f"onnx {OPSET}", constraints)
    note_graph(key, file.bare)
    formats: tuple[FormatFiles, ...] = with_onnx(onnx, file, key)
    if tflite is not None:
        fixed = _fixed_program(config, specs, tflite, examples)
        config |= fixed.settings
        formats += (TfliteFile(whole, specs, fixed.sizes, config, tflite, fixed.vocabulary),)
    return Artifact(config, programs, weights, files=files, formats=formats)
