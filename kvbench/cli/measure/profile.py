"""kvbench profile"""

from collections.abc import Callable
from functools import partial
from typing import Any

import click
from msgspec import UNSET

from kvbench.cli._growth import grow_option, refuse_beside, show_growth
from kvbench.cli._help import Long
from kvbench.cli._measuring import say_busy
from kvbench.cli._options import (
    json_option,
    neighbour_option,
    patience_option,
    plugin_option,
    tuning_option,
)
from kvbench.cli._point import point_options
from kvbench.cli._rest import engine_option, show_rest
from kvbench.cli._streams import say, say_json
from kvbench.cli._types import Count
from kvbench.errors import BadArgument, Exit, WrongAnswer, refuse_beyond
from kvbench.model import FIELDS
from kvbench.model.point import ATTENDS, ONE_TOKEN, PLAIN_SCORES, STEP, TOKEN
from kvbench.model.shape import EVEN, lengths_word
from kvbench.texts import wrapped
from kvbench.units import counted, duration, size


@click.command(
    "profile",
    cls=Long,
    groups={
        "What to measure": (
            "model batch q-heads kv-heads head-dim v-dim context lengths q-len mask capacity window"
            " kept sinks softcap alibi full-every layers dtype scale k-scale layout inner"
            " block-tokens sequential pad vocabulary variant plugin engine"
        ),
        "How": (
            "residency schedule between deterministic threads cpus memory pages isa grow chase"
            " samples sample-time neighbour patience tuning"
        ),
        "Output": "json",
    },
    examples={
        "kvbench profile decode --model llama-3-8b --dtype i8": "What limits this decode?",
        "kvbench profile step --model llama-3-8b --between model:q4_0": (
            "How long does a step take, and each of its parts?"
        ),
        "kvbench profile decode --engine ggml": "Where does ggml's time go?",
    },
)
@click.argument("op", metavar="OP")
@point_options
@plugin_option
@engine_option
@patience_option
@tuning_option
@grow_option
@click.option(
    "--samples", type=Count(), default=12, show_default=True, help="Number of rounds of samples."
)
@click.option(
    "--sample-time",
    type=float,
    default=0.03,
    show_default=True,
    help="Length of a sample in seconds.",
)
@neighbour_option
@json_option
def command(op: str, plugin: tuple[str, ...], as_json: bool, **asked: Any) -> int:
    """Measure one kernel in depth, and say what limits it.

    OP is decode, append, bulk, repack, transpose, logits or step. The result is of this one visit;
    a sweep makes several launches.

    A decode is timed in turn with what could limit it: the same reads without arithmetic (reads of
    its own rows), the same kernel on data in a private cache (its core speed), plain reads of
    memory, the fastest reads of as much memory, and the peak of its instructions.
    --dtype q8_0+q4_0 keeps K in q8_0 and V in q4_0.

    A store is timed beside copies of as many bytes. append stores one token. bulk stores a prompt.
    repack moves a cache into one of twice its capacity, or of --capacity. transpose turns a prompt
    to head-major order. logits copies one token's logits of each sequence.

    A step does all layers of a model in turn: append, decode, then --between bytes of weights. It
    is timed beside each of these parts alone. With --grow 256, a step decodes 256 tokens in a row
    instead and times each step once: how much time does a token of context add?

    With --plugin and without --variant, every variant of the plug-ins is profiled, one after
    another. A plug-in that hangs is stopped after a minute plus the time of its samples; --patience
    changes that.

    With --engine ggml, another engine is profiled from outside: where does its time go beyond plain
    reads of memory? Beside its pass, it is timed with one thread, on few tokens (the start of a
    call), and on data in a private cache (its core speed).
    """
    from kvbench.native import library_of
    from kvbench.suite.values import LIMITS

    refuse_beyond("--samples", asked["samples"], LIMITS["samples"])
    refuse_beyond("--sample-time", asked["sample_time"], LIMITS["sample_time"])
    library, name = library_of(None, plugin), asked["model"] or ""
    if engine := asked.pop("engine"):
        for name in ("grow", "neighbour", "tuning", "variant"):
            asked.pop(name)
        show_rest(op, engine, as_json=as_json, **asked)
        return Exit.FINE
    if grow := asked.pop("grow"):
        refuse_beside(op, grow, plugin, **asked)
        show_growth(_grown(op, library, grow, **asked), name, as_json)
        return Exit.FINE
    variants = _variants(library, op, asked.pop("variant"))
    if len(variants) == 1:
        facts = _facts(op, library, plugin, variant=variants[0], **asked)
        _shown(facts, name, as_json)
        return Exit.FINE
    if as_json:
        raise BadArgument(
            "--json prints one kernel, but the plug-ins have"
            f" {' and '.join(filter(None, variants))}",
            "name one with --variant",
        )
    return _each(variants, name, partial(_facts, op, library, plugin, **asked))


