"""Geometry of published models, from suites/models.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

import kvbench
from kvbench.errors import BadArgument, BadLibrary, unknown_word
from kvbench.model.geometry import Geometry
from kvbench.model.weights import Weights
from kvbench.native import block_of

_MODELS = Path("suites", "models.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Geometry):
    """A published model.

    latent: elements of a K row that are V, too, where one row of each token serves all heads; 0: V
    has its own. weights: those published, None where the list does not say. hidden, intermediate,
    vocabulary: what a token has beside attention, its feed-forward and its logits; 0 where the list
    does not say.
    """

    source: str
    latent: int = 0
    weights: Weights | None = None
    hidden: int = 0
    intermediate: int = 0
    vocabulary: int = 0


@cache
def models() -> dict[str, Model]:
    """The models of suites/models.toml, by name."""
    for folder in kvbench.__path__:
        if (path := Path(folder) / _MODELS).is_file():
            found = tomllib.loads(path.read_text()).items()
            named = {name: {"name": name, **facts} for name, facts in found}
            return msgspec.convert(named, dict[str, Model])
    raise BadLibrary(f"{_MODELS} is not installed", "install kvbench again: pip install .")


def model(name: str) -> Model:
    known = models()
    if name not in known:
        raise unknown_word("model", name, known)
    return known[name]


def layer_weights(name: str, dtype: str) -> int:
    """Bytes of one of its layers' weights, all of them in that format: attention, and a gated
    feed-forward.
    """
    known = stated(name, "hidden", "intermediate")
    rows = 2 * known.q_heads + 2 * known.kv_heads
    count = known.hidden * (rows * known.head_dim + 3 * known.intermediate)
    elements, size = block_of(dtype)
    return -(-count // elements) * size


def stated(name: str, *facts: str) -> Model:
    """A model of which suites/models.toml says these, too."""
    found = model(name)
    if missing := [fact for fact in facts if not getattr(found, fact)]:
        others = [
            other for other, each in models().items() if all(getattr(each, fact) for fact in facts)
        ]
        raise BadArgument(
            f"model: {_MODELS} has no {', '.join(missing)} size of {name}",
            f"one of: {', '.join(others)}",
        )
    return found
