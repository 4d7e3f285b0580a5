"""Ways to ruin the files of a run directory at random."""

import json
import os

OTHER = "other"  # name of the folder of another run
FILES = ("manifest.json", "journal.jsonl", "machine.json")
ODD = (
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    '"x"',
    '""',
    "[]",
    "{}",
    "[[]]",
    '{"a": 1}',
    '{"a": 1, "a": 2}',
    "1e300",
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    "1" + "0" * 400,
    "-1" + "0" * 5000,
    "18446744073709551616",
    '"\\ud800"',
    '"\\u0000"',
    '"a\\nb"',
    "[" * 5000 + "]" * 5000,
    "[" * 200 + "1e999" + "]" * 200,
    '"2026-99-99T00:00:00+00:00"',
    '{"a":' * 3000 + "1" + "}" * 3000,
)
MARK = "this value is replaced"


def places(value, path=()):
    """The keys that lead to every value inside."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
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
    lines = (
        path.read_bytes().splitlines(keepends=True)
        if path.suffix == ".jsonl"
        else [path.read_bytes()]
    )
    at = chance.randrange(len(lines))
    lines[at] = changed(lines[at], chance) + b"\n"
    path.write_bytes(b"".join(lines))


def change_bytes(path, chance):
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 2, 50))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content)


def truncate(path, chance):
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def garbage(path, chance):
    start = chance.choice(
        (b"", b"\x1f\x8b\x08", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00" * 64, b'{"format":4}')
    )
    path.write_bytes(
        start + chance.randbytes(chance.choice((0, 1, 100, 5000))) + chance.choice((b"", b"\n"))
    )


def other(path):
    """The same file of another run, which lies beside this one."""
    return path.parent.with_name(OTHER) / path.name


def take_lines(path, chance):
    """Lines of the other run in the place of some, or behind all."""
    own, theirs = (each.read_bytes().splitlines(keepends=True) for each in (path, other(path)))
    at = chance.randrange(len(own) + 1)
    own[at : at + chance.randrange(3)] = chance.sample(theirs, chance.randrange(1, 4))
    path.write_bytes(b"".join(own))


def take_file(path, chance):
    path.write_bytes(other(path).read_bytes())


def link(path, chance):
    path.unlink()
    path.symlink_to(chance.choice((other(path), other(path).parent, path)))


def replace_by_something_else(path, chance):
    path.unlink()
    make = chance.choice(
        (path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to(path), lambda: None)
    )
    make()


DAMAGES = (
    change_json,
    change_json,
    change_json,
    change_json,
    change_bytes,
    truncate,
    garbage,
    replace_by_something_else,
    take_lines,
    take_file,
    link,
)