def _variants(library: Any, op: str, asked: str | None) -> list[str | None]:
    """The variants to profile. A name that several plug-ins have means all of them."""
    foreign = library.foreign_variants if op == "decode" else ()
    if asked is None:
        return list(foreign) or [None]
    return [variant for variant in foreign if variant.partition("@")[0] == asked] or [asked]


def _each(variants: list[str | None], name: str, facts_of: Callable[..., Any]) -> int:
    """Profile one variant after another, also after one has failed; then compare their rates."""
    found, failed = [], False
    for variant in variants:
        try:
            found.append(facts_of(variant=variant))
            _shown(found[-1], name, False)
            say("")
        except WrongAnswer as error:
            failed = True
            say(f"kvbench: {error}", err=True)
    if len(found) > 1:
        width = max(len(facts.kernel) for facts in found)
        lines = [f"{'':<{width}}{'GB/s':>8}   {'middle half':<16}of reads of its rows"]
        for facts in found:
            rate, share = facts.rates["point"], facts.efficiency
            middle = f"{rate.low:.1f} .. {rate.high:.1f}"
            of_reads = "not known" if share is None else f"{share:.0%}"
            lines.append(f"{facts.kernel:<{width}}{rate.median:>8.1f}   {middle:<16}{of_reads}")
        lines += [
            "",
            (
                "These were timed one after another. To time two of them in the same rounds:"
                " kvbench gate --base A.so --head B.so"
            ),
        ]
        say("\n".join(lines))
    return Exit.ERRORS if failed else Exit.FINE


def _facts(
    op: str,
    library: Any,
    plugin: tuple[str, ...],
    samples: int,
    sample_time: float,
    patience: float | None,
    **asked: Any,
) -> Any:
    from kvbench.analysis.limits.profile import profile
    from kvbench.cli._point import point_of
    from kvbench.worker import visit, visit_plugin

    tuning, neighbour = asked.pop("tuning"), bool(asked.pop("neighbour"))
    point = point_of(op, library, **asked)
    if point.variant in library.foreign_variants:
        say_busy()
        return profile(visit_plugin(point, samples, sample_time, plugin, neighbour, patience))
    return profile(
        _tuned(tuning, library, lambda known: visit(point, samples, sample_time, known, neighbour))
    )


def _grown(
    op: str,
    library: Any,
    grow: int,
    samples: int,
    sample_time: float,
    patience: float | None,
    neighbour: bool,
    tuning: Any,
    **asked: Any,
) -> Any:
    from kvbench.analysis.limits.growth import growth
    from kvbench.cli._point import point_of
    from kvbench.worker import visit_growing

    point = point_of(op, library, **asked)
    return growth(_tuned(tuning, library, lambda known: visit_growing(point, grow, known)))


def _tuned(tuning: Any, library: Any, measured: Callable[[Any], Any]) -> Any:
    """Make a visit with the known timings of schedules, and add its own timings to them."""
    from kvbench.machine import describe
    from kvbench.store.evidence import Evidence

    evidence = Evidence.asked(tuning and str(tuning), describe().fingerprint, library.path)
    known, remark = evidence.read() if evidence else (None, "")
    say_busy()
    seen = measured(known)
    remark = (evidence.add(seen.tuned) if evidence and seen.tuned else "") or remark
    if remark:
        say(remark, err=True)
    return seen


def _shown(facts: Any, name: str, as_json: bool) -> None:
    from kvbench.machine import describe
    from kvbench.native import default_library
    from kvbench.report.words import said

    if as_json:
        say_json(facts)
        return
    foreign = facts.point.op == "decode" and facts.point.variant not in default_library().words(
        "variant"
    )
    more = facts.point.threads < len(describe().allowed)
    lines = [*_heading(facts, name), "", *_rates(facts), "", *_details(facts), ""]
    say("\n".join([*lines, *wrapped([said("advice", "advice", facts, foreign, more)], "")]))


