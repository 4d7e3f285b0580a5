"""A run of formats of K and V that was never measured: its times are computed, all from memory."""

from dataclasses import replace

from kvbench.grouping import grouped
from kvbench.model.point import CHANNEL
from tests.made_run import DECODE, beside, visit

LAUNCHES = 7
BITS = {  # of an element with its scale, or of K and V on average
    "f16": 16.0,
    "f16+q8_0": 12.25,
    "q8_0": 8.5,
    "q8_0+q4_0": 6.5,
    "q4_0": 4.5,
    "i8": 8.25,
    "i8+q4_0": 6.375,
    "e4m3": 8.0,
}
CORE = {("q4_0", "flash"): 6.6, ("q8_0+q4_0", "flash"): 7.4}  # where the core takes longer: as bits
ROUNDED = ("q8_0", "q8_0+q4_0", "q4_0", "i8")  # that were timed with variant dot as well
_TIME = 1e-3  # seconds of a pass, of an element of 16 bits
_NOISE = (0.99, 1.01, 1.0, 0.98, 1.02, 1.0, 1.0)  # of a launch
_OTHER = (1.0, 1.002, 0.998, 1.001, 1.0, 0.999, 1.0)  # of one point in it
COSTS = {"softcap": (50.0, 1.25), "sinks": ("heads", 1.0), "alibi": (8.0, 1.1)}


def point(dtype="f16", variant="flash", k_scale="token", **shape):
    """Of llama-3-8b."""
    own = {"q_heads": 32, "kv_heads": 8, "head_dim": 128, "context": 4096, "capacity": 4096}
    k, _, v = dtype.partition("+")
    facts = {"dtype": k, "v_dtype": v, "variant": variant, "k_scale": k_scale}
    return replace(DECODE, shape=replace(DECODE.shape, **own | shape), **facts)


def seconds(of):
    return _TIME * CORE.get((of.kv_dtype, of.variant), BITS[of.kv_dtype]) / 16


def points():
    own = [point(dtype) for dtype in BITS] + [point(dtype, "dot") for dtype in ROUNDED]
    return [*own, point("i8", k_scale=CHANNEL)]


def alone(of, times=1.0, **programs):
    """Its own visits. `programs`: seconds of what stands beside it."""
    count = 4096 * 8 * 128 * 2 * BITS[of.kv_dtype] / 8
    found = []
    for launch, noise in enumerate(_NOISE):
        taken = {"point": times * seconds(of)} | programs
        rates = {name: [count / (noise * each) / 1e9] * 4 for name, each in taken.items()}
        own = visit(launch, rates, of, walked=64 * count, layers=64)
        found.append(replace(own, traffic=dict.fromkeys(rates, own.traffic["point"])))
    return found


def side_by_side(of, factor):
    """A set, timed in the same rounds."""
    return [
        beside(
            launch,
            tuple(of),
            [[noise * _OTHER[(launch + n) % LAUNCHES] * seconds(each)] * 4
             for n, each in enumerate(of)],
            factor,
        )
        for launch, noise in enumerate(_NOISE)
    ]  # fmt: skip


def sets():
    """Formats of each variant, and variants of each format."""
    by_variant = grouped((each.variant, each) for each in points())
    found = [record for own in by_variant.values() for record in side_by_side(own, "dtype")]
    for dtype in ROUNDED:
        found += side_by_side([point(dtype), point(dtype, "dot")], "variant")
    return found


def costs():
    """f16 with something done to scores, beside the same without."""
    found = []
    for name, (value, times) in COSTS.items():
        own = point(**{name: value})
        found += alone(own, times, alone=seconds(own))
    return found


def records():
    return [*(each for of in points() for each in alone(of)), *sets(), *costs()]
