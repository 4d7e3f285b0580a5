"""What storing costs: seconds of a layer times the layers, over those of a step; by hand."""

from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Basis, Held, Reason
from kvbench.analysis.means.findings import findings
from kvbench.model.geometry import Geometry
from tests.made_run import DECODE, MACHINE, MIB, RUN, visit

MODEL = Geometry("small", 24, 8, 2, 64, 4096)
APPEND = replace(DECODE, op="append", variant="-")


def stored(point, seconds, launch=0):
    return visit(launch, {"point": [MIB / seconds / 1e9]}, point, walked=16 * MIB)


def storing(*records, models=(MODEL,)):
    decodes = [visit(n, {"point": [16 * MIB / 0.001 / 1e9]}) for n in range(3)]  # 1 ms a layer
    return findings(RUN, [*decodes, *records], MACHINE, models=models).answers.storing


def test_a_token_in_all_layers_as_a_share_of_a_step():
    """2 us per layer: 48 us for 24 layers, of 24 ms; from visits of their own."""
    found = storing(*(stored(APPEND, seconds, n) for n, seconds in enumerate((2e-6, 1e-6, 4e-6))))
    token, share = found.token.figure, found.share.figure
    assert (token.value, token.low, token.high) == pytest.approx((48e-6, 24e-6, 96e-6))
    assert (share.value, share.low, share.high) == pytest.approx((0.002, 0.001, 0.004))
    assert found.share.basis == Basis.APART and found.share.held == Held.STEP
    assert found.share.against == DECODE.name and found.token.launches == 3


def test_it_is_most_like_the_workload():
    """The same threads first, then the usual dtype and layout."""
    others = [
        replace(APPEND, cpus=(0,)),
        replace(APPEND, dtype="i8"),
        replace(APPEND, layout="position"),
    ]
    found = storing(*(stored(each, 1e-6) for each in others), stored(APPEND, 3e-6))
    assert found.token.subject == (APPEND.name,)
    found = storing(*(stored(each, 1e-6) for each in others))
    assert found.token.subject == (others[2].name,) and not found.share.tested


def test_nothing_stored():
    assert storing().token.reason == Reason.NOT_MEASURED
    assert storing(stored(APPEND, 1e-6), models=()).share.reason == Reason.NO_MODEL
