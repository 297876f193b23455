#!/usr/bin/env python3
"""Writes results of operators that ONNX Runtime makes of several nodes, for the test of `graph`.

    python3 scripts/fused_operators.py > graph/tests/fused_operators.json

Needs numpy, onnx and onnxruntime. Each operator is run alone, without optimisations, on small odd shapes.
"""

import json

import numpy as np
import onnx
import onnxruntime
from onnx import helper

random = np.random.default_rng(28)
NAMES = {"int32": "i32", "int64": "i64", "float32": "f32"}


def floats(*shape):
    return random.normal(size=shape).astype(np.float32).round(3)


def ints(values, dtype=np.int64):
    return np.array(values, dtype)


def angles(positions, pairs):
    turns = np.arange(positions)[:, None] / 3.0 ** np.arange(pairs)
    return [np.cos(turns).astype(np.float32).round(4), np.sin(turns).astype(np.float32).round(4)]


def grouped(heads, shared, length, batch, new, lengths, past, **attributes):
    """Queries, keys and values of `new` tokens; sequences have `lengths` tokens with them, and a buffer of `past` earlier ones."""
    attributes = {"num_heads": heads, "kv_num_heads": shared, **attributes}
    joined = attributes.pop("joined", False)
    if joined:
        tokens = [floats(batch, new, (heads + 2 * shared) * length), None, None]
    else:
        tokens = [floats(batch, new, heads * length), floats(batch, new, shared * length), floats(batch, new, shared * length)]
    before = [floats(batch, shared, past, length) for _ in range(2)]
    inputs = tokens + before + [ints(lengths, np.int32) - 1, ints([max(lengths)], np.int32)]
    if attributes.get("do_rotary"):
        inputs += angles(8, length // 2)
    return "GroupQueryAttention", attributes, inputs, 3


def cases():
    yield "Gelu", {}, [floats(3, 7)], 1
    yield "FusedConv", {"activation": "Relu", "pads": [1, 1, 1, 1]}, [floats(1, 2, 5, 6), floats(3, 2, 3, 3), floats(3)], 1
    clip = {"activation": "Clip", "activation_params": [-0.5, 1.5], "strides": [2, 1]}
    yield "FusedConv", clip, [floats(1, 2, 5, 6), floats(3, 2, 3, 3), None, floats(1, 3, 2, 4)], 1
    yield "FusedConv", {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}, [floats(1, 2, 5), floats(3, 2, 3), floats(3)], 1
    yield "FusedGemm", {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.2}, [floats(4, 5), floats(3, 5), floats(3)], 1
    yield "SkipLayerNormalization", {"epsilon": 1e-5}, [floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)], 1
    yield "SkipLayerNormalization", {}, [floats(2, 3, 8), floats(2, 3, 8), floats(8)], 4
    yield "SkipSimplifiedLayerNormalization", {"epsilon": 1e-6}, [floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8)], 4
    words, segments = ints(random.integers(0, 9, (2, 5)), np.int32), ints(random.integers(0, 2, (2, 5)), np.int32)
    tables = [floats(9, 6), floats(7, 6), floats(2, 6), floats(6), floats(6)]
    yield "EmbedLayerNormalization", {"epsilon": 1e-5}, [words, segments] + tables + [ints([[1] * 5, [1] * 3 + [0] * 2], np.int32)], 2
    yield "EmbedLayerNormalization", {}, [words, None] + tables[:2] + [None] + tables[3:], 1
    for interleaved in (0, 1):
        attributes = {"interleaved": interleaved}
        yield "RotaryEmbedding", attributes, [floats(2, 3, 4, 6), ints([[0, 1, 2, 3], [5, 6, 7, 8]])] + angles(9, 3), 1
        yield "RotaryEmbedding", attributes, [floats(2, 4, 18), ints([3])] + angles(9, 3), 1
    part = {"num_heads": 3, "rotary_embedding_dim": 4}
    yield "RotaryEmbedding", part, [floats(2, 4, 24), ints([[0, 1, 2, 3], [5, 6, 7, 8]])] + angles(9, 2), 1
    yield grouped(2, 1, 16, 2, 3, [3, 3], 0)
    yield grouped(4, 2, 16, 1, 1, [4], 3, do_rotary=1)
    yield grouped(2, 1, 16, 2, 1, [5, 3], 4, do_rotary=1, rotary_interleaved=1)
    yield grouped(2, 2, 16, 2, 1, [4, 2], 6, scale=0.3)
    yield grouped(2, 2, 16, 1, 3, [6], 3, local_window_size=3, joined=True, do_rotary=1)
    yield grouped(2, 1, 16, 2, 1, [4, 4], 3, softcap=2.0)
    # Keys that come later are hidden more than padding is: the first queries of padded sequences see nothing but padding.
    for mask, filtered in (([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]], -50.0), ([[0, 1, 0, 1, 1], [1, 1, 1, 1, 0]], -5.0)):
        attributes = {"num_heads": 2, "unidirectional": 1, "mask_filter_value": filtered}
        mask = ints(mask, np.int32)
        yield "Attention", attributes, [floats(2, 5, 6), floats(6, 24), floats(24), mask], 1
        yield "MultiHeadAttention", attributes, [floats(2, 5, 8), floats(2, 5, 8), floats(2, 5, 8), None, mask], 1


def run(name, attributes, inputs, count):
    names, values, feeds = [], [], {}
    for place, value in enumerate(inputs):
        names.append("" if value is None else f"x{place}")
        if value is not None:
            feeds[names[-1]] = value
            values.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    # The mean and the inverse deviation are given in training alone.
    skips = name.startswith("Skip") and count == 4
    outputs = ["y0", "", "", "y3"] if skips else [f"y{place}" for place in range(count)]
    # The number of tokens has to be asked for.
    if name == "EmbedLayerNormalization":
        outputs = ["y0", "y1"]
    node = helper.make_node(name, names, outputs, domain="com.microsoft", **attributes)
    given = [output for output in outputs if output]
    graph = helper.make_graph([node], "case", values, [helper.make_empty_tensor_value_info(output) for output in given])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = dict(zip(given, session.run(given, feeds)))
    return [stored(found.get(output)) for output in outputs]


def stored(value):
    if value is None:
        return None
    value = np.asarray(value)
    numbers = [float(f"{v:.7g}") if value.dtype == np.float32 else v.item() for v in value.flatten()]
    return {"type": NAMES[value.dtype.name], "shape": list(value.shape), "values": numbers}


lines = []
for name, attributes, inputs, count in cases():
    entry = {"operator": name, "attributes": attributes, "inputs": [stored(value) for value in inputs]}
    try:
        entry["outputs"] = run(name, attributes, inputs, count)
    except Exception as error:
        raise SystemExit(f"{name} {attributes}: {error}")
    lines.append(json.dumps(entry))
print("[\n" + ",\n".join(lines) + "\n]")
