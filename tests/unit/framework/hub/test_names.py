"""Upstream's names of weights, from the files of the index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError
from framework.hub.names import Names

NAMES = """names:
  Net:
    '^old\\.': middle.
    '^(middle)\\.': fc.
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package with the file weights/net.yml."""
    folder = tmp_path / "package_of_names"
    (folder / "weights").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "weights/net.yml").write_text(NAMES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder.name


def test_a_layer_takes_the_names_of_its_file_in_their_order(package: str) -> None:
    class Net(nn.Layer):
        state_renames = Names(f"{package}/weights/net.yml", "Net")

        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

    model, names = Net(), Net.state_renames
    own = {"fc.weight": np.ones((2, 2), np.float32), "fc.bias": np.ones(2, np.float32)}
    model.set_state_dict(own)
    assert "rules" not in vars(names), "names that are known need no file"
    model.set_state_dict({"old.weight": 2 * own["fc.weight"], "old.bias": own["fc.bias"]})
    assert np.array_equal(model.fc.weight, 2 * own["fc.weight"])
    assert list(names) == [(r"^old\.", "middle."), (r"^(middle)\.", "fc.")]
    assert len(names) == 2 and names[0] == (r"^old\.", "middle.") and names[1:] == (names[1],)


def test_errors(package: str) -> None:
    with pytest.raises(
        ConfigError, match=r"(?s)net.yml: names: no names for this layer.*Nett.*allowed: Net.*did you mean"
    ):
        len(Names(f"{package}/weights/net.yml", "Nett"))
    for file in (f"{package}/weights/nets.yml", "no_such_package/weights/net.yml"):
        with pytest.raises(
            ConfigError, match=r"(?s)there is no such file of weights.*a package and a file in it"
        ):
            len(Names(file, "Net"))
