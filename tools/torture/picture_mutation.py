"""Pictures of every format that is read: odd but whole ones, and ones with changed parts and fitting checksums."""

import io
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image
from tools.torture.byte_mutation import mutate_bytes

FORMATS = {
    "jpg": ("JPEG", ("RGB", "L", "CMYK")),
    "png": ("PNG", ("RGB", "L", "LA", "P", "RGBA", "1", "I;16")),
    "webp": ("WEBP", ("RGB", "RGBA")),
    "gif": ("GIF", ("P", "L")),
    "bmp": ("BMP", ("RGB", "L", "P", "1")),
    "tif": ("TIFF", ("RGB", "L", "CMYK", "F", "I;16", "RGBA", "1", "LAB")),
    "ppm": ("PPM", ("RGB", "L", "1")),
    "heic": ("HEIF", ("RGB", "L")),
}
SIDES = (1, 2, 3, 7, 8, 16, 31, 32, 40, 64)


def formats() -> list[str]:
    """The endings of the formats that can be made here."""
    try:
        import pillow_heif
    except ModuleNotFoundError:
        return [ending for ending in FORMATS if ending != "heic"]
    pillow_heif.register_heif_opener()
    return list(FORMATS)


def whole_picture(ending: str, rng: random.Random) -> bytes:
    """A picture that is as it should be, of an odd mode, size or with odd metadata."""
    kind, modes = FORMATS[ending]
    mode = rng.choice(modes) if rng.random() < 0.5 else modes[0]
    width, height = rng.choice(SIDES), rng.choice(SIDES)
    if rng.random() < 0.02:
        width = rng.choice((3000, 9000))
    pixels = np.frombuffer(rng.randbytes(8 * 8 * 3), np.uint8).reshape(8, 8, 3)
    image = Image.fromarray(pixels).resize((width, height))
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    elif mode == "F":
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.float32))
    elif mode == "LAB":
        from PIL import ImageCms

        srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        image = ImageCms.profileToProfile(image, srgb, lab, outputMode="LAB") or image
    else:
        image = image.convert(mode)
    options: dict[str, Any] = {}
    if kind in ("JPEG", "PNG", "WEBP", "TIFF") and rng.random() < 0.3:
        exif = Image.Exif()
        exif[0x0112] = rng.choice((0, 1, 3, 6, 8, 9, 65535))
        exif[0x010E] = "x" * rng.choice((1, 40, 5000))
        options["exif"] = exif
    if kind in ("GIF", "WEBP", "PNG", "TIFF") and mode not in ("I;16", "F", "LAB") and rng.random() < 0.1:
        options |= {"save_all": True, "append_images": [image] * 2}
    if kind == "JPEG" and rng.random() < 0.3:
        options["progressive"] = True
    if kind == "TIFF" and mode in ("RGB", "L") and rng.random() < 0.3:
        options["compression"] = rng.choice(("tiff_lzw", "tiff_deflate", "packbits"))
    if mode in ("P", "L", "RGB") and kind == "PNG" and rng.random() < 0.1:
        options["transparency"] = 0 if mode != "RGB" else (0, 0, 0)
    out = io.BytesIO()
    try:
        image.save(out, kind, **options)
    except (OSError, ValueError, RuntimeError, SystemError):  # not every format can hold every oddity
        out = io.BytesIO()
        Image.fromarray(pixels).resize((40, 40)).save(out, kind)
    return out.getvalue()


def mutated_picture(ending: str, rng: random.Random) -> bytes:
    """A picture with changed parts, or changed bytes, or one that is only odd."""
    content = whole_picture(ending, rng)
    kind = rng.random()
    if kind < 0.12:
        return content
    if kind < 0.55:
        return PARTS.get(ending, mutate_bytes)(content, rng)
    if kind < 0.6:  # of another format than its name says
        return whole_picture(rng.choice([other for other in FORMATS if other not in ("heic", ending)]), rng)
    return mutate_bytes(content, rng)


