"""Relocations of the instruction sets that kernels are built for: how wide an address is, and which bits it takes.

By their numbers, for pyelftools does not name them all.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    width: int  # bytes
    mask: int  # the bits of a number of that width which are the address
    bias: int = 0  # a relative address counts from the end of its field


_WORD, _LONG = (1 << 32) - 1, (1 << 64) - 1
_ADR, _LOW12 = 3 << 29 | 0x7FFFF << 5, 0xFFF << 10  # of adr and adrp; of add, ldr and str

_X86_64 = {
    **dict.fromkeys((1, 16, 17, 18, 24, 25), Kind(8, _LONG)),  # 64 DTPMOD64 DTPOFF64 TPOFF64 PC64 GOTOFF64
    **dict.fromkeys((3, 10, 11, 21, 23), Kind(4, _WORD)),  # GOT32 32 32S DTPOFF32 TPOFF32
    **dict.fromkeys((2, 4, 9, 41, 42), Kind(4, _WORD, 4)),  # PC32 PLT32 GOTPCREL GOTPCRELX REX_GOTPCRELX
    **dict.fromkeys((19, 20, 22, 34), Kind(4, _WORD, 4)),  # TLSGD TLSLD GOTTPOFF GOTPC32_TLSDESC
    35: Kind(0, 0),  # TLSDESC_CALL
}
_AARCH64 = {
    **dict.fromkeys((257, 260), Kind(8, _LONG)),  # ABS64 PREL64
    **dict.fromkeys((258, 261), Kind(4, _WORD)),  # ABS32 PREL32
    **dict.fromkeys((282, 283), Kind(4, 0x3FFFFFF)),  # JUMP26 CALL26
    **dict.fromkeys((273, 280), Kind(4, 0x7FFFF << 5)),  # LD_PREL_LO19 CONDBR19
    279: Kind(4, 0x3FFF << 5),  # TSTBR14
    **dict.fromkeys((274, 275, 276), Kind(4, _ADR)),  # ADR_PREL_LO21 ADR_PREL_PG_HI21 ADR_PREL_PG_HI21_NC
    **dict.fromkeys((311, 513, 541, 562), Kind(4, _ADR)),  # ADR_GOT_PAGE; pages of TLSGD, TLSIE, TLSDESC
    **dict.fromkeys((277, 278, 284, 285, 286, 299), Kind(4, _LOW12)),  # ADD_ABS and LDST8 to 128_ABS _LO12_NC
    **dict.fromkeys((312, 313, 514, 542, 563, 564), Kind(4, _LOW12)),  # LD64_GOT; low bits of TLSGD, TLSIE, TLSDESC
    569: Kind(0, 0),  # TLSDESC_CALL
}
KINDS = {"EM_X86_64": _X86_64, "EM_AARCH64": _AARCH64}  # by the machine as pyelftools calls it
