"""The file that corrects the machine, and ways to write it wrong."""

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
        "override: " in machine.facts[name].source and machine.facts[name].confidence == "high"
        for name in names
    )


def test_a_correction_does_not_make_another_machine(tmp_path, write):
    files = trees.merged_l3(tmp_path)
    plain, changed = describe(files), describe(files, write("[[cache]]\nlevel = 3\nsize = 0"))
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
    machine = describe(
        trees.zen4(tmp_path), write('[[cache]]\nlevel = 3\nsize = "96MiB"\nline = 128')
    )
    assert [
        (cache.size, cache.line, len(cache.cpus)) for cache in machine.caches if cache.level == 3
    ] == [(96 << 20, 128, 16)] * 2


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


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("channels = 12\nmts = 5600", 537.6),
        ("channels = 16\nmts = 6400\nwidth_bits = 32", 409.6),
        ("gbps = 460.8", 460.8),
    ],
)
def test_dram(text, gbps, tmp_path, write):
    machine = describe(grow(tmp_path), write(f"[dram]\n{text}"))
    assert machine.facts["dram_peak"].value == pytest.approx(gbps)
    assert corrected(machine, "dram_peak")


WRONG = [
    ("[fact]\nsockets = 1", "unknown field `fact`"),
    ('[[cache]]\nlevle = 3\nsize = "1MiB"', "`levle` - at `$.cache[0]`"),
    ("[dram]\nchannels = true", "Expected `int | null`, got `bool` - at `$.dram.channels`"),
    ("[dram]\nchannels = 0", "Expected `int` >= 1 - at `$.dram.channels`"),
    ('[[cache]]\nlevel = 3\nsize = "16MB"', "'16MB' is not a size"),
    ('[[cache]]\nlevel = 3\nsize = "16MiB"\ncpus = "0-"', "[[cache]] cpus is '0-'"),
    ('[[cache]]\nlevel = 3\nsize = "16MiB"\ncpus = "0-9"', "[[cache]] cpus is '0-9'"),
    ('[[cache]]\nsize = "16MiB"', "missing required field `level`"),
    ('[cache]\nlevel = 3\nsize = "1MiB"', "Expected `array`, got `object` - at `$.cache`"),
    ("[dram]\nchannels = 8", "[dram] is incomplete"),
    ("[cache", "fix.toml: "),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_an_error_is_said_in_one_line(text, message, tmp_path, write):
    with pytest.raises(BadArgument) as caught:
        describe(grow(tmp_path / "tree"), write(text))
    assert "\n" not in str(caught.value)
    assert "fix.toml" in str(caught.value)
    assert message in caught.value.args[0]
    assert caught.value.hint


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadArgument, match="cannot read .*none.toml: No such file"):
        load(tmp_path / "none.toml")