def _heading(facts: Any, name: str) -> list[str]:
    point, shape, memory = facts.point, facts.point.shape, facts.memory
    cpus = ",".join(map(str, point.cpus))
    huge = f"{memory.huge_bytes / max(memory.resident_bytes, 1):.0%} of them huge"
    slices = (
        f"{counted(facts.layers, 'layer')} in turn"
        if point.op == STEP
        else f"{facts.layers} slices in rotation"
        if facts.layers > 1
        else "one slice again and again"
    )
    swept = ", caches swept before every pass" if point.residency == "evicted" else ""
    if point.streamed:
        swept = f", {size(point.streamed)} of memory read before every pass"
    window = f", window {shape.window}" if shape.window else ""
    several = f", {shape.q_len} queries of each sequence ({shape.mask})" if shape.q_len > 1 else ""
    several += "".join(f", {word}" for word in _done(shape))
    width = f" (V {shape.v_dim})" if shape.v_dim else ""
    by = f", K by {point.k_scale}" if point.k_scale != TOKEN else ""
    batch = f"{shape.batch} sequences, " if shape.batch > 1 else ""
    if shape.lengths != EVEN:
        held = sum(shape.held)
        batch = f"{shape.batch} sequences of {held:,} tokens ({lengths_word(shape.lengths)}), "
    return [
        f"{facts.kernel}  {name}".rstrip(),
        (
            f"  {batch}{shape.q_heads} query heads on {shape.kv_heads} KV heads, head_dim"
            f" {shape.head_dim}{width}, context {shape.context}{window}{several}{by}"
        ),
        (
            f"  {point.threads} threads on CPUs {cpus}; {slices}, {size(facts.slice_bytes)}"
            f" each{swept}; {point.pages} pages,"
            f" {huge}{f'; schedule {facts.schedule}' if facts.schedule else ''}"
        ),
        f"  verified: largest error {facts.max_abs_err:.2g}",
    ]


def _done(shape: Any) -> list[str]:
    """Short names of what this attention does to scores, such as a cap."""
    own = {field.name: field for field in FIELDS if field.name in PLAIN_SCORES}
    return [
        own[name].short.format(getattr(shape, name))
        for name, usual in PLAIN_SCORES.items()
        if getattr(shape, name) != usual
    ]


_ROWS = {
    "memory": "plain reads of memory",
    "twin": "reads of its own rows",
    "alone": "the same, nothing read between passes",
    "core": "core speed: same kernel, data in cache",
    "ceiling": "fastest reads of as many bytes",
    "dram": "fastest reads of memory",
    "other": "the other kind of stores",
    "copy": "copy, ordinary stores",
    "copy_nt": "copy, non-temporal stores",
}
_SHARES = {"twin": "efficiency", "memory": "memory_share"}


def _rates(facts: Any) -> list[str]:
    from kvbench.model import MEMORY, Role
    from kvbench.native import default_library
    from kvbench.report.words.phrases import peak

    lines = [f"  {'':<46}{'GB/s':>8}   {'middle half':<16}point is"]
    rates = facts.rates
    lines.append(_rate("point", rates["point"], ""))
    one = "one query" if facts.point.shape.q_len > 1 else "scores as they are"
    labels = _ROWS if facts.point.streamed else _ROWS | {"alone": f"the same with {one}"}
    for key, label in labels.items():
        form = MEMORY if key == "memory" else getattr(facts, f"{key}_form")
        share = getattr(facts, _SHARES.get(key, f"{key}_fraction"))
        if form and share is not UNSET:
            best = "" if form == key else f", {Role.of(form).form}"
            level = f", {facts.core_level}" if key == "core" and facts.core_level else ""
            lines.append(_rate(label + best + level, rates[form], _share(share)))
    if facts.fma_gflops is not UNSET:
        ops = default_library().computes(facts.point.variant, facts.point.kv_dtype)
        lines.append(
            f"  {peak(*ops):<46}{facts.fma_gflops:>8.0f}  "
            f" {'GFLOP/s':<16}{_share(facts.fma_fraction)}"
        )
    return lines


def _rate(label: str, rate: Any, share: str) -> str:
    middle = f"{rate.low:.1f} .. {rate.high:.1f}"
    return f"  {label:<46}{rate.median:>8.1f}   {middle:<16}{share}".rstrip()


def _share(share: float | None) -> str:
    return "not known: sample lengths differ" if share is None else f"{share:.0%} of it"


def _tail(facts: Any, of: str) -> str:
    """Quantiles of the time of a pass, or why they are not known."""
    known = {name: getattr(facts, f"{of}_{name}", None) for name in ("p50", "p99", "max")}
    said = [f"{name} {duration(seconds)}" for name, seconds in known.items() if seconds is not None]
    return ", ".join(said + ([f"({facts.pass_note})"] if facts.pass_note else []))


