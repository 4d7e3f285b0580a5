"""The JSON of commands against its schema: both have the same keys."""

import json
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator as Validator

import kvbench.runner
from kvbench.analysis.differs.questions import Open
from kvbench.analysis.means.beside import BuildCell, Builds
from kvbench.analysis.measured.machines import UNITS
from kvbench.cli._program import kvbench as program
from kvbench.cli.understand.list import names, schema
from kvbench.exports.printed import compared as compared_json
from kvbench.gate import Build, Request
from kvbench.model import Skip
from kvbench.model.verdict import WORDS
from kvbench.native import library_path
from kvbench.store import plain
from tests.cli import test_compare as compared
from tests.cli.test_cli import CPU, TINY, output_of
from tests.cli.test_machine import answers
from tests.gate.made_duels import outcome, player
from tests.history import made as history
from tests.machine.healthy import Still
from tests.machine.trees import grow
from tests.report import made
from tests.report.answered import ANSWERS, FAMILY
from tests.score import made as score

RESULTS = Path(__file__).resolve().parents[2] / "results"
BASELINE = RESULTS / "zen3-kvm-2" / "quick"
ASKED = RESULTS / "zen4-kvm-2" / "quick"  # it has contrasts, and layers in L3
CACHES = [(1, "Data", "32K", 1), (2, "Unified", "512K", 1), (3, "Unified", "32768K", 2)]
SMALL = "--q-heads 4 --kv-heads 2 --head-dim 32 --context 96 --threads 1 --residency hot"
HEADS_OF = "--q-heads 4 --kv-heads 2 --head-dim 32 --context 512 --layers 2"
SIZED = (
    "qwen3-0.6b --context 8192 --layout paged --weights 1GB --budget 1GiB --lengths uniform:1-64"
)
OPEN = Open("layout", "decode", "DRAM", "a", "b", "head f16", 1.25, 0.9, 1.5, 14, 20, ("a", "b"))
RATIO = {"times": 0.97, "low": 0.95, "high": 0.99, "launches": 6, "word": "faster"}
CELL = {
    "cell": 0,
    "model": "a",
    "dtype": "f16",
    "threads": 1,
    "context": 64,
    "q_len": 4,
    "attends": "",
}
ONE = BuildCell(**RATIO, **CELL, layout="head")
BUILDS = Builds(**RATIO, engine="e", base="a", head="b", cells=(ONE,))
PREDICTED = "llama-3-8b --weights 16GB --engine ggml --dtype f16 --measured 1@1k --measured 1@8k"
DRAFT = ("--draft", "2", "--accept", ".5", "--draft-cost", "5ms")
SERVER = ["--cores", "64", "--bandwidth", "400"]
SHORT = ["--samples", "2", "--sample-time", "0.001"]
# of many rounds one has all parts in samples of one length
LAYERED = ["--residency", "rotate", "--layers", "2", "--between", "1M", "--samples", "20"]
PEERS = "--model qwen3-0.6b --context 512 --dtype f32 --threads 1 --peers numpy,cke --launches 1"
BRIEF = ["--only", "*.head.f16.*", "--cpus", CPU, "--launches", "1", *SHORT]

# ---- what is really printed ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("schemas")


def sides(folder):
    """Two runs: in the second one layout is slower, and a point failed."""
    records = compared.records(slower="paged", by=1.3)
    records = [
        replace(r, samples=(), error="wrong") if r.point == compared.POINTS[0] else r
        for r in records
    ]
    runs = {"base": compared.records(), "head": records}
    facts = {"identity": compared.IDENTITY, "launches": compared.LAUNCHES}
    return [
        str(made.directory(folder / run, own, compared.POINTS, run=run, **facts))
        for run, own in runs.items()
    ]


