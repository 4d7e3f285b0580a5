"""Failed reads in a launch: the run can still be resumed and shown."""

from dataclasses import replace

import pytest

from kvbench.model import Probe
from kvbench.report.course import ending, newest
from kvbench.report.ending import short, text
from kvbench.report.markdown import markdown
from kvbench.report.words.gaps import gaps
from kvbench.report.write import write
from kvbench.session import Session
from tests.session.test_session import Played, begun, quick  # noqa: F401  (a fixture for all tests)


def test_a_failed_read_does_not_end_the_run(tmp_path):
    """All reads of launch 0 failed: no share of them is reported, and the run is resumed to its
    end.
    """

    def failing(job):
        for record in Played(stop_after=None)(job):
            bad = isinstance(record.point, Probe) and record.point.op == "read" and not job.launch
            yield replace(record, samples=(), error="its process was killed") if bad else record

    def cut(job):
        for number, record in enumerate(failing(job)):
            if job.launch and number > 2:
                raise KeyboardInterrupt
            yield record

    told = []
    with begun(tmp_path, cut) as session, pytest.raises(KeyboardInterrupt):
        told += map(newest, session.records())
    with Session.resume(tmp_path / "run", execute=failing) as session:
        told += map(newest, session.records())
        assert session.finish()
        run = session.run()
    assert len(told) == 2 * len(run.manifest.plan.points)
    assert not any("of reads" in line for line in told)
    found = run.findings()
    assert short(found) and text(found) and gaps(found, run.manifest)
    assert ending(run.manifest, "run", run.records, found.open)


@pytest.mark.parametrize("bad", ["read", "probes", "all"])
def test_a_run_whose_probes_failed_can_be_told_and_shown(tmp_path, bad):
    def failing(job):
        for record in Played()(job):
            probe = isinstance(record.point, Probe)
            hit = {"read": probe and record.point.op == "read", "probes": probe, "all": True}[bad]
            yield replace(record, samples=(), error="its process was killed") if hit else record

    with begun(tmp_path, failing) as session:
        assert all(map(newest, session.records()))
        session.finish()
        run = session.run()
    found = run.findings()
    assert short(found) and text(found)
    assert ending(run.manifest, "run", run.records, found.open)
    assert write(tmp_path / "report", [(found, run.manifest)]).is_file()
    assert markdown(found, run.manifest)
