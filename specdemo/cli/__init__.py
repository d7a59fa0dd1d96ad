"""The command line. One module a command; ``COMMANDS`` lists them, ``main`` turns errors into exit codes.

Exit codes: 0 done (for race: identical, or no claim applies) · 1 a real difference, or specdemo itself failed
· 2 wrong use, settings or prompt · 3 an engine failed · 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence

import typer

from specdemo import __version__
from specdemo.cli.bench import bench
from specdemo.cli.config import config
from specdemo.cli.doctor import doctor
from specdemo.cli.flags import with_settings
from specdemo.cli.gate import gate
from specdemo.cli.loop import STOPPED
from specdemo.cli.output import error_document, print_json, stderr
from specdemo.cli.race import race
from specdemo.cli.report import report
from specdemo.cli.serve import serve
from specdemo.cli.validate import validate
from specdemo.errors import SpecDemoError

COMMANDS: tuple[Callable[..., int | None], ...] = (serve, race, bench, validate, gate, report, doctor, config)
"""Functions of (loaded settings, own flags); the name of the function is the name of the command."""


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"specdemo {__version__}\n")
        raise typer.Exit


def build() -> typer.Typer:
    """The application with all commands."""
    app = typer.Typer(
        name="specdemo",
        help="One prompt, two vLLM engines, standard and speculative, side by side: measured, checked token by token.",
        epilog="Exit codes: 0 done, 1 a real difference, 2 wrong use, 3 an engine failed, 130 stopped with Ctrl-C.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,  # its tracebacks print local variables, keys among them
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    ) -> None:
        pass

    for command in COMMANDS:
        app.command(name=command.__name__)(with_settings(command))
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; every error that a user can meet is one sentence on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a result is printed even where the terminal lacks a sign
    try:
        build()(args=words, prog_name="specdemo")
    except SystemExit as end:  # typer ends this way, with 2 for wrong use
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except SpecDemoError as error:
        stderr().print(f"specdemo: {error}", markup=False)
        if "--json" in words:
            print_json(error_document(error))
        return error.exit_code
    except KeyboardInterrupt:
        return STOPPED
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
