#!/usr/bin/env python3
"""Writes crypto.txt: the key schedule, records and sealing computed by a second implementation.

Only the Python standard library is used, and nothing of lib/crypto, so that a mistake would have to be made twice.
Run without arguments to rewrite the file, with --check to compare.
"""
import hashlib
import hmac
import pathlib
import struct
import sys

# --- primitives ---------------------------------------------------------------------------------------------------------

P = 2**255 - 19


def x25519(scalar: bytes, point: bytes) -> bytes:
    """RFC 7748, section 5."""
    k = int.from_bytes(scalar, "little") & ~7 & ~(1 << 255) | (1 << 254)
    u = int.from_bytes(point, "little") & ~(1 << 255)
    x1, x2, z2, x3, z3, swap = u, 1, 0, u, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a, b * b, d * a, c * b
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


BASE_POINT = (9).to_bytes(32, "little")

# Ed25519: RFC 8032, section 5.1, with affine points.
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def edwards_add(a, b):
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2
    return (
        (x1 * y2 + x2 * y1) * pow(1 + t, P - 2, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - t, P - 2, P) % P,
    )


def edwards_times(k, point):
    out = (0, 1)
    while k:
        if k & 1:
            out = edwards_add(out, point)
        point = edwards_add(point, point)
        k >>= 1
    return out


def edwards_base():
    y = 4 * pow(5, P - 2, P) % P
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (P - x if x & 1 else x, y)


B = edwards_base()


