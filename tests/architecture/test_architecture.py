"""The project's rules that a program can check: who imports whom, what stands only where, what is nowhere.

Each message says the rule in words and names the lines that break it.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from framework.config import KINDS
from framework.config.registry import Catalog

REPO = Path(__file__).resolve().parents[2]
DOMAINS = ("ocr", "detection", "segmentation", "nlp")
PACKAGES = ("framework", "zoo", *DOMAINS)
MAY_IMPORT = {
    "framework": {"framework"},
    "zoo": {"framework", "zoo"},
    **{domain: {"framework", "zoo", domain} for domain in DOMAINS},
    "tools": {
        "framework",
        "zoo",
        "tools",
        "tests",
        *DOMAINS,
    },  # of tests what goldens share with their references
}
# Inside the framework, inside functions too; imports for types alone do not count.
FRAMEWORK_MAY_IMPORT = {
    "core": {"core"},
    "config": {"config", "core"},
    "vision": {"vision", "config", "core"},
    "text": {"text", "config", "core"},
    "nn": {"nn", "core"},
    "interop": {"interop", "nn", "vision", "core"},
    "io": {"io", "interop", "nn", "core"},
    "export": {"export", "interop", "io", "nn", "config", "core"},
    "compress": {"compress", "export", "interop", "io", "nn", "config", "core"},
    "jit": {"jit", "inference", "export", "nn", "core"},
    "inference": {"inference", "export", "interop", "io", "nn", "config", "core"},
    "hub": {"hub", "config", "core"},
    "metric": {"metric", "core"},
    "optimizer": {"optimizer", "config", "io", "nn", "core"},
    "amp": {"amp", "nn", "core"},
    "autograd": {"autograd", "nn", "core"},
    "distributed": {"distributed", "nn", "core"},
    "engine": {
        "engine",
        "distributed",
        "optimizer",
        "amp",
        "metric",
        "export",
        "interop",
        "io",
        "vision",
        "nn",
        "config",
        "core",
    },
    "commands": {
        "commands",
        "workflow",
        "hub",
        "inference",
        "export",
        "interop",
        "distributed",
        "serving",
        "vision",
        "config",
        "core",
        "install_check",
    },
    "workflow": {
        *(
            "workflow",
            "hub",
            "distributed",
            "engine",
            "inference",
            "export",
            "compress",
            "optimizer",
            "interop",
            "io",
            "vision",
            "text",
            "nn",
            "config",
            "core",
        ),
    },
    "serving": {
        *("serving", "workflow", "inference", "export", "vision", "text", "hub", "config", "core"),
    },
    # Programs written for Paddle: above all the rest, and in nobody's list.
    "paddle": {
        *(
            "paddle",
            "amp",
            "autograd",
            "config",
            "core",
            "distributed",
            "engine",
            "export",
            "hub",
            "inference",
            "interop",
            "io",
            "jit",
        ),
        *("metric", "nn", "optimizer", "text", "vision", "workflow"),
    },
}
ABOVE_ALL = {"__init__.py", "__main__.py", "install_check.py"}  # files that may import all of the framework
# Paths of Paddle's names for one more release, which lead upwards when a name is first used; nothing imports them.
ABOVE_THEIR_PACKAGE = {"framework/vision/datasets.py", "framework/vision/ops.py"}
# Third-party packages and where they may be imported; jax, numpy, yaml and tqdm may be imported everywhere.
ONLY_HERE = {
    "flax": ("framework/nn/_nnx.py",),
    "optax": (),  # flax brings it; the rules of the optimizers are our own
    "cv2": ("framework/vision/",),
    "pypdfium2": ("framework/workflow/files/",),
    "tifffile": ("framework/vision/",),
    "pillow_heif": ("framework/vision/image_formats.py",),
    "pillow_avif": ("framework/vision/image_formats.py",),
    "matplotlib": ("ocr/formulas/cdm.py",),
    "pyarrow": ("framework/io/parquet_file.py", "framework/workflow/batch/tables.py"),
    "xxhash": ("zoo/recommendation/data/hashing.py",),
    "lm_eval": ("nlp/evaluation/lm_eval.py",),
    "faiss": ("framework/inference/vector_index.py",),
    "soundfile": ("framework/paddle/audio/backends/",),
    "setuptools": ("framework/paddle/install.py",),
    "PIL": (
        "framework/vision/",
        "framework/paddle/vision/",
        "ocr/data/synthetic/",
        "ocr/exporters/",
        "tools/docs/",
    ),
    "pickle": ("framework/interop/", "framework/distributed/collectives.py"),
    "onnxruntime": ("framework/inference/engines/onnx_runtime.py", "framework/export/formats/onnx/"),
    "openvino": ("framework/inference/engines/openvino.py",),
    "flatbuffers": ("framework/export/formats/tflite/",),
    "litert_converter": (),  # imported by name where they are needed: CI has none of the extra `mobile`
    "ai_edge_litert": (),
    "ai_edge_quantizer": (),
    "jaxlib": (
        "framework/inference/executables.py",
    ),  # jax has no public call that loads an executable unpickled
    "safetensors": ("framework/interop/",),
    "google": (
        "framework/paddle/base/",
    ),  # protobuf, which orbax brings: messages that Paddle's programs import
    "ml_dtypes": ("framework/interop/",),
    "huggingface_hub": ("framework/hub/transfer.py",),
    "filelock": (
        "framework/core/file_lock.py",
        "framework/workflow/train/run.py",
        "framework/workflow/files/documents.py",
        "framework/workflow/batch/parts.py",
    ),
    "ray": (),  # imported by name where it is needed: CI has none of the extra `ray`
    "tensorboardX": ("framework/engine/loggers.py",),
    "visualdl": ("framework/engine/loggers.py",),
    "wandb": ("framework/engine/loggers.py",),
    "onnx": (
        "framework/export/formats/onnx/",
        "framework/compress/",
    ),  # read by our own reader, written by the package
    "faster_coco_eval": ("detection/metrics.py",),
    "scipy": (
        *("detection/assigners/hungarian.py", "detection/tracking/"),
        *(
            "ocr/text/curved_lines.py",
            "ocr/formulas/cdm.py",
            "ocr/documents/evaluation/scores.py",
            "framework/paddle/audio/functional/",
        ),  # windows; ways through a mask; the assignment of symbols and of blocks
    ),
    "fastapi": ("framework/serving/",),
    "starlette": ("framework/serving/",),
    "python_multipart": ("framework/serving/",),
    "uvicorn": ("framework/serving/",),
    "h11": ("framework/serving/",),
    "httptools": ("framework/serving/",),
    "prometheus_client": ("framework/serving/",),
    "httpx": ("framework/serving/",),
    "orbax": (
        "framework/io/sharded.py",
        "framework/distributed/collectives.py",
    ),  # checkpoints; the coordinator of the processes, which jax has no public name for
    "pyclipper": ("ocr/text/polygons.py",),
    "docx": ("ocr/exporters/docx.py",),
    "openpyxl": ("ocr/exporters/xlsx.py",),
    "tokenizers": ("framework/text/",),
    "llguidance": ("nlp/generation/constraint.py",),
    "sentencepiece": ("framework/text/",),
    "jinja2": ("framework/text/template_sandbox.py",),
    "sacrebleu": ("nlp/metrics.py",),
}
EVERYWHERE = {"jax", "numpy", "yaml", "tqdm"}
OFF_THE_INFERENCE_PATH = (
    "flax",
    "optax",
    "onnx",
    "onnxruntime",
    "openvino",
    "torch",
    "rapidocr",
    "ocr.models",
    "ocr.pipeline.config",
    "ocr.data",
)
MAX_LINES, MAX_TOOL_LINES = 600, 80


@dataclass(frozen=True)
class Source:
    path: str  # from the repository, with forward slashes
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.path.partition("/")[0]

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, as `ast.walk` gives them."""
        return tuple(ast.walk(self.tree))

    def at(self, node: ast.AST, what: str = "") -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)} {what}".rstrip()


