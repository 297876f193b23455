"""Executes emitted kernels in the simulator as their manifests say, and compares their results with numpy."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from definitions import DEFINITIONS, TOLERANCE, TOLERANCES
from shapes import OPERATORS

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "u8": np.uint8, "i32": np.int32,
          "i64": np.int64, "bool": np.bool_}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("simulator")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--records")
    parser.add_argument("operators", nargs="*")
    return parser.parse_intermixed_args()


def random(dtype, shape, generator):
    """Elements of a tensor, as bytes and as the numbers that they stand for."""
    if dtype == "bf16":
        bits = (generator.uniform(-1, 1, shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return bits.tobytes(), (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    kind = np.dtype(DTYPES[dtype])
    if kind.kind == "f":
        elements = generator.uniform(-1, 1, shape).astype(kind)
        return elements.tobytes(), elements.astype(np.float64)
    limits = np.iinfo(kind)
    elements = generator.integers(max(limits.min, -128), min(limits.max, 255), shape, endpoint=True).astype(kind)
    return elements.tobytes(), elements.astype(np.int64)


def numbers(dtype, shape, data):
    if dtype == "bf16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(shape)
    elements = np.frombuffer(data, DTYPES[dtype]).reshape(shape)
    return elements.astype(np.int64 if elements.dtype.kind in "iu" else np.float64)


class Buffers:
    """The buffers of all launches: tensors, workspaces and records of failures, each a file once it has contents."""

    def __init__(self, folder):
        self.folder, self.written = folder, set()
        self.generator = np.random.default_rng(7)
        self.inputs, self.outputs = {}, {}

    def describe(self, number, argument):
        """An argument as the command line of the simulator takes it, and the file that the launch leaves."""
        kind = argument["kind"]
        if kind == "dimension":
            return f"i64:{argument['value']}", None
        if kind == "scalar":
            raise ValueError(f"`{argument['name']}` has no value: operators of the set have no scalars")
        name = argument.get("name", kind)
        file = self.folder / f"{kind}-{''.join(letter if letter.isalnum() else '_' for letter in name)}"
        if kind == "failure_record":
            if file not in self.written:
                file.write_bytes(bytes(argument["bytes"]))
            return f"inout:{file}={file}", file
        if kind == "tensor":
            dtype, shape = argument["dtype"], argument["shape"]
            size = int(np.prod(shape)) * (2 if dtype == "bf16" else np.dtype(DTYPES[dtype]).itemsize)
            if argument["access"] in ("in", "constant"):
                if name not in self.inputs:
                    data, self.inputs[name] = random(dtype, shape, self.generator)
                    file.write_bytes(data)
                return f"in:{file}", None
            self.outputs[name] = (dtype, shape, file)
        elif kind == "workspace":
            size = argument["bytes"]
        else:
            raise ValueError(f"unknown kind of argument `{kind}`")
        # What no launch has written yet counts as unwritten, so that reading it is a finding.
        return (f"inout:{file}={file}" if file in self.written else f"out:{size}={file}"), file


def launch(simulator, ptx, launch, buffers):
    """Executes one launch; gives complaints."""
    command = [simulator, "run", ptx, "--entry", launch["entry"], "--json", "--shared", str(launch["dynamic_shared_bytes"]),
               "--grid", ",".join(map(str, launch["grid"])), "--block", ",".join(map(str, launch["block"]))]
    files = []
    for number, argument in enumerate(launch["arguments"]):
        described, file = buffers.describe(number, argument)
        command += ["--arg", described]
        files.append(file)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return [done.stderr.strip()]
    buffers.written.update(file for file in files if file)
    report = json.loads(done.stdout.strip().splitlines()[-1])
    # A launch may write a part of a buffer; the last comparison notices what nobody writes.
    return [f"{launch['entry']}, line {finding.get('line')}: {finding['message']}" for finding in report["findings"]
            if "never written" not in finding["message"]]


def compare(name, found, wanted):
    family = name.replace(".", ":").split(":")[0]
    if found.shape != wanted.shape:
        return f"the shape is {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind == "i":
        wrong = found != wanted
    else:
        scale = max(abs(wanted).max(initial=0), 1e-30)
        wrong = ~(abs(found - wanted) <= TOLERANCES.get(family, TOLERANCE) * scale)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        return f"{wrong.sum()} of {wanted.size} are wrong, the first at {at}: {found[at]!r}, not {wanted[at]!r}"
    return None


def check(simulator, name, folder):
    stem = "".join(letter if letter.isalnum() else "_" for letter in name)
    manifest = json.loads((folder / f"{stem}.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        buffers = Buffers(pathlib.Path(scratch))
        for step in manifest["launches"]:
            complaints = launch(simulator, folder / f"{stem}.ptx", step, buffers)
            if complaints:
                return complaints
        family, parameters = name.split(":")
        wanted = DEFINITIONS[family]([int(number) for number in parameters.split("x")], **buffers.inputs)
        complaints = []
        for result, (dtype, shape, file) in buffers.outputs.items():
            own = wanted[result] if result in wanted else next(iter(wanted.values()))
            complaint = compare(name, numbers(dtype, shape, file.read_bytes()), own)
            complaints += [f"`{result}`: {complaint}"] if complaint else []
        return complaints


def main():
    settings = arguments()
    operators = settings.operators or OPERATORS
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        emit = ["cargo", "bench", "--quiet", "--bench", "operators", "--", "--target", settings.target, "--emit", folder,
                "--ops", ",".join(operators)]
        emit += ["--records", settings.records] if settings.records else []
        done = subprocess.run(emit, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"emitting failed:\n{done.stderr}")
        for name in operators:
            complaints = check(settings.simulator, name, pathlib.Path(folder))
            failed += bool(complaints)
            print(f"{name}: {'; '.join(complaints) if complaints else 'right'}", flush=True)
    print(f"{len(operators) - failed} of {len(operators)} operators are right")
    sys.exit(failed > 0)


main()