def bare(folder):
    """A small run with a skipped combination."""
    points = [*made.decodes()[:1], *made.READS[:2]]
    skips = (Skip({"threads": 9}, "not enough CPUs", "9 threads on 2 CPUs"),)
    return str(made.directory(folder / "bare", made.whole(points, 1), points, skips=skips))


def past(folder):
    """Runs of six points, all slower from the ninth on, which another build made."""
    found = history.flat(16, 6)
    found[8:] *= 0.8
    history.write(folder / "past", found, build=["b1"] * 8 + ["b2"] * 8)
    return str(folder / "past")


def scores(folder):
    """A noisy score, so that it breaks a rule."""
    visits = list(score.records(score.points(), wobble=0.15))
    run = score.run(folder / "score", visits=visits, loaded=True)
    return [[str(run), "--json"]]


EXPLAINED = "llama-3-8b --measured 1@8k --cores 96 --bandwidth 460"
CALLS = {
    "score": scores,
    "list kernels": lambda folder: [["--json"]],
    "doctor": lambda folder: [["--json"]],
    "machine": lambda folder: [
        ["--identify", "--json"],
        ["--quick", "--loaded", "--json", "--out", str(folder / "machine.json")],
    ],
    "list suites": lambda folder: [["--json"]],
    "sweep --dry-run": lambda folder: [["smoke", "--axis", "threads=1,1024", "--json"]],
    "verify": lambda folder: [["--quick", "--isa", "scalar", "--json"]],
    "profile": lambda folder: [
        [op, *SMALL.split(), *SHORT, *more, "--json"]
        for op, *more in (
            ("decode",),
            ("decode", "--residency", "evicted", "--q-len", "2"),  # from memory
            ("decode", "--sinks", "heads", "--softcap", "30"),
            ("decode", "--between", "4K"),
            ("decode", "--residency", "rotate", "--context", "64k", "--chase", "node"),
            ("step", "--residency", "rotate", "--layers", "2", "--between", "4K"),
            ("bulk",),
            ("append",),
            ("step", *LAYERED),
        )
    ],
    "profile --engine": lambda folder: [
        ["numpy", "decode", *HEADS_OF.split(), "--threads", "2", *SHORT, "--json"]
    ],
    "profile --grow": lambda folder: [
        ["8", "step", *SMALL.split()[:-2], "--layers", "2", *more, "--json"]
        for more in ((), ("--between", "64k"))
    ],
    "sweep": lambda folder: [
        [
            *TINY,
            *BRIEF,
            "--only",
            "*.paged.f16.*",
            "--axis",
            "op=decode",
            "--out",
            str(folder / "run"),
            "--json",
        ]
    ],
    "sweep --tune-only": lambda folder: [
        [*TINY, "--only", "*.head.f16.*", "--tuning", str(folder / "seen.json"), "--json"]
    ],
    "peers": lambda folder: [
        [*PEERS.split(), "--tuning", "off", "--out", str(folder / "peers"), "--json"]
    ],
    "compare": lambda folder: [[*sides(folder), "--json"]],
    "history": lambda folder: [["show", "--root", past(folder), "--json"]],
    "explain": lambda folder: [
        [*EXPLAINED.split(), "--machine", str(BASELINE), "--json"],
        [*PREDICTED.split(), "--machine", str(ASKED.parent / "peers"), "--json"],
        ["deepseek-v3", "--machine", str(BASELINE), "--json"],
        ["gpt-2", "--machine", str(BASELINE), "--dtype", "q8_0+q4_0", "--json"],
        ["llama-3-8b", "--machine", str(ASKED), *SERVER, *DRAFT, "--json"],
    ],
    "size": lambda folder: [
        ["llama-2-7b", "--json"],
        [*SIZED.split(), "--machine", str(BASELINE), "--json"],
        ["llama-2-7b", "--map", "--canaries", "--json"],
    ],
    "report": lambda folder: [
        [*runs, "--format", "json"]
        for few in [bare(folder)]
        for runs in ([str(ASKED)], [few], [str(ASKED), few])
    ],
}


