"""The check runner: what counts as passed."""

from __future__ import annotations

import json
import sys

import pytest

from tools.checks import Step, audited, run_step


def answer(*packages: dict[str, object]) -> str:
    return json.dumps({"dependencies": list(packages)})


CLEAN = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1"}]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("code", "stdout", "result"),
    [
        (0, answer(CLEAN), "passed"),
        (1, answer(CLEAN, BAD), "failed"),
        (0, answer(UNKNOWN, UNKNOWN), "skipped: the vulnerability service knows 0 of 2"),
        (1, answer(UNKNOWN, UNKNOWN, BAD), "failed"),
        (1, "", "skipped: no vulnerability service could be reached (timed out)"),
    ],
)
def test_an_audit_that_looked_at_nothing_has_not_passed(code: int, stdout: str, result: str) -> None:
    """A service out of reach is said to be so; a known vulnerability fails even if most packages are unknown."""
    assert audited(code, stdout, "retry\ntimed out\n").startswith(result)


def test_a_step_passes_by_its_exit_code() -> None:
    """Any other code than 0 fails, and a step with a reason to be skipped is not run."""
    assert run_step(Step("ok", [sys.executable, "-c", ""])) == "passed"
    assert run_step(Step("bad", [sys.executable, "-c", "raise SystemExit(5)"])) == "failed"
    assert run_step(Step("none", ["/does/not/exist"], skip="why")) == "skipped: why"
