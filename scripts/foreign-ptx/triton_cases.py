"""Kernels in Triton, compiled without a GPU, with their launches and results by numpy."""
import numpy as np
import triton
import triton.language as tl
from case import Case, InOut, Out, close, equal
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

random = np.random.default_rng(11)
f32 = lambda *shape: random.standard_normal(shape).astype(np.float32)


@triton.jit
def add(a, b, c, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(c + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(a, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(a + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.jit
def layer_norm(a, weight, bias, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(a + row * columns + i, mask=i < columns, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    d = tl.where(i < columns, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / columns + 1e-5)
    y = d * scale * tl.load(weight + i, mask=i < columns) + tl.load(bias + i, mask=i < columns)
    tl.store(out + row * columns + i, y, mask=i < columns)


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for first in range(0, k, BK):
        j = first + steps
        x = tl.load(a + rows[:, None] * k + j[None, :], mask=(rows[:, None] < m) & (j[None, :] < k), other=0.0)
        y = tl.load(b + j[:, None] * n + columns[None, :], mask=(j[:, None] < k) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def scan(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.load(a + i), axis=0))


@triton.jit
def count(a, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + tl.load(a + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def transpose(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(a + i[:, None] * B + i[None, :])
    tl.store(out + i[:, None] * B + i[None, :], tl.trans(x) * 2)


@triton.jit
def sort(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.sort(tl.load(a + i)))


@triton.jit
def attention(q, k, v, out, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + d[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for first in range(0, n, BN):
        j = first + tl.arange(0, BN)
        scores = tl.dot(x, tl.trans(tl.load(k + j[:, None] * D + d[None, :])))
        scores = tl.where(j[None, :] < n, scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(highest - new)
        total = total * shrink + tl.sum(p, 1)
        sums = sums * shrink[:, None] + tl.dot(p.to(tl.float16), tl.load(v + j[:, None] * D + d[None, :]))
        highest = new
    tl.store(out + rows[:, None] * D + d[None, :], sums / total[:, None])


@triton.jit
def hints(a, b, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(a + i, mask=i < n, other=1.0, eviction_policy="evict_first")
    y = tl.load(b + i, mask=i < n, other=2.0, eviction_policy="evict_last")
    tl.store(out + i, x * y, mask=i < n, eviction_policy="evict_first")


@triton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, precision: tl.constexpr):
    rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + steps[None, :])
    y = tl.load(b + steps[:, None] * N + columns[None, :])
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(x, y, input_precision=precision))


@triton.jit
def largest(a, out, at, columns, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    x = tl.load(a + row * columns + i, mask=i < columns, other=-float("inf"))
    value, place = tl.max(x, axis=0, return_indices=True)
    tl.store(out + row, value)
    tl.store(at + row, place)


@triton.jit
def updates(a, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(a + i, mask=i < n, other=0)
    to = out + i * 0
    tl.atomic_max(to, x, mask=i < n)
    tl.atomic_min(to + 1, x, mask=i < n)
    tl.atomic_or(to + 2, x, mask=i < n)
    tl.atomic_xor(to + 3, x, mask=i < n)
    tl.atomic_add(to + 4 + x % 3, 1, mask=i < n, sem="relaxed")


@triton.jit
def exclusive_or(x, y):
    return x ^ y


@triton.jit
def scans(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(a + i)
    tl.store(out + i, tl.cumsum(x, 0, reverse=True))
    tl.store(out + B + i, tl.cumprod(x % 3 + 1, 0))
    tl.store(out + 2 * B + i, tl.flip(x, 0))
    tl.store(out + 3 * B + i, tl.sort(x, descending=True))
    tl.store(out + 4 * B, tl.reduce(x, 0, exclusive_or))


def compiled(kernel, signature, constants, arch=80, warps=4, stages=3):
    """The text, the shared memory and the threads of a kernel."""
    types = {**signature, **{name: "constexpr" for name in constants}}
    # Every pointer and every size that is a multiple of 16 is said to be one, as Triton does at a launch.
    attributes = {(position,): [["tt.divisibility", 16]] for position, kind in enumerate(types.values()) if kind.startswith("*")}
    source = ASTSource(fn=kernel, signature=types, constexprs=constants, attrs=attributes)
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps, "num_stages": stages})
    return made.asm["ptx"], made.metadata.shared, 32 * warps, made.metadata.name


def case(kernel, signature, constants, grid, arguments, checks, **options):
    ptx, shared, threads, name = compiled(kernel, signature, constants, **options)
    # Behind the kernel's own parameters Triton puts two for scratch memory.
    return Case(name, grid, (threads, 1, 1), shared, [*arguments, None, None], checks, ptx)


def cases():
    a, b, n = f32(1000), f32(1000), np.int32(997)
    yield case(add, dict(a="*fp32", b="*fp32", c="*fp32", n="i32"), dict(B=256), (4, 1, 1), [a, b, Out(997, np.float32), n], [equal(a[:997] + b[:997])])
    x = f32(7, 200) * 3
    e = np.exp(x - x.max(1, keepdims=True))
    yield case(softmax, dict(a="*fp32", out="*fp32", columns="i32"), dict(B=256), (7, 1, 1), [x, Out((7, 200), np.float32), np.int32(200)],
               [close(e / e.sum(1, keepdims=True), 1e-5, 1e-7)])
    w, c = f32(200), f32(200)
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + c
    yield case(layer_norm, dict(a="*fp32", weight="*fp32", bias="*fp32", out="*fp32", columns="i32"), dict(B=256), (7, 1, 1),
               [x, w, c, Out((7, 200), np.float32), np.int32(200)], [close(y, 1e-4, 1e-5)])
    small = lambda kind, *shape: random.integers(-6, 6, shape).astype(kind)
    for kind, name, tolerance in ((np.float16, "fp16", 0), (np.float32, "fp32", 1e-3)):
        p, q = small(kind, 50, 72), small(kind, 72, 70)
        for stages in (2, 4):
            yield case(matmul, dict(a=f"*{name}", b=f"*{name}", c="*fp32", m="i32", n="i32", k="i32"), dict(BM=32, BN=64, BK=32), (2, 2, 1),
                       [p, q, Out((50, 70), np.float32), *map(np.int32, (50, 70, 72))],
                       [close((p.astype(np.float64) @ q.astype(np.float64)).astype(np.float32), tolerance)], stages=stages)
    p, q = small(np.float16, 64, 64), small(np.float16, 64, 64)
    yield case(matmul, dict(a="*fp16", b="*fp16", c="*fp32", m="i32", n="i32", k="i32"), dict(BM=64, BN=64, BK=16), (1, 1, 1),
               [p, q, Out((64, 64), np.float32), *map(np.int32, (64, 64, 64))],
               [equal((p.astype(np.float64) @ q.astype(np.float64)).astype(np.float32))], warps=8)
    x = random.integers(-9, 9, 512).astype(np.int32)
    yield case(scan, dict(a="*i32", out="*i32"), dict(B=512), (1, 1, 1), [x, Out(512, np.int32)], [equal(x.cumsum().astype(np.int32))])
    x = random.integers(0, 16, 500).astype(np.int32)
    yield case(count, dict(a="*i32", out="*i32", n="i32"), dict(B=256), (2, 1, 1), [x, InOut(np.zeros(16, np.int32)), np.int32(500)],
               [equal(np.bincount(x, minlength=16).astype(np.int32))])
    x = f32(32, 32)
    yield case(transpose, dict(a="*fp32", out="*fp32"), dict(B=32), (1, 1, 1), [x, Out((32, 32), np.float32)], [equal(2 * x.T)])
    x = f32(256)
    yield case(sort, dict(a="*fp32", out="*fp32"), dict(B=256), (1, 1, 1), [x, Out(256, np.float32)], [equal(np.sort(x))])
    q, k, v = (f32(64, 32).astype(np.float16) for _ in range(3))
    s = q.astype(np.float64) @ k.astype(np.float64).T
    p = np.exp(s - s.max(1, keepdims=True))
    wanted = (p / p.sum(1, keepdims=True)) @ v.astype(np.float64)
    yield case(attention, dict(q="*fp16", k="*fp16", v="*fp16", out="*fp32", n="i32"), dict(D=32, BM=32, BN=32), (2, 1, 1),
               [q, k, v, Out((64, 32), np.float32), np.int32(64)], [close(wanted.astype(np.float32), 1e-2, 2e-3)])
    yield case(hints, dict(a="*fp32", b="*fp32", out="*fp32", n="i32"), dict(B=256), (4, 1, 1), [a, b, Out(997, np.float32), n],
               [equal(a[:997] * b[:997])])
    for kind, name, precision in ((np.int8, "i8", "ieee"), (np.float32, "fp32", "tf32"), (np.float32, "fp32", "tf32x3"),
                                  (np.float32, "fp32", "ieee")):
        p, q = small(kind, 32, 64), small(kind, 64, 32)
        result, result_name = (np.int32, "i32") if kind == np.int8 else (np.float32, "fp32")
        yield case(product, dict(a=f"*{name}", b=f"*{name}", c=f"*{result_name}"), dict(M=32, N=32, K=64, precision=precision), (1, 1, 1),
                   [p, q, Out((32, 32), result)], [equal((p.astype(np.float64) @ q.astype(np.float64)).astype(result))], warps=2)
    x = f32(5, 200)
    yield case(largest, dict(a="*fp32", out="*fp32", at="*i32", columns="i32"), dict(B=256), (5, 1, 1),
               [x, Out(5, np.float32), Out(5, np.int32), np.int32(200)], [equal(x.max(1)), equal(x.argmax(1).astype(np.int32))])
    x = random.integers(0, 1000, 500).astype(np.int32)
    wanted = [x.max(), x.min(), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x), *np.bincount(x % 3)]
    yield case(updates, dict(a="*i32", out="*i32", n="i32"), dict(B=256), (2, 1, 1),
               [x, InOut(np.array([-5, 5000, 0, 0, 0, 0, 0], np.int32)), np.int32(500)], [equal(np.array(wanted, np.int32))])
    x = random.integers(0, 99, 128).astype(np.int32)
    products = np.cumprod((x % 3 + 1).astype(np.uint64)).astype(np.uint32).view(np.int32)
    wanted = np.concatenate([x[::-1].cumsum()[::-1], products, x[::-1], np.sort(x)[::-1], [np.bitwise_xor.reduce(x)]]).astype(np.int32)
    yield case(scans, dict(a="*i32", out="*i32"), dict(B=128), (1, 1, 1), [x, Out(513, np.int32)], [equal(wanted)])
