"""Remove private facts from a run: host names, the CPU's name, and paths."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from kvbench.model import Check, Fact, Machine, Record
from kvbench.store import Manifest
from kvbench.store.manifest import COMMIT

HIDDEN = "(left out)"

# facts that name the hardware or its system
_FACTS = frozenset({"brand", "vendor", "microcode", "kernel", "command_line"})
# fields of a plan that hold paths
_PATHS = ("library", "plugin", "against", "against_plugin", "peers", "pythons")
_VERSIONS = frozenset({"hostname", "platform", "cpu_model_name"})
# private entries of the versions; a commit's words are not searched for elsewhere
_OWN = frozenset({*COMMIT, *_VERSIONS})
_SHORTEST = 2  # letters: a shorter name tells nothing, and occurs by chance in many texts
# names of files, with or without a folder. The match starts at a word's start: else long texts are
# slow
_FILE = r"(?<![\w.+@~/-])[\w.+@~/-]+\.(?:toml|so)(?!\w)"
_SYSTEM = r"(?!/(?:sys|proc)/)"  # the same on every machine
_PATH = re.compile(rf"{_FILE}|(?<![\w./~-])(?:~|\.{{1,2}})?{_SYSTEM}/[\w.+@~-]+(?:/[\w.+@~-]*)*")
_SLASHED = re.compile(rf"(?<!\S){_SYSTEM}\S*/\S*")  # in an error, where any such word may be a path
_OVERRIDE = re.compile(r"(?<=^override: ).*")


def redact(
    manifest: Manifest, machine: Machine, checks: Sequence[Check], records: Iterable[Record]
) -> tuple[Manifest, Machine, tuple[Check, ...], tuple[Record, ...]]:
    """The run without private facts, in all of its texts. Measured values and names of points do
    not change.
    """
    names = _names(manifest, machine)
    return (
        _manifest(manifest, names),
        _without(
            replace(
                machine, facts={name: _fact(name, fact) for name, fact in machine.facts.items()}
            ),
            names,
        ),
        _without(tuple(checks), names),
        tuple(_record(each, names) for each in records),
    )


def _record(record: Record, names: Sequence[str]) -> Record:
    if not record.error and not record.flags:
        return record
    error = _without(_SLASHED.sub(HIDDEN, record.error), names)
    return replace(record, error=error, flags=_without(record.flags, names))


def _names(manifest: Manifest, machine: Machine) -> list[str]:
    """Private names in the run, the longest first; for a host also the part before its domain."""
    known = (
        *(machine.facts[name].value for name in _FACTS if name in machine.facts),
        *(manifest.versions[name] for name in _VERSIONS if name in manifest.versions),
    )
    texts = {str(name).strip() for name in known if name is not None}
    texts.add(manifest.versions.get("hostname", "").partition(".")[0])
    return sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True)


def _manifest(manifest: Manifest, names: Sequence[str]) -> Manifest:
    """The manifest without private facts. Its points have none. The command is left out: the
    options tell what was asked for.
    """
    asked = str(manifest.options.get("suite", ""))
    known = replace(
        manifest,
        suite=HIDDEN if "/" in asked or asked.endswith(".toml") else manifest.suite,
        command=HIDDEN,
        versions={
            name: HIDDEN if name in _OWN else text for name, text in manifest.versions.items()
        },
        options={
            name: HIDDEN if word and (name in _OWN or "/" in str(word)) else word
            for name, word in manifest.options.items()
        },
        engines=tuple(
            replace(engine, path=_hidden(engine.path), python=_hidden(engine.python))
            for engine in manifest.engines
        ),
    )
    own = (field.name for field in fields(known) if field.name != "plan")
    facts = {name: _without(getattr(known, name), names) for name in own}
    paths = {name: _hidden(getattr(manifest.plan, name)) for name in _PATHS}
    return replace(known, plan=replace(manifest.plan, **paths), **facts)


def _hidden(paths: Any) -> Any:
    """Hide one path, several paths, or paths by name. Empty paths stay empty."""
    if isinstance(paths, dict):
        return {name: _hidden(path) for name, path in paths.items()}
    if isinstance(paths, str):
        return HIDDEN if paths else ""
    return (HIDDEN,) * len(paths)


def _fact(name: str, fact: Fact) -> Fact:
    if name in _FACTS:
        return Fact(None, "", "none", HIDDEN)
    return replace(fact, source=_OVERRIDE.sub(HIDDEN, fact.source))


def _without(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, str):
        for name in names:
            value = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", HIDDEN, value, flags=re.IGNORECASE)
        return _PATH.sub(HIDDEN, value)
    if isinstance(value, dict):
        return {key: _without(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without(inner, names) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{field.name: _without(getattr(value, field.name), names) for field in fields(value)},
        )
    return value