@functools.cache
def read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path.relative_to(REPO).as_posix(), text, ast.parse(text, str(path)))


@functools.cache
def sources(*folders: str) -> tuple[Source, ...]:
    return tuple(read(file) for folder in folders for file in sorted((REPO / folder).rglob("*.py")))


def code() -> tuple[Source, ...]:
    return sources(*PACKAGES)


def assert_none(broken: Iterable[str], rule: str) -> None:
    listed = list(broken)
    assert not listed, f"{rule}\n  " + "\n  ".join(listed)


def imports(source: Source, types: bool = True) -> Iterator[tuple[ast.AST, str]]:
    """Every module that a file imports, inside functions and by importlib too; with or without those for types."""
    for node in source.nodes if types else walk_without_types(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) == "import_module":
            yield from ((node, str(name.value)) for name in node.args[:1] if isinstance(name, ast.Constant))


def walk_without_types(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but the bodies of `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and dotted(node.test).endswith("TYPE_CHECKING"):
            yield from walk_without_types(ast.Module(node.orelse, []))
        else:
            yield node
            yield from walk_without_types(node)


def called(call: ast.Call) -> str:
    """The last part of what is called: `loads` for `pickle.loads(...)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


# -- who may import whom -----------------------------------------------------------------------------------------------


def test_the_tree_is_read() -> None:
    assert {"framework/nn/layer.py", "framework/hub/store.py", "ocr/pipeline/text_pipeline.py"} <= {
        source.path for source in code()
    }


def test_packages_import_downwards() -> None:
    ours = {*PACKAGES, "tools", "tests"}
    broken = [
        source.at(node, f"imports {name}")
        for source in sources(*PACKAGES, "tools")
        for node, name in imports(source)
        if name.partition(".")[0] in ours - MAY_IMPORT[source.package]
    ]
    assert_none(
        broken,
        "framework imports neither zoo nor a domain, zoo imports framework only, a domain imports framework and zoo "
        "and never another domain; tools alone imports tools and tests",
    )


def test_framework_imports_downwards() -> None:
    broken = []
    for source in sources("framework"):
        part = source.path.split("/")[1]
        if part not in FRAMEWORK_MAY_IMPORT or source.path in ABOVE_THEIR_PACKAGE:
            continue
        for node, name in imports(source, types=False):
            top, _, rest = name.partition(".")
            other = rest.partition(".")[0] if top == "framework" else ""
            if other in FRAMEWORK_MAY_IMPORT and other not in FRAMEWORK_MAY_IMPORT[part]:
                broken.append(source.at(node, f"imports {name}"))
    broken += [
        f"{file}:{line} imports {other}"
        for file, edges in import_graph().items()
        for other, line in edges.items()
        if other in ABOVE_THEIR_PACKAGE
    ]
    assert_none(broken, "inside the framework imports go downwards; see FRAMEWORK_MAY_IMPORT in this test")
    unknown = {s.path.split("/")[1] for s in sources("framework")} - set(FRAMEWORK_MAY_IMPORT) - ABOVE_ALL
    assert not unknown, (
        f"say in FRAMEWORK_MAY_IMPORT and docs/architecture.md what these may import: {unknown}"
    )


# Names of domains, and words of the largest of them: what the framework says of these, it says of one tenant.
DOMAIN_WORDS = re.compile(
    r"(?<![a-z])(ocr|detection|segmentation|nlp|classification|receipts?|recogni[sz]ers?|pp[-_]ocr\w*|text[ -]?lines?|"
    r"transcriptions?)(?![a-z])",
    re.IGNORECASE,
)
# What others call so, and where: names of the field, of formats, of upstream's files and of this package's extras.
NO_DOMAIN_WORDS = {
    r"MissingExtraError\([^)]*\)": "extras of pyproject.toml",
    r"temporal classification|Object Detection Neural Networks": "titles of papers",
    r"segmentation fault": "a signal",
    r"(?<=[\"`])segmentation(?=[\"`])|segmentation part of Pascal|ImageSets/Segmentation": "COCO's and VOC's files",
    r"funcs/detection/": "Paddle's sources",
    r"graph\.paddle import .*|MODULES = .*": "Paddle's operators by its own groups of them",
    r"framework\.metric\.classification": "metrics of classes, as the field calls them",
}


def test_framework_knows_no_domain() -> None:
    theirs = re.compile("|".join(NO_DOMAIN_WORDS))
    broken = []
    for source in sources("framework"):
        if source.path.startswith("framework/paddle/"):  # Paddle's own namespaces
            continue
        text = theirs.sub(lambda match: "\n" * match.group().count("\n"), source.text)
        for number, line in enumerate(text.splitlines(), 1):
            broken += [f"{source.path}:{number} {match.group()}" for match in DOMAIN_WORDS.finditer(line)]
    assert_none(
        broken, "framework names no domain and none of its words: a domain says what is its own, see Domain"
    )


@functools.cache
def import_graph() -> dict[str, dict[str, int]]:
    """file -> {file that it imports: line}. A package is its __init__.py, which `from package import submodule` does
    not count: the submodule does."""
    files = {
        source.path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): source.path
        for source in code()
    }
    graph: dict[str, dict[str, int]] = {}
    for source in code():
        edges = graph.setdefault(source.path, {})
        for node, name in imports(source, types=False):
            target = files.get(name) or files.get(name.rpartition(".")[0] if "." in name else "")
            if target is not None and target != source.path:
                edges.setdefault(target, getattr(node, "lineno", 1))
    return graph


