#!/usr/bin/env python3
"""Writes what MetaSchedule's cost model sees of scheduled programs into search/tests/conformance/features/*.txt, after the line
`stores`.

    conformance_features.py [FOLDER]

Needs a Python with Apache TVM (0.27). Runs its extractor of features per store on the programs below. What is above the line
`stores`, the same program and schedule as ours, is kept.
"""

import pathlib
import sys

from tvm import target, te, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule import MeasureCandidate, TuneContext
from tvm.s_tir.meta_schedule.feature_extractor import PerStoreFeature

POSITIONS = ["None", "InnerSpatial", "MiddleSpatial", "OuterSpatial", "InnerReduce", "MiddleReduce", "OuterReduce", "Mixed"]
LOOP_KIND = ["num", "prod", "len", *(f"pos{position}" for position in POSITIONS)]
ARITHMETIC = ["mad", "add_sub", "mul", "div_mod", "cmp", "math_func", "other_func"]
BUFFER = [
    "read", "write", "read_write", "bytes", "unique_bytes", "lines", "unique_lines", "loop_multiple_read",
    "serial_multiple_read_write", "no_reuse", "reuse_dis_iter", "reuse_dis_bytes", "reuse_ct", "bytes_d_reuse_ct",
    "unique_bytes_d_reuse_ct", "lines_d_reuse_ct", "unique_lines_d_reuse_ct", "stride",
]
# The 164 values in their order, in groups.
GROUPS = [
    ("arithmetic", [f"{kind}_{name}" for kind in ("float", "int") for name in ARITHMETIC] + ["bool_op", "select_op"]),
    *((kind, LOOP_KIND) for kind in ("vectorize", "unroll", "parallel")),
    ("gpu", ["is_gpu", "blockIdx_x", "blockIdx_y", "blockIdx_z", "threadIdx_x", "threadIdx_y", "threadIdx_z", "vthread"]),
    *[("buffer", BUFFER)] * 5,
    ("intensity", [f"sample{number}" for number in range(10)]),
    ("allocation", ["alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod"]),
    ("loops", ["outer_prod", "num_loops", "auto_unroll_max_step"]),
]
# Those that are not given as log2(x + 1).
FLAGS = {name for name in LOOP_KIND if name.startswith("pos")}
FLAGS |= {"read", "write", "read_write", "loop_multiple_read", "serial_multiple_read_write", "no_reuse", "is_gpu"}


def number(name, value):
    """The number of which the extractor gives the logarithm."""
    value = value if name in FLAGS else 2.0 ** value - 1.0
    near = abs(value - round(value)) < 1e-6 * max(1.0, abs(value))
    return str(round(value)) if near else f"{value:.7g}"


def lines_of(row):
    """The values of a store, one line for a group; values that are 0 are left out, and so are groups of such."""
    assert len(row) == sum(len(names) for _, names in GROUPS) == 164
    rest = list(row)
    for group, names in GROUPS:
        values = [(name, number(name, rest.pop(0))) for name in names]
        words = [f"{name} {value}" for name, value in values if value != "0"]
        if words:
            yield f"{group} " + " ".join(words)


def stored(stmt):
    """The blocks that store something else than a constant, in their order."""
    if isinstance(stmt, tirx.SeqStmt):
        return [name for part in stmt.seq for name in stored(part)]
    if isinstance(stmt, tirx.For):
        return stored(stmt.body)
    block = stmt.block
    return [] if isinstance(block.body.value, tirx.FloatImm) else [block.name_hint]


def text(schedule):
    """What the extractor says of each store."""
    context = TuneContext(target=target.Target("llvm"), num_threads=1)
    (rows,) = PerStoreFeature().extract_from(context, [MeasureCandidate(schedule, [])])
    names = stored(schedule.mod["main"].body.block.body)
    rows = rows.numpy()
    assert len(rows) == len(names), (len(rows), names)
    return "".join(f"\nstore {name}\n" + "\n".join(lines_of(row)) + "\n" for name, row in zip(names, rows))


def begin(*tensors):
    """A schedule of what is computed, and its blocks by name."""
    schedule = Schedule(te.create_prim_func(list(tensors)), debug_mask="all")
    return schedule, schedule.get_sblock


def product(rows, columns, inner):
    """The tensors of a product of matrices."""
    a, b = te.placeholder((rows, inner), name="A"), te.placeholder((inner, columns), name="B")
    k = te.reduce_axis((0, inner), name="k")
    return a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def matmul():
    return begin(*product(96, 160, 224))[0]


def matmul_threads():
    s, block = begin(*product(512, 512, 512))
    i, j, k = s.get_loops(block("C"))
    i_o, i_i = s.split(i, [None, 16])
    j_o, j_i = s.split(j, [None, 8])
    s.reorder(i_o, j_o, k, j_i, i_i)
    s.vectorize(j_i)
    s.parallel(i_o)
    s.parallel(j_o)
    s.unroll(k)
    return s


