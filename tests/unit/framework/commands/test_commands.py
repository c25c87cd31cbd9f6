"""The command `oar`: its subcommands, Paddle's spellings of their arguments, and how it ends."""

import argparse
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from framework.commands import main
from framework.commands.infer import parser as infer_parser
from framework.commands.main import aliases, commands
from framework.commands.train import open_train_config
from framework.commands.train import parser as train_parser
from framework.config import load, override
from framework.config.arguments import BooleanFlag, Settings, choose_device
from framework.core.errors import ConfigError
from framework.workflow.domain.config_file import open_config
from framework.workflow.domain.domain import config_names, find_config
from framework.workflow.train.overrides import learning_rate_overrides

REPO = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("name", [*commands(), *aliases()])
def test_every_command_has_a_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main([name, "--help"])
    except SystemExit as stop:
        status = stop.code
    assert status == 0
    assert f"usage: oar {aliases().get(name, name)}" in capsys.readouterr().out


def test_help_and_version_are_quick(capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; from framework.commands import main; main(['--help']); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPO, check=True)
    assert done.stdout.endswith("False\n") and all(f"  {name}" in done.stdout for name in commands())
    assert main(["--version"]) == 0 and capsys.readouterr().out.startswith("oar 0.")


def test_unknown_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    assert "no command 'trian': one of train, eval" in (error := capsys.readouterr().err)
    assert error.endswith("did you mean 'train'?\n")
    assert main([]) == 2


def test_errors_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "-c", "lenet_mnits"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "lenet_mnist" in error and "Traceback" not in error


def test_a_language_stands_for_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    asked: list[tuple] = []

    def open_predictor(model: str, *, options: dict, **_: object) -> None:
        asked.append((model, options["lang"]))
        raise ConfigError("enough")

    monkeypatch.setattr("framework.commands.infer.open_predictor", open_predictor)
    image = REPO / "docs" / "images" / "receipt.png"
    for arguments in (["infer", "--lang", "ru"], ["ocr", "--lang", "german"], ["ocr"]):
        assert main([*arguments, "--image_file", str(image), "--output_dir", str(tmp_path)]) == 2
    assert asked == [("pp_ocrv6_small", "ru"), ("pp_ocrv6_small", "german"), ("pp_ocrv6_small", None)]
    capsys.readouterr()
    assert main(["infer", "--image_file", str(image)]) == 2
    assert "no model is named\n  allowed: -c MODEL" in capsys.readouterr().err and len(asked) == 3


def test_names_of_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "names", "lenet*"]) == 0
    assert capsys.readouterr().out == "lenet_mnist\tclassification\tclassification/lenet/lenet_mnist.yml\n"
    assert main(["models", "names", "nothing*"]) == 1
    assert main(["models", "show", "pp_ocrv6_small_det"]) == 0
    assert "licence: Apache-2.0" in capsys.readouterr().out


def trained(*words: str) -> dict[str, object]:
    """The resolved config of `oar train` with these arguments."""
    args = train_parser().parse_args(words)
    given = Settings.read(args.opt, training=True)
    return open_train_config(args, given.overrides).plain


def test_flags_of_training_are_settings() -> None:
    config = trained(
        *(
            "--config",
            "lenet_mnist",
            "--iters",
            "7",
            "--batch_size",
            "3",
            "--learning_rate",
            "0.5",
            "--do_eval",
        ),
        *(
            "--save_interval",
            "4",
            "--log_iters",
            "2",
            "--seed",
            "9",
            "--num_workers",
            "0",
            "--precision",
            "fp16",
        ),
        *("--keep_checkpoint_max", "1", "--early_stop_intervals", "5", "--use_ema", "--amp_level", "O2"),
    )
    train, data = config["train"], config["data"]
    assert (train["iters"], train.get("epochs"), train["save_every"], train["eval_every"]) == (7, None, 4, 4)
    assert (train["log_every"], train["seed"], train["keep"], train["early_stop"]) == (2, 9, 1, 5)
    assert (train["amp"], train["amp_level"], train["ema"]) == ("float16", "O2", {})
    assert data["train"]["batch_size"] == 3 and data["eval"]["batch_size"] != 3
    assert data["train"]["num_workers"] == data["eval"]["num_workers"] == 0
    assert trained("-c", "lenet_mnist", "--amp", "--epochs", "2")["train"]["amp"] == "bfloat16"


