"""Fields of a point: the geometry of a model, what its cache holds, and what attention does with
it.
"""

import hashlib
import random
from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Count, Lengths, Number, Size, about
from kvbench.model.field import of
from kvbench.model.masks import CHAIN, MASKS
from kvbench.model.scores import NONE, SINKS

EVEN, RAGGED, LISTED = "even", "ragged", "listed"  # lengths of a batch's sequences
VOCABULARY = 32_000  # logits of a token, if neither suite nor model gives a number
HEADS = ("q_heads", "kv_heads", "head_dim")  # the fields of a Shape that tell models apart


@dataclass(frozen=True, slots=True)
class Shape:
    """One decode step. Every sequence holds `context` tokens; or, if `lengths` says so, at most
    that many. window: 0 attends to all of them.
    """

    batch: Annotated[Size, about("sequences")] = of(
        "count", 1, "batch={}", "Sequences in the batch.", usual=True
    )
    q_heads: Annotated[Size, about("query heads")] = of(
        "count", None, "q={}", "Query heads.", usual=True
    )
    kv_heads: Annotated[Size, about("KV heads")] = of(
        "count", None, "kv={}", "KV heads.", usual=True
    )
    head_dim: Annotated[Size, about("elements of a row")] = of(
        "count", None, "d={}", "Elements of a row of K or V.", usual=True
    )
    context: Annotated[
        Size, about("tokens that every sequence holds; if lengths differ, the longest")
    ] = of("context", 4096, "t={}", "Tokens in every sequence, such as 8k.")
    capacity: Annotated[Size, about("tokens that each sequence has room for")] = of(
        "count",
        None,
        "cap={}",
        "Room of the cache, in tokens. [default: the context, of repack twice that]",
    )
    window: Annotated[Count, about("tokens attended to; 0: all")] = of(
        "window",
        0,
        "win={}",
        "Attend only to this many of the last tokens; 0: to all.",
        within="op",
    )
    layers: Annotated[Count, about("slices in rotation; 0: chosen by the residency")] = of(
        "layers",
        0,
        "layers={}",
        "Layers to walk in turn; 0: more than the caches hold (1 if hot or evicted); model: whole"
        " sets of its layers.",
    )
    vocabulary: Annotated[Count, about("logits of a token; 0 where the op has none")] = of(
        "count from 0",
        0,
        "{} logits",
        f"Logits of a token, for the op logits. [default: the model's, else {VOCABULARY}]",
        later=True,
    )

    full_every: Annotated[
        Count,
        about(
            "in each set of this many layers the last attends to all tokens, the others to the"
            " window; 0: none"
        ),
    ] = of(
        "full_every",
        0,
        "full={}",
        "For a step: in each set of this many layers the last attends to all tokens, the others to"
        " the window; 0: none; model: as in the model.",
        later=True,
    )
    lengths: Annotated[
        Lengths, about("lengths of the sequences: even, drawn by a seed, or listed")
    ] = of(
        "lengths",
        EVEN,
        "lengths {}",
        "Lengths of the sequences: even, all are the context; ragged:SEED, drawn from 1 to the"
        " context, the first is the context; trace:SEED, drawn from real requests, the longest is"
        " the context (trace-mean: all have the mean length, trace-longest: the longest); or a file"
        " of numbers, one for each sequence.",
        within="op",
        later=True,
    )

    q_len: Annotated[Size, about("queries of each sequence in a step, for its newest tokens")] = of(
        "queries",
        1,
        "{}",
        "Queries of each sequence in a step, for its newest tokens, as in speculative decoding: 1"
        " to 32.",
        within="op",
        later=True,
    )
    mask: Annotated[str, about("which of the newest tokens each query attends to")] = of(
        "word",
        CHAIN,
        "{}",
        "Which of the newest tokens (one for each query) each query attends to: chain, those up to"
        " its own; block, all; tree, its ancestors in a binary tree.",
        words=MASKS,
        within="op",
        later=True,
    )
    v_dim: Annotated[Count, about("elements of a row of V; 0: those of a row of K")] = of(
        "count from 0",
        0,
        "v={}",
        "Elements of a row of V; 0: head_dim. [default: the model's, else 0]",
        later=True,
        of_model=True,
    )
    sinks: Annotated[str, about("whether every query head has a sink: heads or none")] = of(
        "word",
        NONE,
        "sinks",
        "heads: every query head has a sink, a score without a token that takes a share of the"
        " weights; or none. [default: the model's, else none]",
        words=SINKS,
        within="op",
        later=True,
        of_model=True,
    )
    softcap: Annotated[Number, about("absolute: c of c * tanh(score / c); 0: no cap")] = of(
        "number",
        0.0,
        "cap {:g}",
        "Cap of the scores: c * tanh(score / c); 0: none. [default: the model's, else 0]",
        within="op",
        later=True,
        of_model=True,
    )
    alibi: Annotated[
        Number,
        about("absolute: largest bias of ALiBi, from which the heads' slopes follow; 0: none"),
    ] = of(
        "number",
        0.0,
        "alibi {:g}",
        "Largest bias of ALiBi, which sets the slopes of the query heads: usually 8; 0: none.",
        within="op",
        later=True,
    )
    kept: Annotated[Count, about("first tokens that are attended to in addition to the window")] = (
        of(
            "count from 0",
            0,
            "kept={}",
            "With a window: also attend to this many of the first tokens.",
            within="op",
            later=True,
        )
    )

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads

    @property
    def query_rows(self) -> int:
        """Query rows of a sequence that attend to the rows of one KV head."""
        return self.q_len * self.group

    @property
    def width_of_v(self) -> int:
        """Elements of a row of V, and of an output row."""
        return self.v_dim or self.head_dim

    @property
    def parts_of_flops(self) -> tuple[float, float]:
        """The shares of K and of V in the FLOPs of attention."""
        of_k = self.head_dim / (self.head_dim + self.width_of_v)
        return of_k, 1 - of_k

    @property
    def reach(self) -> int:
        """The most tokens that the queries of one sequence attend to together; 0: all."""
        return self.window and self.kept + self.window + self.q_len - 1

    @property
    def attended(self) -> int:
        """The most tokens that one query attends to."""
        return min(self.context, self.window + self.kept) if self.window else self.context

    @property
    def held(self) -> tuple[int, ...]:
        """Tokens of each sequence. For a given seed Python promises the same random()."""
        kind, _, told = self.lengths.partition(":")
        if kind == LISTED:
            return tuple(map(int, told.split(",")))
        if kind == EVEN:
            return (self.context,) * self.batch
        drawn = random.Random(int(told))
        others = (1 + int(drawn.random() * self.context) for _ in range(self.batch - 1))
        return self.context, *others


def lengths_word(lengths: str) -> str:
    """The lengths as tables and names write them. A list becomes its digest."""
    kind, _, told = lengths.partition(":")
    if kind != LISTED:
        return lengths
    return f"{kind}:{hashlib.sha256(told.encode()).hexdigest()[:12]}"
