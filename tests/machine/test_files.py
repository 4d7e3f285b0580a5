"""The door to /sys and /proc."""

from kvbench.machine.files import Files
from tests.machine.trees import put


def test_what_is_missing_is_none(tmp_path):
    files = put(tmp_path, {"/sys/text": " word ", "/sys/number": "12", "/sys/hex": "0x10"})
    assert files.text("/sys/text") == "word"
    assert (
        files.text("/sys/none") is files.text("/sys") is files.number("/sys/none") is files.number("/sys/text") is None
    )
    assert (files.number("/sys/number"), files.number("/sys/hex")) == (12, 16)
    assert files.exists("/sys/text") and not files.exists("/sys/none")


def test_zeros_end_lines(tmp_path):
    (tmp_path / "compatible").write_bytes(b"linux,dummy-virt\0kvm\0\xff")
    assert Files(tmp_path).text("/compatible") == "linux,dummy-virt\nkvm"


def test_numbers_in_names_sort_as_numbers(tmp_path):
    files = put(tmp_path, {f"/sys/cpu{cpu}/online": 1 for cpu in (10, 9, 1)} | {"/sys/cpufreq": 1})
    assert files.glob("/sys/cpu[0-9]*") == ["/sys/cpu1", "/sys/cpu9", "/sys/cpu10"]
    assert files.glob("/sys/cpu*/online") == ["/sys/cpu1/online", "/sys/cpu9/online", "/sys/cpu10/online"]
    assert files.glob("/none/*") == []


def test_the_root_is_the_running_system_unless_told(tmp_path, monkeypatch):
    monkeypatch.delenv("KVBENCH_ROOT", raising=False)
    assert Files().live and Files().text("/proc/self/stat")
    monkeypatch.setenv("KVBENCH_ROOT", str(tmp_path))
    assert not Files().live and Files().root == tmp_path
