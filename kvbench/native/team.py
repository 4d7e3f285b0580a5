"""Persistent threads that run tasks."""

from collections.abc import Collection, Sequence
from threading import RLock
from typing import Any

from kvbench.closing import Closing
from kvbench.errors import BadArgument
from kvbench.model import Times
from kvbench.native.arguments import instance, place, whole
from kvbench.native.library import Library, default_library
from kvbench.native.task import Task


class Team(Closing):
    """`threads` threads, thread i pinned to cpus[i] where cpus are given. They sleep whenever nothing runs."""

    def __init__(self, threads: int, cpus: Sequence[int] | None = None, library: Library | None = None) -> None:
        self.library = default_library() if library is None else instance("library", library, Library)
        ffi, lib = self.library.ffi, self.library.lib
        threads = whole("threads", threads, 32)
        if cpus is not None and len(instance("cpus", cpus, Collection)) != threads:
            raise BadArgument(f"cpus names {len(cpus)} CPUs for {threads} threads", "name one CPU for each thread")
        made = ffi.new("kvb_team **")
        pins = ffi.NULL if cpus is None else ffi.new("int32_t[]", [whole("cpus", cpu, 32) for cpu in cpus])
        self.library.check(lib.kvb_team_open(pins, threads, made))
        self.threads = threads
        self._team = ffi.gc(made[0], lambda team: lib.kvb_team_close(team))

    def close(self) -> None:
        if self._team is not None:
            self.library.ffi.release(self._team)
            self._team = None

    @property
    def pointer(self) -> Any:
        """The `kvb_team *`."""
        if self._team is None:
            raise BadArgument("the team is closed", "open another one")
        return self._team

    def run(self, *tasks: Task, passes: int = 1, between: Task | None = None) -> Times:
        """`passes` passes, round robin over the tasks. `between` runs untimed before every pass."""
        ffi = self.library.ffi
        for task in tasks if between is None else (*tasks, between):
            if instance("a task, or between,", task, Task).library is not self.library:
                raise BadArgument("a task belongs to another library than the team", "make both with one Library")
        passes = place("passes", passes, 1 << 31)  # whose times are kept
        times = ffi.new("kvb_run_times *")
        pass_seconds = ffi.new("double[]", max(passes, 1))
        thread_seconds = ffi.new("double[]", self.threads)
        times.pass_seconds, times.thread_seconds = pass_seconds, thread_seconds
        pointers = ffi.new("kvb_task *[]", [task.pointer for task in tasks])
        last = between.pointer if between else ffi.NULL
        self.library.check(self.library.lib.kvb_run(self.pointer, pointers, len(tasks), passes, last, times))
        return Times(
            seconds=times.seconds,
            pass_seconds=tuple(pass_seconds),
            thread_seconds=tuple(thread_seconds),
            stage_share=tuple(times.stage_share),
            switches=times.switches,
            faults=times.faults,
        )


class Teams:
    """One for each number of threads, made when it is first asked for. `lock` is held while one of them works, or what
    they work on is given back."""

    def __init__(self, library: Library) -> None:
        self._library, self._made, self.lock = library, dict[int, Team](), RLock()

    def of(self, threads: int) -> Team:
        if threads not in self._made:
            self._made[threads] = Team(threads, library=self._library)
        return self._made[threads]

    def close(self) -> None:
        while self._made:
            self._made.popitem()[1].close()
