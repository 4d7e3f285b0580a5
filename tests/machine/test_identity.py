"""Names of CPUs, hypervisors and containers."""

import sys
from types import SimpleNamespace

import pytest

from kvbench.machine import identity as names
from kvbench.machine.identity import brand, vendor
from kvbench.machine.virtual import container, hypervisor, is_virtual
from tests.machine.trees import Live, grow, put

DMI = "sys/class/dmi/id"
CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"
X86, GUEST = (
    {"proc/cpuinfo": "processor: 0\nflags: fpu"},
    {"proc/cpuinfo": "processor: 0\nflags: fpu hypervisor"},
)
ARM = {"proc/cpuinfo": "processor: 0\nCPU implementer: 0x41\nCPU part: 0xd40"}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (X86, "none"),
        (GUEST, "unnamed"),
        (GUEST | {CLOCKS: "tsc kvm-clock"}, "KVM"),
        (GUEST | {CLOCKS: "hyperv_clocksource_tsc_page acpi_pm"}, "Hyper-V"),
        (
            GUEST
            | {
                f"{DMI}/sys_vendor": "Microsoft Corporation",
                f"{DMI}/product_name": "Virtual Machine",
            },
            "Hyper-V",
        ),
        (GUEST | {f"{DMI}/sys_vendor": "QEMU", CLOCKS: "tsc kvm-clock"}, "QEMU"),
        (X86 | {f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "m5.metal"}, "none"),
        (X86 | {"sys/hypervisor/type": "xen"}, "Xen"),
        (ARM, None),
        (
            ARM | {f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "c7g.large"},
            "Amazon EC2",
        ),
        (ARM | {f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "c7g.metal"}, "none"),
        (ARM | {f"{DMI}/sys_vendor": "GIGABYTE"}, None),
        (
            ARM | {f"{DMI}/sys_vendor": "GIGABYTE", "sys/devices/virtual/misc/kvm/dev": "10:232"},
            "none",
        ),
        (ARM | {f"{DMI}/sys_vendor": "QEMU", "sys/devices/virtual/misc/kvm/dev": "10:232"}, "QEMU"),
        (ARM | {"sys/devices/virtual/misc/kvm/dev": "10:232"}, "none"),
        (ARM | {"proc/device-tree/hypervisor/compatible": "linux,kvm"}, "linux,kvm"),
    ],
)
def test_hypervisors(files, name, tmp_path):
    found = hypervisor(put(tmp_path, files))
    assert found.value == name
    assert is_virtual(found) is (name not in (None, "none"))


@pytest.mark.parametrize(
    ("product", "vendor", "name"),
    [
        ("QEMU Virtual Machine", "QEMU", "QEMU"),
        ("KVM Virtual Machine", "QEMU", "QEMU"),
        ("KVM Virtual Machine", "Red Hat", "KVM"),
        ("Parallels ARM Virtual Machine", "Parallels International GmbH.", "Parallels"),
        ("Virtual Machine", "Microsoft Corporation", "Hyper-V"),
        ("Surface Pro", "Microsoft Corporation", None),
        ("Apple Virtualization Generic Platform", "Apple Inc.", "Apple Virtualization"),
        ("vServer", "Hetzner", "Hetzner vServer"),
        ("AHV", "Nutanix", "Nutanix AHV"),
        ("CVM", "Tencent Cloud", "Tencent Cloud"),
        ("OpenStack Nova", "Huawei Cloud", "OpenStack"),
    ],
)
def test_firmware_names(product, vendor, name, tmp_path):
    found = hypervisor(
        put(tmp_path, ARM | {f"{DMI}/product_name": product, f"{DMI}/sys_vendor": vendor})
    )
    assert found.value == name
    assert found.note or name


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({}, "none"),
        ({".dockerenv": ""}, "Docker"),
        ({"run/.containerenv": ""}, "Podman"),
        ({"proc/1/cgroup": "0::/kubepods/burstable/pod1"}, "Kubernetes"),
    ],
)
def test_containers(files, name, tmp_path):
    assert container(put(tmp_path, files)).value == name


def test_a_name_from_the_kernel(tmp_path):
    fact = brand(grow(tmp_path, brand="AMD  EPYC 9654"))
    assert (fact.value, fact.source, fact.confidence) == ("AMD EPYC 9654", "/proc/cpuinfo", "high")


def test_the_word_unknown_is_not_a_name(tmp_path):
    files = put(
        tmp_path,
        {
            "proc/cpuinfo": (
                "processor: 0\nvendor_id: unknown\nmodel name: Unknown\nuarch: sifive,u74"
            )
        },
    )
    assert (brand(files).value, vendor(files).value) == ("sifive,u74", None)


@pytest.mark.parametrize(
    ("arm", "name", "maker"),
    [
        (("0x41", "0xd4f"), "Neoverse-V2", "Arm"),
        (("0xc0", "0xac3"), "Ampere-1", "Ampere"),
        (("0x41", "0xfff"), "Arm part 0xfff", "Arm"),
        (("0x99", "0x001"), "implementer 0x99 part 0x001", "implementer 0x99"),
    ],
)
def test_arm_numbers(arm, name, maker, tmp_path):
    files = grow(tmp_path, brand=None, arm=arm)
    assert (brand(files).value, brand(files).confidence, vendor(files).value) == (
        name,
        "low",
        maker,
    )


def test_no_name_at_all(tmp_path):
    files = put(tmp_path, {})
    assert brand(files).value is vendor(files).value is None


@pytest.mark.parametrize("found", ["Grace  2", None])
def test_the_library_is_asked_if_nothing_else_knows(found, monkeypatch, tmp_path):
    """Asking it takes a second."""
    calls = []
    library = SimpleNamespace(get_cpu_info=lambda: calls.append(1) or {"brand_raw": found})
    monkeypatch.setitem(sys.modules, "cpuinfo", found and library)
    names._from_library.cache_clear()
    unknown = Live(
        put(tmp_path / "new", {"proc/cpuinfo": ARM["proc/cpuinfo"].replace("0xd40", "0xfff")}).root
    )
    known = Live(put(tmp_path / "known", ARM).root), Live(grow(tmp_path / "named").root)
    asked = [brand(files).value for files in (*known, unknown, unknown)]
    names._from_library.cache_clear()
    assert asked == ["Neoverse-V1", "Test CPU"] + ["Grace 2" if found else "Arm part 0xfff"] * 2
    assert len(calls) == bool(found) and "cpuinfo" not in vars(names)
