"""Run directories that were damaged: one line and exit code 2, or a run that can be used. Never a traceback."""

import json
import os
import random
import shutil

import pytest

from kvbench.errors import KvbenchError
from kvbench.model import Point, Probe
from kvbench.store import RunDirectory
from tests.store.made import POINTS, failed, manifest, visits

FILES = ("manifest.json", "journal.jsonl", "machine.json")
ODD = (
    "null", "true", "-1", "0", "1.5", '"x"', '""', "[]", "{}", "[[]]", '{"a": 1}', '{"a": 1, "a": 2}', "1e300",
    "1e999", "-1e999", "NaN", "Infinity", "1" + "0" * 400, "-1" + "0" * 5000, "18446744073709551616", '"\\ud800"',
    '"\\u0000"', '"a\\nb"', "[" * 5000 + "]" * 5000, "[" * 200 + "1e999" + "]" * 200, '"2026-99-99T00:00:00+00:00"',
    '{"a":' * 3000 + "1" + "}" * 3000,
)  # fmt: skip
MARK = "this value is replaced"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "run"
    with RunDirectory.create(path, manifest(launches=3)) as run:
        for record in visits(launches=2):
            run.append(record)
        run.append(failed(2, POINTS[0]))
        run.write_machine({"fingerprint": "f", "topology": {"cpus": [0, 1]}, "ceilings": [{"gbps": 1.5}]})
    return path


def places(value, path=()):
    """Of every value inside, the keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(text, chance):
    """One value of a JSON text replaced, left out, renamed or added."""
    facts = json.loads(text)
    *way, key = chance.choice(list(places(facts)))
    inner = facts
    for step in way:
        inner = inner[step]
    act = chance.randrange(5)
    if act == 0:
        del inner[key]
    elif act == 1 and isinstance(inner, dict):
        inner["strange"] = inner.pop(key)
    elif act == 2 and isinstance(inner, dict):
        inner["strange"] = 1
    else:
        inner[key] = MARK
    return json.dumps(facts).replace(json.dumps(MARK), chance.choice(ODD)).encode()


def change_json(path, chance):
    lines = path.read_bytes().splitlines(keepends=True) if path.suffix == ".jsonl" else [path.read_bytes()]
    at = chance.randrange(len(lines))
    lines[at] = changed(lines[at], chance) + b"\n"
    path.write_bytes(b"".join(lines))


def change_bytes(path, chance):
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 2, 50))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content)


def change_text(path, chance):
    """A few characters that JSON is made of, left out, doubled or put in."""
    content = path.read_bytes()
    at, length = chance.randrange(len(content)), chance.randrange(4)
    put = bytes(chance.choice(b'{}[]",:0-.e\n') for _ in range(chance.randrange(3)))
    path.write_bytes(content[:at] + put + content[at + length :])


def truncate(path, chance):
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def garbage(path, chance):
    start = chance.choice((b"", b"\x1f\x8b\x08", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00" * 64, b'{"format":2}'))
    path.write_bytes(start + chance.randbytes(chance.choice((0, 1, 100, 5000))) + chance.choice((b"", b"\n")))


def grow(path, chance):
    content = path.read_bytes()
    path.write_bytes(content + chance.choice((content, b"\n", b"{}\n", b"null\n", chance.randbytes(99) + b"\n")))


def turn_lines(path, chance):
    lines = path.read_bytes().splitlines(keepends=True)
    chance.shuffle(lines)
    path.write_bytes(b"".join(lines))


def replace_file(path, chance):
    path.write_bytes((path.parent / chance.choice(FILES)).read_bytes())


def replace_by_something_else(path, chance):
    path.unlink()
    make = chance.choice((path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to(path), lambda: None))
    make()


def another_format(path, chance):
    path = path.with_name("manifest.json")
    version = chance.choice((*ODD, "3", "0", "1.0", '"1"', "true"))
    path.write_text(path.read_text().replace('"format": 2', f'"format": {version}'))


DAMAGES = (
    change_json, change_json, change_json, change_json, change_bytes, change_text, truncate, garbage, grow, turn_lines,
    replace_file, replace_by_something_else, another_format,
)  # fmt: skip


def used(path):
    """Everything that a directory can be asked."""
    with RunDirectory.open(path) as run:
        run.machine()
        names = {point.name for point in run.manifest.plan.points}
    with RunDirectory.open(path, write=True) as again:
        assert again.records == run.records
        again.export()
    for record in run.records:
        assert isinstance(record.point, Point | Probe) and record.point.name in names
        assert all(sample.seconds / sample.passes > 0 for sample in record.samples)
    assert len({(record.launch, record.point) for record in run.records}) == len(run.records)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_runs(sound, tmp_path, seed):
    """20 damages a seed, 400 in all; most are noticed."""
    chance, noticed = random.Random(seed), 0
    for number in range(20):
        path = tmp_path / str(number)
        shutil.copytree(sound, path)
        chance.choice(DAMAGES)(path / chance.choice(FILES), chance)
        try:
            used(path)
        except KvbenchError as error:
            noticed += 1
            assert error.exit_code == 2 and error.hint
            assert str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 600
        assert sorted(item.name for item in path.iterdir() if item.name.startswith(".")) == []
    assert noticed >= 8


def test_the_sound_run_is_sound(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "run")
    used(tmp_path / "run")
    assert (tmp_path / "run" / "run.json.gz").exists()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", sorted({damage.__name__ for damage in DAMAGES}))
def test_every_damage_to_every_file(sound, tmp_path, name, damage):
    """What the seeds above may have missed."""
    for seed in range(4):
        path = tmp_path / str(seed)
        shutil.copytree(sound, path)
        globals()[damage](path / name, random.Random(f"{name} {damage} {seed}"))
        try:
            used(path)
        except KvbenchError as error:
            assert error.exit_code == 2 and "\n" not in str(error)
