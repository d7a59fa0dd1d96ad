"""The composition root for hosts that look for an ``app.py``: ``python app.py`` is ``specdemo serve``.

Everything is wired in ``specdemo.compose`` (settings → engines → deployment) and served by ``specdemo.cli.serve``;
flags and SPECDEMO_* settings are the same. ``demo`` is the name that hosting services and notebooks ask for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from specdemo.cli import main


class Demo:
    """The page as something that can be launched."""

    def launch(self, arguments: Sequence[str] = ()) -> int:
        """Serve the page until it is stopped, and return the exit code. ``arguments`` as after ``specdemo serve``."""
        return main(["serve", *arguments])


demo = Demo()

if __name__ == "__main__":
    sys.exit(demo.launch(sys.argv[1:]))
