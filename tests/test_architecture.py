"""The shape of the code, read from its source: who imports whom, how long files are, and that the map is true."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "specdemo"
LONGEST_FILE = 350

# Part → the parts that it may import; every part may import itself. "wire" is engines/wire, decoders without I/O.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "core": {"errors"},
    "bench": {"core", "errors"},
    "runs": {"bench", "core", "errors"},
    "store": {"runs", "bench", "core", "errors"},
    "wire": {"core", "errors"},
    "engines": {"wire", "core", "errors"},
    "plugin": set(),
    "settings": {"core", "errors"},
    "ui": {"store", "runs", "bench", "core", "errors"},
    # The roots, where a concrete engine meets a run.
    "doctor": {"engines", "settings", "core", "errors"},
    "compose": {"settings", "engines", "store", "runs", "bench", "core", "errors"},
    "cli": {"doctor", "compose", "settings", "engines", "ui", "store", "runs", "bench", "core", "errors"},
    "__main__": {"cli", "errors"},
    "__init__": set(),
    "app": {"cli", "compose", "doctor", "settings", "engines", "ui", "store", "runs", "bench", "core", "errors"},
}

# Pure parts: no clock, file, process, network or event loop, and nothing from outside the standard library.
PURE = {"errors", "core"}
IMPURE_MODULES = {
    "asyncio",
    "os",
    "pathlib",
    "time",
    "subprocess",
    "socket",
    "threading",
    "logging",
    "shutil",
    "tempfile",
}

# Part → third-party packages that it may import. "runs" and "wire" read outside data, hence pydantic; "runs" also looks at
# the load of other programs while it measures, hence psutil.
THIRD_PARTY: dict[str, set[str]] = {
    "errors": set(),
    "core": set(),
    "bench": {"pydantic", "numpy"},
    "runs": {"pydantic", "pydantic_core", "psutil"},
    "store": {"sqlalchemy", "alembic", "filelock"},
    "wire": {"pydantic", "pydantic_core", "orjson", "msgspec"},
    "engines": {"httpx", "orjson", "tokenizers", "psutil", "filelock", "platformdirs", "pydantic"},
    "plugin": {"torch", "vllm"},
    "settings": {"pydantic", "pydantic_settings", "dotenv"},
    "ui": {"gradio", "fastapi", "starlette", "pydantic", "uvicorn", "itsdangerous", "prometheus_client"},
    "doctor": {"psutil", "platformdirs"},
    "compose": {"platformdirs", "psutil"},
    "cli": {"typer", "rich", "uvicorn", "uvloop", "click", "pydantic", "pythonjsonlogger"},
    "__main__": set(),
    "__init__": set(),
    "app": {"gradio"},
}

# A file run by the engine environment's Python, which has no specdemo and whose libraries the application lacks.
STANDALONE = {PACKAGE / "engines" / "embedded" / "convert.py"}


@dataclass(frozen=True)
class Import:
    """One imported module, absolute; ``top`` tells whether it stands at the top level of the file."""

    path: Path
    line: int
    module: str
    top: bool
    guarded: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.module}"


def python_files() -> list[Path]:
    """The package and the composition root."""
    return sorted(path for path in [*PACKAGE.rglob("*.py"), ROOT / "app.py"] if path.is_file())


def part(path: Path) -> str:
    """The part that a file belongs to."""
    if path == ROOT / "app.py":
        return "app"
    pieces = path.relative_to(PACKAGE).with_suffix("").parts
    if pieces[0] == "engines" and len(pieces) > 2 and pieces[1] in {"wire", "plugin"}:
        return pieces[1]
    return pieces[0]


def part_of_module(module: str) -> str:
    """The part behind an imported name such as specdemo.engines.wire.sse."""
    pieces = module.split(".")[1:] or ["__init__"]
    if pieces[0] == "engines" and len(pieces) > 1 and pieces[1] in {"wire", "plugin"}:
        return pieces[1]
    return pieces[0]


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Every import in a file, wherever it stands; relative ones are resolved."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: set[ast.AST] = set()
    guarded: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside.update(ast.walk(node))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            guarded.update(ast.walk(node))
    found: list[Import] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = list(_from(path, node))
        else:
            continue
        found += [Import(path, node.lineno, module, node not in inside, node in guarded) for module in modules]
    return tuple(found)


def _from(path: Path, node: ast.ImportFrom) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        package = ("specdemo", *path.relative_to(PACKAGE).parent.parts)
        base = ".".join((*package[: len(package) - node.level + 1], *filter(None, [node.module])))
    for alias in node.names:
        # "from specdemo import errors" names a module; "from specdemo.errors import X" names a thing in one.
        candidate = f"{base}.{alias.name}"
        is_module = base.startswith("specdemo") and _module_file(candidate) is not None
        yield candidate if is_module else base


def _module_file(module: str) -> Path | None:
    stem = ROOT / Path(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


ALL_IMPORTS = [entry for path in python_files() if path not in STANDALONE for entry in imports_of(path)]


def test_every_part_has_its_rule() -> None:
    """A new folder must say whom it may import."""
    assert {part(path) for path in python_files()} <= set(MAY_IMPORT)
    assert set(MAY_IMPORT) == set(THIRD_PARTY)


def test_imports_point_one_way() -> None:
    """app, cli → ui → runs → bench → core; engines → core; runs knows engines only through its Protocols."""
    wrong = [
        str(entry)
        for entry in ALL_IMPORTS
        if entry.module.split(".")[0] == "specdemo"
        and part_of_module(entry.module) not in MAY_IMPORT[part(entry.path)] | {part(entry.path), "__init__"}
    ]
    assert wrong == []


def test_the_rules_have_no_circle() -> None:
    """The table itself allows no way back."""
    order: list[str] = []
    rest = dict(MAY_IMPORT)
    while rest:
        free = [name for name, allowed in rest.items() if allowed <= set(order)]
        assert free, f"a circle among {sorted(rest)}"
        order += free
        rest = {name: allowed for name, allowed in rest.items() if name not in free}


def test_core_is_pure() -> None:
    """No clock, file, process, network or loop where numbers and verdicts are made: the same log gives the same answer."""
    wrong = [
        str(entry) for entry in ALL_IMPORTS if part(entry.path) in PURE and entry.module.split(".")[0] in IMPURE_MODULES
    ]
    assert wrong == []


def test_third_party_packages_stay_where_they_belong() -> None:
    """Each part uses the libraries of its task; pydantic stands only where outside data enters."""
    wrong = [
        str(entry)
        for entry in ALL_IMPORTS
        if entry.module.split(".")[0] not in {*sys.stdlib_module_names, "specdemo", *THIRD_PARTY[part(entry.path)]}
    ]
    assert wrong == []


def test_every_library_is_declared() -> None:
    """What is imported stands in pyproject.toml, so that it is there by right and not by luck."""
    comes_with = {
        "dotenv": "python-dotenv",
        "starlette": "fastapi",
        "pydantic_core": "pydantic",
        "click": "typer",
        "pythonjsonlogger": "python-json-logger",
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[\s<>=!~\[]", requirement)[0] for requirement in project["dependencies"]}
    used = {entry.module.split(".")[0] for entry in ALL_IMPORTS if part(entry.path) != "plugin"}
    third_party = used - set(sys.stdlib_module_names) - {"specdemo"}
    assert {comes_with.get(name, name).replace("_", "-") for name in third_party} - declared == set()


def test_the_application_never_imports_vllm() -> None:
    """vLLM is a child process and an HTTP server; only the plugin that runs inside it knows its modules."""
    heavy = {"vllm", "torch", "transformers"}
    wrong = [
        str(entry)
        for entry in ALL_IMPORTS
        if entry.module.split(".")[0] in heavy and part(entry.path) != "plugin" and entry.path not in STANDALONE
    ]
    assert wrong == []
    plugin = [entry for entry in ALL_IMPORTS if part(entry.path) != "plugin" and "plugin" in entry.module.split(".")]
    assert [str(entry) for entry in plugin] == [], "the plugin is handed to the engine as a folder, never imported"


def test_no_back_doors() -> None:
    """No import hides in TYPE_CHECKING; one inside a function is explained by a comment on or above its line."""
    assert [str(entry) for entry in ALL_IMPORTS if entry.guarded] == []
    unexplained = []
    for entry in ALL_IMPORTS:
        lines = entry.path.read_text(encoding="utf-8").splitlines()
        nearby = lines[max(0, entry.line - 3) : entry.line]
        explained = any("#" in line and "noqa" not in line.split("#")[1][:6] for line in nearby)
        if not entry.top and not explained and part(entry.path) != "plugin":
            unexplained.append(str(entry))
    assert unexplained == []


def sources() -> list[Path]:
    """Everything that people read and write by hand."""
    folders = ("specdemo", "assets", "tests", "tools", "benchmarks")
    found = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".mjs", ".js", ".css"}
    ]
    return sorted([*found, *ROOT.glob("*.py")])


def test_files_are_short() -> None:
    """A file that is too long to be read at one sitting holds more than one idea."""
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert lengths
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


# A tag that starts a style or script, or a JavaScript function in a Python text.
FOREIGN = re.compile(r"<(style|script)\b|\bfunction\s*\w*\s*\(|=>", re.IGNORECASE)


def test_no_css_or_javascript_in_python() -> None:
    """Styles and scripts live in assets/, where a browser's tools and our linter see them."""
    wrong = []
    for path in python_files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                found = FOREIGN.search(node.value)
                if found:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} has {found[0]!r}")
    assert wrong == []


