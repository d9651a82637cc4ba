"""Signatures of made-up deletion requests (BIP-340): the event store obeys no request without one.

In plain Python, a few milliseconds each, and not for secrets: the time it takes depends on them.
"""

import hashlib
from typing import Final

_P: Final = 2**256 - 2**32 - 977
_N: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_G: Final = (
    0x79BE667E_F9DCBBAC_55A06295_CE870B07_029BFCDB_2DCE28D9_59F2815B_16F81798,
    0x483ADA77_26A3C465_5DA4FBFC_0E1108A8_FD17B448_A6855419_9C47D08F_FB10D4B8,
)


def _times_base(scalar: int) -> tuple[int, int]:
    x = y = z = 0
    for bit in f"{scalar:b}":
        if z:
            square = y * y % _P
            middle, slope = 4 * x * square % _P, 3 * x * x % _P
            x, y, z = (
                (new := (slope * slope - 2 * middle) % _P),
                (slope * (middle - new) - 8 * square * square) % _P,
                2 * y * z % _P,
            )
        if bit == "1":
            if not z:
                x, y, z = (*_G, 1)
                continue
            # A smaller multiple is on the way: not the base point, nor its negative.
            squared = z * z % _P
            across, up = (_G[0] * squared - x) % _P, (_G[1] * squared * z - y) % _P
            step = across * across % _P
            cube, base = step * across % _P, x * step % _P
            new = (up * up - cube - 2 * base) % _P
            x, y, z = new, (up * (base - new) - y * cube) % _P, z * across % _P
    inverse = pow(z, -1, _P)
    return x * inverse**2 % _P, y * inverse**3 % _P


def _tagged(tag: str, data: bytes) -> int:
    prefix = hashlib.sha256(tag.encode()).digest() * 2
    return int.from_bytes(hashlib.sha256(prefix + data).digest(), "big")


def public_key(secret: int) -> str:
    return f"{_times_base(secret)[0]:064x}"


def sign(id: str, secret: int) -> str:
    x, y = _times_base(secret)
    secret = _N - secret if y % 2 else secret
    hidden = secret ^ _tagged("BIP0340/aux", bytes(32))
    key, message = x.to_bytes(32, "big"), bytes.fromhex(id)
    nonce = _tagged("BIP0340/nonce", hidden.to_bytes(32, "big") + key + message) % _N
    rx, ry = _times_base(nonce)
    nonce = _N - nonce if ry % 2 else nonce
    challenge = _tagged("BIP0340/challenge", rx.to_bytes(32, "big") + key + message) % _N
    return f"{rx:064x}{(nonce + challenge * secret) % _N:064x}"
