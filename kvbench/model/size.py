"""What kvbench size is asked and finds. Counts are of bytes unless a name says otherwise."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model whose cache is to be sized. Of its layers the first `ephemeral` are an encoder's: nothing of them stays.

    Of every `window_every` of the others the last one attends to everything, the rest to `window` tokens; window 0 is no
    window, window_every 0 no layer that attends to everything. capacity None: each layer has room for what it attends
    to. pad None: the library's choice.
    """

    model: str
    layers: int
    q_heads: int
    kv_heads: int
    head_dim: int
    context: int
    batch: int
    dtype: str
    scale: str
    layout: str
    inner: str
    block_tokens: int
    window: int = 0
    window_every: int = 0
    ephemeral: int = 0
    capacity: int | None = None
    pad: int | None = None

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.q_heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Layers:
    """`count` layers that are alike. Tokens of a sequence: each layer holds `held` in room for `capacity`, and a decode
    reads `read`; window 0 is none. bytes: K, V and scales of what one layer holds, of all sequences."""

    count: int
    window: int
    held: int
    capacity: int
    read: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Allocated:
    """What the library takes for all layers, `total`, is the sum of what stands above it; `mapped` is that in pages."""

    rows: int
    scales: int
    unused: int  # room for tokens that are not there
    block_rounding: int  # of the last block of each sequence
    row_padding: int  # behind rows that end within a line
    head_padding: int  # between heads, so that they do not share cache sets
    line_rounding: int  # of planes to whole lines
    total: int
    page_rounding: int
    mapped: int
    page_bytes: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """Of a paged cache. bytes: K, V and scales of one block in one layer. per_layer: of all sequences, in a layer that
    attends to most."""

    tokens: int
    bytes: int
    per_layer: int
    table_bytes: int  # of a page table that all layers share


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """Layers of which nothing stays; `passing`: bytes of one while it runs."""

    layers: int
    persistent: int
    passing: int


@dataclass(frozen=True, slots=True)
class Rung:
    """The same model with so many KV heads. ai: FLOP for each byte of the cache that a decode reads."""

    name: str
    kv_heads: int
    group: int
    bytes: int
    bytes_per_token: int
    ai: float
    own: bool


@dataclass(frozen=True, slots=True)
class Fleet:
    """`users` sequences on each of `replicas`, whose weights are counted where they are known."""

    users: int
    replicas: int
    bytes_per_user: int
    bytes_per_replica: int
    bytes: int
    weights: int | None


@dataclass(frozen=True, slots=True)
class Reserved:
    """bytes: allocated for a sequence, on average. waste: the share of them that holds no token, padding among it.
    padding: the share of them in which none can lie. sequences: that fit the budget."""

    bytes: float
    waste: float
    padding: float
    sequences: int | None


@dataclass(frozen=True, slots=True)
class Reservation:
    """Sequences of these lengths, each with a cache that has room for all it may hold, or with as many blocks of a pool as
    it needs."""

    lengths: str
    mean: float  # tokens
    block_tokens: int
    contiguous: Reserved
    paged: Reserved


@dataclass(frozen=True, slots=True)
class Admission:
    """What fits `budget`: tokens of one sequence by the formula, no more than its capacity (None: no end); whole
    sequences as allocated."""

    budget: int | None
    tokens: int | None
    sequences: int | None
    reservation: Reservation | None


@dataclass(frozen=True, slots=True)
class Level:
    """All caches of a level that serve the threads: of `capacity` they hold a footprint of `holds`, evenly split.

    context: the most tokens at which a layer's slice still fits; None: it always does. gbps: of reads, if measured.
    """

    level: int
    capacity: int
    holds: int
    fits: bool
    context: int | None
    gbps: float | None


@dataclass(frozen=True, slots=True)
class Fit:
    """Where the slice of a layer lies that a decode walks with one thread on each of `cpus`; word as kvbench.regime."""

    machine: str
    cpus: tuple[int, ...]
    slice_bytes: int
    word: str
    reason: str
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """Tokens per second at most, of all sequences together, where each step reads `bytes`, which lie in `level`, as fast as
    plain reads of `footprint` bytes did; None where that is not known, and `reason` says why."""

    bytes: int
    level: str
    footprint: int | None = None
    gbps: float | None = None
    tokens: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """`kv`: reading the cache alone; with `weights`, those too."""

    kv: Bound
    weights: Bound | None


@dataclass(frozen=True, slots=True)
class Size:
    """`bytes`: K, V and scales of the tokens that are held, by the formula; `streamed`: those that a decode reads.

    A token takes `bytes_per_token` in all layers of one sequence, of which `bytes_per_next_token` stay when windows are
    full. scale_share: of the rows. A layer that attends to most, of all sequences: `bytes_per_layer`, and K or V of it.
    """

    decoder: Decoder
    formula: str
    bytes: int
    bytes_per_token: int
    bytes_per_next_token: int
    bytes_per_layer: int
    bytes_per_layer_side: int
    streamed: int
    scale_share: float
    ai: float
    layers: tuple[Layers, ...]
    ephemeral: Ephemeral
    allocated: Allocated
    blocks: Blocks | None
    ladder: tuple[Rung, ...]
    fleet: Fleet
    admission: Admission
    fit: Fit
    tokens_per_second: Rates
    notes: tuple[str, ...]