def find_circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Strongly connected components of more than one file. Source: Tarjan 1972."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            component = stack[stack.index(node) :]
            del stack[-len(component) :]
            if len(component) > 1:
                circles.append(sorted(component))

    for node in graph:
        if node not in order:
            visit(node)
    return circles


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": ["d", "f"], "f": ["f"]}
    assert find_circles(graph) == [["d", "e"], ["a", "b", "c"]]


def test_no_import_circles() -> None:
    graph = import_graph()
    assert "framework/nn/layer.py" in graph["framework/nn/common.py"]
    broken = [
        f"{file}:{line} imports {other}"
        for circle in find_circles(graph)
        for file in circle
        for other, line in graph[file].items()
        if other in circle
    ]
    assert_none(
        broken, "no file imports itself through others, inside functions neither; imports for types may"
    )


def test_imports_are_absolute() -> None:
    broken = [
        source.at(node, name) for source in code() for node, name in imports(source) if name.startswith(".")
    ]
    assert_none(broken, "imports name the whole module: `from framework.nn.layer import Layer`")


def test_third_party_packages_stand_where_they_belong() -> None:
    broken = []
    for source in code():
        for node, name in imports(source):
            top = name.partition(".")[0]
            if top in ONLY_HERE:
                if not source.path.startswith(ONLY_HERE[top]):
                    broken.append(
                        source.at(node, f"imports {name}, which stands in {', '.join(ONLY_HERE[top])}")
                    )
            elif top and top not in sys.stdlib_module_names and top not in EVERYWHERE and top not in PACKAGES:
                broken.append(source.at(node, f"imports {name}, which no rule knows"))
    assert_none(broken, "each third-party package is imported in one place only; see ONLY_HERE in this test")


