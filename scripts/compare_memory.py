#!/usr/bin/env python3
"""The memory that a process takes at most to load a model and run it three times, beside ONNX Runtime: the largest resident set, less that of a process that does
nothing: one that prints the version of Tilewright, and a Python process that has only imported ONNX Runtime and NumPy.

    cargo build --release -p tilewright-cli
    scripts/exported_networks.py --exporter script …
    scripts/compare_memory.py target/networks/*.onnx

Each model has its inputs in a folder of its name: `0/0.npy`, `0/1.npy`, …, as `exported_networks.py` writes them. `TILEWRIGHT` names the command line, `THREADS` the
number of threads. Default schedules are kept before the process that is measured.
"""

import os
import subprocess
import sys
from pathlib import Path

import onnx

TILEWRIGHT = os.environ.get("TILEWRIGHT", "target/release/tilewright")
THREADS = os.environ.get("THREADS", "2")
RUNS = 3

MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
if done.returncode: sys.exit(done.stderr.decode()[-500:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""

ONNX_RUNTIME = """
import sys
import numpy as np
import onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = int(sys.argv[1])
session = ort.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
feed = {value.name: np.load(path) for value, path in zip(session.get_inputs(), sys.argv[4:])}
for _ in range(int(sys.argv[3])):
    session.run(None, feed)
"""


def peak(command: list[str]) -> float:
    """The largest resident set of a command, in MiB."""
    done = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return float(done.stdout)


def main() -> None:
    python = peak([sys.executable, "-c", "import numpy, onnxruntime"])
    program = peak([TILEWRIGHT, "--version"])
    print(f"A process that does nothing: {program:.0f} MiB, with ONNX Runtime {python:.0f} MiB; both are subtracted.\n")
    print("| model | weights | tilewright | ONNX Runtime | ratio |\n|---|---|---|---|---|")
    for path in map(Path, sys.argv[1:]):
        model = onnx.load(path, load_external_data=False)
        weights = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in weights]
        files = [str(path.parent / path.stem / "0" / f"{number}.npy") for number in range(len(names))]
        inputs = [argument for name, file in zip(names, files) for argument in ("--input", f"{name}={file}")]
        command = [TILEWRIGHT, "model", "time", str(path), *inputs, "--threads", THREADS, "--rounds", str(RUNS)]
        peak(command)
        ours = peak(command) - program
        theirs = peak([sys.executable, "-c", ONNX_RUNTIME, THREADS, str(path), str(RUNS), *files]) - python
        print(f"| {path.stem} | {path.stat().st_size / 2**20:.0f} MiB | {ours:.0f} MiB | {theirs:.0f} MiB | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
