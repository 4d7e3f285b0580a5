"""What kvbench size is asked and finds. Counts are of bytes unless a name says otherwise."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import UNSET, UnsetType

from kvbench.model.annotated import Printed, about
from kvbench.model.point import K_SCALES, TOKEN
from kvbench.model.scores import NONE, SINKS


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model whose cache is to be sized. Its first `ephemeral` layers are an encoder's."""

    model: Annotated[str, about("its name; empty where the geometry was given")]
    layers: Annotated[int, about("all of them")]
    q_heads: Annotated[int, about("query heads")]
    kv_heads: Annotated[int, about("KV heads")]
    head_dim: Annotated[int, about("elements of a row")]
    context: Annotated[int, about("tokens that every sequence holds")]
    batch: Annotated[int, about("sequences")]
    dtype: Annotated[str, about("number format of K and V")]
    scale: Annotated[str, about("number format of the scales, where there are any")]
    layout: Annotated[str, about("order of rows")]
    inner: Annotated[str, about("order inside a block of a paged cache")]
    block_tokens: Annotated[int, about("tokens of a block, paged")]
    window: Annotated[int, about("tokens that a sliding layer attends to; 0: there is none")] = 0
    window_every: Annotated[
        int, about("of so many layers the last attends to everything; 0: none does")
    ] = 0
    ephemeral: Annotated[int, about("layers of which nothing stays")] = 0
    capacity: Annotated[
        int | None, about("tokens that each layer has room for; null: what it attends to")
    ] = None
    pad: Annotated[
        int | None, about("bytes: behind each head's plane; null: the library's choice")
    ] = None
    latent: Annotated[
        int, about("elements of a K row that are V, too; 0: V has rows of its own")
    ] = 0

    v_dim: Annotated[int, about("elements of a row of V; 0: those of a row of K")] = 0
    k_scale: Annotated[
        str, about("what shares a scale of K, where the dtype has scales", *K_SCALES)
    ] = TOKEN
    sinks: Annotated[str, about("heads: every query head has a sink; none", *SINKS)] = NONE
    softcap: Annotated[float, about("absolute: cap of scores; 0: none")] = 0.0

    @property
    def sides(self) -> int:
        """Rows of a token in a KV head: one of K and one of V, or one that is both."""
        return 1 if self.latent else 2

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.q_heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers that are alike."""

    count: Annotated[int, about("how many")]
    window: Annotated[int, about("tokens that they attend to; 0: all")]
    held: Annotated[int, about("tokens of a sequence that each holds")]
    capacity: Annotated[int, about("tokens that each has room for")]
    read: Annotated[int, about("tokens of a sequence that a decode reads")]
    bytes: Annotated[int, about("bytes: held by one of them, all sequences")]


@dataclass(frozen=True, slots=True)
class Side:
    """K, or V."""

    dtype: Annotated[str, about("its number format")]
    width: Annotated[int, about("elements of a row")]
    bytes_per_token: Annotated[int, about("bytes: of a token of one sequence in one layer")]
    bytes: Annotated[int, about("bytes: of all tokens that are held, all layers and sequences")]


@dataclass(frozen=True, slots=True)
class Allocated:
    """What the library takes for all layers."""

    rows: Annotated[int, about("bytes: elements of the tokens that are held")]
    scales: Annotated[int, about("bytes: their scales")]
    unused: Annotated[int, about("bytes: room for tokens that are not there")]
    block_rounding: Annotated[int, about("bytes: of last blocks, beyond the capacity")]
    row_padding: Annotated[int, about("bytes: behind rows, to whole lines")]
    head_padding: Annotated[int, about("bytes: between heads")]
    line_rounding: Annotated[int, about("bytes: behind planes, to whole lines")]
    total: Annotated[int, about("bytes: the sum of these")]
    page_rounding: Annotated[int, about("bytes: behind it, to whole pages")]
    mapped: Annotated[int, about("bytes: total and page_rounding")]
    page_bytes: Annotated[int, about("bytes: of a page")]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a paged cache."""

    tokens: Annotated[int, about("tokens of a block")]
    bytes: Annotated[int, about("bytes: K, V and scales of a block, in one layer")]
    per_layer: Annotated[int, about("blocks of all sequences in a layer that attends to most")]
    table_bytes: Annotated[
        int, about("bytes: of a page table that all layers share; in no other number")
    ]


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """Layers of which nothing stays."""

    layers: Annotated[int, about("how many")]
    persistent: Annotated[int, about("bytes: that stay, which is none")]
    passing: Annotated[int, about("bytes: of one while it runs, all sequences")]


