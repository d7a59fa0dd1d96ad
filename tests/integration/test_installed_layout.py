"""What is not Python is found in an installed wheel as well as in a checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LOOK = """
import specdemo
from specdemo.bench import workloads
from specdemo.engines.embedded.build import CONVERTER
from specdemo.ui import assets
print(specdemo.__file__, assets.folder(), workloads.PROMPTS, CONVERTER, sep="\\n")
assert assets.text("html/race.html") and any(workloads.PROMPTS.glob("*.jsonl")) and CONVERTER.is_file()
"""


def test_an_installed_specdemo_finds_its_files(tmp_path: Path) -> None:
    """Page files, prompts and the converter lie inside the package, where the wheel's own table puts them."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    site = tmp_path / "site"
    for name in wheel["packages"]:
        shutil.copytree(ROOT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, site / target)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r})\n{LOOK}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    places = done.stdout.splitlines()
    assert [place for place in places if not place.startswith(str(site))] == []
