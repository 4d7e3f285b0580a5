"""Suite files: what they may contain, and one line for everything that they may not."""

from datetime import date

import pytest

from kvbench.errors import BadArgument
from kvbench.suite import Relative, find, load, model, models, read_axis, shipped
from kvbench.suite.axes import AXES, from_options
from kvbench.suite.values import count_text

GOOD = """# Is it good?
question = "Is it good?"
launches = 3
samples = 2
sample_time = 0.02

[axes]
model = ["llama-3-8b", "gpt-2"]
context = [512, "4k", "256..2k x2", "0.5xL3"]
threads = ["1", 2, "domain", "all"]

[[grid]]
layout = "all"
dtype = ["f16", "i8"]
window = [0, "model"]

[[grid]]
op = "bulk"
deterministic = [false, true]
schedule = ["off", "auto"]
pad = 0
layers = "1..8 x2"

[[skip]]
layout = "paged"
dtype = ["i8"]
"""


@pytest.fixture
def write(tmp_path):
    def write(content, name="x.toml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refused(path):
    """The one-line error of loading such a file."""
    with pytest.raises(BadArgument) as caught:
        load(path, "x.toml")
    assert caught.value.args[0] and caught.value.hint
    assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 1000
    return caught.value


# ---- models --------------------------------------------------------------------------------------


def test_every_model_is_whole():
    for name, shape in models().items():
        assert shape.q_heads % shape.kv_heads == 0, name
        assert min(shape.layers, shape.head_dim, shape.max_context) > 0, name
        assert shape.source.endswith("config.json"), name
        assert bool(shape.window_every) <= bool(shape.window), name


def test_a_model_that_was_checked_by_hand():
    llama = model("llama-3-8b")
    assert (llama.layers, llama.q_heads, llama.kv_heads, llama.head_dim) == (32, 32, 8, 128)


# ---- what a file says ----------------------------------------------------------------------------


def test_a_good_suite(write):
    suite = load(write(GOOD))
    assert (suite.name, suite.question) == ("x", "Is it good?")
    assert (suite.launches, suite.samples, suite.sample_time) == (3, 2, 0.02)
    first, second = suite.grids
    assert first["context"] == (512, 4096, 256, 1024, 2048, Relative(0.5, 3)), "each once"
    assert first["threads"] == (1, 2, "domain", "all")
    assert first["window"] == (0, "model") and "window" not in second
    assert second["deterministic"] == (False, True) and second["layers"] == (1, 2, 4, 8)
    assert second["model"] == first["model"], "common axes"
    assert list(suite.skips) == [{"layout": ("paged",), "dtype": ("i8",)}]


def test_a_grid_overrides_the_common_axes(write):
    suite = load(write('question = "?"\n[axes]\nbatch = 1\n[[grid]]\nbatch = 2\n[[grid]]\n'))
    assert [grid["batch"] for grid in suite.grids] == [(2,), (1,)]


def test_no_grid_is_one(write):
    (grid,) = load(write('question = "?"\n[axes]\nbatch = 1')).grids
    assert grid == {"batch": (1,)}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("256..64k x2", [256 << step for step in range(9)]),
        ("256..64k x4", [256, 1024, 4096, 16384, 65536]),
        ("256..1000 x2", [256, 512]),
        ("1..8x2", [1, 2, 4, 8]),
        ("3..3 x2", [3]),
        ("1..10 x1.5", [1, 2, 3, 5, 8]),
        ("1..1000 x10", [1, 10, 100, 1000]),
        ("1k", [1024]),
        ("1M", [1 << 20]),
        (7, [7]),
    ],
)
def test_counts_and_ranges(text, values):
    assert read_axis("here", "batch", text) == tuple(values)


@pytest.mark.parametrize(
    ("axis", "given", "values"),
    [
        ("softcap", [0, 50, "30.5", 50.0], (0.0, 50.0, 30.5)),
        ("alibi", "1000000", (1e6,)),
        ("dtype", ["q8_0+q4_0", "q8_0+q8_0", "f16"], ("q8_0+q4_0", "q8_0", "f16")),
        ("sinks", "all", ("all",)),
        ("k_scale", ["channel", "token"], ("channel", "token")),
    ],
)
def test_numbers_and_pairs(axis, given, values):
    assert read_axis("here", axis, given) == values


