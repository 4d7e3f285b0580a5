"""A file that corrects the machine, and every way to write it wrong."""

import pytest

from kvbench.errors import BadArgument
from kvbench.machine import describe
from kvbench.machine.override import load
from tests.machine import trees
from tests.machine.trees import grow


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "fix.toml"
        path.write_text(text)
        return path

    return write


def corrected(machine, *names):
    return all(
        "override: " in machine.facts[name].source and machine.facts[name].confidence == "high" for name in names
    )


def test_facts(tmp_path, write):
    files = trees.merged_l3(tmp_path)
    path = write('[facts]\nbrand = "EPYC 9654"\nsockets = 1\nhypervisor = "none"\nquota = 1.5\nmemory_limit = "1GiB"')
    machine = describe(files, path)
    assert corrected(machine, "brand", "sockets", "hypervisor", "quota", "memory_limit")
    assert [machine.facts[name].value for name in ("brand", "sockets", "quota", "memory_limit")] == [
        "EPYC 9654",
        1,
        1.5,
        1 << 30,
    ]
    assert {cpu.socket for cpu in machine.cpus} == {0}
    assert machine.warnings == ()  # one L3 in one socket is sound
    assert machine.facts["l3"].confidence == "high"
    assert "override" not in machine.facts["cores"].source


def test_a_correction_makes_no_other_machine(tmp_path, write):
    files = trees.merged_l3(tmp_path)
    plain, changed = describe(files), describe(files, write('[facts]\nsockets = 1\nbrand = "X"'))
    assert (plain.fingerprint, plain.environment) == (changed.fingerprint, changed.environment)


def test_caches_with_cpus_replace_their_level(tmp_path, write):
    text = '[[cache]]\nlevel = 3\nsize = "16MiB"\ncpus = "{}"\n'
    machine = describe(trees.merged_l3(tmp_path), write(text.format("0-3") + text.format("4-7")))
    assert [(cache.size, cache.cpus) for cache in machine.caches if cache.level == 3] == [
        (16 << 20, (0, 1, 2, 3)),
        (16 << 20, (4, 5, 6, 7)),
    ]
    assert len(machine.caches) == 8 + 8 + 2
    assert corrected(machine, "l3", "domains")
    assert not corrected(machine, "l2")
    assert not any("spans" in warning for warning in machine.warnings)


def test_a_size_alone_keeps_the_sharing(tmp_path, write):
    machine = describe(trees.zen4(tmp_path), write('[[cache]]\nlevel = 3\nsize = "96MiB"\nline = 128'))
    assert [(cache.size, cache.line, len(cache.cpus)) for cache in machine.caches if cache.level == 3] == [
        (96 << 20, 128, 16)
    ] * 2


def test_a_cache_can_be_taken_away(tmp_path, write):
    machine = describe(trees.zen4(tmp_path), write("[[cache]]\nlevel = 3\nsize = 0"))
    assert machine.facts["l3"].value is None and machine.facts["l3"].confidence == "none"
    assert len(machine.facts["domains"].value) == 16


def test_caches_of_a_machine_that_declares_none(tmp_path, write):
    files = trees.bare_guest(tmp_path)
    machine = describe(files, write('[[cache]]\nlevel = 2\nsize = "1MiB"\ncpus = "0-3"'))
    assert machine.facts["domains"].value == ["0-3"]
    with pytest.raises(BadArgument, match="has no cpus, and the machine declares no such cache"):
        describe(files, write('[[cache]]\nlevel = 2\nsize = "1MiB"'))


def test_cores(tmp_path, write):
    text = "".join(f'[[core]]\ncpus = "{first}-{first + 1}"\n' for first in (0, 2, 4, 6))
    machine = describe(grow(tmp_path), write(text))
    assert [(cpu.core, cpu.thread) for cpu in machine.cpus[:4]] == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert (machine.facts["cores"].value, machine.facts["smt"].value) == (4, 2)
    assert corrected(machine, "cores", "smt")


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("channels = 12\nmts = 5600", 537.6),
        ("channels = 8\nmts = 3200", 204.8),
        ("channels = 16\nmts = 6400\nwidth_bits = 32", 409.6),
        ("gbps = 460.8", 460.8),
    ],
)
def test_dram(text, gbps, tmp_path, write):
    machine = describe(grow(tmp_path), write(f"[dram]\n{text}"))
    assert machine.facts["dram_peak"].value == pytest.approx(gbps)
    assert corrected(machine, "dram_peak")


WRONG = [
    ("[facts]\nsocket = 1", "`socket` - at `$.facts`"),
    ("[fact]\nsockets = 1", "unknown field `fact`"),
    ("[facts]\nsockets = true", "Expected `int`, got `bool` - at `$.facts.sockets`"),
    ("[facts]\nsockets = 0", "Expected `int` >= 1 - at `$.facts.sockets`"),
    ("[facts]\nsockets = 3", "[facts] sockets is 3"),
    ("[facts]\nquota = -1", "Expected `float` > 0.0 - at `$.facts.quota`"),
    ('[facts]\nmemory_limit = "1GB"', "'1GB' is no size"),
    ('[[cache]]\nlevel = 3\nsize = "16MiB"\ncpus = "0-"', "[[cache]] level 3 cpus is '0-'"),
    ('[[cache]]\nlevel = 3\nsize = "16MiB"\ncpus = "0-9"', "level 3 names CPU 8, which is not online"),
    ('[[core]]\ncpus = "0-1"\n[[core]]\ncpus = "1-2"', "[[core]] names CPU 1, which is not online, or twice"),
    ('[[cache]]\nsize = "16MiB"', "missing required field `level`"),
    ('[cache]\nlevel = 3\nsize = "1MiB"', "Expected `array`, got `object` - at `$.cache`"),
    ("[dram]\nchannels = 8", "[dram] is incomplete"),
    ("[facts", "fix.toml: "),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_said_in_one_line(text, message, tmp_path, write):
    with pytest.raises(BadArgument) as caught:
        describe(grow(tmp_path / "tree"), write(text))
    assert "\n" not in str(caught.value)
    assert "fix.toml" in str(caught.value)
    assert message in caught.value.args[0]
    assert caught.value.hint


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadArgument, match="cannot read .*none.toml: No such file"):
        load(tmp_path / "none.toml")
