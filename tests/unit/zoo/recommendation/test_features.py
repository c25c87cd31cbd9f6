"""Raw rows to features: hashes, vocabularies, numbers, and that an artifact takes them along."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from zoo.recommendation.data.__main__ import count_values, make_vocabulary
from zoo.recommendation.data.features import EncodeFeatures, bin_number
from zoo.recommendation.data.hashing import hash_feature
from zoo.recommendation.sample import RowSample

RNG = np.random.default_rng(0)


def encode(features: EncodeFeatures, **row: object) -> dict[str, np.ndarray]:
    return dict(features(RowSample(values=row), RNG).arrays)  # type: ignore[arg-type]


def test_a_row_is_encoded_the_same_from_text_json_and_parquet() -> None:
    features = EncodeFeatures(("C1", "C2"), ("I1",), size=1000)
    text = encode(features, C1="7", C2="", I1="2.5", label="1")
    assert text["sparse"].tolist() == [hash_feature("C1", "7", 1000), 0]
    assert text["dense"].tolist() == [2.5] and text["label"].tolist() == [1.0]
    for value in (7, 7.0, np.int64(7).item(), "7.0"):  # pandas writes the last where a row has no number
        typed = encode(features, C1=value, C2=None, I1=2.5, label=True)
        assert all(np.array_equal(text[name], typed[name]) for name in text)
    assert "label" not in encode(features, C1="7")  # as rows come when a model is served
    assert encode(features, C1="7")["dense"].tolist() == [0.0]


def test_versions_and_words_keep_their_point() -> None:
    features = EncodeFeatures(("v",), size=1000, length=3)
    assert features.texts("v", "1.0 2.50 a.0 -3.0 4") == ["1", "2.50", "a.0"]
    assert features.texts("v", ["-3.0", "1.0.0", ".0"]) == ["-3", "1.0.0", ".0"]


def test_numbers_as_weighted_ids_in_bins_and_on_scales() -> None:
    weighted = encode(EncodeFeatures(("C1",), ("I1..I2",), size=100, weighted=True), C1="a", I1="3")
    assert weighted["weight"].tolist() == [3.0, 0.0, 1.0] and weighted["dense"].shape == (0,)
    assert weighted["sparse"].tolist() == [hash_feature("I1", "", 100), hash_feature("I2", "", 100),
                                          hash_feature("C1", "a", 100)]  # fmt: skip
    assert [bin_number(text) for text in ("1382", "2", "-1", "0", "", "x")] == [
        "52",
        "s2",
        "s-1",
        "s0",
        "",
        "x",
    ]
    binned = EncodeFeatures(("I1",), size=100, log_bins=("I1",))
    assert encode(binned, I1="1382")["sparse"].tolist() == encode(binned, I1=1383)["sparse"].tolist()
    logarithm = EncodeFeatures(dense=("I1", "I2"), dense_scale="log", low=(0, -3))
    np.testing.assert_allclose(encode(logarithm, I1=1, I2=-3)["dense"], [np.log(2), 0], rtol=1e-6)
    scaled = EncodeFeatures(dense=("I1",), dense_scale="range", low=(10,), high=(20,))
    assert encode(scaled, I1="15")["dense"].tolist() == [0.5]


def test_a_row_without_a_column_of_several_numbers_has_as_many_zeros() -> None:
    """As slot text leaves out what is missing: PaddleRec#680."""
    features = EncodeFeatures(("C1",), ("I1", "many"), widths={"many": 3})
    assert encode(features, C1="a", I1="2", many=["1", "2", "3"])["dense"].tolist() == [2, 1, 2, 3]
    for row in ({}, {"many": ""}, {"many": None}, {"many": [""]}):
        assert encode(features, C1="a", I1="2", **row)["dense"].tolist() == [2, 0, 0, 0]
    assert encode(features, C1="a", many=["", "2", ""])["dense"].tolist() == [0, 0, 2, 0]
    for wrong in (["1", "2"], "1"):
        with pytest.raises(InputError, match="another count of numbers"):
            encode(features, C1="a", many=wrong)
    for widths in ({"other": 3}, {"many": 0}):
        with pytest.raises(ConfigError, match="that of a dense column"):
            EncodeFeatures(("C1",), ("many",), widths=widths)