def _mutated_png(content: bytes, rng: random.Random) -> bytes:
    """A chunk changed, dropped, doubled or moved; every checksum fits."""
    chunks, at = [], 8
    while at + 8 <= len(content):
        (n,) = struct.unpack(">I", content[at : at + 4])
        chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + n]))
        at += 12 + n
    chosen = rng.randrange(len(chunks))
    name, data = chunks[chosen]
    match rng.randrange(6):
        case 0:
            del chunks[chosen]
        case 1:
            chunks.insert(rng.randrange(len(chunks)), chunks[chosen])
        case 2:
            chunks[chosen] = (
                rng.choice((b"tRNS", b"PLTE", b"eXIf", b"iCCP", b"zTXt", b"acTL", b"fcTL", b"gAMA")),
                data,
            )
        case 3:
            head = bytearray(chunks[0][1])
            where = rng.choice((0, 4))
            head[where : where + 4] = struct.pack(">I", rng.choice((0, 1, 65_536, 2**31 - 1, 2**32 - 1, 12_000)))
            chunks[0] = (chunks[0][0], bytes(head))
        case 4:
            head = bytearray(chunks[0][1])
            head[rng.randrange(8, len(head))] = rng.randrange(256)
            chunks[0] = (chunks[0][0], bytes(head))
        case _:
            chunks[chosen] = (name, mutate_bytes(data, rng))
    packed = [
        struct.pack(">I", len(part)) + key + part + struct.pack(">I", zlib.crc32(key + part)) for key, part in chunks
    ]
    return content[:8] + b"".join(packed)


def _mutated_jpeg(content: bytes, rng: random.Random) -> bytes:
    """A segment before the pixels changed, dropped, doubled, or its size or tables replaced."""
    segments, at = [], 2
    while at + 4 <= len(content) and content[at] == 0xFF and content[at + 1] != 0xDA:
        (n,) = struct.unpack(">H", content[at + 2 : at + 4])
        segments.append((content[at + 1], content[at + 4 : at + 2 + n]))
        at += 2 + n
    rest = content[at:]
    chosen = rng.randrange(len(segments))
    marker, data = segments[chosen]
    match rng.randrange(5):
        case 0:
            del segments[chosen]
        case 1:
            segments.insert(rng.randrange(len(segments)), segments[chosen])
        case 2:
            segments[chosen] = (rng.choice((0xE0, 0xE1, 0xE2, 0xEE, 0xFE, 0xC0, 0xC2, 0xC4, 0xDB, 0xDD)), data)
        case 3:
            frame = next((at for at, (kind, _) in enumerate(segments) if kind in (0xC0, 0xC2)), chosen)
            changed = bytearray(segments[frame][1])
            if len(changed) >= 6:
                where = rng.choice((0, 1, 3, 5))
                if where in (1, 3):
                    changed[where : where + 2] = struct.pack(">H", rng.choice((0, 1, 65_535, 20_000)))
                else:
                    changed[where] = rng.choice((0, 1, 2, 4, 12, 255))
            segments[frame] = (segments[frame][0], bytes(changed))
        case _:
            segments[chosen] = (marker, mutate_bytes(data, rng)[:65_000])
    packed = [bytes((0xFF, kind)) + struct.pack(">H", len(part) + 2) + part for kind, part in segments]
    return content[:2] + b"".join(packed) + rest


def _mutated_head(n: int) -> Callable[[bytes, random.Random], bytes]:
    """Numbers in the first bytes replaced: sizes, offsets, counts."""

    def mutate(content: bytes, rng: random.Random) -> bytes:
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(min(n, max(1, len(content) - 4)))
            number = rng.choice((0, 1, 2, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1))
            width = rng.choice((1, 2, 4))
            changed[at : at + width] = (number & (256**width - 1)).to_bytes(width, rng.choice(("little", "big")))
        return bytes(changed)

    return mutate


def _mutated_ppm(content: bytes, rng: random.Random) -> bytes:
    words = content.split(maxsplit=4)
    at = rng.randrange(len(words))
    words[at] = rng.choice((b"P1", b"P3", b"P5", b"P6", b"P7", b"0", b"-1", b"65536", b"9" * 30, b"#", b"1e3", b"\xff"))
    return b"\n".join(words)


PARTS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "png": _mutated_png,
    "jpg": _mutated_jpeg,
    "webp": _mutated_head(40),
    "gif": _mutated_head(40),
    "bmp": _mutated_head(60),
    "tif": _mutated_head(200),
    "ppm": _mutated_ppm,
    "heic": _mutated_head(600),
}
