"""Detect a hypervisor or a container between this process and the machine."""

from kvbench.machine.tree import Files
from kvbench.model import Fact

# what virtual machines write as product, maker and firmware in DMI, in this order
_VENDORS = {
    "amazon ec2": "Amazon EC2",
    "google compute engine": "Google Compute Engine",
    "alibaba cloud ecs": "Alibaba Cloud ECS",
    "openstack": "OpenStack",
    "qemu": "QEMU",
    "kvm": "KVM",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "parallels": "Parallels",
    "bochs": "Bochs",
    "firecracker": "Firecracker",
    "xen": "Xen",
    "apple virtualization": "Apple Virtualization",
    "nutanix": "Nutanix AHV",
    "tencent cloud": "Tencent Cloud",
    "vserver hetzner": "Hetzner vServer",
    "virtual machine microsoft": "Hyper-V",
}
_METAL = ".metal"  # ends the instance names of a cloud's whole hosts
_KVM = "/sys/devices/virtual/misc/kvm"
_CLOCKS = {"kvm-clock": "KVM", "hyperv_clocksource_tsc_page": "Hyper-V", "xen": "Xen"}
_MARKS = {
    "/.dockerenv": "Docker",
    "/run/.containerenv": "Podman",
    "/run/systemd/container": "container",
}
_HINTS = {
    "kubepods": "Kubernetes",
    "libpod": "Podman",
    "/docker": "Docker",
    "containerd": "containerd",
    "/lxc": "LXC",
}


def hypervisor(files: Files) -> Fact:
    """The hypervisor's name, or "none". Only x86 has a CPU flag that settles it. Elsewhere unknown
    firmware may be a guest's.
    """
    flags = [fields["flags"].split() for fields in files.processors().values() if "flags" in fields]
    flagged = any("hypervisor" in words for words in flags)
    if name := _by_kernel(files):
        return Fact(name, "/sys/hypervisor, /proc/device-tree", "high")
    # a cloud's bare metal has the same firmware names as its virtual machines
    if flags and not flagged:
        return Fact("none", "/proc/cpuinfo, no flag hypervisor", "high")
    if name := _by_firmware(files):
        return Fact(name, "/sys/class/dmi/id", "high")
    if flagged:
        return Fact(_by_clock(files) or "unnamed", "/proc/cpuinfo, flag hypervisor", "high")
    if _METAL in _firmware(files):
        return Fact("none", "/sys/class/dmi/id", "low", "the firmware names bare metal")
    if files.exists(_KVM):
        return Fact("none", _KVM, "low", "the kernel can run guests, which few guests can")
    return Fact(
        None,
        "/proc/cpuinfo",
        "none",
        "this architecture has no CPU flag for it, and the firmware's name is not known",
    )


def is_virtual(found: Fact | None) -> bool:
    """Whether the fact `hypervisor` names a hypervisor. A machine without that fact counts as bare
    metal.
    """
    return found is not None and found.value not in (None, "none")


def _by_kernel(files: Files) -> str:
    kind = files.text("/sys/hypervisor/type") or ""
    tree = files.text("/proc/device-tree/hypervisor/compatible") or ""
    return kind.capitalize() or next(iter(tree.splitlines()), "")


def _by_firmware(files: Files) -> str:
    words = _firmware(files)
    return (
        ""
        if _METAL in words
        else next((name for word, name in _VENDORS.items() if word in words), "")
    )


def _firmware(files: Files) -> str:
    names = (
        files.text(f"/sys/class/dmi/id/{name}") or ""
        for name in ("product_name", "sys_vendor", "bios_vendor")
    )
    return " ".join(names).lower()


def _by_clock(files: Files) -> str:
    clocks = files.text("/sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    return next((name for clock, name in _CLOCKS.items() if clock in clocks.split()), "")


def container(files: Files) -> Fact:
    """The container's name, or "none". "none" is never sure: a container can hide all its signs."""
    for path, name in _MARKS.items():
        if files.exists(path):
            return Fact(name, path, "high")
    for source in ("/proc/1/cgroup", "/proc/self/cgroup"):
        for hint, name in _HINTS.items():
            if hint in (files.text(source) or ""):
                return Fact(name, source, "low", f"it contains {hint!r}")
    return Fact("none", "/proc/1/cgroup", "low", "no sign of a container")
