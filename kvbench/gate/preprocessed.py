"""What a compiler sees of a library's sources: a digest that comments and empty lines are no part of.

Sources with the same digest make the same library. It tells nothing of two that differ: these are built and measured.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kvbench.gate.tools import Tools

_SEEN = (".c", ".h")  # by the preprocessor, where a library is made of them
_UNREAD = (".md",)  # by whatever builds


def preprocessed(source: Path, known: Tools) -> str:
    """A digest of each object's flags and preprocessed text, and of all other files' lines. "" where that fails."""
    made = source.with_name("made")
    if known.configured(source, made, ()).returncode:
        return ""
    found = hashlib.sha256()
    try:
        commands = json.loads((made / "compile_commands.json").read_text())
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for text in (*pool.map(_object, commands), *_others(source / "kernels")):
                own = text.replace(os.fsencode(source.parent), b"")  # where the copy lies is no part of it
                found.update(f"{len(own)} ".encode() + own)
    except (OSError, ValueError, KeyError, subprocess.CalledProcessError):
        return ""
    return found.hexdigest()


def _object(entry: dict[str, str]) -> bytes:
    """Its command, and what that would compile."""
    words = shlex.split(entry["command"])
    place = words.index("-o")
    command = [word for word in (*words[:place], *words[place + 2 :]) if word != "-c"]
    ran = subprocess.run([*command, "-E", "-P"], cwd=entry["directory"], capture_output=True, check=True)
    return shlex.join(command).encode() + b"\n" + _lines(ran.stdout)


def _others(kernels: Path) -> Iterator[bytes]:
    """CMake's files without lines that are comments, and whatever else it may be told to read."""
    for path in sorted(kernels.rglob("*")):
        if path.is_file() and path.suffix not in (*_SEEN, *_UNREAD):
            text = path.read_bytes()
            if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
                text = _lines(re.sub(rb"(?m)^\s*#\s.*$", b"", text))
            yield os.fsencode(path.relative_to(kernels)) + b"\n" + text


def _lines(text: bytes) -> bytes:
    """Without indentation and empty ones. No string goes over several lines."""
    return b"\n".join(filter(None, map(bytes.strip, text.splitlines())))
