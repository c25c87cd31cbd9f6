"""What a pipeline says with other engines in some of its stages, against what it says in float32."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from framework.inference import Runtime
from framework.workflow.domain.comparison import Comparison, ContentComparison
from framework.workflow.export import pipeline_score
from framework.workflow.export.pipeline_score import PipelineScore


def count_words(reference: list[str], other: list[str]) -> Comparison:
    return Comparison(2 * len(set(reference) & set(other)), len(reference) + len(other))


@dataclass(frozen=True)
class TwoStages:
    """A domain whose pipeline cuts a text and then reads the parts; engines are functions here."""

    content: ContentComparison | None

    options = dict

    def capability(self, kind: type) -> ContentComparison | None:
        return self.content if kind is ContentComparison else None

    def open(self, artifact: Any, options: object, runtime: Runtime) -> Any:
        functions: list[Any] = [runtime.open(artifact.stages[name]) for name in ("cut", "read")]
        cut, read = functions
        return SimpleNamespace(predict=lambda file: [read(part) for part in cut(file)])


@pytest.fixture
def artifact(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        pipeline_score, "find_domain", lambda _: TwoStages(ContentComparison("words", count_words))
    )
    monkeypatch.setattr(pipeline_score, "make_options", lambda *_: None)
    return SimpleNamespace(
        config={"domain": "texts"}, stages={"cut": SimpleNamespace(), "read": SimpleNamespace()}
    )


def test_each_stage_can_be_another_engine(artifact: Any) -> None:
    floats: dict[str, Any] = {"cut": str.split, "read": str}
    others: dict[str, Any] = {
        "misread": {**floats, "read": lambda part: part.replace("d", "x")},
        "uncut": {**floats, "cut": lambda text: [text]},
        "first": {**floats, "cut": lambda text: text.split()[:1]},
    }
    score = PipelineScore.open(artifact, ["a b", "c d"], floats)
    assert score is not None and score.expected == [["a", "b"], ["c", "d"]]
    assert score(floats) == 1 and score(others["misread"]) == 0.75 and score(others["uncut"]) == 0
    assert score(others["first"]) == pytest.approx(2 * 2 / (4 + 2))


def test_models_and_domains_that_say_nothing_of_it_have_no_such_score(
    artifact: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    floats: dict[str, Any] = {"cut": str.split, "read": str}
    alone: Any = SimpleNamespace(config=artifact.config, stages={})
    assert PipelineScore.open(alone, ["a"], floats) is None
    monkeypatch.setattr(pipeline_score, "find_domain", lambda _: TwoStages(None))
    assert PipelineScore.open(artifact, ["a b"], floats) is None
