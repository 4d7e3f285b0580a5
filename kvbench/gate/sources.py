"""The sources that a build is made of: of a git revision, or of a tree as it stands."""

import io
import shutil
import tarfile
from pathlib import Path

from kvbench.errors import BadArgument
from kvbench.gate.git import called, commit, git, refuse_no_repository

# what is compared is what is compiled; CMakeLists.txt reads the version there
_NAMES = ("kernels", "pyproject.toml")


def copied(asked: str, repository: Path, to: Path) -> str:
    """The tree around `repository`, "." as it stands, or a revision. Returns its name for
    people.
    """
    here = repository.absolute()
    for tree in (here, *here.parents):
        if (tree / "kernels" / "CMakeLists.txt").is_file() and (tree / "pyproject.toml").is_file():
            return _copy_tree(tree, to) if asked == "." else _copy_revision(tree, asked, to)
    raise BadArgument(
        f"{here} is in no source tree of kvbench",
        "run it in a clone of kvbench, or name libraries or wheels",
    )


def _copy_revision(tree: Path, asked: str, to: Path) -> str:
    """The sources of a revision; returns its name."""
    refuse_no_repository(tree, "name libraries, or . for the tree itself")
    found = commit(tree, asked)
    if not found:
        raise BadArgument(
            f"{asked} is neither a revision of {tree} nor a library",
            "git fetch it first; in CI, check out with fetch-depth: 0. Or name a library",
        )
    archive = git(tree, "archive", "--format=tar", found, *_NAMES)
    if archive.returncode:
        raise BadArgument(
            f"{called(asked, found)} has no {' and '.join(_NAMES)}", "name a later revision"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        for member in tar:
            if file := tar.extractfile(member) if member.isfile() else None:
                _write(to / member.name, file.read())
    return called(asked, found)


def _copy_tree(tree: Path, to: Path) -> str:
    """What git would commit, or without git what is there: so that what is compiled is what was
    digested.
    """
    listed = None
    if shutil.which("git"):
        listed = git(
            tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_NAMES
        )
    if listed and not listed.returncode:
        names = set(filter(None, listed.stdout.decode().split("\0")))
    else:
        names = {
            str(path.relative_to(tree))
            for name in _NAMES
            for path in (tree / name, *(tree / name).rglob("*"))
        }
    for name in names:
        if (tree / name).is_file():
            _write(to / name, (tree / name).read_bytes())
    return "working tree"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
