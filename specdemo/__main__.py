"""``python -m specdemo`` and the ``specdemo`` program."""

from __future__ import annotations

import sys

from specdemo.cli import main as run


def main() -> None:
    """Exit with the command's code."""
    sys.exit(run())


if __name__ == "__main__":
    main()
