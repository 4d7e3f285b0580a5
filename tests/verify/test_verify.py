"""kvbench verify: all kernels pass here; a wrong kernel or a missed fault ends it with 1."""

import json

import numpy as np
import pytest

from kvbench.native import default_library
from kvbench.verify import faults, kernels, prepared, steps_of
from tests.cli.test_cli import told


def test_json_covers_every_runnable_kernel(capsys):
    code, said, _ = told(capsys, "verify", "--quick", "--json")
    facts = json.loads(said)
    assert code == 0 and facts["passed"] and facts["version"] == 1
    words = ("op", "variant", "layout", "dtype", "isa")
    checked = {tuple(kernel[word] for word in words) for kernel in facts["kernels"]}
    assert checked == {
        tuple(getattr(k, word) for word in words)
        for k in (*default_library().kernels(), *steps_of(default_library()))
        if k.runnable
    }
    assert all(kernel["passed"] for kernel in facts["kernels"])
    assert all(fault["planted"] == fault["caught"] > 0 for fault in facts["faults"])


@pytest.fixture
def brief(monkeypatch):
    """One situation is enough to find a known fault."""
    monkeypatch.setattr(kernels, "QUICK", kernels.QUICK[:1])


def test_a_wrong_kernel_fails(capsys, monkeypatch, brief):
    """The reference is off by one tolerance in one number: the same as a wrong kernel."""
    right = prepared.attention

    def off(q, rows, lengths, *more, **facts):
        out = right(q, rows, lengths, *more, **facts)
        out[0, 0, 0] += 1.5 * prepared.tolerance(
            np.abs(rows(0, max(lengths))[1]).max(), max(lengths)
        )
        return out

    monkeypatch.setattr(prepared, "attention", off)
    monkeypatch.setattr(faults, "FAULTS", {})
    code, said, _ = told(capsys, "verify", "--quick", "--isa", "scalar")
    assert code == 1 and "WRONG decode." in said and "failed" in said


def test_a_missed_fault_fails(capsys, monkeypatch, brief):
    def harmless(victim):
        return victim.decode()

    monkeypatch.setattr(faults, "FAULTS", {harmless: 0})
    code, said, _ = told(capsys, "verify", "--quick", "--isa", default_library().isa())
    assert code == 1 and "MISSED" in said


def test_an_op_without_a_check_fails(monkeypatch):
    monkeypatch.delattr(kernels.Checker, "check_twin")
    one_each = {k.op: k for k in default_library().kernels() if k.isa == "scalar"}
    results = list(kernels.check(default_library(), one_each.values(), quick=True))
    assert len(results) > 5
    assert {r.op for r in results if not r.passed} == {"twin"}


def test_a_missing_number_is_an_error():
    with prepared.Prepared(default_library(), kernels.QUICK[0], *cell()) as one:
        for question in one.questions:
            out = question.answer[0].astype(np.float32)
            assert question.error(out) <= 1
            out[0, 0, 0] = np.nan
            assert question.error(out) == np.inf


def cell():
    library = default_library()
    return library.words("layout")[0], library.words("dtype")[0]
