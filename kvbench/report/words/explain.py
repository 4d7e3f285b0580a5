"""What is said of a model on a machine: five lines that need no table, and one on a rate that somebody measured."""

from collections.abc import Iterator

from kvbench.model.explained import Explained, Row
from kvbench.report.words.phrases import between, number
from kvbench.units import GB, counted, cpu_text, duration, size

_NEAR, _FAR = 8192, 131072  # tokens of the two contexts that are spoken of
_CLEAR = 2.0  # times the other, from which one of two is the limit

_LIMITS = {
    "weights": "At {context:,} tokens reading the weights is the limit",
    "cache": "At {context:,} tokens reading the KV cache is the limit",
    "both": "At {context:,} tokens reading the weights and reading the KV cache limit about equally",
    "core": "At {context:,} tokens the core is the limit, by its arithmetic on the KV cache",
    "core too": "At {context:,} tokens reading the weights and the core's arithmetic on the KV cache limit about equally",
}
_STEP = "{limit}: {step} reads {weights} of weights and {cache} of KV cache in {base}, so {most} tokens/s at most."
_CORE = (
    "{limit}: {step} reads {weights} of weights and {cache} of KV cache in {base}, and multiply-adds in float32 leave "
    "{tokens} tokens/s at most."
)
_CACHE_ONLY = (
    "At {context:,} tokens {step} reads {cache} of KV cache in {base}, which alone allows {most} tokens/s at most; whether "
    "that is the limit is unknown, as the weights are ({why})."
)
_NO_RATE = (
    "At {context:,} tokens {step} reads {weights} of weights and {cache} of KV cache; no reads of memory are known."
)
_OVERTAKES = "From {tokens:,} tokens on it reads more KV cache than weights."
_NEVER = "Up to its longest context, {longest:,} tokens, it never reads as much KV cache as weights."
_LONGEST = "{longest:,} tokens are the longest context that the model is made for."

_FASTER = (
    "KV format: {best}. Against {base} it gives {near} tokens/s at {near_context:,} tokens{far}{pays}; it rounds more."
)
_PAYS = ", and 5% or more from {tokens:,} tokens on"
_STAY = "KV format: {base}. No smaller format that was measured is 2% faster {where}; smaller ones only save memory."
_UNMEASURED = "KV format: not measured, {why}. Fewer bits save memory; whether they save time is not known."
_LATENT = "for no kernel here reads one row for K and V of all heads"
_NO_DECODE = "for the run has no decode from memory"

_USERS = "Memory: {memory} hold {stored} of weights and {near} of {near_context:,} tokens in {base} ({near_other} in {other}){far}."
_FAR_USERS = ", or {far} of {context:,} ({far_other} in {other})"
_TOO_LARGE = "Memory: no user, for the weights alone take {stored}, and the machine has {memory}."
_MEMORY_UNKNOWN = "Memory: how many users fit is unknown, as {why}."

_FROM = "Rates: {machine}, {threads}, plain reads of memory {gbps} GB/s ({interval}){group}.{l3}"
_GROUP = "; KV as decoded with {group} query heads on a KV head, where this model has {own}"
_L3 = " L3 holds the KV of one layer up to {tokens:,} tokens."
_NO_READS = "Rates: {machine} has no reads of memory; name a run with --machine.{l3}"

_MEASURED = (
    "Measured: {tokens} tokens/s at {context:,} tokens is {share:.0%} of what memory allows. A step takes {missing} longer "
    "than reading all of it, and reading the KV cache takes at least {cache}. With KV as fast as our {dtype}: {between} "
    "tokens/s."
)
_FASTER_THAN = (
    "Measured: {tokens} tokens/s at {context:,} tokens is {share:.0%} of what memory allows: more than can be. It reads "
    "fewer bytes than said here, or this is another machine."
)


def lines(found: Explained) -> list[str]:
    """Five."""
    near, far = _row(found, _NEAR), _row(found, _FAR)
    return [
        _limit(found, near),
        _beyond(found, near, far),
        _format(found, near, far),
        _users(found, near, far),
        _origin(found),
    ]


def _row(found: Explained, tokens: int) -> Row:
    return max((row for row in found.rows if row.context <= tokens), key=lambda row: row.context, default=found.rows[0])


def _limit(found: Explained, row: Row) -> str:
    base = row.of(found.base)
    facts = {
        "context": row.context,
        "step": "each token" if found.decoder.batch == 1 else f"a step of {found.decoder.batch} sequences",
        "weights": "an unknown number" if found.read is None else size(found.read),
        "cache": size(base.bytes),
        "base": found.base,
        "most": number(base.most or 0.0),
        "tokens": number(base.tokens or 0.0),
        "why": found.why,
    }
    if base.most is None:
        return _NO_RATE.format(**facts)
    if found.read is None:
        return _CACHE_ONLY.format(**facts)
    word = _word(found, row)
    return (_CORE if word.startswith("core") else _STEP).format(limit=_LIMITS[word].format(**facts), **facts)


