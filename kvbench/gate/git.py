"""Call git for a gate. Hooks of the repository do not run."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from kvbench.errors import BadArgument, Refused

# Start nothing that outlives the gate.
_QUIET = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false")
_OPTIONS = tuple(word for setting in _QUIET for word in ("-c", setting))


def git(folder: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    """Run git. `more`: environment variables."""
    command = [_program(), *_OPTIONS, "-C", folder, *arguments]
    environment = outside_of_hooks() | {"LC_ALL": "C.UTF-8"} | more
    return subprocess.run(command, capture_output=True, check=False, env=environment)


def _program() -> str:
    if found := shutil.which("git"):
        return found
    raise Refused(
        "git is missing",
        "apt install git (Debian), dnf install git (Fedora); or name libraries",
    )


def outside_of_hooks() -> dict[str, str]:
    """This process's environment without git's variables that name a repository; a git hook sets
    them.
    """
    local = _local_variables()
    return {name: value for name, value in os.environ.items() if name not in local}


@cache
def _local_variables() -> frozenset[str]:
    said = subprocess.run(
        [_program(), "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=False
    ).stdout
    # some of them hold settings, such as which folders are safe
    return frozenset(name for name in said.split() if not name.startswith("GIT_CONFIG"))


def printed(done: subprocess.CompletedProcess[bytes]) -> str:
    """The line of git's output that says why it failed."""
    lines = done.stderr.decode(errors="replace").splitlines() or ["it gave no reason"]
    why = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
    return why.removeprefix("fatal: ").removeprefix("error: ")


def line(folder: Path, *arguments: str) -> str:
    """The line that git prints; empty if git fails."""
    done = git(folder, *arguments)
    return "" if done.returncode else done.stdout.decode(errors="replace").strip()


def refuse_no_repository(folder: Path, hint: str) -> None:
    inside = git(folder, "rev-parse", "--git-dir")
    if inside.returncode:
        raise BadArgument(f"{folder} is not a git repository: {printed(inside)}", hint)


def commit(folder: Path, asked: str) -> str:
    """The hash of a commit; empty if no commit has that name."""
    return line(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}"
    )


def called(asked: str, found: str) -> str:
    """A commit's name for people: "origin/main (3f2a91c)"."""
    return found[:7] if found.startswith(asked) else f"{asked} ({found[:7]})"
