"""The Dockerfile and the manifests of Kubernetes name what the server has: paths, ports, flags, settings, extras."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from framework.commands.serve import parser, read_settings
from framework.config import bind
from framework.serving.app import KEYS
from framework.serving.routes import OPEN_PATHS
from framework.serving.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[4]
FOLDER = ROOT / "tools" / "deploy"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")


def objects() -> dict[str, Any]:
    text = (FOLDER / "kubernetes.yml").read_text(encoding="utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def command() -> list[str]:
    """What the image runs, behind `oar serve`."""
    (line,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    words = json.loads(line)
    assert words[:2] == ["oar", "serve"]
    return words[2:]


def test_the_container_starts_a_server_on_the_port_that_is_probed() -> None:
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = bind(read_settings(parser().parse_args([*command(), *container["args"]])), ServerSettings)
    (port,) = container["ports"]
    assert settings.host == "0.0.0.0" and settings.port == port["containerPort"] == 8000
    assert settings.drain_seconds + settings.limits.deadline <= pod["terminationGracePeriodSeconds"]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container[name]["httpGet"]
        assert probe["path"] in OPEN_PATHS and probe["port"] == port["name"]
    assert (
        container["readinessProbe"]["periodSeconds"] < settings.drain_seconds
    )  # it is out of the service in time
    assert [one["name"] for one in container["env"]] == [KEYS]


def test_objects_of_kubernetes_name_each_other() -> None:
    made = objects()
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert made["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert made["Service"]["spec"]["selector"] == labels
    assert made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    target = made["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", made["Deployment"]["metadata"]["name"])
    assert "replicas" not in made["Deployment"]["spec"]  # an apply would undo what the autoscaler chose


def test_the_image_installs_extras_that_there_are_and_is_no_root() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", DOCKERFILE)
    assert {"serving"} <= set(extras.split(",")) <= set(project["optional-dependencies"])
    user = objects()["Deployment"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"\nUSER {user}\n" in DOCKERFILE
