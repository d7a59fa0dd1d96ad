"""Where the shipped prompts and the report's texts are: in a checkout, or inside an installed package."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve()
_PLACES = (_HERE.parents[2] / "assets", _HERE.parents[1] / "assets")


def folder(name: str) -> Path:
    """The folder ``assets/name``; the checkout's place if it is nowhere, so that the error names that."""
    return next((place / name for place in _PLACES if (place / name).is_dir()), _PLACES[0] / name)
