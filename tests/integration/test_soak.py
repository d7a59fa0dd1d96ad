"""A short soak, as ``make soak`` does it for ten minutes: visitors come, stop, reload and vanish while an engine is killed."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tools.soak.__main__ import soak


@pytest.mark.timeout(300)
async def test_nothing_is_lost_or_leaked(tmp_path: Path) -> None:
    """No run is lost, no undisturbed one is broken, every viewer gets every frame, and no engine works for nobody.

    How long an engine takes to be free is judged by ``make soak`` alone: here the machine may be busy with other tests.
    """
    options = argparse.Namespace(visitors=5, minutes=0.25, kills=1, viewers=20, browsers=0, seed=7)
    ledger = await soak(tmp_path, options)
    assert ledger.runs >= 10
    assert len(ledger.left) >= 1
    assert ledger.faults == []
    assert "20 viewers" in ledger.report()
