"""From the sizes of a model's tensors, by name, to what of them a step reads."""

import re
from collections import Counter
from collections.abc import Mapping

from kvbench.errors import BadArgument
from kvbench.model.weights import Weights

LAYER = re.compile(r"(?:^|\.)(?:layers|blk)\.(\d{1,9})\.")
_EXPERTS = re.compile(r"\.experts\.|_exps\.")
_INPUT = re.compile(r"(?:^|\.)(?:embed_tokens|token_embd|wte)\.weight$")
_OUTPUT = re.compile(r"(?:^|\.)(?:lm_head|output)\.weight$")
OTHER = re.compile(r"(?:^|\.)(?:vision\w*|visual|audio\w*|multi_modal_projector|mm_projector|mm|v|a)\.")


def weights_of(
    sizes: Mapping[str, int], vocabulary: int, ahead: frozenset[int], experts: int = 0, chosen: int = 0
) -> Weights:
    """`ahead`: numbers of layers that predict further tokens, which plain decoding does without."""
    found: Counter[str] = Counter()
    tables = 0
    for name, count in sizes.items():
        kind = _kind(name, ahead)
        found[kind] += count
        tables += kind == "input"
    if found["routed"] and not 0 < chosen <= experts:
        raise BadArgument(f"it has experts, and says {chosen} of {experts} for a token", "name another file")
    untied = bool(found["output"])
    return Weights(
        stored=found.total(),
        always=found["always"] + found["output"] + (0 if untied else found["input"]),
        row=found["input"] // vocabulary if untied and tables else 0,
        routed=found["routed"],
        experts=experts if found["routed"] else 0,
        chosen=chosen if found["routed"] else 0,
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
