"""Comparisons made up for the exports. `python -m tests.exports.made` writes the golden files anew:
read the diff.
"""

from dataclasses import replace
from pathlib import Path

from kvbench.exports import write
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
)

GOLDEN = Path(__file__).parent / "golden"
KEPT = ("junit", "csv")  # what most other tools read
NAN = float("nan")

SLOWER = Judged(
    name=(
        "decode.flash.head.f32.avx2/b1.q32.kv8.d128/ctx4096.cap4096.win0.layers1/cpu0-1.thp.evicted"
    ),
    family="flash f32 head",
    verdict=REGRESSION,
    effect=0.0637,
    low=0.0549,
    high=0.0725,
    p=0.0000119,
    q=0.000476,
    detectable=0.021,
    base_gbps=38.4,
    head_gbps=36.1,
    base_seconds=0.000875,
    head_seconds=0.00093074,
    launches=(10, 10),
    note="",
)
# what families have not
ALONE = dict.fromkeys(("base_gbps", "head_gbps", "base_seconds", "head_seconds"))
UNKNOWN = replace(
    SLOWER,
    **dict.fromkeys(("effect", "low", "high", "p", "q", "detectable")),
    **ALONE,
    name="never measured on head",
    verdict=NOT_COMPARABLE,
    launches=(10, 0),
    note="head: the answer is wrong",
)
SAME = replace(
    SLOWER,
    verdict=EQUIVALENT,
    effect=-0.0004,
    low=-0.006,
    high=0.0051,
    p=0.61,
    q=0.9,
    head_gbps=38.42,
    head_seconds=0.00087465,
)
FAMILY = replace(SLOWER, **ALONE, name=SLOWER.family, q=0.0001)

ODD = (
    "quotes \" and ' and `ticks`",
    "pipes | and \\| and \\",
    "<b>tags</b> & &amp; ]]> <!-- -->",
    "percent 100%0A, colon: comma, {curly} [square] #12 @somebody",
    "größe 測定 🚀 ½",
    "two\nlines\tand\x00nothing",
    "=SUM(A1:A9)",
    "*stars* _lines_ ~waves~ $dollars$",
    "Zoe\u0301 \u202eturned\ud800",
    "x" * 300,
)


def made(points: int = 25) -> Comparison:
    """A regression, odd names, unknown numbers, and otherwise points that stayed the same."""
    faster = replace(
        SLOWER,
        name="faster",
        verdict=IMPROVEMENT,
        effect=-0.11,
        low=-0.13,
        high=-0.09,
        head_gbps=43.1,
        head_seconds=0.00077875,
    )
    unclear = replace(
        SLOWER, name="unclear", verdict=INCONCLUSIVE, low=-0.02, high=0.15, q=0.3, detectable=0.093
    )
    hogged = replace(
        SLOWER,
        name="hogged",
        verdict=CONTAMINATED,
        effect=NAN,
        low=NAN,
        high=NAN,
        note="probe: 14 % off",
    )
    odd = [replace(SAME, name=name, family=name, note=name) for name in ODD]
    special = [SLOWER, hogged, unclear, UNKNOWN, *odd, faster]
    plain = [replace(SAME, name=f"decode/ctx{number}") for number in range(points - len(special))]
    return Comparison(
        command="compare",
        base="2026-11-20-quick",
        head='2026-11-21-quick "again" | <new>',
        machine="Some CPU @ 2.00GHz & more, 2 cores",
        created="2026-11-21T12:30:00+01:00",
        verdict=REGRESSION,
        points=tuple([*special, *plain][:points]),
        families=(FAMILY, replace(SAME, **ALONE, name="copy f32", family="copy f32")),
        missing=("decode/ctx7: head has it not", "decode | <ctx8>: failed on base: “no memory”"),
        notes=(
            "times divided by the read ceilings of their own runs",
            "q below 1 %, effect at least 3 % of base's time",
        ),
    )


if __name__ == "__main__":
    for kind in KEPT:
        write(made(), kind, GOLDEN / kind)
