"""``specdemo bench``, ``gate``, ``report`` and ``validate`` against scripted engines, as a user runs them."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.fakes.command import Outcome, engines, specdemo, started
from tests.fakes.vllm import Server, serving

SMALL = (
    "--workload",
    "code_editing",
    "--prompts",
    "4",
    "--max-tokens",
    "12",
    "--warmup",
    "1",
    "--control",
    "2",
    "--seed",
    "3",
    "--no-wait",
)
SLOW = {"tokens": 12, "first_s": 0.005, "step_s": 0.02}
QUICK = {"tokens": 12, "first_s": 0.005, "step_s": 0.02, "bursts": [4]}


@asynccontextmanager
async def pair(
    standard: dict[str, Any] | None = None, speculative: dict[str, Any] | None = None
) -> AsyncIterator[tuple[Server, Server]]:
    left = standard or {"reply": SLOW}
    async with serving(left) as a, serving({"k": 4, **(speculative or {"reply": QUICK})}) as b:
        yield a, b


async def bench(folder: Path, servers: tuple[Server, Server], *words: str) -> Any:
    return await specdemo(
        folder, "bench", *engines(*servers), *SMALL, "--out", str(folder / "b.jsonl"), "--json", *words
    )


async def test_a_benchmark_from_end_to_end(tmp_path: Path) -> None:
    """Four tokens a step against one: a speedup with its interval, kept samples, a report; stdout is one JSON document."""
    async with pair() as servers:
        result = await bench(tmp_path, servers, "--report", str(tmp_path / "r.html"))
    assert result.code == 0, result.err
    found = result.document
    assert (found["schema"], found["kind"], found["state"]) == (1, "bench", "complete")
    suite = found["summary"]["suite"]
    assert suite["speedup"]["low"] > 1.5
    assert suite["verdict"]["word"] == "faster"
    assert found["summary"]["done"] == found["summary"]["planned"] == 4 * 4 + 4 * 2
    assert found["summary"]["identity"]["word"] == "identical"
    assert f"{suite['speedup']['estimate']:.2f}x" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "NaN" not in result.out


async def test_reports_are_rebuilt_from_the_file_alone(tmp_path: Path) -> None:
    """HTML, Markdown, JSON and CSV come from the kept file with equal numbers; two files can be compared."""
    async with pair() as servers:
        first = (await bench(tmp_path, servers)).document
    kept = str(tmp_path / "b.jsonl")
    again = await specdemo(tmp_path, "report", kept, "--format", "json")
    assert json.loads(again.out)["summary"] == first["summary"]
    plain = await specdemo(tmp_path, "report", kept, "--language", "zh")
    assert "结论" in plain.out
    table = await specdemo(tmp_path, "report", kept, "--out", str(tmp_path / "r.csv"))
    assert table.code == 0
    assert repr(first["summary"]["suite"]["speedup"]["estimate"]) in (tmp_path / "r.csv").read_text(encoding="utf-8")
    both = await specdemo(tmp_path, "report", kept, kept)
    assert "the intervals of 0 do not overlap" in both.out
    wrong = await specdemo(tmp_path, "report", str(tmp_path / "r.csv"))
    assert wrong.code == 1
    assert "no benchmark file" in wrong.err


async def test_the_gate_says_yes_no_or_no_data(tmp_path: Path) -> None:
    """Exit code 0 on a workload that speeds up, 1 on one that does not, 2 without a demand; JUnit has a case a check."""
    words = ("--workload", "open_chat", "--prompts", "4", "--max-tokens", "12", "--no-wait")
    async with pair() as servers:
        yes = await specdemo(
            tmp_path, "gate", *engines(*servers), *words, "--min-speedup", "1.2", "--max-mismatch", "0",
            "--junit", str(tmp_path / "j.xml"),
        )  # fmt: skip
        nothing = await specdemo(tmp_path, "gate", *engines(*servers))
    assert yes.code == 0, yes.out + yes.err
    assert yes.out.startswith("pass: ")
    tree = ET.fromstring((tmp_path / "j.xml").read_text(encoding="utf-8"))
    assert (tree.get("tests"), tree.get("failures")) == ("3", "0")
    assert nothing.code == 2
    assert "--min-speedup" in nothing.err
    async with pair(speculative={"reply": {**QUICK, "bursts": [1], "step_s": 0.03}}) as servers:
        no = await specdemo(tmp_path, "gate", *engines(*servers), *words, "--min-speedup", "1.2", "--json")
    assert no.code == 1
    assert (no.document["word"], no.document["exit_code"]) == ("fail", 1)


async def test_an_engine_that_dies_leaves_a_file_that_can_be_resumed(tmp_path: Path) -> None:
    """Death in mid-run: exit code 3, what was measured is kept, and --resume completes it with a new engine."""
    good = [QUICK] * 6
    async with pair(speculative={"replies": [*good, {**QUICK, "fault": {"kind": "die", "after": 1}}]}) as servers:
        lost = await bench(tmp_path, servers)
    assert lost.code == 3
    assert lost.document["state"] == "engine_lost"
    kept = lost.document["summary"]["done"]
    assert 0 < kept < 24
    assert "resume" in lost.document["reason"]
    async with pair() as servers:
        done = await specdemo(
            tmp_path, "bench", *engines(*servers), "--resume", str(tmp_path / "b.jsonl"), "--json", "--no-wait"
        )
    assert done.code == 0, done.err
    assert done.document["state"] == "complete"
    assert done.document["summary"]["done"] == 24
    again = await specdemo(
        tmp_path,
        "bench",
        "--standard-url",
        "http://127.0.0.1:1",
        "--speculative-url",
        "http://127.0.0.1:1",
        *SMALL,
        "--out",
        str(tmp_path / "b.jsonl"),
    )
    assert again.code != 0


async def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    """An interrupt closes the streams, writes an ending and prints the partial result with exit code 130."""
    async with (
        pair({"reply": {**SLOW, "step_s": 0.05}}) as servers,
        started(tmp_path, "bench", *engines(*servers), *SMALL, "--out", str(tmp_path / "b.jsonl"), "--json") as child,
    ):
        path = tmp_path / "b.jsonl"
        async with asyncio.timeout(100):
            while not path.exists() or path.read_bytes().count(b'"type":"sample"') < 3:
                await asyncio.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = await child.communicate()
    result = Outcome(child.returncode or 0, out.decode(), err.decode())
    assert result.code == 130
    assert result.document["state"] == "stopped"
    assert 3 <= result.document["summary"]["done"] < 24


async def test_null_test(tmp_path: Path) -> None:
    """--null never asks the speculative engine and reports the standard engine against itself."""
    async with pair() as servers:
        result = await bench(tmp_path, servers, "--null", "--report", str(tmp_path / "n.html"))
    assert result.document["summary"]["null"] is True
    assert "Null test" in (tmp_path / "n.html").read_text(encoding="utf-8")
    assert {result.document["facts"][i]["side"] for i in (0, 1)} == {"standard"}


async def test_own_prompts_need_a_go_ahead_when_lines_are_refused(tmp_path: Path) -> None:
    """A file with a broken line stops before anything is sent, names the line, and runs with --accept-refused (E06)."""
    data = tmp_path / "own.jsonl"
    data.write_text('{"prompt":"one"}\n{"prompt":\n{"prompt":"two"}\n', encoding="utf-8")
    words = ("--dataset", str(data), "--max-tokens", "6", "--control", "0", "--warmup", "0", "--json", "--no-wait")
    async with pair() as servers:
        stopped = await specdemo(tmp_path, "bench", *engines(*servers), *words)
        runs = await specdemo(tmp_path, "bench", *engines(*servers), *words, "--accept-refused")
    assert stopped.code == 2
    assert "2 of 3 usable; line 2" in stopped.err
    assert runs.code == 0, runs.err
    assert runs.document["summary"]["done"] == 8


async def test_refused_requests_stand_beside_the_rate(tmp_path: Path) -> None:
    """Every third speculative request gets 503: counted by reason, no retry, no certificate (D12, D13)."""
    busy = {"status": 503, "body": {"error": {"message": "queue full", "type": "Service Unavailable"}}}
    async with pair(speculative={"replies": [QUICK, QUICK, busy] * 10}) as servers:
        result = await bench(tmp_path, servers, "--control", "0")
    suite = result.document["summary"]["suite"]
    assert suite["arm_b"]["failed"] >= 2
    assert suite["arm_b"]["failures"][0][0] in {"rejected", "unavailable"}
    assert result.document["summary"]["certified"] is False


async def test_validation_without_scores_says_what_it_can(tmp_path: Path) -> None:
    """Scripted engines that always say the same have nothing to compare: not enough data, exit code 3, kept for a report."""
    async with pair() as servers:
        result = await specdemo(
            tmp_path, "validate", *engines(*servers), "--quick", "--draws", "2", "--tokens", "4", "--budget", "1s",
            "--save", str(tmp_path / "v.json"), "--json",
        )  # fmt: skip
    assert result.code in {1, 3}, result.err
    assert result.document["verdict"]["word"] in {"not_enough_data", "invalid", "differs"}
    assert json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))["schema"] == 1


async def test_kept_results_have_names(tmp_path: Path) -> None:
    """Without --out and --save results are kept in the data folder; report lists them and finds them by name."""
    few = (
        "--workload",
        "open_chat",
        "--prompts",
        "2",
        "--max-tokens",
        "6",
        "--control",
        "0",
        "--warmup",
        "0",
        "--no-wait",
    )
    async with pair() as servers:
        made = await specdemo(tmp_path, "bench", *engines(*servers), *few, "--json")
        drawn = await specdemo(
            tmp_path, "validate", *engines(*servers), "--quick", "--draws", "2", "--tokens", "4", "--json"
        )
    assert made.code == 0, made.err
    assert "tokens an engine and setting, too few to certify" in drawn.err
    listed = (await specdemo(tmp_path, "report")).out.splitlines()
    assert [line.split()[0] for line in listed] == ["benchmark", "validation"]
    benchmark, validation = (line.split()[-1] for line in listed)
    assert Path(made.document["file"]).stem == benchmark
    found = await specdemo(tmp_path, "report", benchmark, "--validation", validation)
    assert found.code == 0, found.err
    assert "Verdict" in found.out
    whole = await specdemo(tmp_path, "report", benchmark, "--validation", validation, "--format", "json")
    assert whole.document["validation"]["verdict"]["word"] == "not_enough_data"
    wrong = await specdemo(tmp_path, "report", "nothing")
    assert wrong.code == 1
    assert "no such file" in wrong.err


async def test_help_names_every_exit_code(tmp_path: Path) -> None:
    """Each command's help lists its exit codes."""
    for command in ("bench", "gate", "validate", "report"):
        result = await specdemo(tmp_path, command, "--help")
        assert result.code == 0
        assert re.search(r"Exit codes:", result.out)
