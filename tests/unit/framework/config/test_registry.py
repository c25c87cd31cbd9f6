"""Names, discovery without imports, Layers built from configs, and what every refusal says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from framework.config import KINDS, Kind, available, build, find, register
from framework.core.errors import ConfigError

HERE = (__name__,)
MakePackage = Callable[..., str]


@register("loss")
@dataclass(frozen=True)
class RegistryLoss:
    weight: float = 1.0


@dataclass(frozen=True)
class RegistryNetConfig:
    depth: int = 18


@register("model", config=RegistryNetConfig)
@register("backbone", config=RegistryNetConfig)
class RegistryNet:
    def __init__(self, config: RegistryNetConfig, in_channels: int = 3) -> None:
        self.depth, self.in_channels = config.depth, in_channels


@pytest.fixture
def make_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePackage:
    """Writes a package of source files and returns its name, which must be new in this process."""

    def make(name: str, **files: str) -> str:
        for stem, text in {"__init__": "", **files}.items():
            path = tmp_path / name / Path(*stem.split("__sub__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return name

    monkeypatch.syspath_prepend(str(tmp_path))
    return make


def component(name: str, kind: str = "loss") -> str:
    return (
        "from dataclasses import dataclass\nfrom framework.config import register\n\n\n"
        f'@register("{kind}")\n@dataclass(frozen=True)\nclass {name}:\n    weight: float = 1.0\n'
    )


def message(function: Callable, *args: object, **kwargs: object) -> str:
    with pytest.raises(ConfigError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_kinds() -> None:
    assert " ".join(KINDS) == (
        "model backbone task loss metric dataset transform postprocess optimizer schedule pipeline callback reward"
    )


def test_a_dataclass_is_its_own_config() -> None:
    entry = find("loss", "RegistryLoss", HERE)
    assert (entry.kind, entry.name, entry.config, entry.layer) == ("loss", "RegistryLoss", RegistryLoss, None)


def test_a_layer_is_found_by_its_name_and_built_from_its_config() -> None:
    for kind in ("model", "backbone"):
        entry = find(kind, "RegistryNet", HERE)
        assert (entry.config, entry.layer) == (RegistryNetConfig, RegistryNet)
    net = build(RegistryNetConfig(depth=50), in_channels=4)
    assert isinstance(net, RegistryNet)
    assert (net.depth, net.in_channels) == (50, 4)


def test_find_imports_only_the_module_that_holds_the_name(make_package: MakePackage) -> None:
    package = make_package(
        "oar_test_lazy",
        one=component("LazyOne"),
        two=component("LazyTwo"),
        sub__sub____init__="",
        sub__sub__three=component("LazyThree", "metric"),
        broken='raise RuntimeError("imported without need")\nregister("loss")\nclass LazyOther: ...\n',
    )
    assert available("loss", [package]) == {"LazyOne": "oar_test_lazy.one", "LazyTwo": "oar_test_lazy.two"}
    assert available("metric", [package]) == {"LazyThree": "oar_test_lazy.sub.three"}
    assert available("model", [package]) == {}
    assert not [name for name in sys.modules if name.startswith(package)]
    assert find("metric", "LazyThree", [package]).config.__name__ == "LazyThree"
    loaded = sorted(name for name in sys.modules if name.startswith(package))
    assert loaded == [package, f"{package}.sub", f"{package}.sub.three"]


def test_a_component_may_stand_in_an_init_file_or_a_plain_module(make_package: MakePackage) -> None:
    package = make_package("oar_test_init", __init__=component("InitLoss"))
    assert available("loss", [package]) == {"InitLoss": package}
    assert find("loss", "InitLoss", [package]).config.__module__ == package
    make_package("oar_test_outer", inner=component("InnerLoss"))
    assert find("loss", "InnerLoss", ["oar_test_outer.inner"]).config.__module__ == "oar_test_outer.inner"


def test_only_the_packages_asked_for_are_seen(make_package: MakePackage) -> None:
    first = make_package("oar_test_first", a=component("TwinLoss"))
    second = make_package("oar_test_second", a=component("TwinLoss"))
    one, two = (find("loss", "TwinLoss", [package]).config for package in (first, second))
    assert (one.__module__, two.__module__) == ("oar_test_first.a", "oar_test_second.a")
    assert "unknown loss" in message(find, "loss", "TwinLoss", HERE)
    text = message(find, "loss", "TwinLoss", [first, second])
    assert text.startswith("the loss 'TwinLoss' is registered twice\n")
    assert "received: oar_test_first.a.TwinLoss and oar_test_second.a.TwinLoss" in text


def test_a_name_in_two_modules_is_an_error_that_names_both(make_package: MakePackage, tmp_path: Path) -> None:
    package = make_package("oar_test_double", a=component("DoubleLoss"), b=component("DoubleLoss"))
    folder = tmp_path / package
    assert message(available, "loss", [package]) == (
        "the loss 'DoubleLoss' is registered twice\n"
        f"  received: {package}.a ({folder / 'a.py'}:7) and {package}.b ({folder / 'b.py'}:7)\n"
        "  allowed: one class for a name within its kind\n"
        "  what to do: rename one of them"
    )
    assert f"received: {package}.a.DoubleLoss and {package}.b.DoubleLoss" in message(
        find, "loss", "DoubleLoss", [package]
    )


def test_an_unknown_name_lists_the_known_and_the_nearest(make_package: MakePackage) -> None:
    package = make_package("oar_test_near", a=component("DiceLoss"), b=component("FocalLoss"))
    assert message(find, "loss", "DiecLoss", [package]) == (
        "unknown loss\n  received: 'DiecLoss'\n  allowed: DiceLoss, FocalLoss\n"
        "  what to do: did you mean 'DiceLoss'?"
    )
    assert message(find, "task", "Any", [package]).endswith(
        "allowed: none: no task is registered in oar_test_near"
    )
    assert message(find, "task", "Any", []).endswith("allowed: none: no task is registered in no package")


@pytest.mark.parametrize("package", ["oar_test_absent", "oar_test_absent.part"])
def test_a_package_that_is_not_there(package: str) -> None:
    assert message(available, "loss", [package]) == (
        f"unknown package\n  received: {package!r}\n  allowed: an importable package"
    )


def test_classes_of_a_script_are_found_once_they_are_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = dataclass(frozen=True)(type("ScriptLoss", (), {"__module__": "__main__"}))
    register("loss")(cls)
    assert find("loss", "ScriptLoss", ["__main__"]).config is cls
    assert available("loss", ["__main__"])["ScriptLoss"] == "__main__"
    again = dataclass(frozen=True)(type("ScriptLoss", (), {"__module__": "__main__"}))
    register("loss")(again)  # the cell is run again
    assert find("loss", "ScriptLoss", ["__main__"]).config is again


@pytest.mark.parametrize(
    "make", [Kind, register, lambda kind: find(kind, "X", ()), lambda kind: available(kind, ())]
)
def test_an_unknown_kind(make: Callable[[str], object]) -> None:
    assert message(make, "losss") == (
        f"unknown kind of component\n  received: 'losss'\n  allowed: {', '.join(KINDS)}\n"
        "  what to do: did you mean 'loss'?"
    )


def test_what_cannot_be_registered() -> None:
    class Plain:
        pass

    @dataclass
    class Mutable:
        pass

    class Undecorated(RegistryLoss):
        pass

    for cls in (Plain, Mutable, Undecorated):
        text = message(register("loss"), cls)
        assert text.startswith(f"{__name__}.test_what_cannot_be_registered.<locals>.{cls.__name__}: ")
        assert f"{cls.__name__} is not a frozen dataclass" in text
        assert "what to do: put @register above @dataclass(frozen=True)" in text

    @dataclass(frozen=True)
    class Typed:
        type: str

    text = message(register("loss"), Typed)
    assert (
        "Typed has a field `type`, the key that names the component\n  what to do: rename the field" in text
    )


def test_a_config_builds_one_class() -> None:
    class OtherNet:
        pass

    text = message(register("model", config=RegistryNetConfig), OtherNet)
    assert "RegistryNetConfig is already the config of another class" in text
    assert f"received: a config that builds {__name__}.RegistryNet\n" in text
    assert "allowed: one config class for one Layer" in text


def test_build_needs_a_layers_config() -> None:
    assert message(build, RegistryLoss()) == (
        "no class is registered that is built from this\n  received: RegistryLoss\n"
        "  allowed: an instance of a dataclass named in @register(kind, config=...)"
    )
