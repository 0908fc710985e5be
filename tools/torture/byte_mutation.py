"""Mutations that know nothing of the format: flipped bits, cut, doubled, moved and foreign bytes."""

import random

FOREIGN = (
    b"\0",
    b"\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\r",
    b"\n",
    b"\t",
    b'"',
    b",",
    b"\x1a",
    b"PK",
)


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """The content with one to three small damages."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = _damaged(content, rng)
    return content


def _damaged(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return rng.randbytes(rng.randint(0, 20))
    at, changed = rng.randrange(len(content)), bytearray(content)
    n = min(len(content) - at, rng.choice((1, 2, 4, 8, 16, 64, 512)))
    match rng.randrange(9):
        case 0 | 1:
            changed[at] ^= 1 << rng.randrange(8)
        case 2:
            changed[at : at + n] = rng.randbytes(n)
        case 3:
            del changed[at : at + n]
        case 4:
            changed[at:at] = changed[at : at + n]
        case 5:
            changed[at:at] = rng.choice(FOREIGN)
        case 6:
            del changed[at:]
        case 7:
            changed[at : at + n] = bytes(n) if rng.random() < 0.5 else b"\xff" * n
        case _:
            to = rng.randrange(len(content))
            changed[to : to + n] = changed[at : at + n]
    return bytes(changed)