@pytest.fixture(scope="module")
def printed(folder):
    """By command: the output of each call. Each call is made once."""
    sides = [Build(name, library_path(), library_path().with_name("abi.h"), name) for name in "ab"]
    gated = outcome(
        *sides,
        Request(seed=1),
        execute=player(lambda point, side: 1 + 0.1 * (side == "head")),
    )[0]
    found = {
        "gate": [json.loads(json.dumps(plain(compared_json(replace(gated, missing=("a: lost",))))))]
    }

    def of(name, capsys, monkeypatch):
        if name not in found:
            if name == "machine":
                grow(folder / "tree", cores=2, caches=CACHES)
                monkeypatch.setenv("KVBENCH_ROOT", str(folder / "tree"))
                monkeypatch.setattr(kvbench.runner, "launch", answers)
                monkeypatch.setattr(
                    "kvbench.machine.preflight.Live", lambda: Still(folder / "tree")
                )
            found[name] = []
            for arguments in CALLS[name](folder):
                found[name].append(
                    json.loads(
                        output_of(capsys, *name.split(), *arguments), parse_constant=pytest.fail
                    )
                )
            # so few points say nothing of a model, nor of L3, and leave nothing open
            if name in ("sweep", "report", "peers"):
                told_of = replace(ANSWERS, l3=replace(ANSWERS.l3, families=(FAMILY,)))
                told = json.loads(json.dumps(plain(told_of)))
                others = {"trust": told["trust"], "builds": [json.loads(json.dumps(plain(BUILDS)))]}
                own = others if name == "peers" else {"answers": told}
                own |= {"open": [json.loads(json.dumps(plain(OPEN)))]} if name == "sweep" else {}
                found[name].append(found[name][0] | own)
            if name == "report":
                several = found[name][2]
                runs = [each | own for each in several["runs"]]
                found[name].append(several | {"runs": runs})
        return found[name]

    return of


@pytest.fixture(params=names())
def each(request, printed, capsys, monkeypatch):
    """A command's schema, and what it printed."""
    return schema(request.param), printed(request.param, capsys, monkeypatch), request.param


# ---- paths: "points[].shape.batch", and "facts.*" where the names are no part of the interface ---


def resolved(part, root):
    """What a part says itself, with what it refers to; and each of its kinds, where it may be
    several.
    """
    kinds = [part, *part.get("oneOf", ()), *part.get("anyOf", ())]
    refs = [root["$defs"][kind["$ref"].rpartition("/")[2]] for kind in kinds if "$ref" in kind]
    return [*kinds, *refs]


def described(part, root, path=""):
    """Every path of which a schema says something, with what it says."""
    for kind in resolved(part, root):
        inner = {f".{key}": value for key, value in kind.get("properties", {}).items()}
        inner |= {
            step: kind[word]
            for step, word in ((".*", "additionalProperties"), ("[]", "items"))
            if word in kind
        }
        if kind.get("type") == "object" and not kind.keys() & {
            "properties",
            "additionalProperties",
            "oneOf",
        }:
            inner[".*"] = {}  # anything
        for step, value in inner.items():
            if not isinstance(value, dict) or path.endswith(".value"):
                continue  # no items beyond these; what a fact may be
            yield path + step, value
            yield from described(value, root, path + step)


def present(value, known, path=""):
    """Every path of a value, but for those in what may be anything."""
    steps = []
    if isinstance(value, dict):
        any_key = f"{path}.*" in known and f"{path}.*"
        steps = [(any_key or f"{path}.{key}", inner) for key, inner in value.items()]
    elif isinstance(value, list):
        steps = [(f"{path}[]", inner) for inner in value]
    for step, inner in steps:
        yield step
        if known.get(step, {"type": ""}).keys() - {"description"} and not step.endswith(".value"):
            yield from present(inner, known, step)


# ---- the schemas ---------------------------------------------------------------------------------


