"""Check every kernel of the registry that runs here. The method check_<op> of a bench checks an
op.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from kvbench.apart import Ended, apart
from kvbench.errors import KvbenchError
from kvbench.model import Kernel
from kvbench.model.annotated import Printed, about
from kvbench.model.planes import PLANES
from kvbench.native import Cache, Library, decode_task, library_of, store_task
from kvbench.verify.faults import Fault, finite, plant
from kvbench.verify.moves import Wrong, require
from kvbench.verify.prepared import AS_STORED, STALE, Prepared, Question, Taken, how_taken, takes
from kvbench.verify.reads import rows_sum
from kvbench.verify.situation import FULL, QUICK
from kvbench.verify.steps import Steps
from kvbench.worker.foreign import on_given_threads, unwritten


@dataclass(frozen=True, slots=True)
class Checked(Kernel):
    """A kernel, compared with float64."""

    passed: Annotated[bool, about("whether it was right in every situation")]
    error_share: Annotated[
        float | None, about("share of the allowed error: the worst; null if it is not a number")
    ]
    note: Annotated[str, about("what went wrong; else empty")]

    @classmethod
    def of(cls, kernel: Kernel, error: float, note: str = "") -> Self:
        return cls(
            **asdict(kernel), passed=error <= 1 and not note, error_share=finite(error), note=note
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Printed):
    """Whether every kernel is right and every fault was noticed."""

    passed: Annotated[bool, about("whether every kernel is right and every fault was noticed")]
    kernels: Annotated[tuple[Checked, ...], about("those that were checked against float64")]
    faults: Annotated[tuple[Fault, ...], about("faults that must be noticed")]


class Checker(Steps):
    """One library, its teams, and the situations prepared so far."""

    def __init__(self, library: Library, quick: bool) -> None:
        super().__init__(library, quick)
        self.situations = QUICK if quick else FULL
        self._prepared: dict[tuple[int, str, str, Taken], Prepared] = {}
        self._sums: dict[Prepared, int] = {}
        # The bytes that the plainest tier's stores leave.
        self._plain: dict[tuple[Any, ...], np.ndarray] = {}

    def prepared(self, layout: str, dtype: str, taken: Taken = AS_STORED) -> list[Prepared]:
        """Prepare every situation for kernels that read it as `taken`; if the dtype has scales,
        with every dtype of scales.
        """
        found, scales = [], self.library.words("scale")
        for index, situation in enumerate(self.situations):
            cell = (layout, dtype, taken.of(situation))
            key = (index, *cell)
            if key not in self._prepared:
                self._prepared[key] = self.owned.enter_context(
                    Prepared(self.library, situation, *cell, scale=scales[index % len(scales)])
                )
            found.append(self._prepared[key])
        return found

    # ---- decode and its company: the share of the allowed error, or a complaint ------------------

    def check_decode(self, kernel: Kernel) -> float:
        worst, taken = 0.0, how_taken(self.library, kernel)
        for one in self.prepared(kernel.layout, kernel.dtype, taken):
            for threads in (1, 3):
                worst = max(worst, self._decoded(kernel, one, threads))
            if self._is_foreign(kernel):  # it might return a remembered answer
                for change in (one.change_token, one.change_queries):
                    change()
                    worst = max(worst, self._decoded(kernel, one, threads))
        return worst

    def _decoded(self, kernel: Kernel, one: Prepared, threads: int) -> float:
        """The error of a kernel's answers. With several threads, several queries are asked: the
        harder case.
        """
        errors = (
            self._answered(kernel, one, question, threads)
            for question in (one.questions if threads > 1 else one.questions[:1])
            if takes(self.library, kernel, question)
        )
        return max(errors, default=0.0)

    def _answered(self, kernel: Kernel, one: Prepared, question: Question, threads: int) -> float:
        team, out = self.team(threads), question.unanswered()
        how = {"isa": kernel.isa, "variant": kernel.variant, **question.facts}
        with decode_task("decode", one.cache, question.q, out, threads, **how) as task:
            with ExitStack() as looks:
                if self._is_foreign(kernel):
                    looks.enter_context(unwritten(one.read))
                    looks.enter_context(on_given_threads())
                team.run(task)
        return question.error(out)

    def _is_foreign(self, kernel: Kernel) -> bool:
        return kernel.variant not in self.library.own_variants

    def check_twin(self, kernel: Kernel) -> float:
        """A twin reads the rows and scales of guarded memory, each once. It changes nothing, and
        counts the bytes of decode.
        """
        for one in self.prepared(kernel.layout, kernel.dtype):
            before, q = one.cache.arena.view().copy(), one.questions[0].q
            counted, out = [], one.questions[0].unanswered()
            for op in (kernel.op, "decode"):
                with decode_task(op, one.cache, q, out, 2, isa=kernel.isa) as task:
                    counted.append(task.traffic().bytes_kv)
                    if op == kernel.op:
                        self.team(2).run(task)
                        require(
                            task.sum() == self.right_sum(one),
                            "it does not read every row and scale exactly once",
                        )
            require(counted[0] == counted[1], "its count of bytes differs from decode's")
            require(np.array_equal(before, one.cache.arena.view()), "it wrote")
        return 0.0

    def right_sum(self, one: Prepared) -> int:
        """The sum of all words; computed once for all tiers."""
        if one not in self._sums:
            self._sums[one] = rows_sum(one.cache)
        return self._sums[one]

    def check_fill(self, kernel: Kernel) -> float:
        one = self.prepared(kernel.layout, kernel.dtype)[0]
        filled = []
        for isa, threads in ((kernel.isa, 2), (self.plainest, 1)):
            with one.copy() as cache:
                q = one.questions[0].q
                out = np.empty_like(q)
                with decode_task(kernel.op, cache, q, out, threads, isa=isa, seed=7) as task:
                    self.team(threads).run(task)
                filled.append(cache.arena.view().copy())
                k, _ = cache.numpy(isa=self.plainest)
        live = k[int(np.argmax(one.cache.lengths))]
        require(np.array_equal(filled[0], filled[1]), "tiers or threads fill different bytes")
        require(
            abs(live.mean()) < 0.1 and abs(live.std() - 1) < 0.1,
            "the rows are not of unit variance",
        )
        require(
            abs(np.corrcoef(live[1:].ravel(), live[:-1].ravel())[0, 1]) < 0.05,
            "neighbouring rows are alike",
        )
        return 0.0

    # ---- stores: the same bytes as the plainest tier, and values within one rounding step --------

    def check_append(self, kernel: Kernel) -> float:
        return max(
            self._store(kernel, one, 1, {}) for one in self.prepared(kernel.layout, kernel.dtype)
        )

    def check_bulk(self, kernel: Kernel) -> float:
        nt = kernel.variant == "nt"
        return max(
            self._store(kernel, one, 33, {"head_major": head_major, "nt": nt})
            for one in self.prepared(kernel.layout, kernel.dtype)
            for head_major in (False, True)
        )

    def _store(self, kernel: Kernel, one: Prepared, tokens: int, how: dict[str, Any]) -> float:
        tokens = min(tokens, one.situation.capacity)
        source = [np.ascontiguousarray(x[:, :tokens]) for x in (one.k, one.v)]
        tokens = source[0].shape[1]
        k, v = (x[:, 0] if kernel.op == "append" else x for x in source)
        if how.get("head_major"):
            k, v = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (k, v))

        def run(isa: str, threads: int, cache: Cache) -> None:
            cache.arena.view()[:] = STALE
            cache.reset()
            with store_task(kernel.op, cache, k, v, threads, isa=isa, **how) as task:
                self.team(threads).run(task)
                cache.lengths[:] = tokens

        key = (kernel.op, one, *how.items())
        if key not in self._plain:
            with one.copy() as cache:
                run(self.plainest, 1, cache)
                self._plain[key] = cache.arena.view().copy()
        with one.copy() as cache:
            run(kernel.isa, 2, cache)
            same = np.array_equal(cache.arena.view(), self._plain[key])
            require(same, f"its bytes differ from those of {self.plainest}")
            decoded = cache.numpy(isa=self.plainest)
        return max(
            _share(got, want, one.allowed(plane, want))
            for plane, got, want in zip(PLANES, decoded, source, strict=True)
        )

    def check_unpack(self, kernel: Kernel) -> float:
        for one in self.prepared(kernel.layout, kernel.dtype):
            for got, want in zip(
                one.cache.numpy(kernel.isa, 2), one.cache.numpy(self.plainest), strict=True
            ):
                require(
                    np.array_equal(got, want), f"its numbers differ from those of {self.plainest}"
                )
        return 0.0

    def check_clear(self, kernel: Kernel) -> float:
        for dtype in self.library.dtypes(kernel.layout):
            with self.prepared(kernel.layout, dtype)[0].copy() as cache:
                cache.clear(kernel.isa, 2)
                require(not cache.arena.view().any(), "a byte is not zero")
        return 0.0

    def check_reset(self, kernel: Kernel) -> float:
        one = self.prepared(kernel.layout, self.library.dtypes(kernel.layout)[0])[0]
        with one.copy() as cache:
            cache.reset()
            require(not cache.lengths.any(), "a length is not zero")
            require(np.array_equal(cache.arena.view(), one.cache.arena.view()), "bytes changed")
        return 0.0


def _share(got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> float:
    """The largest difference, as a share of the allowed error of its number."""
    difference = np.abs(got - want)
    if not (difference <= allowed).all():
        return np.inf
    return float(np.max(difference / np.where(allowed > 0, allowed, 1)))


def check(library: Library, kernels: Iterable[Kernel], quick: bool = False) -> Iterator[Checked]:
    """Check each of the kernels that run here."""
    with Checker(library, quick) as bench:
        yield from (_result(bench, kernel) for kernel in kernels if kernel.runnable)


def _result(bench: Checker, kernel: Kernel) -> Checked:
    checker = getattr(bench, f"check_{kernel.op}", None)
    if checker is None:
        return Checked.of(kernel, np.inf, "kvbench has no check for this op")
    try:
        return Checked.of(kernel, float(checker(kernel)))
    except Wrong as complaint:
        return Checked.of(kernel, np.inf, str(complaint))
    except KvbenchError as error:
        return Checked.of(kernel, np.inf, error.args[0])


# ---- a plug-in's kernels, each in a process of its own, so that none of them can end the check of

PATIENCE = 60.0  # seconds that one kernel may take
_Found = tuple[list[Checked], list[Fault]]


def check_plugin(
    library: Library, isa: str | None = None, quick: bool = False, patience: float = PATIENCE
) -> _Found:
    """check() and plant(), for the plug-ins' kernels only."""
    every = [
        _apart(library, kernel, quick, patience)
        for kernel in library.plugins.kernels
        if isa in (None, kernel.isa)
    ]
    return [result for results, _ in every for result in results], list(
        _together(f for _, f in every)
    )


