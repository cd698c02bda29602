"""All verbs as one command, and how errors are printed."""

import io
import sys
from collections.abc import Callable

import typer

from lupi import __version__
from lupi.cli.output import closed_pipe_ends_quietly, print_json_error
from lupi.cli.torchrun import n_processes, report_once
from lupi.cli.verbs import (
    analyse,
    compare,
    data,
    export,
    features,
    methods,
    plan,
    predict,
    report,
    train,
    worth,
)
from lupi.errors import LupiError
from lupi.interface.console import print_message
from lupi.plugins import IN_LUPI_PAPER, in_lupi_paper, load_plugin, plugins

_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_plugin_verbs(app: typer.Typer) -> None:
    """Add a command for each verb; one that can't be used says why when it is called."""
    for name, entry in plugins("lupi.commands").items():
        try:
            app.command(name)(load_plugin(entry))
        except LupiError as error:
            _add_error(app, name, str(error))
    for name in IN_LUPI_PAPER["lupi.commands"]:
        if hint := in_lupi_paper("lupi.commands", name):
            _add_error(app, name, f"lupi {hint}")


def _add_error(app: typer.Typer, name: str, text: str) -> None:
    app.command(name, hidden=True, context_settings=_ANY_ARGUMENTS)(_raising(text))


def _raising(text: str) -> Callable[[], None]:
    def verb() -> None:
        raise LupiError(text)

    return verb


app = typer.Typer(
    name="lupi",
    help="Learn with privileged information x*, predict without it, and know whether it helped.\n\n"
    "Start with `lupi demo`. Then describe your own comparison in a YAML file (`lupi demo "
    "--print-settings` prints one to start from) and run `lupi compare FILE`.\n\n"
    "Exit codes: 0 success, 1 a run failed, 2 an error in the command, its settings or its "
    "data, 130 interrupted, 141 the output was closed (by `head`, for example).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    compare.demo,
    plan.plan,
    compare.compare,
    train.train,
    report.report,
    worth.worth,
    export.export,
    predict.predict,
    features.features,
    methods.methods,
    analyse.analyse,
):
    app.command()(verb)
app.add_typer(data.app, name="data")
add_plugin_verbs(app)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        print(f"lupi {__version__}")
        raise typer.Exit
    if n_processes() > 1 and context.invoked_subcommand != "train":
        with report_once():
            raise LupiError(
                "torchrun is only for `lupi train`; "
                f"run `lupi {context.invoked_subcommand}` without it"
            )


def main() -> None:
    """Run the command; a user's mistake gives one message, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names that are not UTF-8
    try:
        with closed_pipe_ends_quietly():
            app()
    except (LupiError, OSError, MemoryError) as error:
        if "--json" in sys.argv:
            print_json_error(_error_text(error))
        print_message(_error_text(error), "error:", "bold red")
        sys.exit(2)


def _error_text(error: Exception) -> str:
    """Return an error as text; for a full disk and the like, with how to resume."""
    if isinstance(error, LupiError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"memory ran out{f': {error}' if str(error) else ''}. {_RESUME_HINT}"
    return f"{error}. {_RESUME_HINT}"


_RESUME_HINT = "Finished runs are saved. Fix the problem and run the same command to resume"
