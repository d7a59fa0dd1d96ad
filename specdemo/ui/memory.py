"""Memory of a page that serves for weeks: what is freed goes back, and what stays is not looked at again and again."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os

_M_ARENA_MAX = -8  # glibc's malloc.h
_HEAPS = 2


def few_heaps() -> None:
    """Let all threads share two heaps of the C library, unless MALLOC_ARENA_MAX says otherwise; glibc only.

    By default each of the forty threads that read files and the database gets one of its own, up to eight a core, and
    what one has freed no other can use: 28 MB more in the soak, and growing. Call it before the threads are there.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    _call("mallopt", _M_ARENA_MAX, _HEAPS)


def give_back() -> None:
    """Return to the system what the C library holds free between what is in use; glibc only. Takes milliseconds."""
    _call("malloc_trim", 0)


def _call(name: str, *values: int) -> None:
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        getattr(ctypes.CDLL(None), name)(*values)


def settle() -> None:
    """Take what is there now out of the garbage collector's rounds: modules and the page's own parts stay for good.

    Looking at all of them (200,000) takes 0.12 s here, in which no stream goes on.
    """
    gc.collect()
    gc.freeze()
