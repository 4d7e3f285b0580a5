"""/proc/cpuinfo."""

from kvbench.machine.tree import Files, count


def processors(files: Files) -> dict[int, dict[str, str]]:
    """Fields by processor number. What some kernels say once for all processors stands with each of them."""
    blocks, common = {}, {}
    for block in (files.text("/proc/cpuinfo") or "").split("\n\n"):
        lines = [line.partition(":") for line in block.splitlines()]
        fields = {name.strip(): value.strip() for name, colon, value in lines if colon}
        number = count(fields.get("processor", ""))
        if number is None:
            common |= fields
        else:
            blocks[number] = fields
    return {cpu: common | fields for cpu, fields in sorted(blocks.items())}