@pytest.mark.parametrize("name", config_names())
def test_learning_rates_keep_the_form_of_their_schedule(name: str) -> None:
    tree = load(find_config(name))
    optim = tree.plain().get("optim")
    if optim is None or "NoamDecay" in str(optim):
        pytest.skip("the config is not trained, or its rate follows from the model's width")
    for text in learning_rate_overrides(open_config(name).plain, 0.125):
        tree = override(tree, text)
    before, after = load(find_config(name)).plain()["optim"], tree.plain()["optim"]

    def numbers(node: object, path: str = "") -> dict[str, float]:
        if isinstance(node, dict):
            return {k: v for key, child in node.items() for k, v in numbers(child, f"{path}.{key}").items()}
        if isinstance(node, list):  # the rates of a piecewise schedule
            return numbers({str(index): child for index, child in enumerate(node)}, path)
        return {path: node} if isinstance(node, int | float) and not isinstance(node, bool) else {}

    old, new = numbers(before), numbers(after)
    base = max(value for key, value in old.items() if key.endswith(("learning_rate", ".values.0")))
    changed = {key for key in old if old[key] != new[key]}
    assert changed and all(new[key] == pytest.approx(old[key] / base * 0.125) for key in changed)
    assert max(new[key] for key in changed) == pytest.approx(0.125)
    assert not changed & {".power", ".momentum", ".weight_decay", ".beta1"}


def test_own_data_in_short() -> None:
    words = ("--data", "mine", "--num_classes", "2", "--pretrained", "pp_lcnet_x0_25_clothing")
    config = trained("-c", "pp_lcnet_x0_25_clothing", *words)
    assert [config["data"][part]["dataset"]["root"] for part in ("train", "eval")] == ["mine", "mine"]
    assert config["model"]["num_classes"] == 2
    start = {"weights": "pp_lcnet_x0_25_clothing", "into": None, "skip": None, "partial": True}
    assert config["pretrained"] == start
    with pytest.raises(
        ConfigError, match=r"--data: the data of this config are not one folder\n  received: type,"
    ):
        trained("-c", "text_cnn_snips", "--data", "mine")


def test_loggers_are_added_to_the_callbacks(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("-c", "lenet_mnist", "--use_wandb", "--use_vdl", "--vdl_log_dir", "logs")
    own = {"type": "EarlyStopping", "patience": 3}
    with caplog.at_level(logging.WARNING, "oar"):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        config = trained(*given, "-o", f"train.callbacks={json.dumps([own])}")
    assert config["train"]["callbacks"] == [own, {"type": "WandB"}]
    assert 'pip install "oar-toolkit[visualdl]"' in caplog.text
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert trained(*given)["train"]["callbacks"][1] == {"type": "VisualDL", "log_dir": "logs"}


def test_learning_rates_that_are_none() -> None:
    with pytest.raises(ConfigError, match=r"--learning_rate: a learning rate is above 0\n  received: -1"):
        learning_rate_overrides(open_config("lenet_mnist").plain, -1)
    with pytest.raises(ConfigError, match=r"optim.learning_rate: the config has no learning rate to"):
        learning_rate_overrides(open_config("pp_ocrv6_small").plain, 0.1)


def test_keys_of_paddle_are_ours() -> None:
    words = "use_gpu=true pretrain_weights=a.pdparams num_classes=3 x.y=1 epoch=4 save_dir=out"
    more = "LearningRate.base_lr=1e-4 Global.pretrained_model=b TrainReader.batch_size=2"
    given = Settings.read(f"{words} {more}".split(), training=True)
    assert given.arguments == {"use_gpu": "true", "learning_rate": "1e-4", "output_dir": "out"}
    start = ("pretrained.into=null", "pretrained.skip=null", "pretrained.partial=true")
    assert given.overrides == (
        *("pretrained.weights=a.pdparams", *start, "model.num_classes=3", "x.y=1", "train.epochs=4"),
        *("pretrained.weights=b", *start, "data.train.batch_size=2"),
    )
    assert Settings.read(["Global.pretrained_model=b"]).overrides == ("weights=b",)
    assert (choose_device(None, True), choose_device("cpu", True), choose_device(None, None)) == (
        "gpu",
        "cpu",
        None,
    )


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], None),
        (["--draw"], True),
        (["--no-draw"], False),
        (["--draw", "False"], False),
        (["--draw", "1"], True),
    ],
)
def test_booleans(words: list[str], value: bool | None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", action=BooleanFlag)
    assert parser.parse_args(words).draw is value


def test_booleans_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", action=BooleanFlag)
    for words in (["--draw", "maybe"], ["--no-draw", "True"]):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
    assert (
        "'maybe' is neither true nor false" in (error := capsys.readouterr().err)
        and "takes no value" in error
    )


@pytest.mark.parametrize(
    ("flag", "way"), [("--text", "--text_file"), ("--image_file", "FILE …"), ("--pdf_file", "FILE …")]
)
def test_a_source_that_is_given_twice(flag: str, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = infer_parser()[0]
    assert vars(arguments.parse_args([flag, "a", flag, "a"]))[flag[2:]] == "a"
    with pytest.raises(SystemExit):
        arguments.parse_args([flag, "a", flag, "b"])
    assert f"{flag} is given twice, 'a' and 'b': use {way}" in capsys.readouterr().err


def test_flags_without_effect_say_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "oar"):
        train_parser().parse_args(["-c", "a", "--to_static", "--enable_ce", "True", "-o", "a=1"])
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "--to_static has no effect",
        "--enable_ce has no effect",
    ]


