"""Read published models from their files: geometry, and which weights a step reads."""

import os
from pathlib import Path

from kvbench.errors import BadArgument, one_of
from kvbench.suite import Model, models


def find(text: str, where: str = "MODEL") -> tuple[str, Model, str]:
    """Find a model of suites/models.toml by name, or read a model file. Return its name, its
    geometry, and why its weights are unknown (empty if known). `where`: the option or argument that
    named it.
    """
    if (known := models().get(text)) is not None:
        return text, known, "" if known.weights else "suites/models.toml does not list them"
    path = Path(text)
    if path.suffix == ".gguf":
        from kvbench.checkpoint.gguf import read_gguf

        return path.stem, *read_gguf(path)
    path = path / "config.json" if os.path.isdir(path) else path
    if path.suffix == ".json" or os.path.exists(path):
        from kvbench.checkpoint.config import read_config

        return path.absolute().parent.name, *read_config(path)
    raise BadArgument(
        f"{where}: {text[:60]!r} is not a known model or a file",
        f"{one_of(text, models())}; a config.json, or a .gguf",
    )


def walked(text: str, where: str) -> Model:
    """Find a model whose cache a kernel can walk. No kernel walks rows that K and V share."""
    _, found, _ = find(text, where)
    if found.latent:
        raise BadArgument(
            f"{where}: no kernel walks the latent rows of {text[:60]!r}",
            "kvbench explain and kvbench size accept this model",
        )
    return found


def is_file(text: str) -> bool:
    """Whether the text names a file, not a model."""
    return text not in models()
