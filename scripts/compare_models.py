#!/usr/bin/env python3
"""Compares models with ONNX Runtime: results, the first call in a fresh process, and the time of a call.

For each model with stored inputs (scripts/model_outputs.py), `tilewright model time` and ONNX Runtime run the same input in
turns, on as many threads. Prints a table. Arguments: names of models; all without. Needs onnx, onnxruntime and numpy, and
`cargo build --release -p tilewright-cli`, or TILEWRIGHT with the path of the program.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "target" / "models"
PROGRAM = os.environ.get("TILEWRIGHT", str(ROOT / "target" / "release" / "tilewright"))
THREADS = int(os.environ.get("THREADS", "2"))
ROUNDS = int(os.environ.get("ROUNDS", "9"))


def load(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def peer(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def difference(expected, found):
    """The largest difference, relative to the largest expected number."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"{expected.dtype}{expected.shape} is {found.dtype}{found.shape}"
    if expected.size == 0:
        return "0"
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    return f"{np.max(np.abs(expected - found)) / max(np.max(np.abs(expected)), 1e-30):.0e}"


def compare(name, folder):
    path = MODELS / f"{name}.onnx"
    start = time.perf_counter()
    session = peer(path)
    inputs = {
        value.name: load(MODELS / "expected" / name / "test_data_set_0" / f"input_{place}.pb")
        for place, value in enumerate(session.get_inputs())
    }
    expected = session.run(None, inputs)
    peer_first = time.perf_counter() - start
    arguments = ["--threads", str(THREADS)]
    for place, (key, value) in enumerate(inputs.items()):
        np.save(f"{folder}/{place}.npy", np.array(value, order="C"))
        arguments += ["--input", f"{key}={folder}/{place}.npy"]
    firsts, worst = [], "0"
    for _ in range(2):
        start = time.perf_counter()
        run = subprocess.run([PROGRAM, "model", "run", str(path), "--json", "--output", folder, *arguments],
                             capture_output=True, text=True)
        firsts.append(time.perf_counter() - start)
        if run.returncode != 0:
            return f"| {name} | {run.stderr.strip()[:120]} |"
    paths = json.loads(run.stdout.splitlines()[-1])["outputs"].values()
    worst = ", ".join(difference(e, np.load(p)) for e, p in zip(expected, paths))
    ours = subprocess.Popen([PROGRAM, "model", "time", str(path), "--paced", *arguments], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    ours.stdout.readline()
    ratios, own, others = [], [], []
    for _ in range(ROUNDS):
        ours.stdin.write("\n")
        ours.stdin.flush()
        own.append(float(ours.stdout.readline()))
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < 0.1:
            start = time.perf_counter()
            session.run(None, inputs)
            times.append(1e3 * (time.perf_counter() - start))
        others.append(statistics.median(times))
        ratios.append(others[-1] / own[-1])
    ours.stdin.close()
    ours.wait()
    ratios.sort()
    return (f"| {name} | {worst} | {firsts[0]:.2f} s | {firsts[1]:.2f} s | {peer_first:.2f} s | {statistics.median(own):.2f} ms "
            f"| {statistics.median(others):.2f} ms | **{statistics.median(ratios):.2f}** | {ratios[0]:.2f}–{ratios[-1]:.2f} |")


def main():
    names = sys.argv[1:] or sorted(path.name for path in (MODELS / "expected").iterdir())
    print("| model | difference | first | second start | ONNX Runtime's start | ours | ONNX Runtime | ratio | range |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print(compare(name, folder), flush=True)


if __name__ == "__main__":
    main()