def _apart(library: Library, kernel: Kernel, quick: bool, patience: float) -> _Found:
    if not kernel.runnable:
        return [], []
    try:
        return apart(
            _found, tuple(map(str, library.plugins.paths)), kernel, quick, patience=patience
        )
    except Ended as end:
        return [Checked.of(kernel, np.inf, f"its process {end.how}")], []
    except KvbenchError as error:
        return [Checked.of(kernel, np.inf, error.args[0])], []


def _found(plugins: tuple[str, ...], kernel: Kernel, quick: bool) -> _Found:
    library = library_of(None, plugins)
    results = list(check(library, [kernel], quick))
    return results, list(plant(library, [kernel])) if results[0].passed else []


def _together(every: Iterator[list[Fault]]) -> Iterator[Fault]:
    """Merge faults of the same name; faults that could not be planted are left out."""
    found: dict[str, Fault] = {}
    for fault in (fault for faults in every for fault in faults):
        old = found.get(fault.name, replace(fault, planted=0, caught=0))
        known = [margin for margin in (old.margin, fault.margin) if margin is not None]
        planted, caught = old.planted + fault.planted, old.caught + fault.caught
        margin = min(known, default=None)
        found[fault.name] = replace(old, margin=margin, planted=planted, caught=caught)
    yield from (fault for fault in found.values() if fault.planted)
