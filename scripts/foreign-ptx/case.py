"""A launch of a kernel in the simulator, and the check of its results."""
import dataclasses
import json
import pathlib
import subprocess
import tempfile

import numpy as np


@dataclasses.dataclass
class Case:
    entry: str
    grid: tuple
    block: tuple
    shared: int
    arguments: list
    # For each buffer that is written, in order: gives a complaint or nothing; `None` if any contents are right.
    checks: list
    ptx: str = ""


@dataclasses.dataclass
class Out:
    shape: object
    dtype: object


@dataclasses.dataclass
class InOut:
    array: np.ndarray


@dataclasses.dataclass
class Struct:
    """A structure by value: numbers, and arrays that stand for their addresses."""
    fields: list


def bf16(array):
    """The upper halves of floats that are exact as `bfloat16`."""
    return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def exact_bf16(array):
    """The nearest numbers of `bfloat16`, ties to even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return bits.astype(np.uint32).view(np.float32).reshape(np.shape(array)).astype(np.float64)


def equal(wanted):
    wanted = np.ascontiguousarray(wanted)

    def check(got):
        got = got.view(wanted.dtype).reshape(wanted.shape)
        wrong = np.argwhere(got != wanted)
        if len(wrong):
            at = tuple(wrong[0])
            return f"{len(wrong)} of {wanted.size} differ, the first at {at}: {got[at]!r}, not {wanted[at]!r}"
    return check


def close(wanted, relative, absolute=0.0):
    wanted = np.ascontiguousarray(wanted)

    def check(got):
        got = got.view(wanted.dtype).reshape(wanted.shape)
        with np.errstate(invalid="ignore"):
            right = abs(got.astype(np.float64) - wanted) <= absolute + relative * np.maximum(abs(wanted), 0.1)
        wrong = np.argwhere(~(right | (got == wanted)))
        if len(wrong):
            at = tuple(wrong[0])
            return f"{len(wrong)} of {wanted.size} differ, the first at {at}: {got[at]!r}, not {wanted[at]!r}"
    return check


def describe(argument, folder, name, outputs):
    """An argument as the command line of the simulator takes it; makes its files."""
    file = folder / f"in{name}"
    if isinstance(argument, Struct):
        fields = [describe(field, folder, f"{name}_{place}", outputs) for place, field in enumerate(argument.fields)]
        return "struct:" + "+".join(fields)
    if isinstance(argument, Out):
        size = int(np.prod(argument.shape)) * np.dtype(argument.dtype).itemsize
        outputs.append(folder / f"out{name}")
        return f"out:{size}={outputs[-1]}"
    if isinstance(argument, InOut):
        file.write_bytes(np.ascontiguousarray(argument.array).tobytes())
        outputs.append(folder / f"out{name}")
        return f"inout:{file}={outputs[-1]}"
    if argument is None:
        return "ptr:0"
    if isinstance(argument, np.ndarray) and argument.ndim:
        file.write_bytes(np.ascontiguousarray(argument).tobytes())
        return f"in:{file}"
    kind = {"int16": "i16", "int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64"}[argument.dtype.name]
    return f"{kind}:{argument}"


def run(simulator, case, ptx):
    """Executes a case; gives complaints and the report."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [simulator, "run", ptx, "--entry", case.entry, "--json", "--shared", str(case.shared),
                   "--grid", ",".join(map(str, case.grid)), "--block", ",".join(map(str, case.block))]
        outputs = []
        for number, argument in enumerate(case.arguments):
            command += ["--arg", describe(argument, folder, str(number), outputs)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return [done.stderr.strip()], None
        report = json.loads(done.stdout.strip().splitlines()[-1])
        complaints = [f"line {finding['line']}: {finding['message']}" for finding in report["findings"]]
        for output, check in zip(outputs, case.checks, strict=True):
            complaint = check and check(np.frombuffer(output.read_bytes(), np.uint8))
            if complaint:
                complaints.append(f"{output.name}: {complaint}")
        return complaints, report
