"""A plug-in's kernel on the bench.

before the samples  it is verified, as ours are
after the samples   what they left is verified; then a token of every layer changes, twice, and then
                    the queries, so that an answer remembered from before is wrong
at the end          a kernel that beats all reads of its rows, measured beside it, is suspect: its
                    times are dropped
"""

import hashlib
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from itertools import chain

import numpy as np

from kvbench.errors import WrongAnswer
from kvbench.grouping import grouped
from kvbench.model import Needs, Point, Role, Sample
from kvbench.model.point import STEP
from kvbench.native import described, rewrite
from kvbench.plan.needs import stores
from kvbench.units import GB, counted
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench, watched
from kvbench.worker.decoding import Decoding
from kvbench.worker.loop import Program
from kvbench.worker.moves import STORES
from kvbench.worker.room import Room, near_threads
from kvbench.worker.stepping import Stepping
from kvbench.worker.storing import Storing

_Places = dict[int, frozenset[int]]  # CPUs by thread
_READS = ("twin", "ceiling")  # in all their forms
_SPREAD = 1 / 3  # by which a launch may differ from others


def bench_of(point: Point, needed: Needs, room: Room, answers: Answers, seed: int = 0) -> Bench:
    how = point, needed, room, answers, seed
    if point.op == STEP:
        return Stepping(*how)
    if stores(point):
        return STORES.get(point.op, Storing)(*how)
    foreign = point.variant not in room.library.words("variant")
    return (ForeignDecoding if foreign else Decoding)(*how)


class ForeignDecoding(Decoding):
    foreign = True
    _dice = random.SystemRandom()  # a plug-in cannot predict its numbers

    @cached_property
    def witnesses(self) -> list[Program]:
        return [*super().witnesses, *self.reads("ceiling", self.room.whole, self.between)]

    def verify_changed(self) -> float:
        """Verify with changed tokens and queries. The room is as before at the end."""
        try:
            errors = []
            for change in (self.change_token, self.change_token, self.change_queries):
                change()
                errors.append(self.verified())
            return max(errors)
        finally:
            self.room.fill()

    def refuse_impossible(self, taken: Sequence[Sample]) -> None:
        """Refuse a kernel that is faster than every read in three rounds of four, by more than
        chance makes launches differ. Reads between passes would hide that.
        """
        kernel = self.alone[0] if self.point.streamed else self.kernel
        seconds = grouped((sample.program, sample.each) for sample in taken)
        moved = {program.name: program.traffic().bytes_compulsory for program in self.programs}
        reads = (
            np.divide(moved[name], own)
            for name, own in seconds.items()
            if Role.of(name).kind in _READS
        )
        rates = np.divide(moved[kernel.name], seconds[kernel.name])
        times = float(np.quantile(rates / np.max(list(reads), axis=0), 0.25))
        # bytes of queries and outputs, which no read has
        ends = moved[kernel.name] / self.plainest.traffic().bytes_compulsory
        if times > ends * (1 + _SPREAD):
            rate = (
                f"{np.median(rates) / GB:.4g} GB/s are {times:.3g} times what reads of the same"
                " rows get"
            )
            raise WrongAnswer(
                f"suspect: {self.point.kernel}: {rate}", "it remembers or skips some of them"
            )

    def verified(self) -> float:
        self.queries.right()  # it may need threads, which stay
        with watched([self]):
            return self.verify()

    def unwritten(self) -> AbstractContextManager[None]:
        return unwritten(self._read)

    def on_given_threads(self) -> AbstractContextManager[None]:
        return on_given_threads(self._placed)

    @cached_property
    def _placed(self) -> _Places:
        """Threads and their CPUs before any run of the kernel: changes between two checks are
        noticed too.
        """
        return _places()

    def change_token(self) -> None:
        """Replace K and V of one token in every layer."""
        shape = self.point.shape
        longest = max(shape.held)
        token = self._dice.randrange(max(0, longest - (shape.window or longest)), longest)
        draw = np.random.default_rng(self._dice.randrange(1 << 32))
        rows = (
            draw.standard_normal((shape.batch, shape.kv_heads, dim), dtype=np.float32)
            for dim in (shape.head_dim, shape.width_of_v)
        )
        rewrite(self.team, self.room.caches[0], token, *rows)
        self.room.follow()
        self.queries.answer()

    def change_queries(self) -> None:
        self.queries.ask(self._dice.randrange(1 << 32))
        self.queries.answer()

    def wrong(self, what: str) -> WrongAnswer:
        return WrongAnswer(
            f"the plug-in's kernel {self.point.kernel} {what}",
            f"kvbench verify --plugin {self.room.library.plugins.of(self.point.variant).path} says"
            " more",
        )

    def _read(self) -> bytes:
        """A digest of all that the kernel is given."""
        room = self.room
        found = hashlib.blake2b(self.queries.q.data)
        with near_threads(self.point.cpus) as pool:
            for digest in pool.map(lambda row: hashlib.blake2b(row.data).digest(), room.rows):
                found.update(digest)
        for part in chain.from_iterable(map(described, room.caches)):
            found.update(part)
        return found.digest()


# ---- what foreign code may have done to its process: looked for behind every run of it -----------

_OTHERS = 0.1  # share of the process's CPU time that ended threads may have used,
_LEAST = 0.02  # or seconds of it, whichever is more
_MOMENT = 0.2  # seconds until a joined thread is gone


@contextmanager
def unwritten(read: Callable[[], bytes]) -> Iterator[None]:
    """Check that runs of a plug-in's kernel do not change their inputs. read: a digest of the
    inputs.
    """
    before = read()
    yield
    if read() != before:
        raise _wrong("writes to what it reads: the cache, its description or the queries")


@contextmanager
def on_given_threads(placed: _Places | None = None) -> Iterator[None]:
    """Check that runs of a plug-in's kernel use the given threads only. placed: their CPUs before
    any run.
    """
    placed = placed or _places()
    threads, process = _threads(), time.process_time()
    seconds = _seconds(threads)
    yield
    process = time.process_time() - process
    own = sum(end - seconds[thread] for thread, end in _seconds(seconds).items())
    if left := _new(threads):
        raise _wrong(f"leaves {counted(len(left), 'thread')} behind")
    if process - own > max(_LEAST, _OTHERS * process):
        raise _wrong(
            f"spends {process - own:.2g} of {process:.2g} CPU seconds in threads of its own"
        )
    now = _places()
    if any(now.get(thread, cpus) != cpus for thread, cpus in placed.items()):
        raise _wrong("changes which CPUs its threads may run on")


def _wrong(what: str) -> WrongAnswer:
    return WrongAnswer(f"the plug-in {what}", "see kvb_work in abi.h for what a kernel may do")


def _new(threads: set[int]) -> set[int]:
    """Threads that did not exist before."""
    end = time.monotonic() + _MOMENT
    while (found := _threads() - threads) and time.monotonic() < end:
        time.sleep(_MOMENT / 20)
    return found


def _seconds(threads: Iterable[int]) -> dict[int, float]:
    """CPU time of each existing thread."""
    found = {}
    for thread in threads:
        with suppress(OSError):
            # Linux: the clock of a thread's CPU time
            found[thread] = time.clock_gettime(~thread << 3 | 6)
    return found


def _places() -> _Places:
    """The CPUs that each thread may run on."""
    found = {}
    for thread in _threads():
        with suppress(OSError):
            found[thread] = frozenset(os.sched_getaffinity(thread))
    return found


def _threads() -> set[int]:
    return set(map(int, os.listdir("/proc/self/task")))
