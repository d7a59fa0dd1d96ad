"""What goes wrong on the way to an engine is said in Chinese as well."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from specdemo.core.engine import EngineState
from specdemo.core.events import Side
from specdemo.core.sentences import told
from specdemo.engines import attached, ports
from specdemo.engines.http_errors import TABLE, status_error
from specdemo.engines.probe import Probe
from specdemo.engines.wire import http1

WHERE = "http://10.0.0.5:8000"
OUR_OWN = (httpx.StreamError, httpx.CookieConflict, httpx.InvalidURL, httpx.HTTPStatusError)
"""Faults of this program, or what its settings refuse before: never told to a visitor."""


@pytest.mark.parametrize("kind", [kind for kind in TABLE if not issubclass(kind, OUR_OWN)])
def test_each_failure_of_the_network_is_told(kind: type[Exception]) -> None:
    """Whatever httpx raises becomes a sentence that is found again, with the address as it is."""
    found = told(TABLE[kind][1].format(where=WHERE))
    assert found is not None
    assert found[1]["where"] == WHERE


@pytest.mark.parametrize("location", [None, "http://10.0.0.6/v1/models"])
def test_redirects_are_told(location: str | None) -> None:
    """With and without a place to go."""
    found = told(str(status_error(307, b"", location, WHERE)))
    assert found is not None
    assert found[1].get("target") == location


def test_every_way_to_break_http_is_told() -> None:
    """Each reason that the reader gives is a part with its own key."""
    text = Path(http1.__file__).read_text(encoding="utf-8")
    reasons = set(re.findall(r'_broken\("([^"]+)"\)', text))
    assert len(reasons) > 6
    for reason in sorted(reasons):
        found = told(str(http1._broken(reason)))
        assert found is not None, reason
        assert isinstance(found[1]["why"], list), reason


def test_states_of_attached_engines_are_told() -> None:
    """Silent, gone, without a list, with another model."""
    target = attached.Target(Side.STANDARD, WHERE, Probe(WHERE), "a/b")
    cases = {
        ("silent", None): "attached_silent", ("dead", ("a/b",)): "attached_gone", ("ok", None): "attached_no_list",
        ("ok", ("other", "more")): "attached_model",
    }  # fmt: skip
    for (health, models), key in cases.items():
        state, error = attached._judge(target, health, models, was_ready=True)
        assert state is EngineState.DEAD
        assert error is not None
        found = told(error)
        assert found is not None
        assert found[0] == key


def test_ports_are_told() -> None:
    """Taken, and of no use."""
    assert told(str(ports.PortTakenError(8000))) == ["port_taken", {"port": "8000"}]
    with pytest.raises(Exception, match="cannot be used") as caught:
        ports.PortReservation(70000)
    found = told(str(caught.value))
    assert found is not None
    assert found[0] == "port_useless"
