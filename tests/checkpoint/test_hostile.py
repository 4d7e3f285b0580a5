"""Broken and lying files give one line and exit code 2, quickly, in little memory."""

import json
import os
import struct
import subprocess
import sys

import pytest

from tests.checkpoint.made import KINDS, config, folder, gguf_file
from tests.checkpoint.test_known_answers import BASE, LLAMA
from tests.cli.test_cli import refused

HUGE = 5 << 30  # bytes of a file with nothing in it


def header(tensors=0, keys=0, more=b"", version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + more


def key(name, kind, value):
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


def tensor(name, axes, kind):
    return (
        struct.pack("<Q", len(name))
        + name
        + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, kind, 0)
    )


ONE = key(b"a", 4, struct.pack("<I", 1))
GGUF = {
    "empty": b"",
    "garbage": os.urandom(4096),
    "version": header(version=9),
    "a billion tensors": header(tensors=10**9),
    "a billion keys": header(keys=10**9),
    "all at once": header(2**64 - 1, 2**64 - 1),
    "a long name": header(keys=1, more=struct.pack("<Q", 2**63)),
    "a long text": header(keys=1, more=key(b"a", 8, struct.pack("<Q", 2**62))),
    "a long list": header(keys=1, more=key(b"a", 9, struct.pack("<IQ", 10, 2**60))),
    "many texts": header(keys=1, more=key(b"a", 9, struct.pack("<IQ", 8, 2**31))),
    "as many texts as it may": header(keys=1, more=key(b"a", 9, struct.pack("<IQ", 8, 2**21))),
    "a list of lists": header(keys=1, more=key(b"a", 9, struct.pack("<IQ", 9, 1))),
    "an unknown type": header(keys=1, more=key(b"a", 99, b"")),
    "a key that comes again": header(keys=2, more=2 * ONE),
    "no alignment": header(keys=1, more=key(b"general.alignment", 4, struct.pack("<I", 0))),
    "nothing in it": header(),
    "many axes": header(tensors=1, more=tensor(b"t", [1] * 9, 0)),
    "a large tensor": header(tensors=1, more=tensor(b"t", [2**40, 2**40], 0)),
    "a type of tensor": header(tensors=1, more=tensor(b"t", [4], 999)),
}
SPARSE = (
    "as many texts as it may",
    "a billion tensors",
    "many texts",
    "nothing in it",
    "a long list",
    "empty",
)
OWN = config(**LLAMA)
CONFIG = {
    "empty": "",
    "garbage": "\0\1\2",
    "deep": "[" * 500_000,
    "a list": "[]",
    "nothing in it": "{}",
    "a word": json.dumps(OWN | {"num_hidden_layers": "many"}),
    "negative": json.dumps(OWN | {"num_attention_heads": -1}),
    "not a number": json.dumps(OWN | {"head_dim": 1e300}),
    "larger than any": json.dumps(OWN)[:-1] + ', "vocab_size": 1' + "0" * 5000 + "}",
    "heads": json.dumps(OWN | {"num_key_value_heads": 7}),
    "a word as a cap": json.dumps(OWN | {"attn_logit_softcapping": "50"}),
    "a cap below zero": json.dumps(OWN | {"attn_logit_softcapping": -50.0}),
    "no width": json.dumps(OWN | {"v_head_dim": 0}),
    "kinds of layers": json.dumps(
        OWN | {"layer_types": ["linear_attention"] * 32, "sliding_window": 1}
    ),
    "too few kinds": json.dumps(OWN | {"layer_types": ["full_attention"], "sliding_window": 1}),
    "no order": json.dumps(
        OWN
        | {
            "layer_types": ["full_attention"] * 20 + ["sliding_attention"] * 12,
            "sliding_window": 1,
        }
    ),
    "what it is": json.dumps(OWN | {"index_topk": 2048}),
    "text of no kind": json.dumps({"text_config": 3}),
}


def said(path, capsys):
    refused(capsys, "explain", str(path), "--machine", "/nowhere", words=(path.name,))


@pytest.mark.parametrize("case", GGUF)
def test_gguf(case, tmp_path, capsys):
    path = tmp_path / "model.gguf"
    path.write_bytes(GGUF[case])
    said(path, capsys)


def test_a_gguf_file_that_was_cut_off(tmp_path, capsys):
    path = gguf_file(
        tmp_path / "m.gguf", "llama", BASE, {"token_embd.weight": ((1000, 512), KINDS.F16)}
    )
    whole = path.stat().st_size
    for count in (whole - 1, whole - 1000 * 512 * 2, 4000, 100, 24, 20, 4, 3):
        os.truncate(path, count)
        said(path, capsys)


@pytest.mark.parametrize("case", CONFIG)
def test_config(case, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(CONFIG[case])
    said(path, capsys)


INDEX = {  # of a good config.json
    "no map": "{}",
    "garbage": "{",
    "many": json.dumps({"weight_map": dict.fromkeys(map(str, range(500_000)), "a")}),
    "no number": json.dumps({"weight_map": {}, "metadata": {"total_size": [1]}}),
}


@pytest.mark.parametrize("case", INDEX)
def test_index(case, tmp_path, capsys):
    place = folder(tmp_path / "model", OWN)
    (place / "model.safetensors.index.json").write_text(INDEX[case])
    said(place / "model.safetensors.index.json", capsys)


# ---- what only a process of its own shows --------------------------------------------------------


def pipe(path):
    os.mkfifo(path)


def loop(path):
    path.symlink_to(path)


def sparse(start):
    def make(path):
        path.write_bytes(start)
        os.truncate(path, HUGE)

    return make


def listing(path):
    """The largest JSON that is read, with as many values as fit."""
    path.write_text("[" + "[]," * 340_000 + "[]]")


HEAVY = [
    *(("model.gguf", sparse(GGUF[case])) for case in SPARSE),
    *((name, make) for name in ("model.gguf", "config.json") for make in (pipe, loop, os.mkdir)),
    ("config.json", sparse(b"{")),
    ("config.json", listing),
]


# KiB at most and seconds of CPU: the kernel's account of a child begins with what its parent held
TOLD = """
import atexit, sys, time
from kvbench.cli import main
lines = lambda: open("/proc/self/status")
peak = lambda: next(line.split()[1] for line in lines() if line.startswith("VmHWM"))
atexit.register(lambda: print(peak(), time.process_time()))
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("name", "make"), HEAVY, ids=range(len(HEAVY)))
def test_hostile_files_take_little_time_and_memory(name, make, tmp_path):
    make(tmp_path / name)
    command = [sys.executable, "-c", TOLD, "explain", str(tmp_path / name)]
    child = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (
        child.returncode == 2
        and child.stderr.startswith("kvbench: ")
        and child.stderr.count("\n") == 1
    ), child.stderr
    peak, seconds = map(float, child.stdout.split())
    assert peak <= 300 << 10 and seconds <= 2
