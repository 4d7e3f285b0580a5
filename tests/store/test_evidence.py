"""The tuner's measurements, kept over runs."""

import pytest

from kvbench.errors import Unwritable
from kvbench.model import Tuned, choose
from kvbench.store.evidence import Evidence

SEEN = {"off": (0.1, 0.2), "weave": (0.0, 0.0), "stream": (-0.3, -0.2)}


@pytest.fixture
def library(tmp_path):
    (tmp_path / "lib.so").write_bytes(b"kernels")
    return tmp_path / "lib.so"


def tuned(of="a/b", **ratios):
    return Tuned(of, tuple(of.split("/")), choose(SEEN, "weave"), SEEN | ratios)


def test_it_comes_back_pooled(library, tmp_path):
    file = str(tmp_path / "x" / "seen.json")
    assert Evidence("m", library, file).read() == ({}, "")
    assert not Evidence("m", library, file).add([tuned(), tuned("c")])
    assert not Evidence("m", library, file).add([tuned(off=(0.5,))])
    found, remark = Evidence("m", library, file).read()
    assert not remark and found["c"] == SEEN
    assert found["a/b"] == {"off": (0.1, 0.2, 0.5), "weave": (0.0,) * 4, "stream": (-0.3, -0.2) * 2}
    assert not Evidence("m", library, file).add([tuned("d")], fresh=True)
    assert Evidence("m", library, file).read()[0] == {"d": SEEN}


def test_each_machine_and_build_has_its_own(library, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = Evidence("m", library).path
    other = Evidence("n", library).path
    library.write_bytes(b"other kernels")
    third = Evidence("m", library).path
    assert len({first, other, third}) == 3 and first.is_relative_to(tmp_path / "cache" / "kvbench")


@pytest.mark.parametrize("what", ["machine", "build"])
def test_evidence_of_another_machine_or_build_is_said_and_replaced(library, tmp_path, what):
    file = str(tmp_path / "seen.json")
    Evidence("m", library, file).add([tuned()])
    if what == "build":
        library.write_bytes(b"other kernels")
    other = Evidence("n" if what == "machine" else "m", library, file)
    assert other.read() == ({}, f"{file} is from another {what}: all classes are tuned afresh")
    assert not other.add([tuned("c")])
    assert other.read() == ({"c": SEEN}, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"machine": 1}',
        '{"machine": "m", "build": "b", "tuner": 1, "classes": {"a": 3}}',
    ],
)
def test_damaged_evidence_is_said_in_a_line(library, tmp_path, text):
    file = tmp_path / "seen.json"
    file.write_text(text)
    found, remark = Evidence("m", library, str(file)).read()
    assert (
        not found
        and remark.startswith(str(file))
        and remark.endswith("tuned afresh")
        and "\n" not in remark
    )


def test_our_own_folder_need_not_be_writable(library, tmp_path, monkeypatch):
    (tmp_path / "kvbench").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = Evidence("m", library).add([tuned()])
    assert said.startswith("the tuning is not kept") and "\n" not in said


def test_a_file_that_was_named_is_refused_at_once(library, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="Not a directory") as raised:
        Evidence("m", library, str(tmp_path / "file" / "seen.json")).read()
    assert "--tuning" in raised.value.hint


def test_off_is_no_file(library):
    assert Evidence.asked("off", "m", library) is None
