#!/usr/bin/env python3
"""Writes core/tests/conformance/refusals_tvm.txt: what TVM's own tests of schedule primitives expect to be refused, and how often.

    conformance_refusals.py TEST_FOLDER [OUTPUT]

Needs a Python with Apache TVM (0.27), and the folder `tests/python/s_tir/schedule` of its sources. Runs the tests that expect errors,
and notes those that come. Needs no pytest.
"""

import contextlib
import importlib.util
import inspect
import pathlib
import sys

from unittest import mock

pytest = mock.MagicMock()
sys.modules["pytest"] = pytest

import tvm.testing

from tvm.s_tir import Schedule

refused, skipped = {}, []


@contextlib.contextmanager
def raises(*_, **__):
    """In place of pytest's: notes that there is an error, and goes on."""
    try:
        yield mock.MagicMock()
    except Exception:
        refused[raises.test] = refused.get(raises.test, 0) + 1


def run(module, name, test):
    """Runs a test, with references to blocks and buffers where it is asked with references and with names."""
    parameters = inspect.signature(test).parameters
    asked = [parameter for parameter, kind in parameters.items() if kind.default is inspect.Parameter.empty]
    raises.test = f"{module}::{name.removeprefix('test_')}"
    try:
        test(**dict.fromkeys(asked, False))
    except Exception as problem:  # A test of another version: what it has asked before stays.
        skipped.append(f"{raises.test}: {type(problem).__name__}")


def main():
    pytest.raises = raises
    tvm.testing.parameter = mock.MagicMock()
    begin = Schedule.__init__
    fast = {"error_render_level": "fast"}
    Schedule.__init__ = lambda self, mod, **options: begin(self, mod, **{**options, **fast})
    for path in sorted(pathlib.Path(sys.argv[1]).glob("test_tir_schedule_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        tests = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = tests  # The parser of programs reads the source.
        try:
            spec.loader.exec_module(tests)
        except Exception as problem:
            skipped.append(f"{path.stem}: {type(problem).__name__}")
            continue
        for name, test in list(vars(tests).items()):
            if name.startswith("test_") and inspect.isfunction(test) and "raises" in inspect.getsource(test):
                run(path.stem.removeprefix("test_tir_schedule_"), name, test)
    output = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "core/tests/conformance/refusals_tvm.txt")
    output.write_text("".join(f"{test} {count}\n" for test, count in refused.items()))
    print(sum(refused.values()), "refusals;", *skipped, sep="\n")


if __name__ == "__main__":
    main()
