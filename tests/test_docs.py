"""What the documents promise exists, and what exists is documented."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from specdemo import cli
from specdemo.settings import described
from specdemo.settings.layers import ALIASES, PUBLIC

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Variables that are no settings: the file of settings, and what the test suite alone reads.
OTHER_VARIABLES = {"SPECDEMO_CONFIG", "SPECDEMO_TEST_CHROMIUM", *ALIASES}


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def table_variables() -> list[str]:
    """First-column variables of README's settings table."""
    return re.findall(r"^\|\s*`(SPECDEMO_\w+)`", text(README), re.MULTILINE)


def test_every_setting_is_in_the_readme_once() -> None:
    """The settings table names all settings and nothing else, each in one row."""
    rows = table_variables()
    assert sorted(set(rows)) == sorted(rows)
    assert set(rows) - OTHER_VARIABLES == {entry.variable for entry in described()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_variable_that_is_mentioned_exists(document: Path) -> None:
    """A variable in a document is a setting, in its full form or with single underscores."""
    known = {entry.variable for entry in described()} | OTHER_VARIABLES
    known |= {name.replace("__", "_") for name in known}
    mentioned = {name.rstrip("_") for name in re.findall(r"\bSPECDEMO_[A-Z_]+\b", text(document))}
    assert {name for name in mentioned if name not in known} == set()


def targets() -> set[str]:
    """What the Makefile can do."""
    return set(re.findall(r"^([a-z]+):.*##", text(ROOT / "Makefile"), re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_make_target_in_a_document_exists(document: Path) -> None:
    """`make word` in a document works."""
    mentioned = set(re.findall(r"(?:^|`|&& )make ([a-z]+)\b", text(document), re.MULTILINE))
    assert mentioned - targets() == set()


def test_the_targets_that_others_rely_on_exist() -> None:
    """These names are a promise to scripts outside the project."""
    assert {"setup", "demo", "test", "check", "doctor", "clean"} <= targets()


def test_every_make_target_is_printable() -> None:
    """`make` alone lists every target with its meaning."""
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[1] for line in shown.splitlines() if line.strip()} == targets()


def commands() -> set[str]:
    """Names of specdemo's commands."""
    return {command.__name__.removesuffix("_").replace("_", "-") for command in cli.COMMANDS}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_exists(document: Path) -> None:
    """`specdemo word` in a document is a command."""
    mentioned = set(re.findall(r"(?:^|`|bin/|\$ )specdemo ([a-z][a-z-]*)", text(document), re.MULTILINE))
    assert mentioned - commands() == set()


def test_every_command_is_in_the_readme() -> None:
    """A command that README does not show would not be found."""
    mentioned = set(re.findall(r"\bspecdemo ([a-z][a-z-]*)", text(README)))
    assert commands() - mentioned == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_project_lead_somewhere(document: Path) -> None:
    """A relative link or picture names a file that is there."""
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text(document))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_versions_agree() -> None:
    """The version stands in the package and in pyproject.toml, and the changelog knows it or calls it unreleased."""
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    pinned = {plain(line) for line in text(ROOT / "requirements" / "constraints.txt").splitlines() if "==" in line}
    listed = [line for line in text(ROOT / "requirements.txt").splitlines() if line and not line.startswith("#")]
    assert {plain(re.sub(r"\[\w+\]", "", line)) for line in listed} <= pinned
    names = [re.split(r"[\s<>=]", requirement)[0] for requirement in project["dependencies"]]
    assert sorted(plain(line.split("==")[0]) for line in listed) == sorted(map(plain, names))


def test_the_head_for_hosted_spaces() -> None:
    """What README tells a host exists, and its Gradio is the one that was tested."""
    head = dict(line.split(": ", 1) for line in text(README).split("---\n")[1].splitlines())
    pinned = re.search(r"^gradio==(\S+)$", text(ROOT / "requirements.txt"), re.MULTILINE)
    assert pinned is not None
    assert (head["sdk"], head["sdk_version"]) == ("gradio", pinned[1])
    assert (ROOT / head["app_file"]).is_file()
    assert len(head["short_description"]) <= 60


def test_the_public_profile_is_told_as_it_is() -> None:
    """The table of docs/hosting.md holds every setting that the public profile changes, and both values."""
    rows = re.findall(r"^\| `(limits\.\w+)` \| (\S+) \| (\S+) \|$", text(ROOT / "docs" / "hosting.md"), re.MULTILINE)
    usual = {entry.name: entry.default or "–" for entry in described()}
    assert {name: public for name, public, _ in rows} == {name: f"{value:g}" for name, value in PUBLIC.items()}
    assert {name: other for name, _, other in rows} == {name: usual[name].removesuffix(".0") for name in PUBLIC}


def plain(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return name.replace("_", "-").lower()


def test_the_project_speaks_of_itself_alone() -> None:
    """No path of a developer's machine and no package index stands in what is published."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    suffixes = {".py", ".md", ".mjs", ".js", ".css", ".toml", ".txt", ".json", ".html", ".yml", ".yaml", ""}
    found = []
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.suffix not in suffixes or not path.is_file() or path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if re.search(r"(?<![\w.~])/(work|root|home/\w+)/|pypi\.org|pythonhosted|npmjs\.(org|com)", line):
                found.append(f"{name}:{number}")
    assert found == []
