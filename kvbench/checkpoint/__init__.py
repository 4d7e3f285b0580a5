"""Models as others publish them, read from their files: geometry, and what a step reads of their
weights.
"""

import os
from pathlib import Path

from kvbench.errors import BadArgument, one_of
from kvbench.suite import Model, models


def find(text: str, where: str = "MODEL") -> tuple[str, Model, str]:
    """A model of suites/models.toml by its name, or a file of one: what it is called, its geometry,
    and why its weights are not known; else empty. `where`: the option or argument that names it.
    """
    if (known := models().get(text)) is not None:
        return text, known, "" if known.weights else "suites/models.toml does not say them"
    path = Path(text)
    if path.suffix == ".gguf":
        from kvbench.checkpoint.gguf import read_gguf

        return path.stem, *read_gguf(path)
    path = path / "config.json" if os.path.isdir(path) else path
    if path.suffix == ".json" or os.path.exists(path):
        from kvbench.checkpoint.config import read_config

        return path.absolute().parent.name, *read_config(path)
    raise BadArgument(
        f"{where}: {text[:60]!r} is no known model, and no file",
        f"{one_of(text, models())}; a config.json, or a .gguf",
    )


def walked(text: str, where: str) -> Model:
    """The same, where a kernel is to walk its cache: none walks rows that K and V share."""
    _, found, _ = find(text, where)
    if found.latent:
        raise BadArgument(
            f"{where}: no kernel walks the latent rows of {text[:60]!r}",
            "kvbench explain and kvbench size take it",
        )
    return found


def is_file(text: str) -> bool:
    """Whether this is to be read as a file, and not as a name."""
    return text not in models()