def matmul_tiled():
    s, block = begin(*product(128, 256, 192))
    c = block("C")
    s.cache_write(c, 0, "global")
    i, j, k = s.get_loops(c)
    i0, i1, i2, i3 = s.split(i, [4, 2, 1, 16])
    j0, j1, j2, j3 = s.split(j, [2, 4, 1, 32])
    k0, k1 = s.split(k, [12, 16])
    s.reorder(i0, j0, i1, j1, k0, i2, j2, k1, i3, j3)
    s.reverse_compute_at(block("C_global"), j1)
    s.parallel(i0)
    s.unroll(i3)
    s.vectorize(j3)
    return s


def matmul_odd():
    s, block = begin(*product(96, 109, 64))
    i, j, k = s.get_loops(block("C"))
    j_o, j_i = s.split(j, [8, 14])
    s.reorder(j_o, i, k, j_i)
    s.vectorize(j_i)
    return s


def rows():
    a, b = te.placeholder((48, 256), name="A"), te.placeholder((256,), name="B")
    out = te.compute((48, 256), lambda i, j: a[i, j] + b[j], name="D")
    s, block = begin(a, b, out)
    s.parallel(s.get_loops(block("D"))[0])
    return s


def elementwise():
    a, b = te.placeholder((200, 336), name="A"), te.placeholder((336,), name="B")
    zero = tirx.const(0, "float32")
    shifted = te.compute((200, 336), lambda i, j: a[i, j] + b[j], name="S")
    bent = te.compute((200, 336), lambda i, j: te.exp(shifted[i, j]) / (shifted[i, j] * shifted[i, j]), name="E")
    out = te.compute((200, 336), lambda i, j: te.max(bent[i, j] - a[i, j], zero), name="D")
    s, block = begin(a, b, out)
    s.compute_inline(block("S"))
    s.compute_inline(block("E"))
    i, j = s.get_loops(block("D"))
    j_o, j_i = s.split(j, [21, 16])
    s.parallel(s.fuse(i, j_o))
    s.vectorize(j_i)
    return s


def integers():
    a, b = (te.placeholder((48, 80), name=name, dtype="int32") for name in "AB")
    out = te.compute((48, 80), lambda i, j: (a[i, j] * b[i, j] + a[i, j]) * 3 - b[i, j], name="D")
    return begin(a, b, out)[0]


def reduction():
    a = te.placeholder((120, 448), name="A")
    k = te.reduce_axis((0, 448), name="k")
    least = te.compute((120,), lambda i: te.max(a[i, k], axis=k), name="M")
    out = te.compute((120, 448), lambda i, j: te.exp(a[i, j] - least[i]), name="D")
    s, block = begin(a, out)
    i, _ = s.get_loops(block("D"))
    s.compute_at(block("M"), i)
    s.parallel(i)
    return s


def convolution():
    a, w = te.placeholder((1, 30, 30, 16), name="A"), te.placeholder((3, 3, 16, 64), name="W")
    kh, kw, kc = (te.reduce_axis((0, extent), name=name) for extent, name in ((3, "kh"), (3, "kw"), (16, "kc")))
    out = te.compute(
        (1, 14, 14, 64),
        lambda n, y, x, c: te.sum(a[n, y * 2 + kh, x * 2 + kw, kc] * w[kh, kw, kc, c], axis=[kh, kw, kc]),
        name="C",
    )
    s, block = begin(a, w, out)
    n, y, x, c, kh, kw, kc = s.get_loops(block("C"))
    x_o, x_i = s.split(x, [2, 7])
    c_o, c_i = s.split(c, [2, 32])
    s.reorder(n, y, x_o, c_o, kh, kw, kc, x_i, c_i)
    s.parallel(y)
    s.unroll(x_i)
    s.vectorize(c_i)
    return s


def shared_loops():
    a = te.placeholder((64, 240), name="A")
    b = te.compute((64, 240), lambda i, j: a[i, j] * a[i, j], name="B")
    out = te.compute((60, 240), lambda i, j: b[i, j] + b[i + 4, j], name="D")
    s, block = begin(a, out)
    i, _ = s.get_loops(block("D"))
    s.compute_at(block("B"), i)
    return s


def transposed():
    a = te.placeholder((96, 64), name="A")
    out = te.compute((64, 96), lambda i, j: a[j, i], name="D")
    s, block = begin(a, out)
    i, j = s.get_loops(block("D"))
    j_o, j_i = s.split(j, [6, 16])
    s.reorder(j_o, i, j_i)
    return s


CASES = [
    matmul, matmul_threads, matmul_tiled, matmul_odd, rows, elementwise, integers, reduction, convolution, shared_loops, transposed,
]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "search/tests/conformance/features")
    for case in CASES:
        path = folder / f"{case.__name__}.txt"
        above = path.read_text().split("\nstores\n")[0] if path.exists() else case.__name__ + "\n"
        path.write_text(above + "\nstores\n" + text(case()))


if __name__ == "__main__":
    main()
