"""The index: the shipped `zoo/weights/*.yml` against real files, and every error that such a file can have."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import pytest
import yaml

from framework.core.errors import ConfigError, HubError
from framework.hub import store as hub
from framework.hub.index import Source, read_family

REPO = Path(__file__).resolve().parents[4]
SHARED = Path(os.environ.get("OAR_SHARED", REPO.parent / "shared"))
SHIPPED = sorted(path for folder in hub.index_folders() for path in folder.glob("*.yml"))


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


LICENCES = (
    *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT"),
    *("CC-BY-SA-4.0", "CC-BY-NC-SA-4.0", "CC0-1.0"),
)
OWN_TERMS = ("DeepSeek", "Gemma", "LLaMA", "Qwen")
UNMEASURED = ("uvdoc",)  # networks for inference whose files were never here


class StrictLoader(yaml.SafeLoader):
    """As SafeLoader, but a key that stands twice in a mapping is an error instead of the last one winning."""


def _strict_mapping(loader: StrictLoader, node: yaml.MappingNode) -> dict:
    keys = [loader.construct_object(key) for key, _ in node.value]  # type: ignore[no-untyped-call]
    assert len(keys) == len(set(keys)), f"a key stands twice near line {node.start_mark.line + 1}: {keys}"
    return loader.construct_mapping(node, deep=True)


StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _strict_mapping)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_family_is_complete(path: Path) -> None:
    yaml.load(path.read_text(encoding="utf-8"), Loader=StrictLoader)
    for item in read_family(path).values():
        # Addresses of models under terms of their own, which no package of ours holds.
        own_terms = item.licence.startswith("LicenseRef-") and item.family in OWN_TERMS
        assert item.licence in LICENCES or own_terms, item.name
        for file in item.files.values():
            for source in file.sources:
                unknown = (item.form == "trainable" and source.kind == "url") or item.name in UNMEASURED
                assert source.sha256 or unknown, (item.name, source)
                assert source.kind != "url" or source.where.startswith("https://")
        if item.name.endswith("_rec"):
            assert "dict" in item.files, item.name


def test_shipped_names() -> None:
    found = hub.entries()
    for domain in ("ocr", "detection"):
        assert {item.domain for item in hub.entries(domain).values()} == {"zoo", domain}
    v6 = {f"pp_ocrv6_{size}_{task}" for size in ("tiny", "small", "medium") for task in ("det", "rec")}
    assert v6 <= set(found)
    assert {
        "pp_ocrv5_mobile_det",
        "pp_ocrv4_mobile_rec",
        "pp_ocrv3_mobile_det",
        "ch_ppocr_mobile_v2_cls",
    } <= set(found)
    assert [s.kind for s in found["pp_ocrv6_small_det"].files["weights"].sources] == ["package", "hf", "url"]
    assert found["pp_ocrv6_small_det_pretrained"].form == "trainable"


def _rapidocr() -> Path:
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the rapidocr wheel is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def test_shipped_hashes_are_those_of_rapidocr() -> None:
    index = _rapidocr() / "default_models.yaml"
    groups = yaml.safe_load(index.read_text(encoding="utf-8"))["onnxruntime"].values()
    published = {
        model["model_dir"]: model["SHA256"]
        for group in groups
        for models in group.values()
        if isinstance(models, dict)
        for model in models.values()
        if isinstance(model, dict)
    }
    ours = {
        source.where: source.sha256
        for item in hub.entries().values()
        for source in item.files["weights"].sources
        if source.where.startswith("https://www.modelscope.cn/models/RapidAI/")
    }
    if not set(ours) <= set(published):
        pytest.skip("the installed rapidocr is of another release than the addresses in zoo/weights")
    assert len(ours) > 25
    assert ours == {address: published[address] for address in ours}


@pytest.mark.parametrize("name", ["pp_ocrv6_small_det", "pp_ocrv6_small_rec", "ch_ppocr_mobile_v2_cls"])
def test_wheel_has_the_default_weights(
    name: str, home: Path, no_socket: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "rapidocr", raising=False)  # parity tests import it
    folder = _rapidocr()
    assert hub.fetch(name).is_relative_to(folder)
    assert "rapidocr" not in sys.modules


def test_dictionary_in_the_wheel_is_the_dict_file() -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(_rapidocr() / "models" / "PP-OCRv6_rec_small.onnx")
    characters = next(item.value for item in model.metadata_props if item.key == "character")
    wanted = hub.entry("pp_ocrv6_small_rec").files["dict"].sources[0]
    assert sha(f"{characters}\n".encode()) == wanted.sha256


@pytest.mark.parametrize(
    ("name", "file", "path"),
    [
        ("pp_ocrv3_mobile_det", "weights", "ppocr_v3_det_ch/ch_PP-OCRv3_det_infer.onnx"),
        ("en_number_mobile_v2_rec", "weights", "ppocr_v2_rec_en_number/en_number_mobile_v2.0_rec_infer.onnx"),
        ("en_number_mobile_v2_rec", "dict", "ppocr_v2_rec_en_number/en_dict.txt"),
        ("japan_mobile_v2_rec", "weights", "ppocr_v2_rec_japan/inference.pdiparams"),
        ("japan_mobile_v2_rec", "program", "ppocr_v2_rec_japan/inference.pdmodel"),
        ("japan_mobile_v2_rec", "dict", "ppocr_v2_rec_japan/japan_dict.txt"),
        ("resnet20_cifar10", "weights", "resnet20_cifar10/resnet20-12fca82f.th"),
    ],
)
def test_shipped_hashes_are_those_of_real_files(name: str, file: str, path: str, home: Path) -> None:
    real = SHARED / "weights" / path
    if not real.exists():
        pytest.skip(f"{real} is not here (OAR_SHARED)")
    source = hub.entry(name).files[file].sources[0]
    assert hub.verify(real, source) == source.sha256


# --- reading an index -------------------------------------------------------------------------------------------------


FAMILY = """\
family: Nets
domain: ocr
homepage: https://example.org
licence: MIT
entries:
  net:
    form: deploy
    scores: [{set: ours, metric: acc, value: 1, source: us}]
    files:
      weights:
        sources:
          - {url: "https://example.org/x.onnx", sha256: HASH, size: 3}
