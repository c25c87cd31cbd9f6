"""Parity of BiGRUCRF with PaddleNLP's tagger of Chinese texts (LAC), from a file as that toolkit saves it.

The reference is written by tools/golden/lac.py.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from framework.config import build
from framework.interop import load_weights
from framework.workflow.domain.weights import load_weights_into
from nlp.contracts import Tokens
from nlp.models.bigru_crf import BiGRUCRF, BiGRUCRFConfig
from tools.golden.lac_cases import EMBEDDING, HIDDEN, KEPT, TAGS, VOCABULARY, drawn, inputs, source


def test_a_file_of_paddlenlp(tmp_path: Path) -> None:
    with np.load(Path(__file__).parent / "data" / "lac.npz") as data:
        reference = dict(data)
    lines = (line.split(" ") for line in bytes(reference["keys"]).decode().splitlines())
    shapes = {name: tuple(int(size) for size in shape.split("x")) for name, shape in lines}
    path = tmp_path / "model_state.pdparams"
    path.write_bytes(pickle.dumps({**drawn(shapes), "StructuredToParameterName@@": {}}, protocol=2))
    model = build(BiGRUCRFConfig(VOCABULARY, TAGS, EMBEDDING, HIDDEN))
    assert isinstance(model, BiGRUCRF)
    own = model.state_shapes()
    assert own == {name: shape for name, shape in shapes.items() if source(name) == name}
    assert len(shapes) == len(own) + 16 + 2  # the cells' arrays, and the transitions, under other names
    assert load_weights(path).keys() == shapes.keys()
    load_weights_into(model, path).eval()  # strict: nothing is missing, nothing is left over
    ids, lengths = inputs()
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    tokens = Tokens(ids.astype(np.int32), mask)
    emissions = np.asarray(model(tokens))
    flat = emissions.reshape(-1)
    # The outputs at padding are not read; PaddlePaddle's GRU gives zeros there, too.
    np.testing.assert_allclose(flat[:: -(-flat.size // KEPT)], reference["emissions"], rtol=0, atol=1e-4)
    tags, _ = model.tag(tokens)
    assert np.array_equal(np.asarray(tags)[mask], reference["tags"][mask])
    assert len(np.unique(reference["tags"][mask])) > 20
    _, scores = model.crf.decode(emissions, mask)
    np.testing.assert_allclose(scores, reference["scores"], rtol=0, atol=1e-4)