def _word(found: Explained, row: Row) -> str:
    base = row.of(found.base)
    weights, reads = found.read / (found.gbps * GB), base.bytes / (found.gbps * GB)
    computing = bool(found.decoder.latent) and base.seconds > _CLEAR * reads
    if weights > _CLEAR * base.seconds:
        return "weights"
    if base.seconds > _CLEAR * weights:
        return "core" if computing else "cache"
    return "core too" if computing else "both"


def _beyond(found: Explained, near: Row, far: Row) -> str:
    said = [_limit(found, far)] if far.context > near.context else [_LONGEST.format(longest=found.max_context)]
    if found.read is not None:
        tokens = next(each.overtakes for each in found.formats if each.dtype == found.base)
        said.append(_OVERTAKES.format(tokens=tokens) if tokens else _NEVER.format(longest=found.max_context))
    return " ".join(said)


def _format(found: Explained, near: Row, far: Row) -> str:
    if not any(each.decode for each in found.formats):
        return _UNMEASURED.format(why=_LATENT if found.decoder.latent else _NO_DECODE)
    if far.best == found.base:
        both = f"at {near.context:,} or at {far.context:,} tokens"
        where = both if far.context > near.context else f"at {near.context:,} tokens"
        return _STAY.format(base=found.base, where=where)
    more = [_more(found, row, far.best) for row in (near, far)]
    apart = f" and {more[1]} at {far.context:,}" if far.context > near.context else ""
    pays = next(each.pays for each in found.formats if each.dtype == far.best)
    said = _PAYS.format(tokens=pays) if pays and far.context > near.context else ""
    facts = {"near": more[0], "near_context": near.context, "far": apart, "pays": said}
    return _FASTER.format(best=far.best, base=found.base, **facts)


def _more(found: Explained, row: Row, dtype: str) -> str:
    return f"{row.of(dtype).tokens / row.of(found.base).tokens - 1:+.0%}"


def _users(found: Explained, near: Row, far: Row) -> str:
    if found.weights is None or found.memory is None:
        why = f"the weights are ({found.why})" if found.weights is None else "the machine's memory is"
        return _MEMORY_UNKNOWN.format(why=why)
    facts = {"memory": size(found.memory), "stored": size(found.weights.stored), "base": found.base}
    if found.weights.stored >= found.memory:
        return _TOO_LARGE.format(**facts)
    smallest = min(far.cells, key=lambda cell: cell.bytes).dtype
    other = far.best if far.best != found.base else smallest
    more = ""
    if far.context > near.context:
        counts = {"far": far.of(found.base).users, "far_other": far.of(other).users}
        more = _FAR_USERS.format(context=far.context, other=other, **counts)
    counts = {"near": counted(near.of(found.base).users, "user"), "near_other": near.of(other).users}
    return _USERS.format(**facts, **counts, near_context=near.context, other=other, far=more)


def _origin(found: Explained) -> str:
    l3 = _L3.format(tokens=found.l3) if found.l3 else ""
    if found.gbps is None:
        return _NO_READS.format(machine=found.machine, l3=l3)
    own = found.decoder.group
    others = sorted({each.group for each in found.formats if each.group} - {own})
    group = _GROUP.format(group=cpu_text(others), own=own) if others else ""
    facts = {"threads": counted(found.threads, "thread"), "gbps": number(found.gbps), "group": group, "l3": l3}
    return _FROM.format(machine=found.machine, interval=between(found.low, found.high), **facts)


def measured(found: Explained) -> Iterator[str]:
    if (own := found.measured) is None:
        return
    facts = {"tokens": number(own.tokens), "context": own.context, "share": own.share, "dtype": own.dtype}
    if own.share > 1:
        yield _FASTER_THAN.format(**facts)
        return
    times = {"missing": duration(own.missing), "cache": duration(own.cache)}
    yield _MEASURED.format(**facts, **times, between=between(own.low, own.high))


def titles(found: Explained) -> Iterator[str]:
    """What model it is, and what its weights are."""
    decoder = found.decoder
    heads = f"{counted(decoder.q_heads, 'query head')} on {counted(decoder.kv_heads, 'KV head')} of {decoder.head_dim}"
    window = f", window {decoder.window:,}" if decoder.window else ""
    window += f" but in one layer of {decoder.window_every}" if decoder.window_every else ""
    latent = ", K and V in one row" if decoder.latent else ""
    shape = f"{counted(decoder.layers, 'layer')}, {heads}{latent}{window}"
    yield f"{found.model}: {shape}; up to {found.max_context:,} tokens; {counted(decoder.batch, 'sequence')} a step"
    if found.weights is None:
        yield f"weights: unknown, {found.why}; --weights BYTES gives what a step reads"
        return
    experts = f", {found.experts:.4g} of {found.weights.experts} experts in a layer" if found.experts else ""
    apart = {"extra prediction layers": found.weights.ahead, "vision and audio": found.weights.senses}
    unread = "".join(f"; not read: {name}, {size(count)}" for name, count in apart.items() if count)
    yield f"weights: {size(found.weights.stored)} stored, {size(found.read)} read by a step{experts}{unread}"
