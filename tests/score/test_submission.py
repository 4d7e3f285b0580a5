"""Archives of scores: what they contain, and what is refused in archives that anybody may have
made.
"""

import gzip
import io
import tarfile

import pytest

from kvbench.errors import BadRun
from kvbench.submission import checked, pack
from tests.cli.test_cli import call, output_of
from tests.report.made import SECRET, SECRETS
from tests.score import made


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("submitted")
    facts = SECRETS | {"suite": "score", "options": {"seed": 1}}
    run = made.run(folder / "run", loaded=True, **facts)
    assert (
        call("score", "--pack", str(run), "--out", str(folder / "a.tar.gz"), "--name", "Machine A")
        == 0
    )
    return folder / "a.tar.gz"


def members(file):
    with tarfile.open(file) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def packed(file, parts, change=lambda member: None):
    with tarfile.open(file, "w:gz") as tar:
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            change(member)
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return file


def test_a_redacted_archive_says_the_same(archive, capsys):
    held = members(archive)
    assert {
        "manifest.json",
        "journal.jsonl",
        "machine.json",
        "score.json",
        "longer/journal.jsonl",
        "loaded/journal.jsonl",
    } <= held.keys()
    assert not [name for name, content in held.items() if SECRET.encode() in content]
    out = output_of(capsys, "score", "--check", str(archive))
    assert out.count("\n") == 1 and "VALID; Machine A, 2 cores, virtual machine (KVM)" in out
    assert out.endswith("; valid means consistent, not true\n")
    assert "145 beside decode f16" in output_of(capsys, "score", str(archive))


def test_an_archive_of_a_score_without_latency_is_as_valid(tmp_path, capsys):
    """Older archives have no latency, nor have those of one core."""
    pack(made.run(tmp_path / "run"), tmp_path / "a.tar.gz", "")
    assert not [name for name in members(tmp_path / "a.tar.gz") if name.startswith("loaded/")]
    assert "VALID" in output_of(capsys, "score", "--check", str(tmp_path / "a.tar.gz"))


def test_an_edited_journal_is_named(archive, tmp_path, capsys):
    held = members(archive)
    held["journal.jsonl"] = held["journal.jsonl"].replace(b'"passes":4', b'"passes":8')
    assert "INVALID, journal.jsonl was changed" in output_of(
        capsys, "score", "--check", str(packed(tmp_path / "b.tar.gz", held)), code=3
    )


def test_a_changed_run_is_not_packed(tmp_path):
    run = made.run(tmp_path / "run", longer=False)
    (run / "journal.jsonl").open("a").write("\n")
    with pytest.raises(BadRun):
        pack(run, tmp_path / "a.tar.gz", "")
    assert not (tmp_path / "a.tar.gz").exists()
    assert call("score", "--resume", "--out", str(run)) == 2, "nor is it sealed anew"


def link(member):
    member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0


def device(member):
    member.type, member.size = tarfile.CHRTYPE, 0


def sparse(member):
    member.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.size": str(1 << 40),
        "GNU.sparse.map": "0,1",
    }


HOSTILE = {
    "path above": {"../journal.jsonl": b"x"},
    "absolute path": {"/tmp/journal.jsonl": b"x"},
    "script": {"run.sh": b"#!/bin/sh"},
    "bomb": {"journal.jsonl": bytes(65 << 20)},
    "nothing": {},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(name, tmp_path, archive):
    more = {} if name == "nothing" else members(archive)
    with pytest.raises(BadRun, match="is not a submission"):
        checked(packed(tmp_path / "x.tar.gz", more | HOSTILE[name]))


@pytest.mark.parametrize("change", [link, device, sparse])
def test_members_that_are_not_files_are_refused(change, tmp_path, archive):
    with pytest.raises(BadRun):
        checked(packed(tmp_path / "x.tar.gz", members(archive), change))


@pytest.mark.parametrize(
    "edit",
    [(b'"launches": 10', b'"launches": 99999999999999999999'), (b'"layers": 32', b'"layers": -1')],
)
def test_impossible_counts_are_refused(edit, tmp_path, archive):
    held = members(archive)
    held["manifest.json"] = held["manifest.json"].replace(*edit)
    with pytest.raises(BadRun):
        checked(packed(tmp_path / "x.tar.gz", held))


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", gzip.compress(b"no tar", mtime=0), gzip.compress(bytes(9), mtime=0)[:-6]],
)
def test_a_file_that_is_not_an_archive_is_refused(content, tmp_path):
    (tmp_path / "x.tar.gz").write_bytes(content)
    with pytest.raises(BadRun, match="is not a submission"):
        checked(tmp_path / "x.tar.gz")


def test_twice_the_same_file_is_refused(tmp_path, archive):
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("score.json"))
    with pytest.raises(BadRun, match="or occurs twice"):
        checked(tmp_path / "x.tar.gz")