def with_json(command=program, *words):
    """Commands that take --json."""
    context = click.Context(program)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from with_json(command.get_command(context, name), *words, name)
    elif any("--json" in option.opts for option in command.params):
        yield " ".join(words)


def test_every_command_with_json_has_a_schema():
    """The schema's name for a call: history means history show, and a sweep has several."""
    asked = {name.removesuffix(" show") for name in with_json()}
    asked |= {"report", "sweep --dry-run", "sweep --tune-only"}
    asked |= {"profile --engine", "profile --grow"}
    assert set(names()) == asked


def test_schemas_are_schemas_and_explain_themselves(each):
    found, _, name = each
    Validator.check_schema(found)
    assert found["$schema"] == Validator.META_SCHEMA["$id"] and found["title"].startswith(
        f"kvbench {name} "
    )
    for path, part in described(found, found):
        if not path.endswith(("[]", ".*")):  # what holds them says what they are
            assert part.get("description") or part.get("title"), path
        for kind in resolved(part, found):
            if "properties" in kind:
                assert kind["title"] and set(kind["required"]) <= kind["properties"].keys(), path


IN_AN_ANSWER = re.compile(r"\.(figure|facts)\.")  # one that was not tested has neither
UNIT = re.compile(
    r"(GB/s|GFLOP/s|FLOP|FLOP per byte|bytes|bytes per second|seconds|ns|tokens|tokens per second|"
    r"in `unit`|in the unit of its key|probability|"
    r"absolute|ratio|ratio to [^:]+|share)( a core)?:|share of "
)


def test_every_number_says_its_unit(each):
    found = each[0]
    parts = dict(described(found, found))
    for path, part in parts.items():
        kinds = [kind.get("type") for kind in resolved(part, found)]
        if "number" in kinds and "string" not in kinds:
            about = parts[re.sub(r"(\[\]|\.\*)+$", "", path)].get("description", "")
            assert UNIT.match(about), f"{path}: {about}"


def test_words_are_those_of_the_program():
    parts = schema("machine")["$defs"] | schema("compare")["$defs"]
    assert parts["PointRow"]["properties"]["verdict"]["enum"] == list(WORDS)
    assert set(parts["CeilingRow"]["properties"]["unit"]["enum"]) == {"GB/s", *UNITS.values()}


# ---- output beside schema ------------------------------------------------------------------------


def test_output_is_valid(each):
    found, outputs, _ = each
    for output in outputs:
        Validator(found).validate(output)


def test_neither_has_a_key_that_the_other_lacks(each):
    found, outputs, _ = each
    parts = dict(described(found, found))
    seen = {
        path for output in outputs for path in present(output, parts) if not path.endswith("[]")
    }
    known = {path for path in parts if not path.endswith("[]")}
    assert not sorted(seen - known), "not described"
    never = {path for path in known - seen if not IN_AN_ANSWER.search(path)}
    assert not sorted(never), "described, and never printed"


def test_no_key_is_lost(each):
    """schema_keys.txt has every key that a version of a format has printed, in a line for each
    object. A line loses a key only where the format gets a new version.
    """
    found, _, name = each
    known = {path for path, _ in described(found, found)}
    for line in (Path(__file__).parent / "schema_keys.txt").read_text().splitlines():
        command, place, keys = re.fullmatch(r"(.+?) (\.\S*): (.*)", line).groups()
        if command == name:
            assert {f"{place.removesuffix('.')}.{key}" for key in keys.split()} <= known, line


def test_keys_may_be_added(each):
    found, outputs, _ = each
    Validator(found).validate(outputs[0] | {"of a later version": [1]})


# ---- kvbench list schemas -----------------------------------------------------------------------


def test_the_command(capsys):
    assert output_of(capsys, "list", "schemas").splitlines() == names()
    assert json.loads(output_of(capsys, "list", "schemas", "profile")) == schema("profile")
