"""One sweep on each host of a cluster that the user has started with Dask: over SSH, under Slurm,
in Kubernetes, or by hand.

Nothing about a measurement is distributed. Each host runs `kvbench sweep` in its own process, into
a run directory on the host, whose files come back. The directory also stays on the host, so that
losing the scheduler loses nothing: kvbench fleet --from takes run directories, however they came.
"""

import fcntl
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kvbench import named
from kvbench.errors import BadArgument, BadRun, Exit, Unsupported
from kvbench.store import Manifest, RunDirectory
from kvbench.store.files import copy_file, replacing, sync_folder, within, writing
from kvbench.store.locks import locked
from kvbench.store.names import EXPORT, JOURNAL, MACHINE, MANIFEST

FILES = (MANIFEST, JOURNAL, MACHINE, EXPORT)  # files of a run directory that come back
_NEEDED = (MANIFEST, JOURNAL, MACHINE)  # a run directory needs these
_HALF = ".gathering"  # folder of an unfinished copy
TOPIC = "kvbench"
_POLL = 0.5  # seconds between two looks at which workers are still there
_PATIENCE = 5  # seconds for the scheduler to answer


@dataclass(frozen=True, slots=True)
class Arrived:
    """What became of a host. `path`: its run directory, here. `lost`: why there is none."""

    host: str
    path: Path | None
    lost: str = ""
    errors: bool = False


def host_name() -> str:
    """$KVBENCH_HOST, or the host's own name: containers on one host may share that."""
    return os.environ.get("KVBENCH_HOST") or os.uname().nodename


def sweep_here(arguments: Sequence[str], folder: str) -> tuple[int, str, dict[str, bytes]]:
    """Run on a worker: the exit code, the last line of output, and the files of the run. Only one
    sweep runs on a host at a time.
    """
    from distributed import get_worker

    host, worker = host_name(), get_worker()
    out = Path(folder).expanduser() / host
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = Path(tempfile.gettempdir()) / f"kvbench-{os.getuid()}-{host}.lock"
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        more = ["--resume"] if (out / MANIFEST).exists() else list(arguments)
        command = [sys.executable, "-m", "kvbench.cli", "sweep", *more, "--out", str(out)]
        last = ""
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as running:
            for line in running.stderr or ():
                last = line.strip() or last
                worker.log_event(TOPIC, {"host": host, "line": last})
        return (
            running.returncode,
            last,
            {name: (out / name).read_bytes() for name in FILES if (out / name).exists()},
        )


