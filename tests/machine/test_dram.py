"""The theoretical peak of DRAM, against published figures for the parts."""

import pytest

from kvbench.machine import dram
from kvbench.machine.dram import dram_peak, modules_peak
from tests.machine.trees import Live

HEAD = "# dmidecode 3.4\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n"
EMPTY = "Handle 0x0001, DMI type 17, 92 bytes\nMemory Device\n\tSize: No Module Installed\n\tLocator: {}\n\n"


def device(bank="", locator="", speed="4800 MT/s", width="64 bits", name="Configured Memory Speed"):
    return (
        "Handle 0x0002, DMI type 17, 92 bytes\nMemory Device\n\tTotal Width: 80 bits\n"
        f"\tData Width: {width}\n\tSize: 64 GB\n\tLocator: {locator}\n\tBank Locator: {bank}\n"
        f"\tType: DDR5\n\tSpeed: 5600 MT/s\n\t{name}: {speed}\n\n"
    )


def listing(*devices):
    return HEAD + "".join(devices)


GENOA = [device(bank=f"P0 CHANNEL {letter}", locator="DIMM 0") for letter in "ABCDEFGHIJKL"]
MILAN = [device(locator=f"P0_Node0_Channel{i}_Dimm{d}", speed="3200 MT/s") for i in range(8) for d in range(2)]
CASCADE = [
    device(locator=f"CPU{cpu}_DIMM_{letter}1", speed="2933 MHz", name="Configured Clock Speed")
    for cpu in (1, 2)
    for letter in "ABCDEF"
]
ALIKE = [device(bank=f"Channel {letter}", locator=f"CPU{cpu} DIMM A1") for cpu in (0, 1) for letter in "ABCDEFGH"]


@pytest.mark.parametrize(
    ("devices", "gbps", "note"),
    [
        (GENOA, 460.8, "12 channels x 4800 MT/s x 64 bits"),
        (MILAN, 204.8, "8 channels x 3200 MT/s x 64 bits"),
        (ALIKE, 614.4, "16 channels x 4800 MT/s x 64 bits"),  # both sockets name their channels alike
        (CASCADE, 281.568, "12 channels x 2933 MT/s x 64 bits"),
        ([*GENOA, EMPTY.format("DIMM 1")], 460.8, "12 channels x 4800 MT/s x 64 bits"),
        (
            [device(bank=f"BANK {i}", locator=f"Controller{i}-ChannelA-DIMM0") for i in range(2)],
            76.8,
            "2 channels x 4800",
        ),
    ],
)
def test_modules(devices, gbps, note):
    fact = modules_peak(listing(*devices))
    assert fact.value == pytest.approx(gbps)
    assert (fact.confidence, fact.note[: len(note)]) == ("high", note)


def test_channels_unevenly_filled():
    fact = modules_peak(listing(*MILAN[:-1]))
    assert (fact.value, fact.confidence) == (pytest.approx(204.8), "low")
    assert "unevenly" in fact.note


@pytest.mark.parametrize(
    ("devices", "why"),
    [
        ([], "no memory modules"),
        ([EMPTY.format("A")] * 2, "no memory modules"),
        ([GENOA[0], device(bank="P0 CHANNEL B", speed="4400 MT/s")], "differ"),
        ([device(bank="P0 CHANNEL A", speed="Unknown")], "not stated"),
        ([device(bank="P0 CHANNEL A", width="Unknown")], "not stated"),
        ([device(locator="DIMM 1"), device(locator="DIMM 2")], "do not tell"),
        ([device(locator="A1"), device(locator="B1")], "do not tell"),
        (
            [device(bank="NODE 0", locator="ChannelA-DIMM0"), device(bank="NODE 1", locator="ChannelA-DIMM0")],
            "do not tell",
        ),
    ],
)
def test_what_modules_do_not_tell_is_not_guessed(devices, why):
    fact = modules_peak(listing(*devices))
    assert (fact.value, fact.confidence) == (None, "none")
    assert why in fact.note


def test_root_reads_the_modules(tmp_path, monkeypatch):
    """And others do not try: dmidecode would only complain."""

    monkeypatch.setattr(dram.shutil, "which", lambda program: f"/usr/sbin/{program}")
    monkeypatch.setattr(dram, "_dmidecode", lambda: listing(*GENOA))
    monkeypatch.setattr(dram.os, "geteuid", lambda: 0)
    assert dram_peak(Live(tmp_path), virtual=False).value == pytest.approx(460.8)
    assert dram_peak(Live(tmp_path), virtual=True).value is None
    monkeypatch.setattr(dram.os, "geteuid", lambda: 1000)
    assert "root" in dram_peak(Live(tmp_path), virtual=False).note
