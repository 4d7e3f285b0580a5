"""Libraries and plug-ins that crash, hang, lie or cheat."""

import shutil
import subprocess
from pathlib import Path

from kvbench.native import library_path

_SOURCE = Path(__file__).with_name("faulty.c")
_PLUGIN = Path(__file__).with_name("plugin.c")
_KERNELS = Path(__file__).resolve().parents[2] / "kernels"

# Variants of plugin.c. Nobody can notice what is wrong with "rarely"; "skims" is another, which its speed betrays.
HONEST = {"right", "rarely", "talks"}
# And what is said of the others: in a sweep or a profile; and by verify, where that says something else.
FAULTS = {
    "wrong": ("off by 0.5", "times the allowed error"),
    "nans": ("off by nan", "times the allowed error"),
    "late": ("off by", "times the allowed error"),
    "silent": ("off by", "times the allowed error"),
    "places": ("off by", "times the allowed error"),
    "glances": ("off by", "times the allowed error"),
    "samples": ("off by", "times the allowed error"),
    "before": ("wrote beside max, sum and acc", ""),
    "behind": ("wrote beside max, sum and acc", ""),
    "nudges": ("writes to what it reads", ""),
    "asks": ("writes to what it reads", ""),
    "shortens": ("writes to what it reads", ""),
    "crash": ("was killed by SIGSEGV", ""),
    "leaves": ("ended with exit code 0", ""),
    "quits": ("ended with exit code 0", ""),
    "hangs": ("it hangs", ""),
    "closes": ("ended with exit code 1", ""),
    "moves": ("moves threads to other CPUs", ""),
    "spins": ("leaves 1 thread behind", ""),
    "crowds": ("in threads of its own", ""),
    "forks": ("leaves 1 of its own processes behind", ""),
    "rounds": ("changed how the CPU rounds", ""),
    "flushes": ("changed how the CPU rounds", ""),
}


def build(folder: Path) -> Path:
    """Into `folder`, with the interface beside it, as a library must have it."""
    real, made = library_path(), folder / "faulty.so"
    shutil.copy(real.with_name("abi.h"), folder)
    link = [f"-L{real.parent}", f"-l:{real.name}", f"-Wl,-rpath,{real.parent}", "-ldl", "-lm"]
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-I{_KERNELS}", "-o", made, _SOURCE, *link], check=True
    )
    return made


def build_plugin(path: Path, *options: str) -> Path:
    """The documented plug-in and its wrong relatives; `options` are the compiler's."""
    command = ["cc", "-O1", "-march=native", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{_KERNELS}", *options]
    subprocess.run([*command, "-o", path, _PLUGIN, "-lm"], check=True)
    return path
