"""Every error that specdemo raises on purpose.

SpecDemoError                    one sentence for the user: what happened, what to do
├── UsageError                   the command line or the page was asked for something impossible (exit code 2)
├── ConfigError                  a setting is wrong (exit code 2)
├── PromptError                  a prompt or a dataset cannot be used (exit code 2)
├── StoreError                   a stored run cannot be read or written
├── SetupError                   something that must be installed is missing
└── EngineError                  an engine could not do its work (exit code 3)
    ├── EngineUnavailable        nobody answers, or not yet
    ├── EngineRejected           the engine refused the request (4xx, in-band error before a token)
    ├── EngineProtocolError      the reply is not what an OpenAI-compatible server sends, or is over a limit
    ├── EngineInterrupted        the stream ended before the engine said that it had finished
    ├── EngineStalled            alive, but silent for longer than the limit
    └── EngineExited             a managed child is gone

``kind`` is the stable machine-readable name that goes into JSON; ``str(error)`` is the sentence.
"""

from __future__ import annotations

from typing import ClassVar


class SpecDemoError(Exception):
    """Base of all: its text is one sentence for the user, free of secrets."""

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1


class UsageError(SpecDemoError):
    """The request itself is impossible."""

    kind = "usage"
    exit_code = 2


class ConfigError(SpecDemoError):
    """A setting is wrong; the text names it and the nearest right one."""

    kind = "config"
    exit_code = 2


class PromptError(SpecDemoError):
    """A prompt or dataset row cannot be used."""

    kind = "prompt"
    exit_code = 2


class StoreError(SpecDemoError):
    """A stored run cannot be read or written."""

    kind = "store"


class SetupError(SpecDemoError):
    """Something that must be installed is missing; the text says how to get it."""

    kind = "setup"


class EngineError(SpecDemoError):
    """An engine could not do its work."""

    kind = "engine"
    exit_code = 3


class EngineUnavailable(EngineError):
    """Nobody answers at the address, or the engine is still loading."""

    kind = "unavailable"


class EngineRejected(EngineError):
    """The engine refused the request; the text carries its own message."""

    kind = "rejected"


class EngineProtocolError(EngineError):
    """The reply breaks the protocol or a size limit."""

    kind = "protocol"


class EngineInterrupted(EngineError):
    """The stream ended before the engine said that it had finished."""

    kind = "interrupted"


class EngineStalled(EngineError):
    """The engine went silent for longer than the limit."""

    kind = "stalled"


class EngineExited(EngineError):
    """A managed engine process is gone; the text carries its last error line."""

    kind = "exited"
