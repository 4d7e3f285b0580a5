"""Copy the sources of a build: of a git revision, or of a tree as it is now."""

import io
import shutil
import tarfile
from pathlib import Path

from kvbench.errors import BadArgument
from kvbench.gate.git import called, commit, git, refuse_no_repository

# Exactly these are compiled and compared. CMakeLists.txt reads the version from pyproject.toml.
_NAMES = ("kernels", "pyproject.toml")


def copied(asked: str, repository: Path, to: Path) -> str:
    """Copy the tree around `repository` as it is now ("."), or a revision. Returns its name for
    people.
    """
    here = repository.absolute()
    for tree in (here, *here.parents):
        if (tree / "kernels" / "CMakeLists.txt").is_file() and (tree / "pyproject.toml").is_file():
            return _copy_tree(tree, to) if asked == "." else _copy_revision(tree, asked, to)
    raise BadArgument(
        f"{here} is not in a source tree of kvbench",
        "run this in a clone of kvbench, or name libraries or wheels",
    )


def _copy_revision(tree: Path, asked: str, to: Path) -> str:
    """Copy the sources of a revision; return its name."""
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
    """Copy what git would commit, or without git all files, so that the compiled files are those in
    the digest.
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
