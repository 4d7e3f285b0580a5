"""Two revisions of another project's checkout, each built by the project's own command in its own
git worktree.

revisions (one may be the files as they are now) → worktrees → builds → products
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from kvbench.errors import BadArgument, BadLibrary, Unwritable, one_of
from kvbench.gate.builds import Report, kept_folder, refuse_no_library
from kvbench.gate.compiling import ENGLISH, complaint
from kvbench.gate.git import (
    called,
    commit,
    git,
    line,
    outside_of_hooks,
    printed,
    refuse_no_repository,
)
from kvbench.leftovers import scratch
from kvbench.model import SIDES
from kvbench.store.locks import locked
from kvbench.units import span
from kvbench.watched import watched

_PRODUCT = "--product is a library that --build makes, by its path in the checkout"
_SHOWN = 8  # libraries that a hint lists
# The author of the commit of the present files: git need not know a user.
_NOBODY = {
    f"GIT_{role}_{what}": "kvbench"
    for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


@dataclass(frozen=True, slots=True)
class Product:
    """What a side of a gate is. `text`, for people: "origin/main (3f2a91c)", "working tree of
    llama.cpp". `tree`: git's hash of the sources. `path`: the built file; None if both sides have
    the same sources, and neither was built.
    """

    text: str
    tree: str
    path: Path | None = None


def same(base: Product, head: Product) -> bool:
    """Whether both sides have byte for byte the same sources."""
    return base.tree == head.tree


@contextmanager
def products(
    source: Path,
    command: str,
    product: str,
    base: str,
    head: str,
    report: Report = lambda line: None,
    every: bool = False,
) -> Iterator[tuple[Product, Product]]:
    """Build both sides. `base` and `head`: revisions of the git checkout `source`, or "." for its
    files as they are now. `command` makes the file `product` of each. The worktrees last as long as
    the context, because a library may need other files beside it. `every`: also build equal
    sources.
    """
    if not product or os.path.isabs(product) or ".." in Path(product).parts:
        raise BadArgument(f"--product {product!r} is not a path in the checkout", _PRODUCT)
    refuse_no_repository(source, "--source names a git checkout")
    with _place() as place, ExitStack() as owned:
        _forget(source, place.parent)
        # Paths of the same length, because they become part of what is built.
        sides = [
            _revision(source, asked, place / side)
            for side, asked in zip(SIDES, (base, head), strict=True)
        ]
        if not every and sides[0].tree == sides[1].tree:
            yield sides[0].unbuilt, sides[1].unbuilt
            return
        for side in sides:
            owned.enter_context(side.worktree())
        one, other = (side.built(command, product, report) for side in sides)
        yield one, other


@dataclass(frozen=True, slots=True)
class _Revision:
    """A revision of the checkout `source`. `top`: its worktree, in a folder with the side's
    name.
    """

    source: Path
    text: str
    commit: str
    tree: str
    top: Path

    @property
    def unbuilt(self) -> Product:
        return Product(self.text, self.tree)

    @property
    def _log(self) -> Path:
        return self.top.with_suffix(".log")

    @contextmanager
    def worktree(self) -> Iterator[None]:
        try:
            made = git(self.source, "worktree", "add", "--detach", self.top, self.commit)
            if made.returncode:
                raise Unwritable(
                    f"cannot make a worktree of {self.source}: {printed(made)}",
                    "git must be able to write there; use a clone of your own",
                )
            yield
        finally:
            _remove(self.source, self.top)

    def built(self, command: str, product: str, report: Report) -> Product:
        # if `source` is a folder of the checkout
        folder = self.top / line(self.source, "rev-parse", "--show-prefix")
        if not folder.is_dir():
            raise BadArgument(
                f"{self.text} has no folder {folder.relative_to(self.top)}", "use a later revision"
            )
        report(f"building {self.text}, outside the budget; its output goes to {self._log}")
        start = time.monotonic()
        sides = {"KVBENCH_SIDE": self.top.name, "KVBENCH_REVISION": self.commit}
        with self._log.open("wb") as prints:
            environment = {**outside_of_hooks(), **ENGLISH, **sides}
            code = watched(("sh", "-c", command), prints, environment, folder)
        if code:
            output = self._log.read_text(errors="replace")
            why = complaint(output) if output.strip() else f"it ended with exit code {code}"
            raise BadLibrary(f"cannot build {self.text}: {why}", self._hint())
        report(f"built in {span(time.monotonic() - start)}")
        return Product(self.text, self.tree, self._product(folder, product))

    def _product(self, folder: Path, product: str) -> Path:
        names = sorted(
            name
            for name in glob(product, root_dir=folder, recursive=True)
            if (folder / name).is_file()
        )
        if not names:
            raise BadLibrary(
                f"the build of {self.text} did not make {product}", self._hint(product, folder)
            )
        files = {(folder / name).resolve() for name in names}
        if len(files) > 1:
            raise BadArgument(f"--product {product} matches {', '.join(names)}", "name one of them")
        if not files.pop().is_relative_to(self.top.resolve()):
            raise BadArgument(f"{product} of {self.text} is a link out of the worktree", _PRODUCT)
        refuse_no_library(folder / names[0], _PRODUCT)
        return folder / names[0]

    def _hint(self, product: str = "", folder: Path = Path()) -> str:
        """What may help if a build fails. The log is kept."""
        hints = []
        if empty := self._empty_submodules():
            hints.append(
                f"submodules are empty, such as {empty[0]}: begin --build with git submodule"
                " update --init"
            )
        if product and (libraries := sorted(filter(Path.is_file, folder.rglob("*.so")))):
            names = [str(path.relative_to(folder)) for path in libraries[:_SHOWN]]
            hints.append(one_of(product, names))
        kept = self.top.parents[1] / f"{self.tree[:16]}.log"
        shutil.copy(self._log, kept)
        return "; ".join([*hints, f"the full log is {kept}"])

    def _empty_submodules(self) -> list[str]:
        entries = git(self.top, "ls-files", "--stage", "-z").stdout.decode(errors="replace")
        submodules = [
            entry.partition("\t")[2] for entry in entries.split("\0") if entry.startswith("160000")
        ]
        return [name for name in submodules if not any((self.top / name).glob("*"))]


# ---- revisions -----------------------------------------------------------------------------------


def _revision(source: Path, asked: str, top: Path) -> _Revision:
    if not commit(source, "HEAD") and asked in ("HEAD", "."):
        raise BadArgument(f"{source} has no commit yet", "git commit first")
    if asked == ".":
        found = _as_it_stands(source, top.with_suffix(".index"))
        text = f"working tree of {source.resolve().name}"
    elif found := commit(source, asked):
        text = called(asked, found)
    else:
        raise BadArgument(
            f"{asked} is not a revision of {source}",
            "git fetch it first; in CI, check out with fetch-depth: 0",
        )
    return _Revision(source, text, found, line(source, "rev-parse", f"{found}^{{tree}}"), top)


def _as_it_stands(source: Path, index: Path) -> str:
    """Commit all files that are not ignored. No branch gets the commit, and the checkout's index
    does not change.
    """
    if line(source, "rev-parse", "--is-inside-work-tree") != "true":
        raise BadArgument(f"{source} has no files for .", "name revisions of it")
    with suppress(FileNotFoundError):  # a checkout without an index: all its files are new
        # with its time, by which git tells which entries are older than their files
        shutil.copy2(source / line(source, "rev-parse", "--git-path", "index"), index)

    def step(*arguments: str) -> str:
        done = git(source, *arguments, GIT_INDEX_FILE=str(index), **_NOBODY)
        if done.returncode:
            raise BadArgument(
                f"git cannot commit the files of {source}: {printed(done)}",
                "fix that, or name revisions",
            )
        return done.stdout.decode().strip()

    step("add", "--all")
    return step("commit-tree", step("write-tree"), "-p", "HEAD", "-m", "The files as they stood")


# ---- the place -----------------------------------------------------------------------------------


@contextmanager
def _place() -> Iterator[Path]:
    """A folder for this gate alone. Folders that killed gates left behind are removed."""
    folder = kept_folder("checkouts").resolve()
    with ExitStack() as owned:
        try:
            own, left = _taken(folder, owned)
        except OSError as error:
            raise Unwritable(
                f"cannot write {folder}: {error.strerror}", "set XDG_CACHE_HOME to another folder"
            ) from None
        for path in left:
            shutil.rmtree(path, ignore_errors=True)
        yield own


def _taken(folder: Path, owned: ExitStack) -> tuple[Path, list[Path]]:
    """A new folder, whose lock is held, and the folders there that no process holds."""
    with locked(folder):  # so that no process takes a new folder for a leftover
        left = [path for path in folder.iterdir() if path.is_dir() and _is_left(path)]
        own = Path(owned.enter_context(scratch(folder)))
        held = os.open(own, os.O_RDONLY)
        owned.callback(os.close, held)
        with suppress(OSError):  # on a file system without locks no folder counts as left
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return own, left


def _is_left(folder: Path) -> bool:
    """Whether the folder's process has ended: the system frees its lock then."""
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(held)


def _forget(source: Path, places: Path) -> None:
    """Remove worktrees of killed gates from the repository's list."""
    for said in line(source, "worktree", "list", "--porcelain").splitlines():
        word, _, name = said.partition(" ")
        path = Path(name)
        if word == "worktree" and path.is_relative_to(places) and not path.parent.exists():
            _remove(source, path)


def _remove(source: Path, worktree: Path) -> None:
    """Remove a worktree. --force stands twice because git locks a worktree while making it."""
    git(source, "worktree", "remove", "--force", "--force", worktree)
