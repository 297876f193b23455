#!/usr/bin/env python3
"""Writes results of ONNX Runtime's quantised operators for the test of `graph`.

    python3 scripts/quantised_operators.py > graph/tests/quantised_operators.json

Needs numpy, onnx and onnxruntime. Each operator is run alone, without optimisations, on odd shapes, per tensor and where the operator takes it
per channel, with zero points that are zero and others, at the limits of the types, and with random integers.
"""

import json

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

random = np.random.default_rng(29)
NAMES = {"uint8": "u8", "int8": "i8", "int32": "i32", "int64": "i64", "float32": "f32", "bool": "bool"}


def integers(dtype, *shape):
    info = np.iinfo(dtype)
    values = random.integers(info.min, info.max + 1, shape).astype(dtype)
    if values.size > 2:
        values.flat[0], values.flat[1] = info.min, info.max
    return values


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def scale(value):
    return np.float32(value)


def zero(dtype, value):
    return np.array(value, dtype)


def quantised(dtype, shape, step, point):
    return [integers(dtype, *shape), scale(step), zero(dtype, point)]


def cases():
    for dtype, points in ((np.uint8, (0, 117, 255)), (np.int8, (0, -31, 127))):
        low, middle, high = points
        result = [scale(0.07), zero(dtype, middle)]
        for name in ("QLinearAdd", "QLinearMul"):
            yield name, {}, quantised(dtype, (3, 5, 7), 0.05, middle) + quantised(dtype, (3, 5, 7), 0.031, high) + result
            yield name, {}, quantised(dtype, (2, 3, 1), 0.05, low) + quantised(dtype, (1, 9), 0.011, middle) + result
        yield "QLinearSigmoid", {}, quantised(dtype, (4, 33), 0.05, middle) + [scale(1 / 256), zero(dtype, np.iinfo(dtype).min)]
        yield "QLinearLeakyRelu", {"alpha": 0.13}, quantised(dtype, (4, 33), 0.05, middle) + [scale(0.043), zero(dtype, low)]
        yield "QLinearSoftmax", {"axis": -1, "opset": 13}, quantised(dtype, (3, 37), 0.08, middle) + [scale(1 / 256), zero(dtype, np.iinfo(dtype).min)]
        pool = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "count_include_pad": 0}
        yield "QLinearAveragePool", pool, quantised(dtype, (1, 3, 7, 6), 0.05, middle) + [scale(0.04), zero(dtype, middle)]
        yield "QLinearGlobalAveragePool", {"channels_last": 0}, quantised(dtype, (2, 5, 7, 3), 0.05, middle) + [scale(0.02), zero(dtype, middle)]
        parts = quantised(dtype, (2, 3, 4), 0.05, middle) + quantised(dtype, (2, 1, 4), 0.07, low) + quantised(dtype, (2, 2, 4), 0.011, high)
        yield "QLinearConcat", {"axis": 1}, result + parts
        choice = [integers(np.uint8, 3, 5) > 100] + quantised(dtype, (3, 5), 0.05, middle) + quantised(dtype, (1, 5), 0.021, low) + result
        yield "QLinearWhere", {}, choice
    for right in (np.uint8, np.int8):
        a, b = quantised(np.uint8, (7, 33), 0.05, 117), quantised(right, (33, 5), 0.03, 3)
        result = [scale(1.7), zero(np.uint8, 100)]
        yield "QGemm", {}, a + b + [integers(np.int32, 5) // 2**17] + result
        yield "QGemm", {"transA": 1, "transB": 1}, quantised(np.uint8, (33, 7), 0.05, 0) + quantised(right, (5, 33), 0.03, 0) + [None] + result
        columns = [integers(right, 33, 5), np.abs(floats(5)) * np.float32(0.01) + np.float32(0.001), integers(right, 5)]
        yield "QGemm", {}, a + columns + [None] + result
        yield "QGemm", {}, a + b + [integers(np.int32, 5) // 2**17]
        yield "MatMulIntegerToFloat", {}, [a[0], b[0], a[1], b[1], a[2], b[2], floats(5)]
        yield "MatMulIntegerToFloat", {}, [a[0], columns[0], a[1], columns[1], a[2], columns[2]]
        yield "MatMulIntegerToFloat", {}, [integers(np.uint8, 2, 1, 9), integers(right, 2, 9, 3), scale(0.1), scale(0.2)]
        yield "DynamicQuantizeMatMul", {}, [floats(7, 33), b[0], b[1], b[2], floats(5)]
        yield "DynamicQuantizeMatMul", {}, [floats(2, 1, 33), columns[0], columns[1], columns[2]]
        yield "DynamicQuantizeMatMul", {}, [np.zeros((1, 33), np.float32), b[0], b[1]]
    for bias in (False, True):
        weights = integers(np.uint8, 6, 3, 16)
        scales = np.abs(floats(18)) * np.float32(0.02)
        points = [None] if bias else [integers(np.uint8, 6 * 2)]
        yield "MatMulNBits", {"K": 70, "N": 6, "bits": 4, "block_size": 32}, [floats(5, 70), weights, scales] + points
    for right, heads, causal, mask, earlier in (
        (np.int8, 2, 0, np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32), 0),
        (np.uint8, 4, 0, np.array([3, 5], np.int32), 0),
        (np.int8, 1, 1, None, 0),
        (np.uint8, 2, 1, np.array([[1] * 8, [1] * 6 + [0] * 2], np.int32), 3),
    ):
        columns = earlier == 0 and right == np.int8
        step = np.abs(floats(24)) * np.float32(0.01) + np.float32(0.001) if columns else scale(0.006)
        point = zero(right, 0 if right == np.int8 else 120)
        before = [floats(2, 2, heads, earlier, 8 // heads)] if earlier else []
        inputs = [integers(np.uint8, 2, 5, 12), integers(right, 12, 24), floats(24), scale(0.03), step, mask, zero(np.uint8, 117), point]
        yield "QAttention", {"num_heads": heads, "unidirectional": causal}, inputs + before
    for bits in (2, 4, 8):
        indices = np.array([[3, 0, 6], [-1, 3, 2]], np.int64)
        attributes = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
        table, scales = integers(np.uint8, 7, 80 * bits // 8), floats(7, 5) * np.float32(0.02)
        yield "GatherBlockQuantized", attributes, [table, indices, scales]
        points = integers(np.uint8, 7, (5 * bits + 7) // 8)
        yield "GatherBlockQuantized", attributes, [table, indices, scales, points]
        yield "GatherBlockQuantized", {**attributes, "quantize_axis": -1}, [table, np.array(4, np.int32), scales, points]
        # A row of 24 integers ends in half a block.
        table, scales = integers(np.uint8, 3, 2, 24 * bits // 8), floats(3, 2, 2) * np.float32(0.02)
        yield "GatherBlockQuantized", {**attributes, "quantize_axis": 2}, [table, np.array([2, 1], np.int32), scales]


def run(name, attributes, inputs):
    names, values, feeds = [], [], {}
    for place, value in enumerate(inputs):
        if value is None:
            names.append("")
            continue
        value = np.asarray(value)
        names.append(f"x{place}")
        feeds[names[-1]] = value
        values.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    # Attention with earlier keys and values has to give the later ones.
    outputs = ["y", "present"] if name == "QAttention" and len(inputs) > 8 else ["y"]
    node = helper.make_node(name, names, outputs, domain="com.microsoft", **attributes)
    # The parameters of quantisation have to be constants.
    constant = {n for n in feeds if feeds[n].size < 20 or name == "MatMulNBits" and n != "x0"}
    if name in ("QAttention", "GatherBlockQuantized"):
        constant = set(feeds) - {"x0" if name == "QAttention" else "x1"}
    graph = helper.make_graph(
        [node],
        "case",
        [value for value in values if value.name not in constant],
        [helper.make_empty_tensor_value_info("y")],
        [onnx.numpy_helper.from_array(feeds[n], n) for n in sorted(constant)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {n: value for n, value in feeds.items() if n not in constant})[0]


def stored(value):
    if value is None:
        return None
    value = np.asarray(value)
    return {"type": NAMES[value.dtype.name], "shape": list(value.shape), "values": [v.item() for v in value.flatten()]}


lines = []
for name, attributes, inputs in cases():
    entry = {"operator": name, "attributes": attributes, "inputs": [stored(value) for value in inputs]}
    entry["output"] = stored(run(name, attributes, inputs))
    lines.append(json.dumps(entry))
print("[\n" + ",\n".join(lines) + "\n]")