def modules() -> list[str]:
    """Every module as the map names it: core/metrics.py, ui/page.py, …"""
    return [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]


def test_the_map_names_every_module_once() -> None:
    """The docstring of the package is the map, in the order in which data flows; a stale map would be worse than none."""
    text = ast.get_docstring(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = map_entries(text)
    assert sorted(named) == sorted(modules())


def map_entries(text: str) -> list[str]:
    """Indented names ending in ``.py`` or ``/``: a folder's name goes before the names below it."""
    found: list[str] = []
    folders: list[tuple[int, str]] = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        match = re.match(r"\s*([\w./]+/)\s", line + " ")
        if match:
            folders = [*((depth, name) for depth, name in folders if depth < indent), (indent, match[1])]
        prefix_depth = indent + (1 if match else 0)
        prefix = "".join(name for depth, name in folders if depth < prefix_depth)
        found += [prefix + name for name in re.findall(r"(?<![\w/.])\w+\.py\b", line.split("  #")[0])]
    return found


def test_every_test_states_a_promise() -> None:
    """Each test function has a docstring: one sentence that a user or a developer may rely on."""
    without = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and node.name.startswith("test_") and not ast.get_docstring(node):
                without.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert without == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.py  what it does", ["a.py"]),
        ("core/\n  x.py  one\n  y.py z.py  two", ["core/x.py", "core/y.py", "core/z.py"]),
        (
            "engines/  all of vLLM\n  wire/  bytes\n    sse.py  lines\n  client.py  streams",
            ["engines/wire/sse.py", "engines/client.py"],
        ),
        ("core/ x.py y.py", ["core/x.py", "core/y.py"]),
    ],
)
def test_the_map_is_read_as_it_looks(text: str, expected: list[str]) -> None:
    """A folder's name stands once, before or above the modules in it."""
    assert map_entries(text) == expected