def test_several_values_shared_columns_and_tables() -> None:
    features = EncodeFeatures(
        ("items", "item"), same_as={"items": "item"}, tables={"item": 50}, length=3, values="ids"
    )
    rows = encode(features, items="3 4 5 6", item=["9"])["sparse"]
    assert rows.tolist() == [[3, 4, 5], [9, 0, 0]]
    with pytest.raises(InputError, match="no row of the table"):
        encode(features, items="50", item="1")
    with pytest.raises(InputError, match="no row of the table"):
        encode(features, items="a", item="1")
    hashed = EncodeFeatures(("items", "item"), same_as={"items": "item"}, size=99, length=1)
    rows = encode(hashed, items="3", item="3")["sparse"]
    assert rows[0] == rows[1]


def test_a_vocabulary_goes_into_an_artifact(tmp_path: Path) -> None:
    plain = EncodeFeatures(("C1", "C2"), size=6, labels=())
    samples = [RowSample(values={"C1": "a", "C2": value}) for value in ("x", "x", "y")]
    content = make_vocabulary(count_values(samples, plain), min_count=2)
    assert content["columns"] == {"C1": ["a"], "C2": ["x"]}
    path = tmp_path / "words.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    features = EncodeFeatures(("C1", "C2"), size=4, vocabulary=path, labels=())
    assert encode(features, C1="a", C2="x")["sparse"].tolist() == [2, 3]
    assert encode(features, C1="x", C2="y")["sparse"].tolist() == [1, 1]  # unknown, which is not missing
    assert encode(features, C1="", C2="x")["sparse"].tolist() == [0, 3]
    packed, files = features.pack_assets()
    path.unlink()
    loaded = packed.load_assets(files)
    assert encode(loaded, C1="a", C2="y")["sparse"].tolist() == [2, 1]
    with pytest.raises(FormatError, match="vocabulary is missing"):
        packed.load_assets({})
    with pytest.raises(ConfigError, match="too small for the vocabulary"):
        path.write_text(json.dumps(content), encoding="utf-8")
        encode(EncodeFeatures(("C1", "C2"), size=3, vocabulary=path), C1="a")
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(FormatError, match="no vocabulary"):
        encode(EncodeFeatures(("C1",), size=9, vocabulary=path), C1="a")


def test_words_of_tables_for_truth_and_for_nothing() -> None:
    """As pandas, databases and R write them."""
    features = EncodeFeatures(("C1",), ("I1",), size=100)
    for word in ("", "nan", "NULL", "None", "NA", "<NA>", "\\N", None, float("nan")):
        assert encode(features, C1="a", I1=word)["dense"].tolist() == [0.0]
        assert "label" not in encode(features, C1="a", label=word)
    assert encode(features, C1="a", I1="True", label="False")["dense"].tolist() == [1.0]
    assert encode(features, C1="a", label="False")["label"].tolist() == [0.0]
    assert encode(features, C1="\\N")["sparse"].tolist() == [0]
    assert encode(features, C1="NA")["sparse"].tolist() == [hash_feature("C1", "NA", 100)]


def test_a_column_that_a_table_lacks_is_no_missing_value() -> None:
    features = EncodeFeatures(("user",), ("hour",))
    message = (
        r"t\.csv, line 2: the table has no column 'user'(.|\n)*columns User, hour(.|\n)*did you mean 'User'"
    )
    with pytest.raises(InputError, match=message):
        features(RowSample(values={"User": "a", "hour": "1"}, id="t.csv, line 2", is_complete=True), RNG)
    features(RowSample(values={"hour": "1"}), RNG)  # slots and keys of JSON may be left out


def test_what_cannot_be_encoded() -> None:
    features = EncodeFeatures(("C1",), ("I1",))
    with pytest.raises(InputError, match="none of the columns"):
        encode(features, other=1)
    for value in ("many", "yes", "inf"):
        with pytest.raises(InputError, match="no number"):
            encode(features, I1=value)
    with pytest.raises(ConfigError, match="nothing to encode"):
        EncodeFeatures()
    with pytest.raises(ConfigError, match="do not go together"):
        EncodeFeatures(("C1",), log_bins=("I1",))
    with pytest.raises(ConfigError, match="one number a dense column"):
        EncodeFeatures(dense=("I1",), low=(0, 1))
