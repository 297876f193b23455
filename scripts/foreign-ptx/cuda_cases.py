"""Launches of the kernels in kernels.cu with their results by numpy.

A case: entry, grid, block, dynamic shared bytes, arguments, and a check. An argument is an array that the kernel reads, `Out`, or a number.
"""
import math

import numpy as np
from case import Case, Out, InOut, Struct, bf16, close, equal, exact_bf16

random = np.random.default_rng(7)
f32 = lambda *shape: random.standard_normal(shape).astype(np.float32)
small = lambda kind, *shape: random.integers(-8, 8, shape).astype(kind)


def cases():
    a, b, n = f32(1000), f32(1000), np.int32(997)
    yield Case("vector_add", (3, 1, 1), (128, 1, 1), 0, [a, b, Out(997, np.float32), n], [equal(a[:997] + b[:997])])
    ints = random.integers(-50, 50, 5000).astype(np.float32)
    yield Case("block_sum", (4, 1, 1), (256, 1, 1), 0, [ints, InOut(np.zeros(1, np.float32)), np.int32(5000)], [equal(ints.sum()[None])])
    m = f32(45, 70)
    yield Case("transpose", (3, 2, 1), (32, 8, 1), 0, [m, Out((70, 45), np.float32), np.int32(45), np.int32(70)], [equal(m.T)])
    x, y = f32(45, 37), f32(37, 50)
    yield Case("product", (2, 2, 1), (32, 8, 1), 4096, [x, y, Out((45, 50), np.float32), *map(np.int32, (45, 50, 37))], [close(x @ y, 1e-5)])
    bytes_ = random.integers(0, 256, 3001).astype(np.uint8)
    yield Case("histogram", (3, 1, 1), (256, 1, 1), 0, [bytes_, InOut(np.zeros(256, np.uint32)), np.int32(3001)],
               [equal(np.bincount(bytes_, minlength=256).astype(np.uint32))])
    i = np.arange(300)
    out = np.array([-1000, 1000, 0, 0, -1, 0, 0, 0], np.int32)
    ors = np.bitwise_or.reduce(1 << (i % 31)).astype(np.int32)
    mask = np.int32(-1)
    for j in range(13):
        mask &= ~np.int32(1 << j)
    swap = 0
    for _ in range(300):
        swap = (swap * 3 + 1) & 0xffffffff
    wanted = np.array([(i * 7 % 101).max(), (i * 7 % 101 - 50).min(), ors, np.bitwise_xor.reduce(i), mask, 300 % 10, -i.sum(),
                       np.uint32(swap).astype(np.int32)], np.int32)
    yield Case("atomics", (3, 1, 1), (128, 1, 1), 0, [InOut(out), InOut(np.zeros(1, np.uint64)), InOut(np.zeros(1)), np.int32(300)],
               [equal(wanted), equal(np.array([int(i.sum()) << 20], np.uint64)), equal(np.array([0.5 * i.sum()]))])
    h, g = small(np.float16, 32, 48), small(np.float16, 48, 32)
    product = lambda p, q: p.astype(np.float64) @ q.astype(np.float64)
    yield Case("wmma_product", (2, 2, 1), (32, 1, 1), 0, [h, g, Out((32, 32), np.float32), *map(np.int32, (32, 32, 48))],
               [equal((0.5 * product(h, g)).astype(np.float32))])
    p, q, c = small(np.float32, 16, 32), small(np.float32, 8, 16), small(np.float32, 32, 8)
    sums = (product(p.T, q.T) + c).astype(np.float32)
    yield Case("wmma_bf16", (1, 1, 1), (32, 1, 1), 0, [bf16(p), bf16(q), InOut(c)], [equal(sums.T.reshape(32, 8))])
    p, q = random.integers(-128, 128, (8, 16)).astype(np.int8), random.integers(-128, 128, (32, 16)).astype(np.int8)
    yield Case("wmma_s8", (1, 1, 1), (32, 1, 1), 0, [p, q, Out((8, 32), np.int32)], [equal((product(p, q.T) + 3).astype(np.int32))])
    p, q = small(np.float32, 16, 8), small(np.float32, 16, 8)
    yield Case("wmma_tf32", (1, 1, 1), (32, 1, 1), 0, [p, q, Out((16, 16), np.float32)], [equal(product(p, q.T).astype(np.float32))])
    p, q = random.standard_normal((8, 16)), random.standard_normal((8, 16))
    yield Case("wmma_f64", (1, 1, 1), (32, 1, 1), 0, [p, q, Out((8, 8), np.float64)], [close(product(p, q.T).T, 1e-12)])
    p, q = small(np.float16, 16, 8), small(np.float16, 16, 32)
    yield Case("wmma_half_sums", (1, 1, 1), (32, 1, 1), 0, [p, q, Out((8, 32), np.float16)],
               [equal((product(p.T, q) + 1).astype(np.float16))])
    for k in (16, 64):
        p, q = small(np.float16, 16, k), small(np.float16, k, 8)
        yield Case("mma_pipeline", (1, 1, 1), (32, 1, 1), 0, [p, q, Out((16, 8), np.float32), np.int32(k)],
                   [equal(product(p, q).astype(np.float32))])
    yield votes()
    d = random.standard_normal((32, 16))
    s = np.sort(d, axis=1)
    yield Case("local_sort", (1, 1, 1), (32, 1, 1), 0, [d, Out((32, 16), np.float64)],
               [equal(np.stack([np.roll(s[i], -i) for i in range(32)]))])
    x = np.concatenate([random.standard_normal(90) * 3, [1e-3, -2.5, 7.0, 30.0, -20.0, 1e-300, 5e5]])
    cbrt = np.cbrt(x)
    erf = np.array([math.erf(v) for v in x])
    w = np.stack([np.exp(x), np.log(abs(x)), np.sin(x), np.cos(x * 1e6), abs(x) ** 1.7, np.tanh(x), erf, np.sqrt(abs(x)), 1 / x,
                  np.fmod(x, 0.3), np.floor(x), cbrt], 1)
    yield Case("double_math", (1, 1, 1), (128, 1, 1), 0, [x, Out(w.shape, np.float64), np.int32(len(x))], [close(w, 1e-14, 1e-15)])
    x = np.concatenate([f32(90) * 3, np.array([1e-3, -2.5, 7.0, 30.0, -20.0, 1e-30, 5e4], np.float32)])
    v = x.astype(np.float64)
    erf = np.array([math.erf(u) for u in v])
    big = (x * np.float32(1e5)).astype(np.float64)
    w = np.stack([np.exp(v), np.log(abs(v)), np.sin(v), np.cos(big), abs(v) ** np.float64(np.float32(1.7)), np.tanh(v), erf,
                  np.sqrt(abs(v)), 1 / v, np.fmod(x, np.float32(0.3)), np.rint(v), 1 / np.sqrt(abs(v)), np.exp(v), v / (v + 3)], 1)
    w = w.astype(np.float32)
    yield Case("float_math", (1, 1, 1), (128, 1, 1), 0, [x, Out(w.shape, np.float32), np.int32(len(x))], [close(w, 4e-6, 1e-7)])
    a = f32(100)
    weights = np.array([0.125, -1.5, 2.0, 3.25, -4.0, 0.5, 6.0, 7.0], np.float32)
    i = np.arange(100)
    w = a * weights[i & 7] * np.float32(2.5) + np.array([-2, 4])[i & 1] + np.array(list(b"tensor"))[i % 6]
    yield Case("constants", (1, 1, 1), (128, 1, 1), 0, [a, Out(100, np.float32), np.int32(100)], [close(w.astype(np.float32), 1e-6)])
    x = random.integers(0, 1000, 200).astype(np.int32)
    yield Case("switches", (2, 1, 1), (128, 1, 1), 0, [x, Out(200, np.int32), np.int32(200)],
               [equal(np.array([switch(int(v), i) for i, v in enumerate(x)], np.int32))])
    yield calls()
    yield integers()
    yield halves()
    x = random.integers(0, 100, 128).astype(np.int32)
    tiles = x.reshape(16, 8)
    scans = tiles.cumsum(1).reshape(-1)
    first = np.repeat(tiles.sum(1), 8) * 1000 + np.roll(scans, -8)
    active = x.reshape(4, 32) % 3 == 0
    second = np.where(active, active.sum(1, keepdims=True) * 100 + active.cumsum(1) - 1, -1).reshape(-1)
    yield Case("groups", (1, 1, 1), (128, 1, 1), 0, [x, Out(256, np.int32)], [equal(np.concatenate([first, second]).astype(np.int32))])
    a = random.integers(-50, 50, 1000).astype(np.float32)
    yield Case("last_block", (5, 1, 1), (64, 1, 1), 0, [a, Out(5, np.float32), Out(1, np.float32), np.int32(1000)],
               [None, equal(a.sum()[None])])
    x = f32(70, 4)
    settings = Struct([np.float32(0.75), np.int32(-3), *map(np.int16, (5, -6, 7)), np.float64(1.25), x])
    w = x.copy()
    w[:, 0] = x[:, 0] * np.float32(0.75) + np.float32(1.25)
    w[:, 1] += -3
    w[:, 2] += np.array([5, -6, 7])[np.arange(70) % 3]
    w[:, 3] = x[:, 3] / 3
    yield Case("structures", (1, 1, 1), (128, 1, 1), 0, [settings, Out((70, 4), np.float32), np.int32(70)], [close(w, 1e-6)])
    yield Case("bounded", (2, 1, 1), (128, 1, 1), 0, [Out(200, np.uint32), np.int32(200)], [equal((0x3f800000 | np.arange(200)).astype(np.uint32))])


