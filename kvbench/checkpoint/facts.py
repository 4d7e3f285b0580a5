"""The numbers of a model under config.json's names; the geometry they give; and which tensors, by
name, a step reads.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvbench.errors import BadArgument
from kvbench.model.scores import HEADS, NONE
from kvbench.model.weights import Weights
from kvbench.suite import Model

_LARGEST = 1 << 31
_FORMS = ("full_attention", "sliding_attention", "chunked_attention")
_NOT_YET = (
    "index_topk",
    "full_attention_interval",
    "linear_num_key_heads",
    "hybrid_override_pattern",
    "attn_layer_period",
    "layers_block_type",
    "mamba_d_state",
    "num_kv_shared_layers",
)
_WITH_SINKS = ("gpt_oss", "gpt-oss")  # model types whose query heads have sinks
LAYER = re.compile(r"(?:^|\.)(?:layers|blk)\.(\d{1,9})\.")
_EXPERTS = re.compile(r"\.experts\.|_exps\.")
_INPUT = re.compile(r"(?:^|\.)(?:embed_tokens|token_embd|wte)\.weight$")
_OUTPUT = re.compile(r"(?:^|\.)(?:lm_head|output)\.weight$")
OTHER = re.compile(
    r"(?:^|\.)(?:vision\w*|visual|audio\w*|multi_modal_projector|mm_projector|mm|v|a)\."
)


class Facts:
    """The numbers of a model file. Every error names the file and the key."""

    def __init__(self, path: Path, found: Mapping[str, Any]) -> None:
        self.path = path
        self.found = {name: value for name, value in found.items() if value is not None}

    def refuse(self, what: str) -> BadArgument:
        return BadArgument(f"{self.path}: {what}", "give the geometry to kvbench size by options")

    def count(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """The first of `names` that is present, checked to be in range."""
        name = next((name for name in names if name in self.found), names[0])
        value = self.found.get(name, default)
        if type(value) is not int or not least <= value < _LARGEST:
            what = (
                "missing"
                if value is None
                else f"{str(value)[:60]}, not a number from {least} to {_LARGEST - 1}"
            )
            raise self.refuse(f"{name} is {what}")
        return value

    def some(self, *names: str) -> int:
        """As count(); 0 if none is present."""
        return self.count(*names, default=0, least=0)

    def number(self, name: str) -> float:
        """A number from 0 on; 0 if it is absent."""
        value = self.found.get(name, 0)
        if type(value) not in (int, float) or not 0 <= value < _LARGEST:
            raise self.refuse(f"{name} is {str(value)[:60]}, not a number from 0 to {_LARGEST}")
        return float(value)

    def listed(self, name: str) -> list[Any]:
        if not isinstance(value := self.found.get(name, []), list):
            raise self.refuse(f"{name} is not a list")
        return value

    @property
    def layers(self) -> int:
        return self.count("num_hidden_layers", "n_layer")

    @property
    def head_dim(self) -> int:
        heads = self.count("num_attention_heads", "n_head")
        return self.count(
            "head_dim",
            default=self.found.get("head_dim") or self.count("hidden_size", "n_embd") // heads,
        )


def model_of(facts: Facts, weights: Weights | None) -> Model:
    if odd := [name for name in _NOT_YET if facts.found.get(name)]:
        raise facts.refuse(
            f"it has {odd[0]}: not every layer keeps K and V of all its tokens, or reads them"
        )
    longest = facts.count("max_position_embeddings", "n_positions")
    shape: dict[str, Any] = _heads(facts) | _window(facts) | _scores(facts)
    shape |= {"layers": facts.layers, "max_context": longest}
    return Model(name=facts.path.stem, **shape, source=str(facts.path), weights=weights)


def _scores(facts: Facts) -> dict[str, Any]:
    """The model's sinks, softcap and ALiBi slopes."""
    has_sinks = facts.found.get("model_type") in _WITH_SINKS
    softcap = facts.number("attn_logit_softcapping")
    return {"softcap": softcap, "sinks": HEADS if has_sinks else NONE}


