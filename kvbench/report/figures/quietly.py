"""Load Matplotlib, whatever backend MPLBACKEND names, without its messages on building caches."""

import logging
import os

_level, _asked = logging.getLogger("matplotlib").level, os.environ.pop("MPLBACKEND", None)
logging.getLogger("matplotlib").setLevel(logging.ERROR)
import matplotlib.font_manager  # noqa: E402, F401

logging.getLogger("matplotlib").setLevel(_level)
os.environ |= {"MPLBACKEND": _asked} if _asked else {}