""".replace("HASH", "a" * 64)


def test_read_family(tmp_path: Path) -> None:
    path = tmp_path / "nets.yml"
    path.write_text(FAMILY, encoding="utf-8")
    item = read_family(path)["net"]
    assert (item.family, item.domain, item.licence, item.form) == ("Nets", "ocr", "MIT", "deploy")
    assert item.files["weights"].sources == (
        Source("url", "https://example.org/x.onnx", sha256="a" * 64, size=3),
    )
    assert item.scores[0]["value"] == 1
    assert item.model == {}


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("family: Nets", "family: [Nets", ["nets.yml:2", "not well-formed YAML"]),
        (FAMILY, "- 1", ["nets.yml: a mapping is needed here", "received: [1]"]),
        ("family: Nets\n", "", ["missing: family"]),
        ("entries:", "names: [a]\nentries:", ["names: wrong type", "['a']", "dict"]),
        ("entries:", "names: {Net: [a]}\nentries:", ["names.Net: a mapping is needed here", "['a']"]),
        ("entries:", "names: {Net: {a: 1}}\nentries:", ["names.Net: wrong type", "'a': 1", "two texts"]),
        ("entries:", "names: {Net: {'(a': b}}\nentries:", ["names.Net: not a rule for names", "'(a': 'b'"]),
        ("entries:", "names: {Net: {'a(.)': '\\2'}}\nentries:", ["names.Net: not a rule for names", "group reference"]),
        ("licence", "license", ["unknown key 'license'", "did you mean 'licence'?", "homepage"]),
        ("domain: ocr", "domain: ocrs", ["domain: not one of the known values", "'ocrs'", "zoo, classification"]),
        ("form: deploy", "form: fused", ["net.form: not one of the known values", "'fused'", "deploy, trainable"]),
        ("  net:", "  Net:", ["Net: not a name for an entry or a file", "'Net'", "lower-case"]),
        ("      weights:", "      dict:", ["the file `weights` is missing", "received: dict"]),
        ("      weights:", "      weights: {sources: []}\n      Dict:", ["weights.sources: no sources"]),
        ("      weights:", "      weights: &w {sources: [{path: x, sha256: " + "a" * 64 + "}]}\n      Dict:",
         ["files.Dict: not a name for an entry or a file", "'Dict'"]),
        ("url:", "uri:", ["sources[0]: not a source", "package, hf, url, path"]),
        ("size: 3", "size: big", ["sources[0].size: wrong type", "'big'", "int"]),
        ("size: 3", "size: true", ["sources[0].size: wrong type", "True"]),
        ("size: 3", "bytes: 3", ["sources[0]: unknown key 'bytes'", "url, sha256, member, md5, size"]),
        ("size: 3", "md5: " + "a" * 33, ["sources[0].md5: not an MD5 sum", "32 lower-case hex digits"]),
        *(("size: 3", f"member: {name}", ["sources[0].member: not a file of an archive", name, "folder/model.pdparams"])
          for name in ("../x", "/x", "a/../x", "a//x", "a/..", "./x", "a/")),
        (", sha256: " + "a" * 64, "", ["sources[0]: missing: sha256"]),
        ("a" * 64, "a" * 63, ["sources[0].sha256: not a SHA-256", "64 lower-case hex digits, or `unknown`"]),
        ("https://example.org/x.onnx\", sha256: " + "a" * 64, "http://example.org/x.onnx\", sha256: unknown",
         ["not safe to fetch", "http://example.org/x.onnx", "https://"]),
        ('url: "https://example.org/x.onnx"', "hf: x, file: y", ["sources[0].hf: not a repository", "owner/name"]),
        ('url: "https://example.org/x.onnx"', "package: a.b, path: y", ["not a file of a package", "a.b"]),
        ('url: "https://example.org/x.onnx"', "package: a, path: ../y", ["not a file of a package", "../y"]),
        ('url: "https://example.org/x.onnx", sha256: ' + "a" * 64, "path: x, sha256: unknown", ["not a SHA-256"]),
        ("source: us", "where: us", ["scores[0]: unknown key 'where'"]),
        ("value: 1", "value: high", ["scores[0].value: wrong type", "int or float"]),
    ],
)  # fmt: skip
def test_errors_of_the_index(tmp_path: Path, old: str, new: str, parts: list[str]) -> None:
    path = tmp_path / "nets.yml"
    assert old in FAMILY
    path.write_text(FAMILY.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_family(path)
    for part in parts:
        assert part in str(error.value)


def test_index_that_is_not_text(tmp_path: Path) -> None:
    for data in (b"\xff\xfe\xff", b"{a: " * 100_000):
        (tmp_path / "nets.yml").write_bytes(data)
        with pytest.raises(ConfigError, match=r"not well-formed YAML|is not UTF-8"):
            read_family(tmp_path / "nets.yml")


def test_name_in_two_families(catalogue) -> None:
    folder = catalogue({"path": "x", "sha256": "a" * 64})
    (folder / "more.yml").write_text(FAMILY.replace("Nets", "More"), encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"nets\.yml: net: the entry's name is taken by another family\n.*More"
    ):
        hub.entries()


def test_unknown_entry_and_file(catalogue) -> None:
    with pytest.raises(HubError, match=r"did you mean 'pp_ocrv6_small_det'\?"):
        hub.entry("pp_ocrv6_smal_det")
    with pytest.raises(HubError, match="run `oar models list`"):
        hub.entry("zzzzzz")
    catalogue({"path": "x", "sha256": "a" * 64})
    with pytest.raises(
        HubError, match="net: the entry has no such file\n  received: 'dict'\n  allowed: weights"
    ):
        hub.locate("net", "dict")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (Source("url", "https://h/a/x%20y.onnx?download=true"), "x_y.onnx"),
        (Source("url", "https://h/"), "file"),
        (Source("url", "https://h/.."), "file"),
        (Source("hf", "o/r", "sub/x.onnx"), "x.onnx"),
        (Source("path", r"C:\models\x.onnx"), "x.onnx"),
    ],
)
def test_filename(source: Source, name: str) -> None:
    assert source.filename == name
