"""Shared objects, opened by path."""

from pathlib import Path
from typing import Any

import cffi

from kvbench.errors import BadLibrary


def opened(ffi: cffi.FFI, path: Path, hint: str = "a shared object for this machine is needed") -> Any:
    try:
        return ffi.dlopen(str(path.absolute()))
    except OSError as error:
        why = str(error).partition(".  Additionally")[0]  # cffi goes on about names that are no paths
        raise BadLibrary(why, hint) from None
