"""Marks by folder, and a test run that no setting of this machine can change."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background jobs ignore Ctrl-C, and so would every command that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
SPECIAL_FOLDERS = ("engine", "e2e")

# No test depends on how fast this machine is; where nobody watches, the same examples are tried every time.
settings.register_profile("specdemo", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("specdemo")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """tests/engine and tests/e2e carry their marker without saying so in every file."""
    for item in items:
        if item.path.is_relative_to(HERE):
            folder = item.path.relative_to(HERE).parts[0]
            if folder in SPECIAL_FOLDERS:
                item.add_marker(folder)


@pytest.fixture(autouse=True)
def own_settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No SPECDEMO_* of the caller's shell reaches a test; caches and data go to the test's own folder.

    Real engines keep the user's cache, because the embedded model is there.
    """
    kept = {"SPECDEMO_TEST_CHROMIUM"}
    special = any(request.node.get_closest_marker(name) for name in SPECIAL_FOLDERS)
    if special:
        kept |= {"SPECDEMO_CACHE_DIR", "SPECDEMO_ENGINE_PYTHON"}
    for name in [name for name in os.environ if name.startswith("SPECDEMO_") and name not in kept]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPECDEMO_DATA_DIR", str(tmp_path / "data"))
    if not special:
        monkeypatch.setenv("SPECDEMO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
