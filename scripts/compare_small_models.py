#!/usr/bin/env python3
"""Builds small ONNX models of kinds that the fetched ones lack, and compares `tilewright model run` with ONNX Runtime.

The kinds: bidirectional recurrent layers over sequences with lengths, a classifier of bytes, a detector whose picture has
any size with its boxes suppressed, an audio front end, loops and scans, attention in two spellings. Weights are random, and
the same in each run. Needs onnx, onnxruntime and numpy, and `cargo build --release -p tilewright-cli`, or TILEWRIGHT with the
path of the program. Arguments: names of kinds; all without. The exit status is the number of kinds that differ.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("TILEWRIGHT", str(ROOT / "target" / "release" / "tilewright"))
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph:
    """A graph under construction: nodes, and constants with random or given elements."""

    def __init__(self, seed=0):
        self.random, self.nodes, self.constants, self.count = np.random.default_rng(seed), [], [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, value):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, *shape):
        scale = 1 / np.sqrt(np.prod(shape[1:]) if len(shape) == 4 else shape[-1])
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def call(self, operator, *inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, inputs, outputs, opset=17):
        results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
        parameters = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
        graph = helper.make_graph(self.nodes, "main", parameters, results, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def recurrent(operator, gates, **attributes):
    """A bidirectional layer over padded sequences, as tagging models have them, and a projection."""
    g, hidden = Graph(gates), 24
    x = g.call("Transpose", "x", perm=[1, 0, 2])
    lengths = g.call("Cast", "lengths", to=TensorProto.INT32)
    w, r, b = g.weights(2, gates * hidden, 10), g.weights(2, gates * hidden, hidden), g.weights(2, 2 * gates * hidden)
    states = g.call(operator, x, w, r, b, lengths, outputs=2, direction="bidirectional", hidden_size=hidden, **attributes)
    rows = g.call("Transpose", states[0], perm=[2, 0, 1, 3])
    rows = g.call("Reshape", rows, g.ints(0, 0, -1))
    scores = g.call("MatMul", rows, g.weights(2 * hidden, 7))
    result = g.call("LogSoftmax", scores, axis=-1)
    model = g.model([("x", F, ["N", "T", 10]), ("lengths", I, ["N"])], [(result, F), (states[1], F)], 14)
    for batch, steps in [(1, 1), (3, 11), (2, 40)]:
        x = g.random.standard_normal((batch, steps, 10)).astype(np.float32)
        yield model, {"x": x, "lengths": np.array([max(steps - 3 * n, 1) for n in range(batch)])}


def bytes_classifier():
    """Embeddings of bytes, gated convolutions over time, the largest value over all places."""
    g = Graph(5)
    x = g.call("Gather", g.weights(257, 16), "x")
    x = g.call("Transpose", x, perm=[0, 2, 1])
    for width in (3, 5):
        both = g.call("Conv", x, g.weights(32, 16, width), g.weights(32), pads=[width // 2] * 2)
        a, b = g.call("Split", both, outputs=2, axis=1)
        x = g.call("Add", x, g.call("Mul", a, g.call("Sigmoid", b)))
    x = g.call("ReduceMax", x, axes=[2], keepdims=0)
    x = g.call("LayerNormalization", x, g.weights(16), g.weights(16))
    top, places = g.call("TopK", g.call("Softmax", g.call("Gemm", x, g.weights(16, 9), g.weights(9))), g.ints(3), outputs=2)
    model = g.model([("x", I, ["N", "T"])], [(top, F), (places, I)])
    for batch, length in [(1, 1), (2, 37), (1, 300)]:
        yield model, {"x": g.random.integers(0, 257, (batch, length))}


def detector():
    """A small pyramid of convolutions over a picture of any size, decoded boxes, and their suppression."""
    g = Graph(6)

    def block(x, channels, inputs, stride=2):
        y = g.call("Conv", x, g.weights(channels, inputs, 3, 3), g.weights(channels), strides=[stride] * 2, pads=[1] * 4)
        return g.call("Mul", y, g.call("Sigmoid", y))

    a = block(block("x", 8, 3), 16, 8)
    b = block(a, 32, 16)
    size = g.call("Slice", g.call("Shape", a), g.ints(2), g.ints(4))
    sizes = g.call("Concat", g.call("Slice", g.call("Shape", b), g.ints(0), g.ints(2)), size, axis=0)
    up = g.call("Resize", b, "", "", sizes, mode="linear")
    joined = block(g.call("Concat", a, up, axis=1), 16, 48, 1)
    pool = g.call("MaxPool", joined, kernel_shape=[5, 5], pads=[2] * 4)
    heads = g.call("Conv", g.call("Concat", joined, pool, axis=1), g.weights(6, 32, 1, 1))
    rows = g.call("Transpose", g.call("Reshape", heads, g.ints(0, 6, -1)), perm=[0, 2, 1])
    centres, scores = g.call("Split", rows, g.ints(4, 2), outputs=2, axis=2)
    boxes = g.call("Mul", g.call("Sigmoid", centres), g.constant(np.float32(50)))
    scores = g.call("Transpose", g.call("Sigmoid", scores), perm=[0, 2, 1])
    kept = g.call("NonMaxSuppression", boxes, scores, g.ints(20), g.constant(np.float32([0.5])),
                  g.constant(np.float32([0.4])), center_point_box=1)
    model = g.model([("x", F, ["N", 3, "H", "W"])], [(boxes, F), (scores, F), (kept, I)])
    for height, width in [(32, 32), (64, 96), (61, 45)]:
        yield model, {"x": g.random.standard_normal((1, 3, height, width)).astype(np.float32)}


def front_end():
    """Pre-emphasis, short transforms, mel bands, logarithms, and the mean over the frames of each sequence."""
    g = Graph(7)
    tail = g.call("Sub", g.call("Slice", "x", g.ints(1), g.ints(2**62), g.ints(1)),
                  g.call("Mul", g.call("Slice", "x", g.ints(0), g.ints(-1), g.ints(1)), g.constant(np.float32(0.97))))
    x = g.call("Pad", tail, g.ints(0, 64, 0, 64), mode="reflect")
    spectrum = g.call("STFT", x, g.constant(np.int64(40)), g.constant(np.hanning(128).astype(np.float32)))
    power = g.call("ReduceSumSquare", spectrum, axes=[3], keepdims=0)
    mel = g.call("Log", g.call("Add", g.call("MatMul", power, g.call("Abs", g.weights(65, 20))), g.constant(np.float32(1e-3))))
    running = g.call("CumSum", mel, g.constant(np.int64(1)))
    last = g.call("Div", "lengths", g.ints(40))
    places = g.call("Unsqueeze", g.call("Unsqueeze", g.call("Sub", last, g.ints(1)), g.ints(1)), g.ints(2))
    shape = g.call("Concat", g.call("Shape", "lengths"), g.ints(1, 20), axis=0)
    chosen = g.call("GatherElements", running, g.call("Expand", places, shape), axis=1)
    model = g.model([("x", F, ["N", "S"]), ("lengths", I, ["N"])], [(mel, F), (chosen, F)])
    for batch, samples in [(1, 400), (3, 1601)]:
        x = g.random.standard_normal((batch, samples)).astype(np.float32)
        yield model, {"x": x, "lengths": np.array([samples - 80 * n for n in range(batch)])}


def loop():
    """A loop that ends by its own condition, carries a state and collects rows; a branch inside."""
    g, body = Graph(8), Graph(9)
    state = body.call("Tanh", body.call("Gemm", "state", body.weights(6, 6), body.weights(6)))
    low = body.call("ReduceSum", state, keepdims=0)
    is_low = body.call("Less", low, body.constant(np.float32(0)))
    branches = []
    for operator, name in (("Neg", "negated"), ("Exp", "raised")):
        result = helper.make_tensor_value_info(name, F, None)
        branches.append(helper.make_graph([helper.make_node(operator, [state], [name])], name, [], [result]))
    row = body.call("If", is_low, then_branch=branches[0], else_branch=branches[1])
    joined = body.call("Concat", "memory", row, axis=0)
    again = body.call("Less", "number", "limit")
    value = helper.make_tensor_value_info
    inner = helper.make_graph(
        body.nodes, "body",
        [value("number", I, []), value("go", B, []), value("state", F, [1, 6]), value("memory", F, [None, 6])],
        [value(again, B, None), value(state, F, None), value(joined, F, None), value(row, F, None)], body.constants)
    outputs = g.call("Loop", "", "", "x", "x", outputs=3, body=inner)
    model = g.model([("x", F, [1, 6]), ("limit", I, [])], [(name, F) for name in outputs])
    for limit in (0, 3, 25):
        yield model, {"x": g.random.standard_normal((1, 6)).astype(np.float32), "limit": np.array(limit)}


def scan():
    """A scan over time that carries a state, backwards."""
    g, body, value = Graph(10), Graph(11), helper.make_tensor_value_info
    mixed = body.call("MatMul", "h", body.weights(5, 5))
    state = body.call("Tanh", body.call("Add", mixed, "x_t"))
    inner = helper.make_graph(
        body.nodes, "body", [value("h", F, [2, 5]), value("x_t", F, [2, 5])],
        [value(state, F, None), value("copy", F, None)], body.constants)
    inner.node.append(helper.make_node("Identity", [state], ["copy"]))
    outputs = g.call("Scan", g.constant(np.zeros((2, 5), np.float32)), "x", outputs=2, body=inner, num_scan_inputs=1,
                     scan_input_directions=[1], scan_output_directions=[1])
    model = g.model([("x", F, ["T", 2, 5])], [(name, F) for name in outputs])
    for steps in (1, 9):
        yield model, {"x": g.random.standard_normal((steps, 2, 5)).astype(np.float32)}


def encoder(fused):
    """A layer of a sentence encoder with a mask: normalisation as one operator, or as exporters spell it out."""
    g, width, heads = Graph(12), 32, 4

    def normalise(x):
        if fused:
            return g.call("LayerNormalization", x, g.weights(width), g.weights(width), epsilon=1e-5)
        centred = g.call("Sub", x, g.call("ReduceMean", x, axes=[-1]))
        squares = g.call("ReduceMean", g.call("Pow", centred, g.constant(np.float32(2))), axes=[-1])
        deviation = g.call("Sqrt", g.call("Add", squares, g.constant(np.float32(1e-5))))
        return g.call("Add", g.call("Mul", g.call("Div", centred, deviation), g.weights(width)), g.weights(width))

    x = g.call("Gather", g.weights(100, width), "ids")
    mask = g.call("Cast", g.call("Unsqueeze", "mask", g.ints(1, 2)), to=F)
    penalty = g.call("Mul", g.call("Sub", g.constant(np.float32(1)), mask), g.constant(np.float32(-10000)))

    def split(x, order):
        rows = g.call("MatMul", x, g.weights(width, width))
        return g.call("Transpose", g.call("Reshape", rows, g.ints(0, 0, heads, width // heads)), perm=order)

    q, k, v = split(x, [0, 2, 1, 3]), split(x, [0, 2, 3, 1]), split(x, [0, 2, 1, 3])
    scores = g.call("Div", g.call("MatMul", q, k), g.constant(np.float32((width // heads) ** 0.5)))
    mixed = g.call("MatMul", g.call("Softmax", g.call("Add", scores, penalty), axis=-1), v)
    mixed = g.call("Reshape", g.call("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(0, 0, width))
    x = normalise(g.call("Add", x, g.call("MatMul", mixed, g.weights(width, width))))
    wide = g.call("MatMul", x, g.weights(width, 4 * width))
    half = g.call("Mul", g.call("Add", g.call("Erf", g.call("Div", wide, g.constant(np.float32(2**0.5)))),
                                g.constant(np.float32(1))), g.constant(np.float32(0.5)))
    x = normalise(g.call("Add", x, g.call("MatMul", g.call("Mul", wide, half), g.weights(4 * width, width))))
    model = g.model([("ids", I, ["N", "S"]), ("mask", I, ["N", "S"])], [(x, F)])
    for batch, length in [(1, 1), (2, 19)]:
        mask = (np.arange(length) < np.array([[length - 5 * n] for n in range(batch)])).astype(np.int64)
        yield model, {"ids": g.random.integers(0, 100, (batch, length)), "mask": mask}


def topology(name):
    """A network of the package onnx, whose weights are constants."""
    path = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    model = onnx.load(path)
    constants = {constant.name for constant in model.graph.initializer}
    random, inputs = np.random.default_rng(0), {}
    for value in model.graph.input:
        if value.name not in constants:
            shape = [extent.dim_value for extent in value.type.tensor_type.shape.dim]
            inputs[value.name] = random.random(shape, np.float32)
    yield model, inputs


KINDS = {
    "gru": lambda: recurrent("GRU", 3, linear_before_reset=1),
    "lstm": lambda: recurrent("LSTM", 4),
    "rnn": lambda: recurrent("RNN", 1, activations=["Relu", "Tanh"]),
    "bytes": bytes_classifier,
    "detector": detector,
    "front-end": front_end,
    "loop": loop,
    "scan": scan,
    "encoder": lambda: encoder(True),
    "encoder-spelled": lambda: encoder(False),
}
for light in ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet",
              "vgg19", "zfnet512"):
    KINDS[f"light-{light}"] = lambda light=light: topology(light)


def run(model, inputs, folder):
    """What `tilewright model run` gives, by output name in the model's order."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    command = [PROGRAM, "model", "run", str(path), "--output", str(folder / "out"), "--json"]
    for name, value in inputs.items():
        np.save(folder / f"{name.replace('/', '_')}.npy", value)
        command += ["--input", f"{name}={folder / name.replace('/', '_')}.npy"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError((result.stderr or result.stdout).strip().splitlines()[-1])
    files = json.loads(result.stdout.strip().splitlines()[-1])["outputs"]
    return {name: np.load(path) for name, path in files.items()}


def difference(expected, found):
    """The largest difference, relative to the largest expected number; infinite for other shapes."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return float("inf")
    if expected.size == 0:
        return 0.0
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    return float(np.max(np.abs(expected - found)) / max(np.max(np.abs(expected)), 1e-30))


def main():
    wrong = 0
    for kind in sys.argv[1:] or KINDS:
        worst, reason = 0.0, ""
        try:
            for model, inputs in KINDS[kind]():
                options = onnxruntime.SessionOptions()
                options.log_severity_level = 3
                peer = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
                expected = peer.run(None, inputs)
                with tempfile.TemporaryDirectory() as folder:
                    found = run(model, inputs, pathlib.Path(folder))
                for output, value in zip(peer.get_outputs(), expected):
                    worst = max(worst, difference(value, found[output.name]))
        except Exception as error:  # The reason stands in the table.
            worst, reason = float("inf"), f"{type(error).__name__}: {error}"
        wrong += worst > 1e-4
        print(f"{kind:24} {worst:8.0e} {reason}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
