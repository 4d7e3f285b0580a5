"""Situations that tests of commands on pages begin in: what stands in the folder, and which visits
are played. Each is a function of pytest's monkeypatch and of the folder.
"""

import shutil
import tempfile
from pathlib import Path

import kvbench.gate
from kvbench.native import library_path
from results import engine
from tests.checkpoint.made import KINDS, gguf_file
from tests.cli.test_exit_codes import _library, alike, played, unwatched
from tests.score import made as scores


def scored(patch, folder):
    """As played, by rates of which a score can be made."""
    unwatched(patch, folder)
    patch.setattr("kvbench.runner.launch", scores.played)


def modelled(patch, folder):
    """The model that results/engine.py writes, without its numbers."""
    sizes = engine.Sizes()
    facts = {
        "context_length": sizes.context,
        "block_count": sizes.layers,
        "embedding_length": sizes.hidden,
        "attention.head_count": sizes.q_heads,
        "attention.head_count_kv": sizes.kv_heads,
    }
    kinds = {1: KINDS.F32, 2: KINDS.BF16}
    tensors = {name: (shape, kinds[len(shape)]) for name, shape in sizes.tensors().items()}
    gguf_file(folder / "model.gguf", "llama", facts, tensors)


def modelled_peers(patch, folder):
    """The same, and visits are played."""
    modelled(patch, folder)
    played(patch, folder)


def copied(patch, folder):
    """Pages of results/ and folders of machines stand there themselves; runs stay links."""
    for path in sorted((folder / "results").iterdir()):
        if path.is_symlink() and path.suffix == ".md":
            source = path.resolve()
            path.unlink()
            shutil.copy(source, path)
        elif path.is_symlink() and path.is_dir():
            inside = sorted(path.resolve().iterdir())
            path.unlink()
            path.mkdir()
            for each in inside:
                if each.suffix == ".txt":
                    shutil.copy(each, path)
                elif each.suffix != ".md":
                    (path / each.name).symlink_to(each)


def gated(patch, folder):
    """Two builds of one code stand in for the revisions, and their visits are played."""
    own = Path(tempfile.mkdtemp(dir=folder))
    real, sides = kvbench.gate.sides, [str(_library(own / name, name)) for name in ("one", "other")]
    patch.setattr(
        "kvbench.gate.sides", lambda base, head, *more, **named: real(*sides, *more, **named)
    )
    alike(patch, folder)


def halved(patch, folder):
    """Of the sweep before it, half of the visits are lost; those that are made anew are played."""
    played(patch, folder)
    journal = folder / "runs" / "small" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: len(lines) // 2]))


def built(patch, folder):
    """Two files stand in for libraries of ggml, and visits are played."""
    _libraries(folder)
    played(patch, folder)


def rivalled(patch, folder):
    """The same, in turn; and two interpreters that say that they have vLLM."""
    libraries = _libraries(folder)
    for library in libraries.values():
        python = library.parent / "bin" / "python"
        python.parent.mkdir(exist_ok=True)
        python.touch()
    patch.setattr(
        "kvbench.peers.process.elsewhere",
        lambda word, kind, path, python: ("0.1", "", str(Path(python).parents[1] / "libggml.so")),
    )
    alike(patch, folder)


def _libraries(folder):
    found = {name: folder / name / "libggml.so" for name in ("old", "new")}
    for name, library in found.items():
        library.parent.mkdir(exist_ok=True)
        library.write_bytes(library_path().read_bytes() + name.encode())
    return found


# in earnest, too: no test has what these stand for, or may write into the repository
STAGED = (copied, gated, modelled, modelled_peers, built, rivalled)
