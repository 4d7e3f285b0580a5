"""The program behind main(): the group of all commands, and how it prints their errors."""

import errno
import os
import sys
import traceback
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import click

from kvbench import cli
from kvbench.cli._signals import interrupted_line, was_interrupted
from kvbench.cli._streams import say, take_streams
from kvbench.errors import Exit, KvbenchError, Unwritable, exit_codes
from kvbench.texts import printable

# what the loader says if a library does not fit in memory
_UNMAPPED = ("failed to map segment", "annot allocate memory")


def _codes(about: Mapping[Exit, str]) -> str:
    """Exit codes for the end of a help text. click does not wrap a paragraph that begins with
    \\b.
    """
    return "\n".join(
        ["\b", "Exit codes:", *(f"{code:>5}  {meaning}" for code, meaning in about.items())]
    )


_MOVED = {  # old commands, and what replaces them
    "gather": "fleet --from",
    "kernels": "list kernels",
    "lab": "suites/experiments.ipynb",
    "numa": "sweep numa",
    "plan": "sweep --dry-run",
    "schema": "list schemas",
    "submit": "score --pack",
    "suites": "list suites",
    "tune": "sweep --tune-only",
}
TASKS = ("measure", "read", "compare", "understand")  # folders of commands, in the order of --help


def _homes() -> dict[str, str]:
    """The package that each command lies in."""
    folder = Path(cli.__file__).parent
    return {
        file.stem: f"{cli.__name__}.{task}"
        for task in TASKS
        for file in (folder / task).glob("[!_]*.py")
    }


class Commands(click.Group):
    """The group of all commands. A command is a module `cli/<task>/<name>.py` with the object
    `command`. Code that commands share is in `cli/_*.py`. Heavy imports stay inside functions.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_homes())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = _homes().get(cmd_name)
        if not home:
            return None
        command = import_module(f"{home}.{cmd_name}").command
        if codes := exit_codes(cmd_name):
            command.epilog = _codes(codes)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            known = self.list_commands(ctx)
            near = [_MOVED[args[0]]] if args[0] in _MOVED else get_close_matches(args[0], known, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for task in TASKS:
            names = [name for name, home in sorted(_homes().items()) if home.endswith(f".{task}")]
            each = ((name, self.get_command(ctx, name)) for name in names)
            with formatter.section(task.capitalize()):
                formatter.write_dl(
                    [(name, known.get_short_help_str(200)) for name, known in each if known]
                )

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. If an output file is a pipe that breaks, raise Unwritable: click would
        exit with 1.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise Unwritable(
                f"cannot write: {error.strerror}",
                "the program that was reading it has ended: name another file",
            ) from None


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_codes({code: code.about for code in Exit}),
)
@click.option("--version", is_flag=True, help="Show the version and exit.")
@click.pass_context
def kvbench(ctx: click.Context, version: bool) -> None:
    """Measure decode attention over the KV cache against the memory bandwidth of this machine."""
    if version and ctx.invoked_subcommand:
        raise click.UsageError(
            f"--version does not go with a command, here {ctx.invoked_subcommand}", ctx
        )
    if version:
        say(f"kvbench {import_module('kvbench').__version__}")
    elif ctx.invoked_subcommand is None:
        say(ctx.get_help())


def _fail(message: str, hint: str, code: int) -> int:
    if was_interrupted():  # the error may have come from the interrupt
        return _interrupted()
    say(printable(f"kvbench: {message} ({hint})"), err=True)
    return code


def _interrupted() -> int:
    say(printable(interrupted_line()), err=True)
    return Exit.INTERRUPTED


def _refused(error: OSError) -> int:
    """Report an error of the system. It names the file, except if the current folder is gone."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return _fail("the current folder is gone", "run kvbench in another folder", Exit.USAGE)
    said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return _fail(said, "allow more open files: ulimit -n 1024", Exit.REFUSED)
    if error.errno == errno.ENOMEM:
        return _no_memory()
    return _fail(said, "check that it exists, can be written and has space left", Exit.USAGE)


def _no_memory() -> int:
    return _fail(
        "there is not enough memory",
        "allow more: ulimit -v and the memory limit of the container",
        Exit.REFUSED,
    )


def _unforeseen(error: Exception) -> int:
    """Report an error that kvbench did not foresee. It is a bug, so the code is not a verdict's."""
    if os.environ.get("KVBENCH_TRACEBACK"):
        traceback.print_exception(error)
    said = f"internal error: {type(error).__name__}: {error}"
    return _fail(said, "please report it with the output of KVBENCH_TRACEBACK=1", Exit.USAGE)


def run(arguments: list[str] | None) -> int:
    """Run one command and return its exit code. A command may return None for 0."""
    take_streams()
    try:
        code = kvbench.main(arguments, prog_name="kvbench", standalone_mode=False)
        sys.stdout.flush()
        return code or 0
    except KvbenchError as error:
        return _fail(error.args[0], error.hint, error.exit_code)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "kvbench"
        return _fail(error.format_message(), f"see {path} --help", error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), "see kvbench --help", Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except OSError as error:
        return _refused(error)
    except MemoryError:
        return _no_memory()
    except Exception as error:
        if isinstance(error, ImportError) and any(words in str(error) for words in _UNMAPPED):
            return _no_memory()
        return _unforeseen(error)
