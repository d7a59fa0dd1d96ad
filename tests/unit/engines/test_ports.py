"""Why a port cannot be had."""

import errno
import socket

import pytest

from specdemo.engines.ports import PortReservation, PortTakenError
from specdemo.errors import EngineUnavailable


def test_a_port_that_may_not_be_used_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A privileged or impossible port has no other program to look for, and trying again helps nobody."""

    def bind(_socket: socket.socket, _address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("specdemo.engines.ports.socket.socket.bind", bind)
        with pytest.raises(EngineUnavailable, match=r"Port 80 cannot be used here \(permission denied\)") as caught:
            PortReservation(80)
    assert not isinstance(caught.value, PortTakenError)
    with pytest.raises(EngineUnavailable, match="no such port") as caught:
        PortReservation(70000)
    assert not isinstance(caught.value, PortTakenError)


def test_a_taken_port_is() -> None:
    """Somebody listens there."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(PortTakenError):
            PortReservation(other.getsockname()[1])
