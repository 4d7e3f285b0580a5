"""From the sizes of a model's tensors, by name, to what of them a step reads."""

import re
from collections import Counter
from collections.abc import Mapping

from kvbench.checkpoint.facts import Facts
from kvbench.model.weights import Weights

LAYER = re.compile(r"(?:^|\.)(?:layers|blk)\.(\d{1,9})\.")
_EXPERTS = re.compile(r"\.experts\.|_exps\.")
_INPUT = re.compile(r"(?:^|\.)(?:embed_tokens|token_embd|wte)\.weight$")
_OUTPUT = re.compile(r"(?:^|\.)(?:lm_head|output)\.weight$")
OTHER = re.compile(r"(?:^|\.)(?:vision\w*|visual|audio\w*|multi_modal_projector|mm_projector|mm|v|a)\.")


def weights_of(facts: Facts, sizes: Mapping[str, int], vocabulary: int, ahead: frozenset[int]) -> Weights:
    """`ahead`: numbers of layers that predict further tokens, which plain decoding does without."""
    found: Counter[str] = Counter()
    for name, count in sizes.items():
        found[_kind(name, ahead)] += count
    experts = facts.some("n_routed_experts", "num_local_experts", "num_experts") if found["routed"] else 0
    chosen = facts.some("num_experts_per_tok", "experts_per_token") if experts else 0
    if found["routed"] and not 0 < chosen <= experts:
        raise facts.refuse(f"it has experts, and says {chosen} of {experts} for a token")
    tied = not found["output"]
    return Weights(
        stored=found.total(),
        always=found["always"] + found["output"] + tied * found["input"],
        row=0 if tied else found["input"] // vocabulary,
        routed=found["routed"],
        experts=experts,
        chosen=chosen,
        ahead=found["ahead"],
        senses=found["senses"],
    )


def _kind(name: str, ahead: frozenset[int]) -> str:
    layer = LAYER.search(name)
    if OTHER.search(name):
        return "senses"
    if layer and int(layer[1]) in ahead:
        return "ahead"
    if layer:
        return "routed" if _EXPERTS.search(name) else "always"
    return "input" if _INPUT.search(name) else "output" if _OUTPUT.search(name) else "always"
