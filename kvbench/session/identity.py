"""What must stay the same for a run to be resumed: the suite, the software and the machine. The
software is checked again before each measuring process.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import kvbench
from kvbench.errors import NotComparable
from kvbench.model import Engine, Machine
from kvbench.native import Library, Plugin
from kvbench.peers.known import Known, digest
from kvbench.suite import Suite
from kvbench.texts import printable

# the files that decide what a number means
_MEASURING = (
    "grouping.py",
    "intervals.py",
    "machine",
    "model",
    "native",
    "oracle.py",
    "peers",
    "plan",
    "regime.py",
    "worker",
)
Peers = Sequence[Known]  # the peers that a run measures
_BRANCHES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
_CHANGED = "-dirty"  # as git describe prints it
_NAMES = {
    "suite": "the suite",
    "build": "kvbench, its library, its plug-in or a peer",
    "machine": "the machine",
    "environment": "the machine's set-up (kernel, microcode, quota, allowed CPUs, ...)",
}


def identity(suite: Suite, library: Library, machine: Machine, peers: Peers = ()) -> dict[str, str]:
    """Digests of what must stay the same, by the names above."""
    tables = [
        [(name, str(values)) for name, values in table.items()]
        for table in (*suite.grids, *suite.skips)
    ]
    return {
        "suite": _digest(repr((suite.question, tables, suite.samples, suite.sample_time)).encode()),
        "build": build(library, peers),
        "machine": machine.fingerprint,
        "environment": machine.environment,
    }


def refuse_changed(then: Mapping[str, str], now: Mapping[str, str], source: str) -> None:
    changed = [what for name, what in _NAMES.items() if then.get(name) != now[name]]
    if changed:
        raise NotComparable(
            f"{source}: {' and '.join(changed)} changed since the run began",
            "the measurements are kept: undo the change and resume, or start another run",
        )


def versions(library: Library, machine: Machine, peers: Peers = ()) -> dict[str, str]:
    host, plugins = os.uname(), "; ".join(map(_brought, library.plugins.each))
    return {
        "kvbench": kvbench.__version__,
        "library": library.build,
        **({"plugin": plugins} if plugins else {}),
        **{f"peer {peer.name}": peer.version for peer in peers if peer.version},
        "python_version": sys.version.split()[0],
        "hostname": host.nodename,
        "platform": f"{host.sysname}-{host.release}-{host.machine}",
        "cpu_model_name": str(machine.facts["brand"].value or "unknown"),
    }


def engines(library: Library, peers: Peers = ()) -> tuple[Engine, ...]:
    """The engines whose kernels a run measures beside ours, each with its file as it is now."""
    interface = f"interface {library.plugin_version}"
    plugins = (
        Engine(f"plug-in {path.name}", interface, str(path.absolute()), digest(str(path)))
        for path in library.plugins.paths
    )
    return (
        *(
            Engine(peer.name, peer.version, peer.library, digest(peer.library), peer.python)
            for peer in peers
        ),
        *plugins,
    )


def _brought(plugin: Plugin) -> str:
    kernels = ", ".join(kernel.id for kernel in plugin.kernels)
    return f"{plugin.path.name} ({_digest(plugin.path.read_bytes())}): {kernels}"


def committed(asked: str | None) -> dict[str, str]:
    """Commit, branch and message of the sources around the working directory, or of the revision
    `asked`. If git does not know the revision, only its name.
    """

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], capture_output=True, errors="replace", text=True, check=False
        )
        return "" if done.returncode else printable(done.stdout.strip())

    named = asked or "HEAD"
    if not shutil.which("git") or not (
        found := git("rev-parse", "--verify", "-q", "--end-of-options", f"{named}^{{commit}}")
    ):
        return {"commit": printable(asked)} if asked else {}
    changed = "" if asked else git("status", "--porcelain", "--untracked-files=no")
    known = (os.environ.get(name, "") for name in _BRANCHES)
    # a checkout in CI is on no branch
    branch = git("branch", "--show-current") or next(filter(None, known), "")
    return {
        "commit": found + (_CHANGED if changed else ""),
        **({"branch": printable(branch)} if branch else {}),
        "message": git("log", "-1", "--format=%s", found),
    }


def build(library: Library, peers: Peers = ()) -> str:
    """A digest of the files on disk now, even if older ones are open. A missing file counts as
    empty.
    """
    parts = [Path(folder, part) for folder in kvbench.__path__ for part in _MEASURING]
    sources = {
        file for part in parts for file in ([part] if part.is_file() else part.rglob("*.py"))
    }
    paths = (library.path, *library.plugins.paths)
    kernels = (path.read_bytes() if path.is_file() else b"" for path in paths)
    others = (f"{peer.name} {peer.version} {digest(peer.library)}".encode() for peer in peers)
    return _digest(*others, *kernels, *(file.read_bytes() for file in sorted(sources)))


def _digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]