def _details(facts: Any) -> list[str]:
    from kvbench.report.words import said

    shape, why = facts.point.shape, said("reasons", "limit", facts, facts.thread_skew, "rounds")
    lines = [
        *wrapped([f"limit: {why}"]),
        (
            f"  one pass: {_tail(facts, 'pass')} of {facts.passes}; slowest thread"
            f" {facts.thread_skew:.1%} over the mean"
        ),
        (
            f"  bytes of a pass: {facts.bytes_compulsory:,.0f} compulsory,"
            f" {facts.bytes_issued:,.0f} issued, {facts.bytes_line:,.0f} in lines touched"
        ),
    ]
    lines[-2:-2] = _longer(facts)
    if facts.neighbour_gbps is not None:
        times = (
            "" if facts.neighbour_times is None else f"{facts.neighbour_times:.2f} times as long; "
        )
        rate = f"{facts.neighbour_gbps:.1f} GB/s"
        lines.insert(
            -1, f"  beside a neighbour that reads {rate}: {times}{_tail(facts, 'neighbour')}"
        )
    if facts.l3_reads and facts.l3_gain:
        lines += wrapped([said("reasons", "gains", facts)])
    if facts.flops:
        lines.append(f"  arithmetic intensity: {facts.ai:.2f} FLOP per compulsory byte")
    if facts.stage_share:
        shares = ", ".join(f"{stage} {share:.0%}" for stage, share in facts.stage_share.items())
        lines.append(f"  stages: {shares} (timed apart, with clock reads between them)")
    if facts.point.op == STEP:
        lines += _of_step(facts)
    if facts.point.op not in ATTENDS:
        tokens = shape.batch * (1 if facts.point.op in ONE_TOKEN else shape.context)
        each = duration(facts.seconds_per_pass / tokens)
        lines.append(f"  {each} and {facts.bytes_line / 64 / tokens:.0f} lines per token")
    return lines + _chase(facts)


def _longer(facts: Any) -> list[str]:
    """How many times as long the point takes as the simpler one beside it."""
    if facts.queries_times:
        times = f"{facts.queries_times:.2f} times as long as one query"
        return [f"  the {facts.point.shape.q_len} queries take {times}"]
    if facts.scores_times:
        words = ", ".join(_done(facts.point.shape))
        return [f"  {words}: {facts.scores_times:.2f} times as long as without"]
    return []


def _chase(facts: Any) -> list[str]:
    """A table: latency of memory beside the point, and beside plain reads and copies."""
    from kvbench.model.chases import IDLE, LOADS, SHARES, SPIN, loaded

    if facts.latencies is UNSET:
        return []
    labels = {IDLE: "alone", SPIN: "beside threads that spin in L1"}
    for load, what in zip(LOADS, ("plain reads", "plain copies", facts.point.op), strict=True):
        labels |= {loaded(load, share): f"beside {what}, paced to {share}%" for share in SHARES}
    where = f"latency of memory, chase: {facts.point.chase}"
    lines = ["", f"  {where:<46}{'ns':>8}   {'95% of steps':<16}GB/s meanwhile"]
    for name, label in labels.items():
        seen = facts.latencies[name]
        moved = "" if name in (IDLE, SPIN) else f"{seen.load:.1f}"
        lines.append(f"  {label:<46}{seen.ns:>8.0f}   {f'{seen.tail:.0f} ns':<16}{moved}".rstrip())
    return lines


def _of_step(facts: Any) -> list[str]:
    """Tokens per second of a step, the shares of its parts, and its time over their sum."""
    from kvbench.report.words.phrases import number

    one, every = map(number, (facts.tokens_per_second, facts.tokens_per_second_of_batch))
    lines = [f"  {one} tokens/s for each sequence, {every} for the batch"]
    if not facts.parts:
        return [
            *lines,
            "  its parts are not known: no round has all of them in samples of equal length",
        ]
    shares = ", ".join(f"{name} {part.share:.1%}" for name, part in facts.parts.items())
    times = ", ".join(f"{name} {part.times:.2f}" for name, part in facts.parts.items())
    ends = f"{facts.step_times_low:.2f} to {facts.step_times_high:.2f}"
    return [
        *lines,
        f"  shares of its time: {shares}",
        f"  its time over the sum of its parts timed alone: {facts.step_times:.2f} ({ends})",
        f"  each part's time within the step, over its time alone: {times}",
    ]
