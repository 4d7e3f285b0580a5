"""Two revisions of another project's checkout, each built by the project's own command in a git
worktree of its own.

revisions (one may be the files as they stand) → worktrees → builds → products
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
# who commits the files as they stand: no user need be known to git
_NOBODY = {
    f"GIT_{role}_{what}": "kvbench"
    for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


@dataclass(frozen=True, slots=True)
class Product:
    """`text`, for people: "origin/main (3f2a91c)", "working tree of llama.cpp". `tree`: git's hash
    of the sources. `path`: what was built of them; None where both sides have the same sources, and
    neither was built.
    """

    text: str
    tree: str
    path: Path | None = None


def same(base: Product, head: Product) -> bool:
    """Whether both sides have the same sources, to the byte."""
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
    """`base` and `head`: revisions of the git checkout `source`, or "." for its files as they
    stand. `command` makes the file `product` of each. The worktrees last as long as the context: a
    library may need others beside it. `every`: the same sources are built, too.
    """
    if not product or os.path.isabs(product) or ".." in Path(product).parts:
        raise BadArgument(f"--product {product!r} is no path in the checkout", _PRODUCT)
    refuse_no_repository(source, "--source names a git checkout")
    with _place() as place, ExitStack() as owned:
        _forget(source, place.parent)
        # paths of the same length: they stand in what is built
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
    """Of the checkout `source`. `top`: of its worktree; the folder has the side's name."""

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
                    "git must be able to write there; name a clone of your own",
                )
            yield
        finally:
            _remove(self.source, self.top)

    def built(self, command: str, product: str, report: Report) -> Product:
        # of a source that is a folder of the checkout
        folder = self.top / line(self.source, "rev-parse", "--show-prefix")
        if not folder.is_dir():
            raise BadArgument(
                f"{self.text} has no folder {folder.relative_to(self.top)}", "name a later one"
            )
        report(f"building {self.text}, which no budget counts; it prints to {self._log}")
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
                f"the build of {self.text} left no {product}", self._hint(product, folder)
            )
        files = {(folder / name).resolve() for name in names}
        if len(files) > 1:
            raise BadArgument(f"--product {product} fits {', '.join(names)}", "name one of them")
        if not files.pop().is_relative_to(self.top.resolve()):
            raise BadArgument(f"{product} of {self.text} is a link out of the worktree", _PRODUCT)
        refuse_no_library(folder / names[0], _PRODUCT)
        return folder / names[0]

    def _hint(self, product: str = "", folder: Path = Path()) -> str:
        """What may help where a build fails. The log is kept."""
        hints = []
        if empty := self._empty_submodules():
            hints.append(
                f"submodules are empty, such as {empty[0]}: let --build begin with git submodule"
                " update --init"
            )
        if product and (libraries := sorted(filter(Path.is_file, folder.rglob("*.so")))):
            names = [str(path.relative_to(folder)) for path in libraries[:_SHOWN]]
            hints.append(one_of(product, names))
        kept = self.top.parents[1] / f"{self.tree[:16]}.log"
        shutil.copy(self._log, kept)
        return "; ".join([*hints, f"the whole log is {kept}"])

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
            f"{asked} is no revision of {source}",
            "git fetch it first; in CI, check out with fetch-depth: 0",
        )
    return _Revision(source, text, found, line(source, "rev-parse", f"{found}^{{tree}}"), top)


def _as_it_stands(source: Path, index: Path) -> str:
    """A commit of all files that are not ignored. No branch has it, and the index of the checkout
    stays as it is.
    """
    if line(source, "rev-parse", "--is-inside-work-tree") != "true":
        raise BadArgument(f"{source} has no files that stand for .", "name revisions of it")
    with suppress(FileNotFoundError):  # of a checkout whose files are all new
        # with its time: git tells by that which entries may be older than their files
        shutil.copy2(source / line(source, "rev-parse", "--git-path", "index"), index)

    def step(*arguments: str) -> str:
        done = git(source, *arguments, GIT_INDEX_FILE=str(index), **_NOBODY)
        if done.returncode:
            raise BadArgument(
                f"git cannot take {source} as it stands: {printed(done)}",
                "mend that, or name revisions",
            )
        return done.stdout.decode().strip()

    step("add", "--all")
    return step("commit-tree", step("write-tree"), "-p", "HEAD", "-m", "The files as they stood")


# ---- the place -----------------------------------------------------------------------------------


@contextmanager
def _place() -> Iterator[Path]:
    """A folder of this gate's own. Those that killed gates have left are removed."""
    folder = kept_folder("checkouts").resolve()
    with ExitStack() as owned:
        try:
            own, left = _taken(folder, owned)
        except OSError as error:
            raise Unwritable(
                f"cannot write {folder}: {error.strerror}", "XDG_CACHE_HOME names another folder"
            ) from None
        for path in left:
            shutil.rmtree(path, ignore_errors=True)
        yield own


def _taken(folder: Path, owned: ExitStack) -> tuple[Path, list[Path]]:
    """A new folder, whose lock is held, and the folders there that nobody holds."""
    with locked(folder):  # nobody takes a new one for one that was left
        left = [path for path in folder.iterdir() if path.is_dir() and _is_left(path)]
        own = Path(owned.enter_context(scratch(folder)))
        held = os.open(own, os.O_RDONLY)
        owned.callback(os.close, held)
        with suppress(OSError):  # without locks nothing is ever taken for left
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return own, left


def _is_left(folder: Path) -> bool:
    """Whether the process that had it has ended: the system frees the locks of those."""
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
    """Worktrees of killed gates, which are gone, are registered in the repository no more."""
    for said in line(source, "worktree", "list", "--porcelain").splitlines():
        word, _, name = said.partition(" ")
        path = Path(name)
        if word == "worktree" and path.is_relative_to(places) and not path.parent.exists():
            _remove(source, path)


def _remove(source: Path, worktree: Path) -> None:
    """Twice --force: git locks one while it makes it."""
    git(source, "worktree", "remove", "--force", "--force", worktree)
