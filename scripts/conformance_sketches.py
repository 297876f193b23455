#!/usr/bin/env python3
"""Writes what MetaSchedule makes of its CPU workloads into search/tests/conformance/sketches/*.txt, after the line `sketches`.

    conformance_sketches.py TEST_FILE [FOLDER]

Needs a Python with Apache TVM (0.27), and TVM's own test file `test_meta_schedule_space_cpu.py`, whose published decisions
are put into the sketches. What is above the line `sketches`, the workload as a program of ours, is kept.
"""

import importlib.util
import pathlib
import sys

from tvm import IRModule, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.testing.space_generation import _find_match_sketch_id
from tvm.s_tir.schedule import Trace


def published(path):
    """The workloads of the test file, by name: module, sketches, and the decisions for each."""
    spec = importlib.util.spec_from_file_location("published", path)
    tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tests)
    found = {}

    def note(mod, sketches, expected_mods, expected_decisions, **_):
        found[note.name] = (mod, list(sketches), list(zip(expected_mods, expected_decisions)))

    tests.check_sketches = note
    for name, test in vars(tests).items():
        if name.startswith("test_cpu_"):
            note.name = name.removeprefix("test_cpu_").upper()
            test()
    return found


def sampled(sketch):
    """The instructions of a sketch that draw something."""
    return [inst for inst in sketch.trace.insts if inst.kind.name.startswith("Sample")]


def decided(mod, sketch, decisions):
    """The schedule after the decisions, taken in order."""
    taken = {inst: decision for inst, (_, decision) in zip(sampled(sketch), decisions)}
    schedule = Schedule(mod, debug_mask="all")
    Trace(insts=sketch.trace.insts, decisions=taken).apply_to_schedule(schedule, remove_postproc=True)
    return schedule


def decision_line(inst, decision):
    """`tile 1 2 3`, `category 3 of 0 16 64 512`, `location -1`."""
    if inst.kind.name == "SamplePerfectTile":
        return "tile " + " ".join(str(int(factor)) for factor in decision)
    if inst.kind.name == "SampleCategorical":
        return f"category {int(decision)} of " + " ".join(str(int(value)) for value in inst.attrs[0])
    return f"location {int(decision)}"


def variables(expr):
    """The variables of an index expression."""
    if isinstance(expr, tirx.Var):
        return [expr]
    parts = [getattr(expr, name, None) for name in ("a", "b", "value")]
    return [var for part in parts if part is not None and not isinstance(part, int) for var in variables(part)]


def note_kinds(stmt, kinds):
    """Notes for each loop variable what kinds of block iterators it counts."""
    if isinstance(stmt, tirx.SeqStmt):
        for part in stmt.seq:
            note_kinds(part, kinds)
    elif isinstance(stmt, tirx.For):
        note_kinds(stmt.body, kinds)
    else:
        for iterator, value in zip(stmt.block.iter_vars, stmt.iter_values):
            for var in variables(value):
                kinds.setdefault(var, set()).add(letter(iterator))


def letter(iterator):
    """S for a spatial iterator, R for one of a reduction."""
    return "S" if iterator.iter_type == tirx.IterVar.DataPar else "R"


def lines_of(stmt, depth, kinds, out):
    """The loops and blocks of a statement, one line for a chain of loops and one for a block.

    Loops of a reduction alone have an `r`; iterators with one point have a small letter.
    """
    if isinstance(stmt, tirx.SeqStmt):
        for part in stmt.seq:
            lines_of(part, depth, kinds, out)
    elif isinstance(stmt, tirx.For):
        chain = []
        while isinstance(stmt, tirx.For):
            chain.append(stmt)
            stmt = stmt.body
        extents = [f"{loop.extent}{'r' if kinds.get(loop.loop_var) == {'R'} else ''}" for loop in chain]
        out.append("  " * depth + "for " + " ".join(extents))
        lines_of(stmt, depth + 1, kinds, out)
    else:
        block = stmt.block
        letters = "".join(
            letter(iterator).lower() if int(iterator.dom.extent) == 1 else letter(iterator)
            for iterator in block.iter_vars
        )
        tiling = block.annotations.get("meta_schedule.tiling_structure")
        words = ["block", block.name_hint, letters, "init" if block.init is not None else "", tiling or ""]
        out.append("  " * depth + " ".join(str(word) for word in words if word))


def tree(schedule):
    """The root block's annotations, and the loops and blocks inside."""
    root = schedule.mod["main"].body.block
    kinds, out = {}, []
    note_kinds(root.body, kinds)
    names = {"parallel", "vectorize", "unroll_explicit"}
    notes = {key.removeprefix("meta_schedule."): int(value) for key, value in root.annotations.items()}
    out.append("note " + " ".join(f"{name} {notes[name]}" for name in sorted(names & notes.keys())))
    lines_of(root.body, 0, kinds, out)
    return out


def text(mod, sketches, expected):
    """The sketches in the order of the published ones; each of those that TVM makes is used once."""
    out = []
    left = list(sketches)
    assert len(left) == len(expected)
    for wanted, decisions in expected:
        wanted = wanted if isinstance(wanted, IRModule) else IRModule({"main": wanted})
        sketch = left.pop(_find_match_sketch_id(mod, left, wanted, decisions))
        out.append("\nsketch")
        out += [decision_line(inst, decision) for inst, (_, decision) in zip(sampled(sketch), decisions)]
        out += tree(decided(mod, sketch, decisions))
    return "\n".join(out) + "\n"


def main():
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "search/tests/conformance/sketches")
    for name, (mod, sketches, expected) in published(sys.argv[1]).items():
        path = folder / f"{name}.txt"
        above = path.read_text().split("\nsketches\n")[0] if path.exists() else f"workload {name}\n"
        path.write_text(above + "\nsketches\n" + text(mod, sketches, expected))


if __name__ == "__main__":
    main()
