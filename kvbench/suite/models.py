"""The geometry of published models, from suites/models.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

import kvbench
from kvbench.errors import BadArgument, BadLibrary, unknown_word
from kvbench.model.geometry import Geometry
from kvbench.model.weights import Weights
from kvbench.native import packed

_MODELS = Path("suites", "models.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Geometry):
    """A published model.

    latent: elements of a K row that also serve as V, if one row of each token serves all heads; 0:
    V has its own rows. weights: as published; None if the list has none. vocabulary: logits of a
    token; 0 if the list has none.
    """

    source: str
    latent: int = 0
    weights: Weights | None = None
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
    """The model of that name; an unknown name is refused."""
    known = models()
    if name not in known:
        raise unknown_word("model", name, known)
    return known[name]


def layer_weights(name: str, dtype: str) -> int:
    """Bytes of the weights of one of the model's layers, all in that format."""
    return packed(stated(name, "hidden", "intermediate").layer_elements, dtype)


def stated(name: str, *facts: str) -> Model:
    """The model of that name; refused if suites/models.toml lacks one of these facts about it."""
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
