#!/usr/bin/env python3
"""Runs small models in the spellings of exporters, with `tilewright` and with ONNX Runtime: results and times of calls.

    python3 scripts/exported_models.py [NAME...]

Writes the models with random weights, and inputs of two sizes for each, to `target/exported`, and prints a table. Needs numpy, onnx and
onnxruntime, and `cargo build --release -p tilewright-cli`, or TILEWRIGHT with the path of the program. THREADS is 1 unless it is set.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from exported_graphs import MODELS

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "exported"
PROGRAM = os.environ.get("TILEWRIGHT", str(ROOT / "target" / "release" / "tilewright"))
THREADS = os.environ.get("THREADS", "1")


def median(call, least=5, seconds=0.3):
    call()
    times, begin = [], time.perf_counter()
    while len(times) < least or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def time_of_calls(path, arguments):
    """The first call of `tilewright`, and the median of nine rounds of later ones: a single round varies by a factor of three."""
    run = [PROGRAM, "model", "time", str(path), *arguments, "--threads", THREADS, "--rounds", "9"]
    timed = subprocess.run(run, capture_output=True, text=True)
    times = [float(word) for word in timed.stdout.split()]
    if len(times) < 2:
        return f"FAILS: {timed.stderr.strip()[-200:]}"
    return f"{statistics.median(times[1:]):8.3f} ms (first call {times[0]:.0f} ms)"


def difference(expected, found):
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"{expected.dtype}{list(expected.shape)} is {found.dtype}{list(found.shape)}"
    if expected.size == 0:
        return "0"
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    return f"{np.abs(expected - found).max() / max(np.abs(expected).max(), 1e-30):.0e}"


def compare(make):
    graph, feeds = make()
    model = graph.model()
    model.functions.extend(getattr(graph, "functions", []))
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{make.__name__}.onnx"
    onnx.save(model, path)
    compare_file(f"{make.__name__:18}", path, feeds)


def compare_file(title, path, feeds):
    """Runs a model on inputs by name, and prints a line for each."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(THREADS)
    options.log_severity_level = 3
    try:
        peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        print(f"{title}  ONNX Runtime refuses it: {' '.join(str(error).split())[:200]}", flush=True)
        return
    for number, inputs in enumerate(feeds):
        folder = path.parent / path.stem / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        inputs = {given.name: inputs[given.name] for given in peer.get_inputs()}
        arguments = []
        for place, (name, value) in enumerate(inputs.items()):
            np.save(folder / f"{place}.npy", value)
            arguments += ["--input", f"{name}={folder / str(place)}.npy"]
        try:
            expected = peer.run(None, inputs)
        except Exception as error:
            print(f"{title} {number}  ONNX Runtime fails: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        own = median(lambda: peer.run(None, inputs))
        run = [PROGRAM, "model", "run", str(path), *arguments, "--output", str(folder / "out"), "--json", "--threads", THREADS]
        result = subprocess.run(run, capture_output=True, text=True)
        if result.returncode:
            print(f"{title} {number}  FAILS: {result.stderr.strip()[-300:]}", flush=True)
            continue
        outputs = json.loads(result.stdout.strip().splitlines()[-1])["outputs"]
        names = [output.name for output in peer.get_outputs()]
        differences = [difference(value, np.load(outputs[name])) for name, value in zip(names, expected)]
        print(f"{title} {number}  ONNX Runtime {own:8.3f} ms   tilewright {time_of_calls(path, arguments)}   {' '.join(differences)}", flush=True)


def main():
    for make in MODELS:
        if not sys.argv[1:] or make.__name__ in sys.argv[1:]:
            try:
                compare(make)
            except Exception as error:
                print(f"{make.__name__:18} {str(error)[:400]}", flush=True)


if __name__ == "__main__":
    main()
