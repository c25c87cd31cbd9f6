"""Every configuration as ONNX: one of each structure by default, all of them slowly (tools.bench onnx_configs)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools.bench.onnx_configs import WITHOUT_ONNX, Program, configs, export_and_compare, programs

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

# What the structures are whose files are compared by default: a network of convolutions, a branched one, texts of
# free length, recurrence, and a loop that translates. Detections are slow: which of equal scores is kept is up to the
# machine.
DEFAULT = (
    "lenet_mnist",
    "pp_lcnet_x0_25_clothing",
    "bert_small_vectors",
    "text_cnn_snips",
    "bigru_crf_pos_en",
    "transformer_small_multi30k",
)
NAMES = tuple(path.stem for path in configs())


def of(name: str) -> Iterator[Program]:
    return programs(next(path for path in configs() if path.stem == name))


def check(name: str) -> None:
    for program in of(name):
        if program.name in WITHOUT_ONNX:
            continue
        row = export_and_compare(program)
        assert row.close, "; ".join(one.text for found in row.differences.values() for one in found)


def test_opt_outs_are_of_configurations() -> None:
    known = {program.name for name in {key.partition("/")[0] for key in WITHOUT_ONNX} for program in of(name)}
    assert set(WITHOUT_ONNX) <= known and set(DEFAULT) <= set(NAMES)


@pytest.mark.parametrize("name", DEFAULT)
def test_onnx_runtime_computes_what_the_program_computes(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(DEFAULT)))
def test_onnx_runtime_computes_what_every_program_computes(name: str) -> None:
    check(name)
