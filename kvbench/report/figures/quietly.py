"""Matplotlib, loaded whatever backend MPLBACKEND names, and without its words on caches that it has to make."""

import logging
import os

_log = logging.getLogger("matplotlib")
_level, _asked = _log.level, os.environ.pop("MPLBACKEND", None)
_log.setLevel(logging.ERROR)
try:
    import matplotlib.font_manager  # noqa: F401
finally:
    _log.setLevel(_level)
    if _asked is not None:
        os.environ["MPLBACKEND"] = _asked
