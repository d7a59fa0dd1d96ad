"""Requests that a speculative engine must not get, and the reasons."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from specdemo.core.engine import EngineSpec
from specdemo.core.events import Side
from specdemo.core.prompt import Sampling
from specdemo.engines.logview import REPAIR_APPLIED, LogView
from specdemo.engines.plugin import specdemo_cpu_repair as plugin
from specdemo.engines.safety import (
    REPAIR_SWITCH,
    REPAIRED_VERSIONS,
    refusal,
    refusal_for_spec,
    repaired,
    wants_repair,
)
from specdemo.engines.speculation import parse_speculation

GREEDY, WARM = Sampling(), Sampling(temperature=0.8)
SPEC = EngineSpec(Side.SPECULATIVE, "owner/model", "demo", "cpu", speculation=parse_speculation("ngram"))


@pytest.mark.parametrize(
    ("sampling", "speculating", "device", "version", "refused"),
    [
        (GREEDY, True, "cpu", "0.32.0", False),
        (WARM, True, "cpu", "0.32.0", True),
        (WARM, True, "cpu:0-1", "0.32.0", True),
        (WARM, False, "cpu", "0.32.0", False),
        (WARM, True, "cuda", "0.33.0", False),
        (WARM, True, None, "0.32.0+cpu", True),
        (WARM, True, None, "0.33.0", False),
        (WARM, True, None, None, False),
    ],
)
def test_sampling_on_the_cpu(
    sampling: Sampling, speculating: bool, device: str | None, version: str | None, refused: bool
) -> None:
    """Temperature above 0 with speculation on an unrepaired CPU engine is refused, all else passes."""
    reason = refusal(sampling, speculating=speculating, device=device, version=version)
    assert (reason is not None) == refused
    if reason is not None:
        assert reason.startswith("On the CPU, this vLLM samples wrongly")


def test_the_repair_lifts_the_refusal() -> None:
    """With the plugin on a tested version the request may be sent; on another version, or switched off, it may not."""
    assert refusal_for_spec(SPEC, WARM, version="0.32.0+cpu") is None
    assert refusal_for_spec(SPEC, WARM, version="0.33.0") is not None
    off = replace(SPEC, environment=((REPAIR_SWITCH, "0"),))
    assert refusal_for_spec(off, WARM, version="0.32.0") is not None
    assert wants_repair(replace(SPEC, speculation=None))
    assert not wants_repair(replace(SPEC, device="cuda"))
    assert repaired(SPEC, "0.32.0")
    assert not repaired(SPEC, None)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_min_p_is_refused_everywhere(device: str) -> None:
    """vLLM rejects min_p with speculation at a temperature above 0 on any device; greedy decoding ignores it."""
    reason = refusal(Sampling(temperature=0.8, min_p=0.1), speculating=True, device=device, repaired=True)
    assert reason is not None
    assert "min_p" in reason
    assert refusal(Sampling(min_p=0.1), speculating=True, device=device) is None


@pytest.mark.parametrize(
    ("sampling", "device", "repaired", "refused"),
    [
        (Sampling(temperature=0.8, seed=1), "cpu", False, True),
        (Sampling(temperature=0.8, seed=1), "cpu", True, False),
        (Sampling(temperature=0.8, seed=1), "cuda", False, False),
        (Sampling(temperature=0.8), "cpu", False, False),
        (Sampling(seed=1), "cpu", False, False),
    ],
)
def test_a_seed_on_a_cpu_engine_without_speculation(
    sampling: Sampling, device: str, repaired: bool, refused: bool
) -> None:
    """A seeded prompt read in parts ends an unrepaired CPU engine, speculating or not; nothing else is refused."""
    reason = refusal(sampling, speculating=False, device=device, repaired=repaired)
    assert (reason is not None) == refused
    assert reason is None or "seed" in reason


class Generator:
    """A generator on the CPU whose state is how often it drew."""

    def __init__(self) -> None:
        self.drawn = 0
        self.device = SimpleNamespace(type="cpu")

    def get_state(self) -> int:
        return self.drawn

    def set_state(self, state: int) -> None:
        self.drawn = state


def test_a_discarded_draw_is_taken_back() -> None:
    """Rows that are still prefilled draw for nothing: their generators go back, hidden from vLLM's own way meanwhile."""
    early, late = Generator(), Generator()
    batch = SimpleNamespace(num_reqs=2, generators={0: early, 1: late})
    runner = SimpleNamespace(input_batch=batch, discard_request_mask=SimpleNamespace(np=[True, False, True]))

    def sample(self: Any) -> None:
        for generator in self.input_batch.generators.values():
            generator.drawn += 1

    plugin.keep_states(sample)(runner)
    seen = plugin.put_states_back(lambda self: dict(self.input_batch.generators))(runner)
    assert seen == {1: late}
    assert batch.generators == {0: early, 1: late}
    assert (early.drawn, late.drawn) == (0, 1)
    plugin.put_states_back(lambda self: None)(runner)
    assert (early.drawn, late.drawn) == (0, 1)


def test_plugin_and_application_agree() -> None:
    """The plugin, which cannot import the application, has the same switch and the same tested versions."""
    assert plugin.SWITCH == REPAIR_SWITCH
    assert plugin.TESTED == REPAIRED_VERSIONS
    assert plugin.APPLIED == REPAIR_APPLIED


def test_the_engine_itself_says_that_it_is_repaired() -> None:
    """Being asked for is not being in place: only the plugin's own line in the log counts, not its "NOT applied"."""
    view = LogView()
    view.feed(
        b"(VllmWorker-0 pid=1) WARNING 11-29 23:58:54 [a.py:1] specdemo: CPU sampling repair NOT applied: vLLM x\n"
    )
    assert not view.repaired
    view.feed(
        b"(VllmWorker-0 pid=1) INFO 11-29 23:58:54 [a.py:39] specdemo: CPU sampling repair applied (vLLM 0.32.0)\n"
    )
    assert view.repaired


def test_the_plugin_does_nothing_unasked(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Without the switch nothing happens; with it and no tested vLLM, it says that it is not applied."""
    caplog.set_level("INFO")
    monkeypatch.delenv(plugin.SWITCH, raising=False)
    plugin.apply()
    assert caplog.text == ""
    monkeypatch.setenv(plugin.SWITCH, "1")
    monkeypatch.setattr(plugin, "installed_version", lambda: "0.99.0")
    plugin.apply()
    assert "NOT applied: vLLM 0.99.0" in caplog.text