@dataclass(frozen=True, slots=True)
class Rung:
    """The same model with so many KV heads."""

    name: Annotated[str, about("MHA, GQA or MQA")]
    kv_heads: Annotated[int, about("KV heads")]
    group: Annotated[int, about("query heads on each")]
    bytes: Annotated[int, about("bytes: as those above")]
    bytes_per_token: Annotated[int, about("bytes: as those above")]
    ai: Annotated[float, about("FLOP per byte: as above")]
    own: Annotated[bool, about("whether it is the model itself")]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Many users on several copies of the model."""

    users: Annotated[int, about("sequences of each replica")]
    replicas: Annotated[int, about("copies of the model")]
    bytes_per_user: Annotated[int, about("bytes: of a sequence")]
    bytes_per_replica: Annotated[
        int, about("bytes: of its sequences, and of the weights where they are given")
    ]
    bytes: Annotated[int, about("bytes: of all replicas")]
    weights: Annotated[int | None, about("bytes: of the weights of one; null where not given")]


@dataclass(frozen=True, slots=True)
class Reserved:
    """What sequences of several lengths take, one way."""

    bytes: Annotated[float, about("bytes: allocated for a sequence, on average")]
    waste: Annotated[float, about("share of these bytes that hold no token, padding among them")]
    padding: Annotated[float, about("share of these bytes in which no token can lie")]
    sequences: Annotated[int | None, about("sequences that fit the budget; null without one")]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Sequences of several lengths, stored in two ways."""

    lengths: Annotated[str, about("as they were asked for")]
    mean: Annotated[float, about("tokens: of a sequence, on average")]
    block_tokens: Annotated[int, about("tokens of a block")]
    contiguous: Annotated[
        Reserved, about("a cache for each sequence, with room for all that it may hold")
    ]
    paged: Annotated[Reserved, about("as many blocks of a pool as each sequence needs")]


@dataclass(frozen=True, slots=True)
class Admission:
    """What fits a memory."""

    budget: Annotated[int | None, about("bytes: of that memory; null where not given")]
    tokens: Annotated[
        int | None, about("tokens of one sequence that fit; null without budget, or without end")
    ]
    sequences: Annotated[
        int | None, about("whole sequences that fit; null without budget, or where nothing is held")
    ]
    reservation: Annotated[
        Reservation | None, about("sequences of several lengths; null where none are given")
    ]


@dataclass(frozen=True, slots=True)
class Level:
    """All caches of a level that serve the threads."""

    level: Annotated[int, about("1, 2, 3")]
    capacity: Annotated[int, about("bytes: of all its caches that serve these CPUs")]
    holds: Annotated[
        int, about("bytes: the largest footprint that they hold, split evenly over the threads")
    ]
    fits: Annotated[bool, about("whether they hold the slice")]
    context: Annotated[int | None, about("most tokens at which a layer's slice fits; null: at any")]
    gbps: Annotated[
        float | None, about("GB/s: the best read of that level; null where not measured")
    ]


@dataclass(frozen=True, slots=True)
class Fit:
    """Where the slice of a layer lies; words as kvbench.regime has them."""

    machine: Annotated[str, about("this machine, or the path that was named")]
    cpus: Annotated[tuple[int, ...], about("one thread on each")]
    slice_bytes: Annotated[
        int, about("bytes: that a decode walks in a layer that attends to most, padded")
    ]
    word: Annotated[
        str, about("L1, L2, L3, DRAM, mixed, unknown; empty where no layer keeps anything")
    ]
    reason: Annotated[str, about("why, as a word")]
    walked: Annotated[
        float, about("bytes: that are held against limit, of a thread or of all; 0: no size tells")
    ]
    limit: Annotated[float, about("bytes: that the reason is about")]
    levels: Annotated[tuple[Level, ...], about("of the caches that serve these CPUs")]


