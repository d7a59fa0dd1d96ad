"""``specdemo config``: the effective settings, and where each came from."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from specdemo.cli.output import print_json, stdout
from specdemo.settings import Loaded, markdown


def config(
    loaded: Loaded,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of all settings for README.")
    ] = False,
) -> None:
    """Show every setting with its value and where it came from; secrets are masked.

    Order of force: SPECDEMO_* < .env < specdemo.toml (or --config, SPECDEMO_CONFIG) < flags.
    """
    if as_markdown:
        sys.stdout.write(markdown())
        return
    rows = loaded.rows()
    if as_json:
        names = ("name", "value", "origin", "variable", "default", "description")
        print_json({"schema": 1, "settings": [{name: row[name] for name in names} for row in rows]})
        return
    table = Table(box=None, pad_edge=False)
    for title in ("setting", "value", "from", "variable"):
        table.add_column(title, overflow="fold")
    for row in rows:
        style = "" if row["origin"] == "default" else "bold"
        table.add_row(row["name"], Text(row["shown"] or "–", style), row["origin"], row["variable"])
    stdout().print(table)
