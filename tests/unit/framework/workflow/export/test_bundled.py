from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from framework.export import TensorSpec, lower_program
from framework.workflow.export import bundled

SPECS = {"x": TensorSpec(("n", 3))}
WEIGHTS = {"w": np.ones(3, np.float32)}
GRAPH = b"an ONNX graph without its weights"


def key(**changes: object) -> str:
    given = {"model": {"type": "Net"}, "task": {}, "specs": SPECS, "weights": WEIGHTS}
    return bundled.program_key(**{**given, "precision": "float32", "constraints": (), **changes})  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One shipped program and one graph, in a folder of its own."""
    monkeypatch.setattr(bundled, "_folder", lambda: tmp_path / "programs")
    bundled._manifest.cache_clear()
    program = lower_program(lambda w, i: {"y": w["w"] * i["x"]}, WEIGHTS, SPECS, ("cpu",))
    with bundled.collect_programs() as found:
        assert bundled.find_program(key()) is None
        bundled.note_program(key(), program)
        bundled.note_graph(key(), lambda: GRAPH)
    bundled.note_graph(key(), lambda: pytest.fail("made where nothing collects"))
    bundled.write_programs(found)
    yield tmp_path / "programs"
    bundled._manifest.cache_clear()


def change(folder: Path, **changes: object) -> None:
    path = folder / bundled.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), encoding="utf-8")
    bundled._manifest.cache_clear()


def test_a_program_of_the_same_parts_is_found(folder: Path):
    program = bundled.find_program(key())
    assert program is not None and not bundled.stale_sources()
    out = program.call(WEIGHTS, {"x": np.full((2, 3), 2, np.float32)})["y"]
    np.testing.assert_array_equal(out, np.full((2, 3), 2))
    for other in (
        {"model": {"type": "Other"}},
        {"weights": {"w": np.ones(4, np.float32)}},
        {"specs": {"x": TensorSpec(("n", 3), "uint8")}},
        {"precision": "bfloat16"},
        {"constraints": ("n >= 2",)},
    ):
        assert bundled.find_program(key(**other)) is None
    assert bundled.find_graph(key()) == GRAPH and bundled.find_graph(key(precision="onnx 19")) is None
    assert bundled.has_graphs()


def test_none_is_taken_where_a_source_changed(folder: Path):
    sources = json.loads((folder / bundled.MANIFEST).read_text("utf-8"))["sources"]
    assert "framework/export/program.py" in sources
    change(folder, sources={**sources, "framework/export/program.py": "0" * 64, "gone.py": "0" * 64})
    assert bundled.stale_sources() == ["framework/export/program.py", "gone.py"]
    assert bundled.find_program(key()) is None and bundled.find_graph(key()) is None


def test_none_is_taken_that_is_damaged_or_that_jax_reads_no_more(folder: Path):
    change(folder, programs={key(): "0" * 64})
    assert bundled.find_program(key()) is None
    shipped_file = folder / f"{key()}.jaxexp.gz"
    shipped_file.write_bytes(shipped_file.read_bytes()[:50])
    assert bundled.find_program(key()) is None
    shipped_file.write_bytes(gzip.compress(b"of an older jax"))
    change(folder, programs={key(): hashlib.sha256(b"of an older jax").hexdigest()}, jax="0.1")
    assert bundled.find_program(key()) is None
    (folder / f"{key()}.onnx.gz").write_bytes(gzip.compress(b"another graph"))
    assert bundled.find_graph(key()) is None
    (folder / f"{key()}.onnx.gz").write_bytes(b"no gzip")
    assert bundled.find_graph(key()) is None
    (folder / bundled.MANIFEST).unlink()
    bundled._manifest.cache_clear()
    assert bundled.find_program(key()) is None and bundled.find_graph(key()) is None
    assert not bundled.has_graphs()


def test_what_the_package_has_is_listed():
    """Whether it holds for today's sources is a matter of speed: `python tools/packaging/programs.py --check`."""
    listed = bundled._read_manifest()
    programs = {f"{name}.jaxexp.gz" for name in listed["programs"]}
    graphs = {f"{name}.onnx.gz" for name in listed["graphs"]}
    files = {path.name for path in bundled._folder().glob("*.gz")}
    assert files == programs | graphs and (len(programs), len(graphs)) == (8, 4)