def loaded_by(statement: str, names: Iterable[str]) -> list[str]:
    """Which of the modules are loaded in a fresh process after the statement."""
    script = f"import sys; {statement}; print('\\n'.join(m for m in {list(names)!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPO,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_config_loads_no_jax() -> None:
    found = loaded_by("import framework.config", ["jax", "numpy", "cv2"])
    assert_none(
        found,
        "`import framework.config` is light: it loads none of these, directly or through another module",
    )
    broken = [
        source.at(node, f"imports {name}")
        for source in sources("framework/config")
        for node, name in imports(source)
        if name.partition(".")[0] == "jax"
        or name.startswith(tuple(f"framework.{p}" for p in ("nn", "io", "vision")))
    ]
    assert_none(broken, "framework/config imports no jax, not even inside a function")


@pytest.mark.parametrize(
    "module",
    [
        "ocr.domain",
        "detection.domain",
        "segmentation.domain",
        "nlp.domain",
        "zoo.classification.domain",
        "zoo.recommendation.domain",
        "framework.workflow.files.predict_files",
    ],
)
def test_inference_loads_no_training_code(module: str) -> None:
    found = loaded_by(f"import {module}", OFF_THE_INFERENCE_PATH)
    assert_none(found, f"{module} runs artifacts: importing it loads neither model code nor these packages")


