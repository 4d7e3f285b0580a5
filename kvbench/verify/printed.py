"""What kvbench verify prints with --json."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Annotated

from kvbench.model import Kernel
from kvbench.model.annotated import Printed, about
from kvbench.verify.faults import Fault
from kvbench.verify.kernels import KernelResult


@dataclass(frozen=True, slots=True)
class Checked(Kernel):
    """A kernel, held against float64."""

    passed: Annotated[bool, about("whether it was right in every situation")]
    error_share: Annotated[float | None, about("share of the allowed error: the worst; null where it is no number")]
    note: Annotated[str, about("what went wrong; else empty")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Printed):
    """Whether every kernel is right and every fault was noticed."""

    passed: Annotated[bool, about("whether every kernel is right and every fault was noticed")]
    kernels: Annotated[tuple[Checked, ...], about("those that were checked against float64")]
    faults: Annotated[tuple[Fault, ...], about("faults that must be noticed")]


def verified(results: Iterable[KernelResult], faults: Iterable[Fault], passed: bool) -> Verified:
    kernels = (Checked(**asdict(r.kernel), passed=r.passed, error_share=_known(r.error), note=r.note) for r in results)
    missed = (replace(fault, margin=_known(fault.margin)) for fault in faults)
    return Verified(passed=passed, kernels=tuple(kernels), faults=tuple(missed))


def _known(share: float) -> float | None:
    return share if isfinite(share) else None