def edwards_bytes(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def ed25519_expand(seed):
    digest = hashlib.sha512(seed).digest()
    a = int.from_bytes(digest[:32], "little") & ~7 & ~(1 << 255) & (2**255 - 1) | (1 << 254)
    return a, digest[32:]


def ed25519_public(seed):
    return edwards_bytes(edwards_times(ed25519_expand(seed)[0], B))


def ed25519_sign(seed, message):
    a, prefix = ed25519_expand(seed)
    r = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % L
    big_r = edwards_bytes(edwards_times(r, B))
    k = int.from_bytes(hashlib.sha512(big_r + ed25519_public(seed) + message).digest(), "little") % L
    return big_r + ((r + k * a) % L).to_bytes(32, "little")


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def extract(salt, ikm):
    return mac(salt, ikm)


def expand(prk, info, size):
    out, block, i = b"", b"", 1
    while len(out) < size:
        block = mac(prk, block + info + bytes([i]))
        out += block
        i += 1
    return out[:size]


# AES-256-GCM: FIPS 197 and NIST SP 800-38D.
def make_sbox():
    def times(a, b):
        out = 0
        while b:
            if b & 1:
                out ^= a
            a = a << 1 ^ (0x11B if a & 0x80 else 0)
            b >>= 1
        return out

    box = []
    for value in range(256):
        inverse = next((i for i in range(256) if times(value, i) == 1), 0)
        out = 0x63
        for shift in range(5):
            out ^= (inverse << shift | inverse >> (8 - shift)) & 0xFF
        box.append(out)
    return box


SBOX = make_sbox()


def xtime(a):
    return (a << 1 ^ (0x1B if a & 0x80 else 0)) & 0xFF


def aes256(key, block):
    words = [list(key[i : i + 4]) for i in range(0, 32, 4)]
    rcon = 1
    for i in range(8, 60):
        word = list(words[-1])
        if i % 8 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= rcon
            rcon = xtime(rcon)
        elif i % 8 == 4:
            word = [SBOX[b] for b in word]
        words.append([a ^ b for a, b in zip(words[i - 8], word)])
    keys = [sum(words[4 * r : 4 * r + 4], []) for r in range(15)]
    state = [a ^ b for a, b in zip(block, keys[0])]
    for r in range(1, 15):
        state = [SBOX[b] for b in state]
        state = [state[(i + 4 * (i % 4)) % 16] for i in range(16)]
        if r < 14:
            mixed = []
            for c in range(0, 16, 4):
                col = state[c : c + 4]
                for i in range(4):
                    a, b, d, e = (col[(i + j) % 4] for j in range(4))
                    mixed.append(xtime(a) ^ xtime(b) ^ b ^ d ^ e)
            state = mixed
        state = [a ^ b for a, b in zip(state, keys[r])]
    return bytes(state)


def gf_times(x, y):
    out = 0
    for i in range(128):
        if x >> (127 - i) & 1:
            out ^= y
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return out


def gcm_seal(key, nonce, associated, plaintext):
    h = int.from_bytes(aes256(key, bytes(16)), "big")

    def pad(data):
        return data + bytes(-len(data) % 16)

    def stream(counter):
        return aes256(key, nonce + struct.pack(">I", counter))

    cipher = b"".join(
        bytes(a ^ b for a, b in zip(plaintext[i : i + 16], stream(2 + i // 16))) for i in range(0, len(plaintext), 16)
    )
    hashed = 0
    data = pad(associated) + pad(cipher) + struct.pack(">QQ", 8 * len(associated), 8 * len(cipher))
    for i in range(0, len(data), 16):
        hashed = gf_times(hashed ^ int.from_bytes(data[i : i + 16], "big"), h)
    return cipher + bytes(a ^ b for a, b in zip(hashed.to_bytes(16, "big"), stream(1)))


# --- the formats --------------------------------------------------------------------------------------------------------


def u8(value):
    return struct.pack(">B", value)


def u16(value):
    return struct.pack(">H", value)


def u32(value):
    return struct.pack(">I", value)


def u64(value):
    return struct.pack(">Q", value)


def text(value):
    return u16(len(value)) + value.encode()


def items(values):
    return u16(len(values)) + b"".join(values)


def address(packed):
    return u8(len(packed)) + packed


def prefix(packed, length):
    return address(packed) + u8(length)


class Psk:
    def __init__(self, number, secret, cluster_set):
        p = extract(b"fabric/v1", secret)
        self.auth = expand(p, b"fabric/v1 auth" + cluster_set.encode(), 32)
        self.mix = expand(p, b"fabric/v1 mix" + cluster_set.encode(), 32)
        self.id = u32(number) + expand(p, b"fabric/v1 id", 8)


def finish(body, psks, seed):
    signed = body + b"".join(mac(psk.auth, body) for psk in psks)
    return signed + ed25519_sign(seed, signed)


def key_record(owner, instance, generation, public, nonce, psks, not_after, seed):
    body = text("fabric/v1 key record") + text("fabric") + text(owner[0]) + text(owner[1]) + instance + u64(generation)
    body += public + nonce + items([u8(1), u8(2)]) + items([psk.id for psk in psks]) + u64(not_after)
    return finish(body, psks, seed)


def state_record(owner, instance, counter, seen, psks, seed):
    body = text("fabric/v1 state record") + text("fabric") + text(owner[0]) + text(owner[1]) + instance + u64(counter)
    body += items([address(bytes([192, 0, 2, 1])), address(bytes.fromhex("20010db8") + bytes(11) + b"\x01")])
    body += items([address(bytes([198, 51, 100, 7]))]) + u8(1) + u8(0) + u16(4500)
    body += items([prefix(bytes([10, 1, 0, 0]), 16), prefix(bytes.fromhex("fd000001") + bytes(12), 48)])
    body += items([address(bytes([10, 1, 0, 1]))]) + items(seen) + items([psk.id for psk in psks])
    return finish(body, psks, seed)


def pair(low, high, shared, psk):
    """low and high: (record bytes, sequence)."""
    transcript = b"fabric/v1 pair" + b"".join(u32(len(r)) + r for r, _ in (low, high)) + u8(1) + psk.id
    prk = extract(hashlib.sha256(transcript).digest(), shared + psk.mix)

    def sa(direction, lane, sender, receiver):
        info = direction + u16(lane)
        spi = int.from_bytes(expand(prk, b"fabric/v1 spi" + info, 4), "big") & ~15 | sender % 4 << 2 | receiver % 4
        return u32(spi if spi >= 0x1000 else spi | 0x1000), expand(prk, b"fabric/v1 esp" + info, 36)

    return {
        (d, lane): sa(d.encode(), lane, *((low[1], high[1]) if d == "L>H" else (high[1], low[1])))
        for d in ("L>H", "H>L")
        for lane in (0, 1)
    }


def seal(ephemeral_private, recipient_public, context, plaintext):
    ephemeral = x25519(ephemeral_private, BASE_POINT)
    shared = x25519(ephemeral_private, recipient_public)
    both = expand(extract(ephemeral + recipient_public, shared), b"fabric/v1 seal" + context, 44)
    return ephemeral + gcm_seal(both[:32], both[32:], context, plaintext)


# --- the vectors --------------------------------------------------------------------------------------------------------


def fixed(label, size=32):
    return expand(extract(b"test vector", label.encode()), b"", size)


def vectors():
    out = {}
    psk1, psk2 = Psk(1, fixed("psk 1", 48), "fabric"), Psk(2, fixed("psk 2", 48), "fabric")
    out["psk1"], out["psk2"] = fixed("psk 1", 48), fixed("psk 2", 48)
    for i, psk in ((1, psk1), (2, psk2)):
        out[f"psk{i}.id"], out[f"psk{i}.mix"] = psk.id, psk.mix
        out[f"psk{i}.mac.of.abc"] = mac(psk.auth, b"abc")
    for name, who, generation in (("low", ("a", "node-1"), 0x18F00000_0001), ("high", ("b", "node-1"), 0x18F00000_0006)):
        private, seed = fixed(f"{name} x25519"), fixed(f"{name} ed25519")
        public = x25519(private, BASE_POINT)
        instance, nonce = fixed(f"{name} instance", 16), fixed(f"{name} nonce")
        out[f"{name}.private"], out[f"{name}.public"] = private, public
        out[f"{name}.seed"], out[f"{name}.identity"] = seed, ed25519_public(seed)
        out[f"{name}.instance"], out[f"{name}.nonce"] = instance, nonce
        out[f"{name}.key"] = key_record(who, instance, generation, public, nonce, [psk1, psk2], 2_000_000_000_000, seed)
        seen = text("b") + text("node-1") + fixed("high instance", 16) + u64(0x18F00000_0006)
        out[f"{name}.state"] = state_record(who, instance, 7, [seen] if name == "low" else [], [psk1, psk2], seed)
        out[f"{name}.identity-mac"] = mac(psk1.auth, text("fabric/v1 identity") + text(who[0]) + ed25519_public(seed))
        out[f"{name}.join-mac"] = mac(
            psk1.auth, text("fabric/v1 join request") + text(who[0]) + public + ed25519_public(seed)
        )
    shared = x25519(out["low.private"], out["high.public"])
    assert shared == x25519(out["high.private"], out["low.public"])
    for (direction, lane), (spi, key) in pair((out["low.key"], 1), (out["high.key"], 6), shared, psk2).items():
        out[f"pair.{direction}.{lane}.spi"], out[f"pair.{direction}.{lane}.key"] = spi, key
    # DeterministicEntropy(42) draws this first.
    ephemeral = hashlib.sha256(u64(42) + u64(0)).digest()
    out["seal.plaintext"] = b"a token, longer than one block of AES"
    out["seal.to.high"] = seal(ephemeral, out["high.public"], b"fabric/v1 member-token/b", out["seal.plaintext"])
    return out


def self_test():
    """Answers of RFC 7748 (section 5.2), RFC 8032 (7.1, test 2) and of the GCM specification (test case 14)."""
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert x25519(scalar, point).hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    seed = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    assert ed25519_public(seed).hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    sealed = gcm_seal(bytes(32), bytes(12), b"", bytes(16))
    assert sealed.hex() == "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"


def main():
    self_test()
    lines = "".join(f"{name} {value.hex()}\n" for name, value in vectors().items())
    path = pathlib.Path(__file__).with_name("crypto.txt")
    if "--check" in sys.argv:
        sys.exit(0 if path.read_text() == lines else f"{path} differs: run {sys.argv[0]}")
    path.write_text(lines)


if __name__ == "__main__":
    main()
