"""Access to /sys and /proc."""

import pytest

from kvbench.machine.tree import Files, count
from tests.cli.test_cli import errors_of
from tests.machine.trees import put


def test_a_missing_file_is_none(tmp_path):
    files = put(tmp_path, {"/sys/text": " word ", "/sys/number": "12", "/sys/hex": "0x10"})
    assert files.text("/sys/text") == "word"
    assert (
        files.text("/sys/none")
        is files.text("/sys")
        is files.number("/sys/none")
        is files.number("/sys/text")
        is None
    )
    assert (files.number("/sys/number"), files.number("/sys/hex")) == (12, 16)
    assert files.exists("/sys/text") and not files.exists("/sys/none")


@pytest.mark.parametrize("word", ["²", "12a", "", "9" * 5000, f"{1 << 64}", f"0x{1 << 64:x}"])
def test_text_that_is_not_a_number(tmp_path, word):
    files = put(tmp_path, {"/sys/number": word, "/sys/table": f"a 1\nb: {word}\nc -1\nd\ne: 2 kB"})
    assert files.number("/sys/number") is count(word) is None
    assert files.table("/sys/table") == {"a": 1, "e": 2}


def test_lines_of_a_name_and_a_value(tmp_path):
    files = put(
        tmp_path,
        {"/sys/status": "Name:\tone: two\nSeccomp:\t2", "/sys/node": "Node 0 Free: 3 kB\nNode 0"},
    )
    assert (files.field("/sys/status", "Name"), files.field("/sys/status", "Sec")) == (
        "one: two",
        "",
    )
    assert files.table("/sys/node", skip=2) == {"Free": 3}


def test_zeros_end_lines(tmp_path):
    (tmp_path / "compatible").write_bytes(b"linux,dummy-virt\0kvm\0\xff")
    assert Files(tmp_path).text("/compatible") == "linux,dummy-virt\nkvm"


def test_numbers_in_names_sort_as_numbers(tmp_path):
    files = put(tmp_path, {f"/sys/cpu{cpu}/online": 1 for cpu in (10, 9, 1)} | {"/sys/cpufreq": 1})
    assert files.glob("/sys/cpu[0-9]*") == ["/sys/cpu1", "/sys/cpu9", "/sys/cpu10"]
    assert files.glob("/sys/cpu*/online") == [
        "/sys/cpu1/online",
        "/sys/cpu9/online",
        "/sys/cpu10/online",
    ]
    assert files.glob("/none/*") == []


def test_the_root_is_the_running_system_unless_told(tmp_path, monkeypatch):
    monkeypatch.delenv("KVBENCH_ROOT", raising=False)
    assert Files().live and Files().text("/proc/self/stat")
    monkeypatch.setenv("KVBENCH_ROOT", str(tmp_path))
    assert not Files().live and Files().root == tmp_path


@pytest.mark.parametrize("name", ["none", "file"])
def test_a_root_that_is_not_a_folder(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KVBENCH_ROOT", str(tmp_path / name))
    assert f"{tmp_path / name} is not a folder (name a copy of" in errors_of(
        capsys, "machine", "--identify"
    )