@dataclass(frozen=True, slots=True)
class Bound:
    """How fast steps can be: at the rate of a measured decode, or at most, if reads in their best
    form are all that they do.
    """

    bytes: Annotated[int, about("bytes: what a step reads")]
    level: Annotated[
        str, about("where they lie: L1, L2, L3, DRAM, mixed, unknown; empty where nothing is read")
    ]
    footprint: Annotated[
        int | None, about("bytes: walked by what was measured; null if unknown")
    ] = None
    gbps: Annotated[
        float | None, about("GB/s: of what was measured, a decode with its query and output")
    ] = None
    tokens: Annotated[
        float | None, about("tokens per second: of the whole batch; null if unknown")
    ] = None
    low: Annotated[
        float | None, about("tokens per second: by the low end of the reads; null if unknown")
    ] = None
    high: Annotated[
        float | None, about("tokens per second: by the high end of the reads; null if unknown")
    ] = None
    reason: Annotated[str, about("why it is unknown; else empty")] = ""
    decode: Annotated[str, about("the point whose decode was measured; empty: the best read")] = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """Bounds without the weights and with them."""

    kv: Annotated[Bound, about("reading the cache alone")]
    weights: Annotated[
        Bound | None, about("reading the weights too; null where they are not given")
    ]


@dataclass(frozen=True, slots=True)
class Buffer:
    name: Annotated[str, about("what it holds")]
    kind: Annotated[str, about("how long it must stay", "input", "persistent", "scratch", "output")]
    offset: Annotated[int, about("bytes: where it begins")]
    end: Annotated[int, about("bytes: where it ends")]
    size: Annotated[int, about("bytes: of it")]
    canary: Annotated[int, about("bytes: of a known pattern behind it")]
    shape: Annotated[tuple[int, ...], about("elements in each direction")]
    about: Annotated[str, about("where its size is from")]


@dataclass(frozen=True, slots=True)
class KindBytes:
    """What buffers of a kind take."""

    bytes: Annotated[int, about("bytes: of them")]
    share: Annotated[float, about("share of the total")]


@dataclass(frozen=True, slots=True)
class ArenaMap:
    """Where each buffer of a decoder lies."""

    model: Annotated[str, about("its name")]
    context: Annotated[int, about("tokens")]
    dtype: Annotated[str, about("number format of the cache")]
    align: Annotated[int, about("bytes: every buffer begins at a multiple of it")]
    total: Annotated[int, about("bytes: of all of it, with gaps and canaries")]
    kinds: Annotated[
        dict[str, KindBytes], about("by kind of buffer, and between for gaps and canaries")
    ]
    buffers: Annotated[tuple[Buffer, ...], about("in their order")]

    def buffer(self, name: str) -> Buffer:
        return next(buffer for buffer in self.buffers if buffer.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size(Printed):
    """What the cache of a decoder takes."""

    decoder: Annotated[Decoder, about("what was asked")]
    formula: Annotated[str, about("the bytes as a product, with the numbers in it")]
    bytes: Annotated[
        int, about("bytes: K, V and scales of the tokens that are held, all layers and sequences")
    ]
    bytes_per_token: Annotated[int, about("bytes: of a token of one sequence in all layers")]
    bytes_per_next_token: Annotated[
        int, about("bytes: by which one more token of a sequence lets the cache grow")
    ]
    bytes_per_layer: Annotated[int, about("bytes: of a layer that attends to most, all sequences")]
    bytes_per_layer_side: Annotated[int, about("bytes: of K in that layer; V: see `sides`")]
    sides: Annotated[tuple[Side, ...], about("K and V")]
    streamed: Annotated[
        int, about("bytes: K, V and scales that one decode step reads, all layers and sequences")
    ]
    scale_share: Annotated[
        float, about("share of the rows' bytes that scales come to on top of them")
    ]
    ai: Annotated[float, about("FLOP per byte: arithmetic intensity of a decode, 2 G / b")]
    layers: Annotated[tuple[Layers, ...], about("those that are alike, without ephemeral ones")]
    ephemeral: Annotated[Ephemeral, about("an encoder's: K and V are gone when the layer has run")]
    allocated: Annotated[Allocated, about("what the library takes for all layers")]
    blocks: Annotated[Blocks | None, about("of a paged cache; else null")]
    ladder: Annotated[tuple[Rung, ...], about("the same model with other numbers of KV heads")]
    fleet: Annotated[Fleet, about("many users on several copies of the model")]
    admission: Annotated[Admission, about("what fits a memory")]
    fit: Annotated[Fit, about("where the slice of a layer lies")]
    tokens_per_second: Annotated[
        Rates, about("at the rate of the same decode, or at most at that of the best read")
    ]
    notes: Annotated[tuple[str, ...], about("what else must be known")]
    map: Annotated[
        ArenaMap | UnsetType, about("with --map: where each buffer of a decoder lies")
    ] = UNSET
