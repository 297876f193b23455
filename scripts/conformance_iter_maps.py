#!/usr/bin/env python3
"""Writes core/tests/conformance/iter_maps.txt: what TVM's own tests ask of its detection of iterator maps, and its answers.

    conformance_iter_maps.py TEST_FILE [OUTPUT]

Needs a Python with Apache TVM (0.27), and TVM's test file `test_arith_iter_affine_map.py`. Runs its tests, and notes each
question and answer that they check. Needs no pytest.
"""

import importlib.util
import pathlib
import sys

from unittest import mock

sys.modules.setdefault("pytest", mock.MagicMock())

import tvm
from tvm import sym, tirx

tvm.arith = sym  # As it is called in the test file.

OPERATORS = {
    "Add": (1, "+"), "Sub": (1, "-"), "Mul": (2, "*"), "FloorDiv": (2, "/"), "FloorMod": (2, "%"),
}


names = {}


def name_of(var):
    """The name of a variable, with a number behind it where another one of the question has that name."""
    if var not in names:
        candidates = (f"{var.name}{number or ''}" for number in range(len(names) + 1))
        names[var] = next(name for name in candidates if name not in names.values())
    return names[var]


def text(expr, outer=0, right=False):
    """An index in Tilewright's text form, where `/` and `%` round towards minus infinity."""
    if isinstance(expr, int):
        return str(expr)
    if isinstance(expr, tirx.IntImm):
        return f"({expr.value})" if expr.value < 0 and outer else str(expr.value)
    if isinstance(expr, tirx.Var):
        return name_of(expr)
    name = type(expr).__name__
    if name not in OPERATORS:
        raise ValueError(f"{name} has no text")
    level, symbol = OPERATORS[name]
    space = " " if level == 1 else ""
    found = f"{text(expr.a, level)}{space}{symbol}{space}{text(expr.b, level, True)}"
    return f"({found})" if level < outer or (level == outer and right) else found


def conditions(predicate):
    """The comparisons of a conjunction."""
    name = type(predicate).__name__
    if predicate is True or isinstance(predicate, tirx.IntImm):
        return []
    if name == "And":
        return conditions(predicate.a) + conditions(predicate.b)
    signs = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
    return [f"{text(predicate.a)} {signs[name]} {text(predicate.b)}"]


def step(found):
    """The extent, least value and step of a sum with at most one term."""
    if not found.args:
        return 1, found.base, 1
    (term,) = found.args
    return term.extent, found.base, term.scale


def main():
    spec = importlib.util.spec_from_file_location("published", sys.argv[1])
    tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tests)
    detect = tvm.arith.detect_iter_map
    cases, skipped, seen = [], [], set()

    def note(indices, domain, predicate=True, check_level="surjective", **rest):
        result = detect(indices, domain, predicate=predicate, check_level=check_level, **rest)
        names.clear()
        try:
            lines = ["over " + ", ".join(f"{name_of(var)} {text(extent.extent)}" for var, extent in domain.items())]
            lines += ["where " + condition for condition in conditions(predicate)]
            if len(result.indices) == 0:
                lines += ["none " + text(index) for index in indices]
            for index, found in zip(indices, result.indices):
                extent, base, scale = step(found)
                lines.append(f"to {text(index)}: {text(extent)} from {text(base)} by {text(scale)}")
        except (ValueError, KeyError, TypeError) as problem:
            skipped.append(f"{note.name}: {problem}")
            return result
        if (check_level, *lines) not in seen:
            seen.add((check_level, *lines))
            note.count += 1
            cases.append("\n".join([f"case {note.name} {note.count} {check_level}", *lines]))
        return result

    tvm.arith.detect_iter_map = note
    for name, test in list(vars(tests).items()):
        if name.startswith("test_"):
            note.name, note.count = name.removeprefix("test_"), 0
            try:
                test()
            except Exception as problem:  # A test of another version: what it has asked before stays.
                skipped.append(f"{name}: {type(problem).__name__}")
    output = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "core/tests/conformance/iter_maps.txt")
    output.write_text("\n\n".join(cases) + "\n")
    print(len(cases), "cases;", *skipped, sep="\n")


if __name__ == "__main__":
    main()