# -- names that a config can ask for -----------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", DOMAINS)
def test_names_are_unique(domain: str) -> None:
    catalog = Catalog((domain, "zoo", "framework"))
    for kind in KINDS:
        catalog.available(kind)  # raises where two classes of a kind share a name


# -- size and words ----------------------------------------------------------------------------------------------------


def test_files_are_short() -> None:
    broken = [
        f"{source.path}: {count} lines"
        for source in sources(*PACKAGES, "tools")
        if (count := len(source.text.splitlines())) > MAX_LINES
    ]
    assert_none(broken, f"a file has one purpose and at most {MAX_LINES} lines; split it")


def test_tools_hold_no_logic() -> None:
    tools = [source for source in sources("tools") if source.path.count("/") == 1]
    assert len(tools) >= 2
    broken = [
        f"{source.path}: {count} lines"
        for source in tools
        if (count := len(source.text.splitlines())) > MAX_TOOL_LINES
    ]
    broken += [
        source.at(node, node.name)
        for source in tools
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
    ]
    assert_none(
        broken,
        f"tools/*.py parse arguments and call the framework: at most {MAX_TOOL_LINES} lines, no classes; "
        "logic belongs into a package, where it can be tested and called from Python",
    )


def test_public_names_have_docstrings() -> None:
    broken = []
    for source in code():
        for node in source.tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            is_overload = any(dotted(item).endswith("overload") for item in node.decorator_list)
            if not node.name.startswith("_") and not is_overload and not ast.get_docstring(node):
                broken.append(source.at(node, node.name))
    assert_none(
        broken, "every public class and function of a module says in a docstring what its types do not"
    )


def test_modules_have_docstrings() -> None:
    broken = [source.path for source in code() if source.tree.body and not ast.get_docstring(source.tree)]
    assert_none(broken, "every module says in one sentence what it is for")


def test_nothing_is_left_to_do() -> None:
    broken = [
        f"{source.path}:{number} {line.strip()}"
        for source in sources(*PACKAGES, "tools")
        for number, line in enumerate(source.text.splitlines(), start=1)
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
    ]
    # A method of a base is no stub: a subclass here has it, or it is for users to write.
    for_users = {"Layer.forward", "PyLayer.forward", "PyLayer.backward"}
    overridden = {
        f"{dotted(base.value if isinstance(base, ast.Subscript) else base).rpartition('.')[2]}.{member.name}"
        for source in code()
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        for member in node.body
        if isinstance(member, ast.FunctionDef)
    }
    for source in code():
        for name, function in functions(source.tree):
            for node in ast.walk(function):
                raised = isinstance(node, ast.Raise) and node.exc is not None
                target = (
                    node.exc.func if raised and isinstance(node.exc, ast.Call) else getattr(node, "exc", None)
                )
                if raised and dotted(target) == "NotImplementedError" and name not in for_users | overridden:
                    broken.append(source.at(node, name))
    assert_none(
        broken, "no stubs and no notes to finish later: what is not there yet is absent, and docs say so"
    )


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", node


# -- calls that are not made -------------------------------------------------------------------------------------------


def calls(source: Source) -> Iterator[ast.Call]:
    return (node for node in source.nodes if isinstance(node, ast.Call))


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


def test_no_code_from_data() -> None:
    broken = []
    for source in sources(*PACKAGES, "tools"):
        if source.path.startswith("tools/golden/"):  # they run the references, on files they made themselves
            continue
        for call in calls(source):
            name = dotted(call.func)
            if (source.path, name) == ("framework/paddle/jit/ast_transform.py", "compile"):
                continue  # the source of a function that is loaded already, rewritten
            if (source.path, name) == ("framework/distributed/collectives.py", "pickle.loads"):
                continue  # what another process of the same run has sent, which runs the same program
            shell = keyword(call, "shell")
            if (
                name in ("eval", "exec", "compile", "__import__", "os.system", "os.popen", "marshal.loads")
                or re.fullmatch(r"(pickle|dill|joblib|torch)\.loads?", name)
                or name in ("yaml.unsafe_load", "yaml.full_load")
                or (shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False))
                or (name in ("np.load", "numpy.load") and keyword(call, "allow_pickle") is not None)
            ):
                broken.append(source.at(call, name))
    assert_none(
        broken, "nothing that was read is executed: no eval, exec, unrestricted pickle, shell or os.system"
    )