def votes():
    x = random.integers(0, 100, 128).astype(np.int32)
    x[32:64] = 7
    rows = np.zeros((128, 10), np.uint32)
    for w in range(4):
        lanes = x[32 * w: 32 * w + 32]
        ballot = sum(int(v & 1) << i for i, v in enumerate(lanes))
        for i, v in enumerate(lanes):
            match = sum(1 << j for j, u in enumerate(lanes) if u % 5 == v % 5)
            block = x[x >= 0]
            rows[32 * w + i] = [ballot, lanes.sum(), match, (lanes == v).all(), (lanes >= 0).all(), (lanes > 95).any(), v & 1,
                                (x > 50).sum(), 1, (x == 7).any()]
    # Votes over a block give any number but zero where they hold.
    return Case("votes", (1, 1, 1), (128, 1, 1), 0, [x, Out((128, 10), np.uint32)], [equal(rows)])


def switch(x, y):
    wrap = lambda v: (v + 2 ** 31) % 2 ** 32 - 2 ** 31
    case = x % 9
    if case == 0: y = y * 3 + 1
    elif case == 1: y ^= 0x55
    elif case == 2: y = y // 3
    elif case == 3: y = bin(y).count("1") + 2 - 17
    elif case == 4: y -= 17
    elif case == 5:
        for j in range(x & 7): y = wrap(y * 5 + j)
    elif case == 6: y = y % 7
    elif case == 7: y = 32 - y.bit_length()
    else: y = -y
    return wrap(y)


