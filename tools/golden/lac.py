"""Emissions and tags of PaddleNLP's BiGRU-CRF for lexical analysis, at its full size.

    python tools/golden/lac.py          needs: paddlepaddle 2.6, paddlenlp 2.8

Weights are drawn from the names of its state dict (lac_cases.py). Stored are these names and shapes, thinned emissions,
and the tags of its decoder with their scores. Written to tests/golden/data/lac.npz.

Only the files of the network are imported, not the package, which wants much that it does not use here.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
import zlib  # noqa: F401  loaded before paddle, whose libraries bring one that crashes Python's
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from lac_cases import EMBEDDING, HIDDEN, KEPT, TAGS, VOCABULARY, drawn, inputs  # noqa: E402

OUT = ROOT / "tests" / "golden" / "data" / "lac.npz"


def network() -> type:
    found = importlib.util.find_spec("paddlenlp")
    assert found is not None and found.submodule_search_locations is not None
    root = Path(found.submodule_search_locations[0])
    for name in (
        "paddlenlp",
        "paddlenlp.layers",
        "paddlenlp.taskflow",
        "paddlenlp.taskflow.models",
        "paddlenlp.utils",
    ):
        module = types.ModuleType(name)
        module.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
    log = types.ModuleType("paddlenlp.utils.log")
    log.logger = None  # type: ignore[attr-defined]
    sys.modules["paddlenlp.utils.log"] = log
    from paddlenlp.taskflow.models.lexical_analysis_model import BiGruCrf

    return BiGruCrf


def main() -> None:
    import paddle

    net = network()(EMBEDDING, HIDDEN, VOCABULARY, TAGS)
    net.eval()
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    net.set_state_dict({name: paddle.to_tensor(value) for name, value in drawn(shapes).items()})
    ids, lengths = (paddle.to_tensor(value) for value in inputs())
    with paddle.no_grad():
        hidden, _ = net.gru(net.word_embedding(ids), sequence_length=lengths)
        emissions = net.fc(hidden)
        scores, tags = net.viterbi_decoder(emissions, lengths)
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in shapes.items())
    print(keys)
    print(tags.numpy(), scores.numpy(), emissions.numpy().std(), len(np.unique(tags.numpy())))
    flat = emissions.numpy().reshape(-1)
    np.savez_compressed(
        OUT,
        keys=np.array(keys.encode()),
        emissions=flat[:: -(-flat.size // KEPT)],
        tags=tags.numpy().astype(np.int32),
        scores=scores.numpy(),
    )


if __name__ == "__main__":
    main()