def _heads(facts: Facts) -> dict[str, int]:
    """Heads as the cache has them. If K and V come from one latent row, all query heads share
    it.
    """
    heads = facts.count("num_attention_heads", "n_head")
    if rank := facts.some("kv_lora_rank"):
        return {
            "q_heads": heads,
            "kv_heads": 1,
            "head_dim": rank + facts.count("qk_rope_head_dim"),
            "latent": rank,
        }
    own = facts.count("num_key_value_heads", default=heads)
    if heads % own:
        raise facts.refuse(f"{heads} query heads do not divide into {own} KV heads")
    found = {"q_heads": heads, "kv_heads": own, "head_dim": facts.head_dim}
    width = facts.count("v_head_dim", default=facts.head_dim)
    return found | ({"v_dim": width} if width != facts.head_dim else {})


def _window(facts: Facts) -> dict[str, int]:
    """The window in tokens, and N if one layer in N attends to all tokens."""
    kinds = facts.listed("layer_types")
    turned = facts.listed("no_rope_layers")
    layers = facts.layers
    if odd := [kind for kind in kinds if kind not in _FORMS]:
        raise facts.refuse(f"layer_types: {str(odd[0])[:60]!r} is not known")
    window = facts.some("attention_chunk_size", "sliding_window")
    if not window or facts.found.get("use_sliding_window") is False:
        return {}
    if every := facts.some("sliding_window_pattern"):
        whole = layers // every
    else:
        whole = turned.count(0) if turned else kinds.count(_FORMS[0])
        if len(kinds or turned) not in (0, layers):
            raise facts.refuse(f"layer_types has {len(kinds or turned)} of {layers} layers")
    if whole == layers:
        return {}
    if whole and layers // (layers // whole) != whole:
        raise facts.refuse(f"{whole} of {layers} layers attend to all tokens, in no regular order")
    return {"window": window, "window_every": layers // whole if whole else 0}


def weights_of(
    facts: Facts,
    sizes: Mapping[str, int],
    elements: Mapping[str, int],
    vocabulary: int,
    ahead: frozenset[int],
) -> Weights:
    """The weights that a step reads. `sizes`: bytes of each tensor. `ahead`: layers that predict
    further tokens; plain decoding skips them.
    """
    found, numbers = _by_kind(sizes, ahead), _by_kind(elements, ahead)
    experts = (
        facts.some("n_routed_experts", "num_local_experts", "num_experts") if found["routed"] else 0
    )
    chosen = facts.some("num_experts_per_tok", "experts_per_token") if experts else 0
    if found["routed"] and not 0 < chosen <= experts:
        raise facts.refuse(f"it has experts, but a token uses {chosen} of {experts}")
    tied = not found["output"]
    weights = Weights(
        stored=found.total(),
        always=found["always"] + found["output"] + tied * found["input"],
        row=0 if tied else found["input"] // vocabulary,
        routed=found["routed"],
        experts=experts,
        chosen=chosen,
        ahead=found["ahead"],
        senses=found["senses"],
    )
    always = numbers["always"] + numbers["output"] + tied * numbers["input"]
    multiplied = always + (numbers["routed"] * chosen // experts if experts else 0)
    usual = multiplied == weights.multiplied()
    return weights if usual else replace(weights, parameters=multiplied)


def _by_kind(counts: Mapping[str, int], ahead: frozenset[int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[_kind(name, ahead)] += count
    return found


def _kind(name: str, ahead: frozenset[int]) -> str:
    layer = LAYER.search(name)
    if OTHER.search(name):
        return "senses"
    if layer and int(layer[1]) in ahead:
        return "ahead"
    if layer:
        return "routed" if _EXPERTS.search(name) else "always"
    return "input" if _INPUT.search(name) else "output" if _OUTPUT.search(name) else "always"