SCRIPT = "import os, sys; print(sys.argv[1:], os.environ.get('CUDA_VISIBLE_DEVICES'))"


@pytest.mark.parametrize(
    "module", ["framework.distributed.launch", "framework launch", "framework.paddle.distributed.launch"]
)
def test_launch_runs_scripts_and_commands(module: str, tmp_path: Path) -> None:
    start = ["-m", *module.split()]
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, *start, "--gpus", "0,1", str(script), "--lr", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPO, check=True)
    assert done.stdout == "['--lr', '1'] 0,1\n"
    command = [sys.executable, *start, "models", "names", "lenet*"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPO, check=True)
    assert done.stdout.startswith("lenet_mnist\t")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nnodes", "2", "a.py"], "--master: machines must know where to meet"),
        (["--nnodes", "two", "a.py"], "--nnodes: the number of machines must be a number"),
        (["--nnodes", "2", "--rank", "2", "a.py"], "--rank: the number of a machine is smaller"),
        (["--nproc_per_node", "0", "a.py"], "--nproc_per_node: a machine runs processes"),
        (["--nproc-per-node", "0", "a.py"], "--nproc_per_node: a machine runs processes"),  # as torchrun
        (["--ips", "10.0.0.1,10.0.0.2", "a.py"], "--nnodes 2 --master 10.0.0.1:12361"),  # Paddle before 2.3
        (["--nnodes", "2", "--master-port", "29500", "a.py"], "--master: machines must know where to meet"),
        (["--gpus", "all", "a.py"], "--gpus: devices must be named by numbers"),
        (["nothing_here.py"], "nothing_here.py: there is no such script"),
    ],
)
def test_launches_that_cannot_be(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", *words]) == 2
    assert message in capsys.readouterr().err


def test_weights_are_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import framework
    from framework.config import build
    from framework.engine.experiment import bind_experiment

    model = build(bind_experiment(load(find_config("lenet_mnist"))).model)
    framework.save(model.state_dict(), tmp_path / "a.safetensors")

    def convert(source: str, target: str, *words: str) -> int:
        return main(["convert", str(tmp_path / source), str(tmp_path / target), *words])

    assert convert("a.safetensors", "b.safetensors") == 0
    assert convert("b.safetensors", "c.safetensors", "-c", "lenet_mnist") == 0
    assert f"wrote {tmp_path / 'c.safetensors'}: {len(model.state_dict())} arrays" in capsys.readouterr().out
    assert (tmp_path / "c.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()
    assert convert("a.safetensors", "d.pt") == 2
    assert convert("a.safetensors", "d.safetensors", "-c", "pp_lcnet_x0_25_clothing") == 2
    assert convert("a.safetensors", "e.safetensors", "-c", "pp_ocrv6_small") == 2
    assert "weights belong to one model" in (error := capsys.readouterr().err)
    assert "received: a pipeline of several" in error.replace("\n", " ")
    assert not (tmp_path / "d.safetensors").exists()


def test_all_commands_are_there_without_any_extra() -> None:
    """A bare `pip install` has them, as has one with another extra: what a package is for asks for it."""
    code = """
import importlib, sys

EXTRA = {
    "docx", "fastapi", "httpx", "multipart", "onnx", "onnxruntime", "openpyxl", "openvino", "prometheus_client",
    "pyarrow", "pyclipper", "pypdfium2", "rapidfuzz", "ray", "sentencepiece", "tifffile", "tokenizers", "uvicorn",
}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in EXTRA:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from framework.commands.main import commands

for verb in commands().values():
    importlib.import_module(verb.module)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