@pytest.mark.parametrize(
    ("axis", "value", "message"),
    [
        ("softcap", 1e6 + 1, "here is 1000001.0; a number from 0 to 1,000,000, such as 50 or 0.5"),
        ("softcap", True, "here: True is not understood; a number from 0"),
        ("alibi", "1e3", "here: '1e3' is not understood; a number from 0"),
        ("dtype", "q8_0+", "here: 'q8_0+' is not a pair of dtypes: one is missing; K + V"),
        ("dtype", "q8_0+q4", "here: 'q8_0+q4' is not a pair of dtypes: 'q4' is not known; "),
        ("v_dim", -1, "here is -1; 0 to "),
        ("kept", 1.5, "here: 1.5 is not understood; a number from 0 on"),
    ],
)
def test_what_is_no_number_and_no_pair(axis, value, message):
    with pytest.raises(BadArgument) as caught:
        read_axis("here", axis, value)
    assert f"{caught.value.args[0]}; {caught.value.hint}".startswith(message)


def test_command_line_values_are_read_as_the_file_s():
    found = from_options(
        [
            "context=1k,0.5xL2",
            "context=8k",
            "deterministic=true,false",
            "cpus=0-1,3",
            "threads=1,all",
        ]
    )
    assert found["context"] == (1024, Relative(0.5, 2), 8192)
    assert found["deterministic"] == (True, False)
    assert found["cpus"] == ("0-1,3",), "its commas are its own"
    assert found["threads"] == (1, "all")


def test_axes_given_replace_those_of_every_grid(write):
    suite = load(write(GOOD)).with_axes(from_options(["dtype=f32", "op=decode"]))
    assert {grid["dtype"] for grid in suite.grids} == {("f32",)}
    assert {grid["op"] for grid in suite.grids} == {("decode",)}


def test_a_model_given_brings_its_heads(write):
    heads = load(write('question = "?"\n[axes]\nq_heads = 8\nkv_heads = 8\nhead_dim = 64'))
    (grid,) = heads.with_axes({"model": ("gpt-2",)}).grids
    assert grid == {"model": ("gpt-2",)}
    (grid,) = heads.with_axes({"model": ("gpt-2",), "q_heads": (24,)}).grids
    assert grid == {"model": ("gpt-2",), "q_heads": (24,)}


def test_counts_as_suites_write_them():
    assert [count_text(value) for value in (0, 1, 1000, 1024, 65536)] == [
        "0",
        "1",
        "1000",
        "1k",
        "64k",
    ]


# ---- shipped -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_suite_opens_with_its_question(name):
    assert shipped()[name].read_text().startswith("question = ")
    assert find(name).question.endswith("?")
    assert find(name).source == f"suites/{name}.toml"


def test_an_unknown_suite_names_the_nearest():
    with pytest.raises(BadArgument, match="'qick'") as caught:
        find("qick")
    assert (
        caught.value.hint.startswith("did you mean quick? one of: batch, ")
        and ".toml" in caught.value.hint
    )


