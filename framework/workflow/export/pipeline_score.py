"""How much of what a pipeline says in float32 it says with other engines in some of its stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framework.export import Artifact
from framework.inference import Runtime
from framework.inference.engine import Engine
from framework.workflow.domain.comparison import Comparison, ContentComparison
from framework.workflow.domain.domain import find_domain
from framework.workflow.domain.options import make_options
from framework.workflow.domain.result import Result
from framework.workflow.export.examples import programs_of

SCORED_FILES = 16
"""Of the examples: all of them are read for each choice of layers, or type, that is tried."""


@dataclass(frozen=True)
class _GivenEngines(Runtime):
    """Takes the engine of each program from a table, by the identity of its artifact."""

    engines: Mapping[int, Engine] = field(default_factory=dict)

    def open(self, artifact: Artifact) -> Engine:
        return self.engines[id(artifact)]


@dataclass(frozen=True)
class PipelineScore:
    """Scores a pipeline by its results on files.

    Attributes:
        expected: Those in float32, a result a file.
    """

    artifact: Artifact
    files: Sequence[Path | str]
    content: ContentComparison
    expected: Sequence[Result]

    @classmethod
    def open(
        cls, artifact: Artifact, files: Sequence[Path | str], engines: Mapping[str, Engine]
    ) -> PipelineScore | None:
        """What `engines`, by stage, give on `files` is what others are compared with; None where the artifact is no
        pipeline, or its domain cannot say what of its results counts."""
        content = find_domain(str(artifact.config["domain"])).capability(ContentComparison)
        if not artifact.stages or content is None:
            return None
        return cls(artifact, files, content, _predict(artifact, files, engines))

    def __call__(self, engines: Mapping[str, Engine]) -> float:
        """The share that is the same, of all files together."""
        results = _predict(self.artifact, self.files, engines)
        return sum(map(self.content.compare, self.expected, results), Comparison()).share


def _predict(artifact: Artifact, files: Sequence[Path | str], engines: Mapping[str, Engine]) -> list[Result]:
    domain = find_domain(str(artifact.config["domain"]))
    by_identity = {id(one): engines[name] for name, one in programs_of(artifact).items()}
    runtime = _GivenEngines(device="cpu", precision="float32", engines=by_identity)
    predictor = domain.open(artifact, make_options(domain.options, {}, "quantize"), runtime)
    return [predictor.predict(file) for file in files]
