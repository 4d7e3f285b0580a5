"""Short names of points."""

from dataclasses import replace

from kvbench.analysis.limits.frames import points
from kvbench.analysis.measured.columns import names_without, short_names
from tests.made_run import DECODE, MACHINE, STORE, failed


def table(*asked):
    return points([failed(0, point) for point in asked], MACHINE)


def shaped(**changes):
    return replace(DECODE, shape=replace(DECODE.shape, **changes))


def test_the_usual_shape_is_not_said():
    """Two of three points have a batch of one and two KV heads. Of two stores, neither variant is
    the usual one.
    """
    asked = [DECODE, shaped(context=2048, capacity=2048), shaped(batch=4, kv_heads=8)]
    found = table(*asked)
    assert dict(zip(found["name"], short_names(found), strict=True)) == {
        asked[0].name: "head f16 t=1024",
        asked[1].name: "head f16 t=2048",
        asked[2].name: "head f16 batch=4 kv=8 t=1024",
    }
    both = table(STORE, replace(STORE, variant="nt"))
    assert set(short_names(both)) == {"head f16", "nt head f16"}


def test_what_is_done_to_scores_is_said_where_it_is():
    asked = [DECODE, shaped(sinks="heads"), shaped(softcap=50.0), shaped(alibi=8.0)]
    wanted = {f"head f16{words}" for words in ("", " sinks", " cap 50", " alibi 8")}
    assert set(short_names(table(*asked))) == wanted
    pair = replace(DECODE, v_dtype="q4_0")
    assert set(short_names(table(DECODE, pair))) == {"head f16", "head f16+q4_0"}


def test_where_no_shape_is_usual_all_say_theirs():
    assert short_names(table(DECODE, shaped(batch=4))) == ["head f16 batch=1", "head f16 batch=4"]


def test_a_series_has_one_name():
    teams = [
        replace(DECODE, cpus=tuple(range(count)), layout=name)
        for count in (1, 2)
        for name in ("a", "b")
    ]
    found = table(*teams)
    assert set(names_without(found, ("threads", "cpus"))) == {"a f16", "b f16"}
    assert names_without(found.iloc[:0], ("threads", "cpus")) == []