# ---- what is wrong, and where --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("good", "bad", "begin", "hint"),
    [
        (
            "dtype =",
            "dtypes =",
            "x.toml: grid 1: dtypes is not an axis",
            "did you mean dtype? one of: op, variant",
        ),
        ("threads =", "thread =", "x.toml: axes: thread is not an axis", "did you mean threads? "),
        (
            '"f16"',
            '"f61"',
            "x.toml: grid 1: dtype: 'f61' is not known",
            "did you mean f16? one of: f32, f16",
        ),
        (
            '"llama-3-8b"',
            '"llama-3-8"',
            "x.toml: axes: model: 'llama-3-8' is not known",
            "did you mean llama-3-8b? ",
        ),
        (
            "samples =",
            "sample =",
            "x.toml: sample is not a key of a suite",
            "did you mean samples? one of: question",
        ),
        ("launches = 3", "launches = 0", "x.toml: launches is 0", "a number from 1 to 1000"),
        ("[[skip]]", "[[skips]]", "x.toml: skips is not a key of a suite", "did you mean skip? "),
        ('["i8"]', '["i9"]', "x.toml: skip 1: dtype: 'i9' is not known", "did you mean i8? "),
        ("pad = 0", "pad = -1", "x.toml: grid 2: pad is -1", "0 to "),
        ('"domain"', '"domian"', "x.toml: axes: threads: 'domian' is not understood", "domain"),
        ('"0.5xL3"', '"0.5xL4"', "x.toml: axes: context: '0.5xL4' is not understood", '"0.5xL3"'),
        (
            "512, ",
            "1e3, ",
            "x.toml: axes: context: 1000.0 is not understood",
            "tokens such as 4096",
        ),
        (
            "2k x2",
            "2k x1",
            "x.toml: axes: context: the range from 256 to 2048 by x1 is empty",
            "256..64k x2",
        ),
        (
            "false, true",
            '"false"',
            "x.toml: grid 2: deterministic: 'false' is not understood",
            "true or false",
        ),
        (
            'layout = "all"',
            "layout = []",
            "x.toml: grid 1: layout is an empty list",
            "one of: head",
        ),
        ('question = "Is it good?"', "", "x.toml: question is missing", "question ="),
        (
            '"Is it good?"',
            '"Is it \\u001b[2Jgood?"',
            "x.toml: question is 'Is it \\x1b[2Jgood?'",
            "one line of text",
        ),
        ("launches = 3", "launches 3", "x.toml is not valid TOML: ", "keys are written as"),
        ("samples = 2", "launches = 2", "x.toml is not valid TOML: ", "keys are written as"),
    ],
)
def test_table_key_and_hint(write, good, bad, begin, hint):
    assert good in GOOD
    error = refused(write(GOOD.replace(good, bad, 1)))
    assert error.args[0].startswith(begin)
    assert hint in error.hint


ODD = (
    1.5,
    [[]],
    {},
    [1.5],
    [[1], 2],
    float("nan"),
    float("inf"),
    "",
    "\0",
    -1,
    -(10**30),
    10**5000,
    b"",
    date(1979, 5, 27),
)
ODD += ("9" * 22, "1..2..3", "1..9 x0", "9..1 x2", "0.0xL3", "é", "a" * 5000)
DECIMAL = (1.5, [1.5])
FREE = ("\0", *ODD[-7:])  # any text may name CPUs: only the machine knows which exist


def test_every_axis_refuses_what_it_is_not():
    for axis in AXES:
        for value in ODD:
            if axis == "cpus" and value in FREE or AXES[axis].kind == "number" and value in DECIMAL:
                continue
            with pytest.raises(BadArgument):
                read_axis("here", axis, value)


OTHERS = {
    "empty": b"",
    "binary": bytes(range(256)) * 8,
    "bom": b"\xef\xbb\xbfquestion = 'x'",
    "deep": b"question = '?'\naxes = " + b"[" * 3000 + b"]" * 3000,
    "long number": b"question = '?'\nlaunches = " + b"9" * 5000,
    "large": b"#" * (2 << 20),
    "axes no table": b"question = '?'\naxes = 3",
    "grid no list": b"question = '?'\n[grid]\nbatch = 1",
    "skip of nothing": b"question = '?'\n[[skip]]\n",
    "question a number": b"question = 3",
    "question a novel": b"question = '" + b"a" * 1000 + b"'",
    "dotted": b"question = '?'\naxes.bach = 1",
    "inline": b"question = '?'\naxes = { bach = 1 }",
    "newline in a key": b"question = '?'\n[axes]\n\"ba\\nch\" = 1",
    "unclosed list": b"question = '?'\n[axes]\nbatch = [1,",
    "many values": (
        b"question = '?'\n[axes]\nbatch = ["
        + b",".join(b"%d" % n for n in range(1, 100_010))
        + b"]"
    ),
    "nested axis": b"question = '?'\n[axes.batch]\nx = 1",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_malformed_files(write, kind):
    assert refused(write(OTHERS[kind])).args[0].startswith("x.toml")


def test_paths_that_are_no_suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    for name in (
        "missing.toml",
        "folder.toml",
        "loop.toml",
        "a\0b.toml",
        "a" * 300 + ".toml",
        "",
        "/",
        "models",
        "..",
    ):
        with pytest.raises(BadArgument) as caught:
            find(name)
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "option", ["context", "=1", "contxt=1", "context=", "context=1,,2", "dtype=f61", "threads=0"]
)
def test_options_that_are_no_axis(option):
    with pytest.raises(BadArgument, match="^--axis "):
        from_options([option])
