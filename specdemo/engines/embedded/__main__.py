"""``python -m specdemo.engines.embedded ENGINE_PYTHON``: what ``make setup`` runs to prepare the embedded model."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from specdemo.engines.embedded.build import ensure_embedded_model
from specdemo.errors import SetupError


def main(arguments: list[str] | None = None) -> int:
    """Progress on stderr, the model's folder on stdout."""
    parser = argparse.ArgumentParser(prog="python -m specdemo.engines.embedded", description=__doc__)
    parser.add_argument("engine_python", type=Path, help="the engine environment's Python")
    parser.add_argument("--cache-dir", type=Path, help="default: SPECDEMO_CACHE_DIR or the user's cache folder")
    options = parser.parse_args(arguments)
    zero = time.monotonic()

    def progress(line: str) -> None:
        print(f"  {time.monotonic() - zero:5.1f} s  {line}", file=sys.stderr, flush=True)

    try:
        folder = ensure_embedded_model(options.cache_dir, engine_python=options.engine_python, progress=progress)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
