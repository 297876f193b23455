"""Launches of the kernels in library.cu with their results by numpy."""
import numpy as np
from case import Case, InOut, Out, equal


def parts_of_words(random):
    n = 100
    x = random.integers(0, 1 << 32, n, dtype=np.uint64).astype(np.uint32)
    y = np.roll(x, -1)
    unsigned = lambda v, kind: v.view(kind).reshape(n, -1).astype(np.int64)
    words = lambda v, kind: np.ascontiguousarray(v.astype(np.int64).astype(kind)).view(np.uint32).ravel()
    (bx, by), (hx, hy) = ([unsigned(v, kind) for v in (x, y)] for kind in (np.uint8, np.uint16))
    sx, sy = (unsigned(v, np.int16) for v in (x, y))
    largest = np.maximum(np.maximum(x.view(np.int32), y.view(np.int32)), 3).view(np.uint32)
    wanted = np.stack([
        words(bx + by, np.uint8), words(abs(bx - by), np.uint8), words(np.maximum(sx, sy), np.uint16),
        words((bx > by) * 255, np.uint8), abs(bx - by).sum(1).astype(np.uint32), words((hx + hy + 1) // 2, np.uint16),
        words(np.clip(sx - sy, -32768, 32767), np.uint16), words(np.minimum(bx, by), np.uint8), largest,
        words(np.maximum(np.minimum(sx, sy), 0), np.uint16),
    ], 1)
    return Case("parts_of_words", (1, 1, 1), (128, 1, 1), 0, [x, Out((n, 10), np.uint32), np.int32(n)], [equal(wanted)])


def quotients_of_128_bits(random):
    a = random.integers(0, 1 << 63, 60, dtype=np.uint64)
    at = lambda i: int(a[i % 60])
    wanted = []
    for i in range(60):
        quotient = (at(i) * at(i + 1) + at(i)) // (at(i + 2) | 1)
        wanted += [quotient & ((1 << 64) - 1), quotient >> 64]
    return Case("quotients_of_128_bits", (1, 1, 1), (64, 1, 1), 0, [a, Out(120, np.uint64), np.int32(60)],
                [equal(np.array(wanted, np.uint64))])


def odd_addresses(random):
    a = random.integers(-1000, 1000, 50).astype(np.int32)
    raw = bytes((int(a[j % 50]) ^ 0x5a) & 255 for j in range(57))
    words = sum(int.from_bytes(raw[j:j + 8], "little") for j in range(50))
    wanted = []
    for t in range(32):
        scratch = np.zeros(64, np.int64)
        for j in range(64):
            scratch[(j * 7 + t) & 63] = a[(t + j) % 50]
        p = scratch if t & 1 else scratch[8:]
        total = sum((int(p[j]) & 0xffffffff) * (j + 1) for j in range(32)) + words * (t + 1)
        wanted.append(total & ((1 << 64) - 1))
    return Case("odd_addresses", (1, 1, 1), (32, 1, 1), 64, [a, Out(32, np.uint64), np.int32(50)], [equal(np.array(wanted, np.uint64))])


def cases():
    random = np.random.default_rng(3)
    yield parts_of_words(random)
    yield quotients_of_128_bits(random)
    f = random.integers(-9, 9, 100).astype(np.float32)
    yield Case("cache_hints", (1, 1, 1), (128, 1, 1), 0, [f, Out(100, np.float32), np.int32(100)], [equal(6 * f + 3)])
    tiles = random.standard_normal((4, 64, 4)).astype(np.float32)
    wanted = tiles[:, ::-1].copy()
    wanted[1:, :, 3] = 0
    yield Case("pipeline", (1, 1, 1), (64, 1, 1), 0, [tiles, Out(tiles.shape, np.float32), np.int32(4)], [equal(wanted)])
    i = random.integers(-50, 50, 256).astype(np.int32)
    rows = i[::-1].reshape(8, 32)
    yield Case("group_copy", (1, 1, 1), (256, 1, 1), 0, [i, Out(512, np.int32)],
               [equal(np.concatenate([rows.cumsum(1).ravel(), np.repeat(rows.max(1), 32)]).astype(np.int32))])
    t = np.arange(64)
    yield Case("barriers", (1, 1, 1), (64, 1, 1), 0, [Out(192, np.int32)],
               [equal(np.concatenate([(63 - t) * 10 + step for step in range(3)]).astype(np.int32))])
    yield Case("atomic_references", (2, 1, 1), (64, 1, 1), 0, [InOut(np.zeros(1, np.int32)), Out(128, np.int32)],
               [equal(np.array([384], np.int32)), equal(np.ones(128, np.int32))])
    yield odd_addresses(random)
