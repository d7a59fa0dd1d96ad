"""Free loopback ports, kept until the engine has them."""

from __future__ import annotations

import errno
import socket

from specdemo.core.sentences import sentence
from specdemo.errors import EngineUnavailable

HOST = "127.0.0.1"


class PortTakenError(EngineUnavailable):
    """Another program has the port."""

    def __init__(self, port: int) -> None:
        super().__init__(sentence("port_taken", port=port))


class PortReservation:
    """A port held by a bound socket that never listens.

    With SO_REUSEADDR (which vLLM sets as well) the engine can bind and listen beside it, while the system gives the
    number to nobody else. So two engines, or two copies of specdemo, never draw the same one.
    """

    def __init__(self, port: int | None = None) -> None:
        """A given port, or any free one. Raises PortTakenError if it is taken, EngineUnavailable if it is no use."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port or 0))
        except (OSError, OverflowError) as error:
            self._socket.close()
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                raise PortTakenError(port or 0) from None
            why = f"{error.strerror or error}".lower() if isinstance(error, OSError) else "no such port"
            raise EngineUnavailable(sentence("port_useless", port=port or 0, reason=why)) from None
        self.port: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()
