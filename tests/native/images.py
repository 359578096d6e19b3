"""Images of modules as NVIDIA's tools write them, with variables and nothing else."""

import struct

_SHF_WRITE_ALLOC, _PROGBITS, _NOBITS, _STRTAB = 3, 1, 8, 3
_EM_CUDA = 190


def cubin(variables: dict[str, int]) -> bytes:
    """An ELF file with these sections, of so many bytes each."""
    names = [".shstrtab", *variables]
    table = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    at = {name: table.index(b"\0" + name.encode() + b"\0") + 1 for name in names}
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", at[".shstrtab"], _STRTAB, 0, 0, 64, len(table), *[0] * 4)
    for name, size in variables.items():
        sections += struct.pack(
            "<IIQQQQIIQQ", at[name], _NOBITS, _SHF_WRITE_ALLOC, 0, 64, size, 0, 0, 8, 0
        )
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack(
        "<HHIQQQIHHHHHH", 2, _EM_CUDA, 1, 0, 0, 64 + len(table), 0, 64, 0, 0, 64, len(names) + 1, 1
    )
    return header + table + sections


def fatbin(*parts: tuple[int, bytes], compressed: bool = False) -> bytes:
    """A fat binary of (kind, image); kind 1 is PTX and 2 a cubin."""
    body = b""
    for kind, image in parts:
        image += bytes(-len(image) % 8)
        packed = len(image) if compressed else 0
        flags = 0x8011 if compressed else 0x11
        header = (kind, 0x101, 64, len(image), packed, 0, 8, 1, 80, 0, 0, flags, 0, len(image))
        body += struct.pack("<HHIQIIHHIIIQQQ", *header) + image
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
