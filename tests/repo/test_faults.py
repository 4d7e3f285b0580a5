"""The faults of tests/mutate/*.toml fit today's code. If you change code that a fault edits, change
the fault in the same commit.
"""

import re
import shlex

import pytest

from tests.mutate.faults import FOLDER, ROOT, of_file, pattern, read

FAULTS = read()
C_TESTS = re.compile(r'\{"(\w+)", check_\w+\}')
PYTHON = ["judge", "launches", "bounds", "contrasts", "store", "plan", "gate", "score", "sizing"]
C = [
    "walk",
    "cache",
    "decode",
    "traffic",
    "store",
    "softmax",
    "qk",
    "pv",
    "dot",
    "row",
    "run",
    "cpu",
    "probes",
    "twin",
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_edit_fits_once_and_changes_something(fault):
    text = (ROOT / fault.file).read_text()
    found = pattern(fault.find).findall(text)
    assert len(found) == 1, (
        f"{fault.file}: `find` stands there {len(found)} times: mend it in tests/mutate/"
    )
    assert "".join(fault.replace.split()) != "".join(fault.find.split())
    assert fault.edited(text) != text
    if fault.file.endswith(".py"):
        compile(fault.edited(text), fault.file, "exec")


def test_checks_name_tests_that_exist():
    known = C_TESTS.findall((ROOT / "tests" / "check" / "check.c").read_text())
    assert known, "or the pattern is no longer that of the table"
    for fault in FAULTS:
        for check in fault.checks:
            missing = list(unknown(check, known))
            assert not missing, f"{fault.name}: {check}: there is no {', '.join(missing)}"


def unknown(check, c_tests):
    """Return what the check names although nothing has that name. Each word of -k must occur in the
    files, except parameters such as head-f16.
    """
    kind, *words = shlex.split(check)
    if kind == "kvb-check":
        yield from (
            after
            for word, after in zip(words, words[1:])
            if word == "--only" and after not in c_tests
        )
    if kind != "pytest":
        return
    paths = [ROOT / word.partition("::")[0] for word in words if word.startswith("tests/")]
    yield from (str(path) for path in paths if not path.exists())
    files = [
        file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))
    ]
    text = "\n".join(file.read_text() for file in files)
    chosen = [after for word, after in zip(words, words[1:]) if word == "-k"]
    chosen += [word.rpartition("::")[2].partition("[")[0] for word in words if "::" in word]
    for word in (part for each in chosen for part in re.findall(r"[\w-]+", each)):
        if word not in ("and", "or", "not") and "-" not in word and word not in text:
            yield word


def test_two_faults_stand_for_each_room():
    faults = list(of_file(FOLDER / "rooms.toml"))
    for rooms, in_c in ((C, True), (PYTHON, False)):
        own = [fault.room for fault in faults if fault.in_c == in_c]
        assert {room: own.count(room) for room in {*rooms, *own}} == dict.fromkeys(rooms, 2)
