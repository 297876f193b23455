#!/usr/bin/env python3
"""The time that a graph adds to each of its nodes: softmax of four numbers, a thousand times one after the other, in Tilewright and ONNX Runtime.

    python3 -m pip install onnx onnxruntime numpy
    cargo build --release -p tilewright-cli
    python3 scripts/graph_overhead.py

Prints the time of a node: the median call of five alternating rounds, over the number of nodes. It includes the kernel, which takes some ten nanoseconds.
TILEWRIGHT names the program; one thread.
"""

import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper, save

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("TILEWRIGHT", str(ROOT / "target" / "release" / "tilewright"))
NODES, ROUNDS = 1000, 5


def model(path):
    names = [f"x{number}" for number in range(NODES + 1)]
    nodes = [helper.make_node("Softmax", [names[n]], [names[n + 1]], name=f"n{n}") for n in range(NODES)]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph(nodes, "chain", [value(names[0])], [value(names[-1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    save(model, path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, x = f"{folder}/chain.onnx", np.arange(4, dtype=np.float32)[None]
        model(path)
        np.save(f"{folder}/x.npy", x)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        command = [PROGRAM, "model", "time", path, "--input", f"x0={folder}/x.npy", "--threads", "1", "--paced"]
        ours = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ours.stdout.readline()
        own, others = [], []
        for _ in range(ROUNDS):
            ours.stdin.write("\n")
            ours.stdin.flush()
            own.append(1e3 * float(ours.stdout.readline()))
            times = []
            for _ in range(50):
                start = time.perf_counter()
                session.run(None, {"x0": x})
                times.append(1e6 * (time.perf_counter() - start))
            others.append(statistics.median(times))
        ours.stdin.close()
        ours.wait()
    for name, times in [("tilewright", own), ("ONNX Runtime", others)]:
        print(f"{name}: {statistics.median(times) / NODES:.3f} µs a node ({min(times) / NODES:.3f}–{max(times) / NODES:.3f})")


if __name__ == "__main__":
    main()
