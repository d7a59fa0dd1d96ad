"""``python3 -m tools.bootstrap …``. Old Pythons must be able to read this file: it tells them that they are old."""

import os
import sys

OLDEST = (3, 11)


def newer_python():  # type: ignore[no-untyped-def]
    """The best other Python on PATH, or None."""
    from shutil import which

    for minor in (13, 12, 11):
        found = which("python3.%d" % minor)
        if found:
            return found
    return None


def main():  # type: ignore[no-untyped-def]
    if sys.version_info[:2] < OLDEST:
        other = newer_python()  # type: ignore[no-untyped-call]
        if other:
            os.execv(other, [other, "-m", "tools.bootstrap"] + sys.argv[1:])
        sys.stderr.write(
            "error: specdemo needs Python 3.11 or newer, and this is %d.%d: install python3.11, or name another one "
            "with `make setup PYTHON=/path/to/python3.12`.\n" % sys.version_info[:2]
        )
        return 1
    from tools.bootstrap.stages import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[no-untyped-call]
