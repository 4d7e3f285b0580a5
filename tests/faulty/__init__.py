"""Libraries and plug-ins that crash, hang, lie or cheat."""

import shutil
import subprocess
from pathlib import Path

from kvbench.native import library_path

_SOURCE = Path(__file__).with_name("faulty.c")
_PLUGIN = Path(__file__).with_name("plugin.c")
_KERNELS = Path(__file__).resolve().parents[2] / "kernels"

# Variants of plugin.c. No check can notice the fault of "rarely".
HONEST = {"right", "rarely", "talks"}
# What a sweep or a profile says of the other variants.
FAULTS = {
    "wrong": "off by 0.5",
    "nans": "off by nan",
    "late": "off by",
    "silent": "off by",
    "places": "off by",
    "glances": "off by",
    "samples": "off by",
    "before": "wrote beside max, sum and acc",
    "behind": "wrote beside max, sum and acc",
    "nudges": "writes to what it reads",
    "asks": "writes to what it reads",
    "shortens": "writes to what it reads",
    "crash": "was killed by SIGSEGV",
    "leaves": "ended with exit code 0",
    "quits": "ended with exit code 0",
    "hangs": "it hangs",
    "closes": "ended with exit code 1",
    "spins": "leaves 1 thread behind",
    "crowds": "in threads of its own",
    "moves": "changes which CPUs its threads may run on",
    "rounds": "changed how the CPU rounds",
    "flushes": "changed how the CPU rounds",
}


def build(folder: Path) -> Path:
    """Build a library in `folder`, with the interface file beside it, as every library needs."""
    real, made = library_path(), folder / "faulty.so"
    shutil.copy(real.with_name("abi.h"), folder)
    link = [f"-L{real.parent}", f"-l:{real.name}", f"-Wl,-rpath,{real.parent}", "-ldl", "-lm"]
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            f"-I{_KERNELS}",
            "-o",
            made,
            _SOURCE,
            *link,
        ],
        check=True,
    )
    return made


def build_plugin(path: Path, *options: str) -> Path:
    """Build the documented plug-in and its faulty variants; `options` are the compiler's."""
    command = [
        "cc",
        "-O1",
        "-march=native",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        f"-I{_KERNELS}",
        *options,
    ]
    subprocess.run([*command, "-o", path, _PLUGIN, "-lm"], check=True)
    return path
