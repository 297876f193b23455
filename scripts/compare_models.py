#!/usr/bin/env python3
"""Compares models with ONNX Runtime and OpenVINO: results, the first call in a fresh process, and the time of a call.

For each model with stored inputs (scripts/model_outputs.py), `tilewright model time`, ONNX Runtime and, where it is installed,
OpenVINO run the same input in turns, on as many threads. Prints a table. Arguments: names of models; all without. Needs onnx,
onnxruntime and numpy, and `cargo build --release -p tilewright-cli`, or TILEWRIGHT with the path of the program. RECORDS names a folder
of records of `tilewright model tune` for the calls.
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

try:
    import openvino
except ImportError:
    openvino = None

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


def openvino_call(path, inputs):
    """A call of the model with OpenVINO, or the reason why there is none."""
    if openvino is None:
        return "not installed"
    try:
        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"})
        request = core.compile_model(core.read_model(str(path)), "CPU").create_infer_request()
        call = lambda: request.infer(inputs)
        call()
        return call
    except Exception as error:
        return str(error).strip().splitlines()[-1][:60]


def timed(call):
    """The median time of a call in milliseconds, of three at least and as many as fit into a tenth of a second."""
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < 0.1:
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


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
        # The first process finds no choices of earlier ones, and the second one those of the first.
        run = subprocess.run([PROGRAM, "model", "run", str(path), "--json", "--output", folder, *arguments],
                             capture_output=True, text=True, env={**os.environ, "TILEWRIGHT_CACHE": f"{folder}/cache"})
        firsts.append(time.perf_counter() - start)
        if run.returncode != 0:
            return f"| {name} | {run.stderr.strip()[:120]} |"
    paths = json.loads(run.stdout.splitlines()[-1])["outputs"].values()
    worst = ", ".join(difference(e, np.load(p)) for e, p in zip(expected, paths))
    records = os.environ.get("RECORDS")
    arguments += ["--records", records] if records else []
    ours = subprocess.Popen([PROGRAM, "model", "time", str(path), "--paced", *arguments], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    ours.stdout.readline()
    second = openvino_call(path, inputs)
    own, others, seconds = [], [], []
    for _ in range(ROUNDS):
        ours.stdin.write("\n")
        ours.stdin.flush()
        own.append(float(ours.stdout.readline()))
        others.append(timed(lambda: session.run(None, inputs)))
        seconds += [timed(second)] if callable(second) else []
    ours.stdin.close()
    ours.wait()
    return (f"| {name} | {worst} | {firsts[0]:.2f} s | {firsts[1]:.2f} s | {peer_first:.2f} s | {statistics.median(own):.2f} ms "
            f"| {against(own, others)} | {against(own, seconds) if seconds else f'{second} | –'} |")


def against(own, others):
    """The median time of a peer, and the ratio to ours with its range."""
    ratios = sorted(other / mine for mine, other in zip(own, others))
    return (f"{statistics.median(others):.2f} ms | **{statistics.median(ratios):.2f}** "
            f"({ratios[0]:.2f}–{ratios[-1]:.2f})")


def main():
    names = sys.argv[1:] or sorted(path.name for path in (MODELS / "expected").iterdir())
    print("| model | difference | first | second start | ONNX Runtime's start | ours | ONNX Runtime | ratio | OpenVINO | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print(compare(name, folder), flush=True)


if __name__ == "__main__":
    main()