def calls():
    a = f32(100)
    v = a.astype(np.float64)
    i = np.arange(100)
    fibonacci = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21])
    polynomial = 1 - 0.5 * v + v * v * v + 0.25 * v ** 3 + 2 * v ** 4
    rows = np.stack([polynomial, v - np.floor(v), np.floor(v), v * v, fibonacci[i % 9], np.where(i & 1, -0.5 - v * v, v - np.floor(v))], 1)
    return Case("calls", (1, 1, 1), (128, 1, 1), 0, [a, Out((100, 6), np.float32), np.int32(100)], [close(rows.astype(np.float32), 1e-5, 1e-6)])


def integers():
    n = 100
    a = random.integers(-2 ** 31, 2 ** 31, n).astype(np.int32)
    b = random.integers(-2 ** 63, 2 ** 63 - 1, n).astype(np.int64)
    rows = np.zeros((n, 16), np.int64)
    divide = lambda p, q: abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
    signed = lambda v, bits: (v + 2 ** (bits - 1)) % 2 ** bits - 2 ** (bits - 1)
    for i in range(n):
        x, y, p, q = int(a[i]), int(a[(i + 1) % n]), int(b[i]), int(b[(i + 1) % n])
        u, w, up = x % 2 ** 32, y % 2 ** 32, p % 2 ** 64
        bytes_ = u.to_bytes(4, "little") + w.to_bytes(4, "little")
        permuted = int.from_bytes(bytes(bytes_[s] for s in (5, 1, 7, 3)), "little")
        dot = sum(signed(int(s), 8) * signed(int(t), 8) for s, t in zip(bytes_[:4], bytes_[4:])) + 5
        shift = i & 31
        funnel = ((w << 32 | u) << shift >> 32) % 2 ** 32
        values = [divide(x, y | 1), x - divide(x, y | 1) * (y | 1), divide(p, q | 1), p - divide(p, q | 1) * (q | 1), x * y >> 32, p * q >> 64,
                  int(f"{u:032b}"[::-1], 2), (p & -p).bit_length(), 64 - (q % 2 ** 64).bit_length(), signed(u % 256, 8) + w % 65536,
                  permuted, funnel, up // (u | 1), dot, abs(x - y) + 3, p >> (i & 63)]
        # __sad gives an unsigned number, as do the permutation and the funnel; the others are signed.
        for j, value in enumerate(values):
            bits = 64 if j in (2, 3, 5, 12, 15) else 32
            value = value % 2 ** bits
            if j not in (6, 10, 11, 14): value = signed(value, bits)
            rows[i, j] = signed(value, 64)
    # Reversed bits are unsigned, too.
    return Case("integers", (1, 1, 1), (128, 1, 1), 0, [a, b, Out((n, 16), np.int64), np.int32(n)], [equal(rows)])


def halves():
    n = 90
    x = random.standard_normal((n, 2)).astype(np.float16)
    b = exact_bf16(random.standard_normal((n, 2)))
    half = lambda v: v.astype(np.float16)
    v = x.astype(np.float64)
    inner = half(v + 0.5).astype(np.float64)
    first = half(v * v + inner)
    second = np.maximum(b, exact_bf16(b * b))
    wide = half(np.exp(v[:, 0])).astype(np.float64) + b[:, 1] + (v[:, 0] > v[:, 1]) + np.rint(v[:, 0]) + half(np.sqrt(abs(v[:, 1]))).astype(np.float64)
    arguments = [x, bf16(b), Out((n, 2), np.float16), Out((n, 2), np.uint16), Out(n, np.float32), np.int32(n)]
    return Case("halves", (1, 1, 1), (128, 1, 1), 0, arguments, [equal(first), equal(bf16(second)), close(wide.astype(np.float32), 2e-3)])
