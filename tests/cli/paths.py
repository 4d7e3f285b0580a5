"""Paths of every kind, and a server that runs kvbench in a process of its own for each: forked, so
that none of them waits for what all of them import.

python -m tests.cli.paths: a request on each line, an answer on each line, both of them JSON.
"""

import ctypes
import json
import os
import resource
import select
import signal
import stat
import sys
import traceback
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

ADDRESSES = 3 << 30  # bytes that a command may have
PATIENCE = 30.0  # seconds: nothing here takes one, but other processes may have the CPUs
NOBODY = 65534
KINDS = ("zero", "full", "pipe", "folder", "socket", "loop", "sparse", "secret", "latin")
NAMES = {
    "closed": "closed/named",
    "name": os.fsdecode(b"\xff\xfe"),
    "empty": "",
    "here": ".",
    "missing": "not/there",
}
NO_FILE = {"zero", "full", "pipe", "socket", "loop", "sparse", "secret", "latin", "closed"}
STAYS = {"pipe", "folder", "socket", "loop"}  # whatever is written


def put(kind: str, path: Path, sparse: Path) -> str:
    """Something of a kind at `path`; what a command in that folder would call it. `sparse`: a huge
    file of zeros.
    """
    if kind in NAMES:
        if kind == "closed":
            _shut(path.with_name("closed"), 0o700 | stat.S_IFDIR)
        return NAMES[kind] + (path.suffix if len(NAMES[kind]) > 1 else "")
    if kind in ("zero", "full", "loop", "link"):
        path.symlink_to({"loop": path.name, "link": f"{path.name}.else"}.get(kind, f"/dev/{kind}"))
    elif kind in ("pipe", "socket"):
        os.mknod(path, 0o600 | (stat.S_IFIFO if kind == "pipe" else stat.S_IFSOCK))
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.hardlink_to(sparse)
    elif kind == "latin":
        path.write_bytes(b"question = 'caf\xe9'\n")
    else:
        _shut(path, 0o600 | stat.S_IFREG)
    return path.name


def _shut(path: Path, mode: int) -> None:
    path.mkdir() if stat.S_ISDIR(mode) else path.touch()
    path.chmod(0)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


# ---- the server ----------------------------------------------------------------------------------


def serve() -> None:
    import kvbench

    for module in walk_packages(kvbench.__path__, "kvbench."):
        if not module.name.endswith(("__main__", "libkvbench")):
            import_module(module.name)
    sys.modules["kvbench.runner"].launch = _nothing
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)


def _nothing(job: object) -> None:
    raise sys.modules["kvbench.errors"].Refused("nothing is measured here", "this is a test")


def answer(arguments: list[str], folder: str) -> dict:
    """`memory`: bytes that it took beyond those of the server."""
    resting = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if not (child := os.fork()):
        _command(arguments, folder)
    process = os.pidfd_open(child)
    hung = not select.select([process], [], [], PATIENCE)[0]
    if hung:
        os.kill(child, signal.SIGKILL)
    os.close(process)
    _, status, used = os.wait4(child, 0)
    said = {
        name: Path(folder, name).read_bytes().decode(errors="replace") for name in ("out", "err")
    }
    memory = max(0, used.ru_maxrss - resting) << 10
    return {"code": os.waitstatus_to_exitcode(status), "hung": hung, "memory": memory, **said}


def _command(arguments: list[str], folder: str) -> None:
    code = 99
    try:
        os.chdir(folder)
        for number, name in enumerate((os.devnull, "out", "err")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        for limit, most in ((resource.RLIMIT_AS, ADDRESSES), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(limit, (most, most))
        _obey()
        code = sys.modules["kvbench.cli._program"].run(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _obey() -> None:
    """Permissions of files count for root, too: without CAP_DAC_OVERRIDE and
    CAP_DAC_READ_SEARCH.
    """
    libc, head, found = (
        ctypes.CDLL(None),
        (ctypes.c_uint32 * 2)(0x20080522, 0),
        (ctypes.c_uint32 * 6)(),
    )
    libc.capget(head, found)
    found[0] &= ~0b110
    libc.capset(head, found)


if __name__ == "__main__":
    serve()