def is_text_without_encoding(call: ast.Call) -> bool:
    name = called(call)
    if keyword(call, "encoding") is not None:
        return False
    if name in ("read_text", "write_text") and isinstance(call.func, ast.Attribute):
        return not (name == "read_text" and call.args) and not (name == "write_text" and len(call.args) > 1)
    if name != "open" or dotted(call.func) in ("Image.open", "os.open", "webbrowser.open"):
        return False
    position = 1 if isinstance(call.func, ast.Name) else 0  # open(path, mode), path.open(mode)
    mode = call.args[position] if len(call.args) > position else keyword(call, "mode")
    if mode is None:
        return isinstance(call.func, ast.Name) or not call.args
    if not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)):
        return False
    return re.fullmatch(r"[rwaxt+]+", mode.value) is not None


def test_text_files_name_their_encoding() -> None:
    broken = [
        source.at(call)
        for source in sources(*PACKAGES, "tools", "tests")
        for call in calls(source)
        if is_text_without_encoding(call)
    ]
    assert_none(broken, 'text is UTF-8 on every system: open, read_text and write_text say encoding="utf-8"')


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("open(p)", True),
        ("open(p, 'w')", True),
        ("open(p, 'rb')", False),
        ("open(p, encoding='utf-8')", False),
        ("p.open()", True),
        ("p.open('w', encoding='utf-8')", False),
        ("p.open('wb')", False),
        ("p.read_text()", True),
        ("p.read_text('utf-8')", False),
        ("p.write_text('x')", True),
        ("p.write_text('x', encoding='utf-8')", False),
        ("Image.open(p)", False),
    ],
)
def test_the_encoding_rule(text: str, broken: bool) -> None:
    call = ast.parse(text).body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert is_text_without_encoding(call.value) is broken


# -- configuration fields ----------------------------------------------------------------------------------------------


def is_dataclass(node: ast.ClassDef) -> bool:
    return any(
        dotted(item.func if isinstance(item, ast.Call) else item).endswith("dataclass")
        for item in node.decorator_list
    )


def is_registered(node: ast.ClassDef) -> bool:
    return any(isinstance(item, ast.Call) and called(item) == "register" for item in node.decorator_list)


def configuration_classes() -> dict[str, tuple[Source, ast.ClassDef]]:
    """Registered dataclasses, *Config and *Options, and the dataclasses that their fields are made of."""
    known = {
        node.name: (source, node)
        for source in code()
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and is_dataclass(node)
    }
    found: dict[str, tuple[Source, ast.ClassDef]] = {}
    waiting = [
        name
        for name, (_, node) in known.items()
        if is_registered(node) or name.endswith(("Config", "Options"))
    ]
    while waiting:
        name = waiting.pop()
        if name in known and name not in found:
            found[name] = known[name]
            for field in fields(known[name][1]):
                waiting += [part.id for part in ast.walk(field.annotation) if isinstance(part, ast.Name)]
    return found


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [
        item
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and "ClassVar" not in ast.unparse(item.annotation)
    ]


def test_every_configuration_field_is_read() -> None:
    read = {
        node.attr
        for source in code()
        for node in source.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    classes = configuration_classes()
    assert {"DetectOptions", "TextSystem", "Normalize"} <= set(classes)
    broken = [
        source.at(field, f"{name}.{field.target.id}")
        for name, (source, node) in classes.items()
        for field in fields(node)
        if isinstance(field.target, ast.Name) and field.target.id not in read
    ]
    assert_none(broken, "a setting that nothing reads is a lie to whoever sets it: use it or take it away")


def test_configuration_classes_are_frozen() -> None:
    broken = []
    for name, (source, node) in configuration_classes().items():
        frozen = any(
            isinstance(item, ast.Call)
            and dotted(item.func).endswith("dataclass")
            and isinstance(value := keyword(item, "frozen"), ast.Constant)
            and value.value is True
            for item in node.decorator_list
        )
        if not frozen:
            broken.append(source.at(node, name))
    assert_none(broken, "a configuration is a frozen dataclass: @dataclass(frozen=True)")