def fleet(
    scheduler: str,
    arguments: Sequence[str],
    folder: str,
    into: Path,
    told: Callable[[str, str], None],
) -> Iterator[Arrived]:
    """Yield each host as it ends or is lost. `folder`: on the hosts. `into`: here. `told`: called
    with a host and a line of its progress.
    """
    try:
        from distributed import Client
    except ImportError:
        raise Unsupported(
            "a fleet needs Dask's distributed", "pip install 'kvbench[fleet]'"
        ) from None
    try:
        client = Client(scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadArgument(
            f"--scheduler {scheduler}: {why[:200]}", "an address such as tcp://10.0.0.1:8786"
        ) from None
    with client:
        hosts = {
            host: address for address, host in sorted(client.run(host_name).items(), reverse=True)
        }
        if not hosts:
            raise BadArgument(
                f"--scheduler {scheduler} has no workers",
                "start one on each host: dask worker ADDRESS",
            )
        client.subscribe_topic(TOPIC, lambda event: told(event[1]["host"], event[1]["line"]))
        submit = partial(client.submit, sweep_here, list(arguments), folder, pure=False, retries=0)
        left = {submit(workers=[address]): (host, address) for host, address in hosts.items()}
        while left:
            for future in [future for future in left if future.status in ("finished", "error")]:
                yield _arrived(future, left.pop(future)[0], into)
            yield from _lost(client, left, folder)
            time.sleep(_POLL)


def _arrived(future: Any, host: str, into: Path) -> Arrived:
    if future.status != "finished":
        return Arrived(host, None, f"its worker failed: {future.exception()}"[:300])
    code, last, files = future.result()
    if not files.keys() >= set(_NEEDED):
        return Arrived(host, None, last or f"kvbench sweep ended with {code} there")
    own = into / _folder(host)
    try:
        with within(own):
            for name in files.keys() & set(FILES):
                with replacing(own / name) as file:
                    file.write(files[name])
    except OSError as error:
        return Arrived(
            host, None, f"cannot write {own}: {error.strerror}; its run is still on the host"
        )
    return Arrived(host, own, errors=code != Exit.FINE)


def gather(
    places: Iterable[Path], into: Path, told: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """Copy the run directories below these places; return the copies. Each gets its host's name,
    with a number if a host has several. Existing copies stay. `told` gets a line on each that is
    left out; if nothing is left, the first error is raised.
    """
    found, refused = [], []
    with writing(into, "then gather again"), within(into), locked(into):
        for place in (place for each in places for place in _runs(each)):
            try:
                found.append(_gathered(place, into, told))
            except BadRun as error:
                refused.append(error)
    if refused and not found:
        raise refused[0]
    for other in refused:
        told(f"left out: {other.args[0]}")
    return list(dict.fromkeys(found))


def _runs(below: Path) -> Iterator[Path]:
    """The run directories below a folder. Names that begin with a dot are unfinished copies."""
    for manifest in sorted(below.rglob(MANIFEST)):
        if not any(part.startswith(".") for part in manifest.relative_to(below).parts):
            yield manifest.parent


def _gathered(place: Path, into: Path, told: Callable[[str], None]) -> Path:
    """Copy a run; return its place."""
    manifest = _manifest(place)
    host = manifest.versions.get("hostname", "host")
    for number in itertools.count(1):
        own = into / _folder(host if number == 1 else f"{host}-{number}")
        if not os.path.lexists(own):
            _copy(place, own, told)
        elif _manifest(own).run != manifest.run:
            continue
        return own
    raise AssertionError


def _copy(place: Path, own: Path, told: Callable[[str], None]) -> None:
    """Copy ordinary files only, because a link may lead anywhere. The copy gets its name when
    complete.
    """
    half = own.with_name(_HALF)
    shutil.rmtree(half, ignore_errors=True)  # left by a killed process
    half.mkdir()
    try:
        for name in FILES:
            if not os.path.lexists(place / name):
                continue
            if why := _no_file(place / name):
                if name in _NEEDED:
                    raise BadRun(f"{place / name}: {why}", "bring the file itself")
                told(f"left out: {place / name}: {why}")
                continue
            copy_file(place / name, half / name)
        sync_folder(half)
        half.rename(own)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    sync_folder(own.parent)


def _no_file(path: Path) -> str:
    """Why a file is not copied; empty if it is an ordinary, readable file."""
    try:
        named.opened(path, follow=False).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _manifest(place: Path) -> Manifest:
    with RunDirectory.open(place) as directory:
        return directory.manifest


def _folder(host: str) -> str:
    """Make a host's name safe for a path."""
    return re.sub(r"[^\w.-]", "_", host).lstrip(".") or "host"


def _lost(client: Any, left: dict[Any, tuple[str, str]], folder: str) -> Iterator[Arrived]:
    """The hosts whose worker has gone. If the scheduler is gone, all hosts are lost."""
    if client.status != "running" or any(future.cancelled() for future in left):
        why, alive = f"the scheduler is gone; its run continues on the host in {folder}", set[str]()
    else:
        why = f"its worker is gone; the finished part is on the host in {folder}"
        alive = set(client.scheduler_info(-1)["workers"])
    for future, (host, address) in list(left.items()):
        if address not in alive:
            del left[future]
            yield Arrived(host, None, why)
