"""C19: names that a shell would run reach a real child as they are, as one argument each, and nothing is executed."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from specdemo.core.engine import EngineSpec, Speculation
from specdemo.core.events import Side
from specdemo.engines.command import argv, display, environment
from specdemo.engines.process import EngineProcess, Launch
from specdemo.errors import ConfigError
from tests.fakes.command import ROOT, specdemo

SAYS = "import json, sys; print('ARGV', json.dumps(sys.argv[1:]))"
HOSTILE = (
    "x; touch {}", "$(touch {})", "`touch {}`", "a && touch {}", "a | tee {}", "a 'b' \"c\" d", "x' ; touch {} ; '",
    "${{IFS}}touch{}", "%s%n", "*", "~/x", "> {}", "模型 😀",
)  # fmt: skip


@pytest.mark.parametrize("form", HOSTILE)
async def test_names_reach_a_child_as_they_are(tmp_path: Path, form: str) -> None:
    """The command of an engine, started for real: the child sees each name whole, and no file appears."""
    trap = tmp_path / "trap"
    name = form.format(trap)
    drafts = Speculation("draft_model", 2, (("method", '"draft_model"'), ("model", json.dumps(name))), draft_model=name)
    spec = EngineSpec(Side.SPECULATIVE, name, name, "cpu", speculation=drafts)
    python = Path(sys.executable)
    words = argv(spec, python=python, port=8001)
    with pytest.raises(ConfigError):  # such a name is no model to begin with; the child below would get it all the same
        environment(spec, python=python, inherited={})
    launch = Launch((sys.executable, "-c", SAYS, *words[3:]), {"PATH": "/usr/bin:/bin"}, 8001, "token")
    engine = EngineProcess(launch, log_path=tmp_path / "log.txt")
    await engine.start()
    try:
        async with asyncio.timeout(30):
            assert await engine.wait() == 0
    finally:
        await engine.stop()  # closes the log
    said = re.search(r"ARGV (\[.*\])", (tmp_path / "log.txt").read_text())
    assert said is not None
    seen = json.loads(said[1])
    assert seen == words[3:]
    for flag in ("--model", "--served-model-name"):
        assert f"{flag}={name}" in seen
    [configured] = [word.partition("=")[2] for word in seen if word.startswith("--speculative-config=")]
    assert json.loads(configured)["model"] == name
    assert name.split()[0] in display(words)
    assert not trap.exists()


@pytest.mark.parametrize("flag", ["--model", "engine.model", "engine.python", "engine.speculation"])
async def test_names_given_to_the_program(tmp_path: Path, flag: str) -> None:
    """As a setting such a name is passed on or refused in one sentence; nothing runs."""
    trap = tmp_path / "trap"
    name = f"x; touch {trap}; $(touch {trap}) '; touch {trap} #"
    given = (flag, name) if flag.startswith("--") else ("--set", f"{flag}={name}")
    result = await specdemo(tmp_path, "doctor", "--json", *given)
    assert "Traceback" not in result.err
    assert result.code in (0, 1, 2), result.err
    assert not trap.exists()


def test_no_shell_anywhere() -> None:
    """No part of the program hands a line to a shell."""
    shells = re.compile(r"shell\s*=\s*True|create_subprocess_shell|os\.system\(|os\.popen\(|subprocess\.getoutput")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("specdemo", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if shells.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
