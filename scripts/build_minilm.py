#!/usr/bin/env python3
"""Writes all-MiniLM-L6-v2 as an ONNX file (operator set 17): ids and mask in, sentence embeddings of length 1 out.

    scripts/fetch-minilm.sh
    python3 scripts/build_minilm.py target/minilm target/models/minilm.onnx

Needs numpy, onnx and safetensors.
"""

import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file


class Graph:
    """Nodes and constants under construction."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], {}

    def constant(self, value):
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def call(self, operator, *inputs, name=None, **attributes):
        name = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def linear(self, x, layer):
        weights = self.constant(self.weights[f"{layer}.weight"].T.copy())
        product = self.call("MatMul", x, weights, name=f"{layer}/MatMul")
        return self.call("Add", product, self.constant(self.weights[f"{layer}.bias"]))

    def normalise(self, x, layer, epsilon):
        scale, shift = (self.constant(self.weights[f"{layer}.{part}"]) for part in ("weight", "bias"))
        return self.call("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)

    def scaled(self, x, factor):
        return self.call("Mul", x, self.constant(np.float32(factor)))

    def gelu(self, x):
        erf = self.call("Erf", self.scaled(x, 2**-0.5))
        return self.scaled(self.call("Mul", x, self.call("Add", erf, self.constant(np.float32(1)))), 0.5)


def embeddings(graph, epsilon):
    table = "embeddings."
    x = graph.call("Gather", graph.constant(graph.weights[table + "word_embeddings.weight"]), "ids")
    axis, one, two = (graph.constant(np.array([place])) for place in (0, 1, 2))
    steps = graph.call("Slice", graph.call("Shape", "ids"), one, two)
    places = graph.constant(graph.weights[table + "position_embeddings.weight"])
    x = graph.call("Add", x, graph.call("Slice", places, axis, steps, axis))
    x = graph.call("Add", x, graph.constant(graph.weights[table + "token_type_embeddings.weight"][0]))
    return graph.normalise(x, table + "LayerNorm", epsilon)


def encoder_layer(graph, x, hidden, layer, config):
    heads, width = config["num_attention_heads"], config["hidden_size"]
    split = graph.constant(np.array([0, 0, heads, width // heads]))
    parts = [graph.call("Reshape", graph.linear(x, f"{layer}.attention.self.{part}"), split) for part in ("query", "key", "value")]
    orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    query, key, value = (graph.call("Transpose", part, perm=perm) for part, perm in zip(parts, orders))
    scores = graph.scaled(graph.call("MatMul", query, key), (width // heads) ** -0.5)
    shares = graph.call("Softmax", graph.call("Add", scores, hidden), axis=-1)
    mixed = graph.call("Transpose", graph.call("MatMul", shares, value), perm=[0, 2, 1, 3])
    mixed = graph.call("Reshape", mixed, graph.constant(np.array([0, 0, width])))
    epsilon = config["layer_norm_eps"]
    x = graph.call("Add", x, graph.linear(mixed, f"{layer}.attention.output.dense"))
    x = graph.normalise(x, f"{layer}.attention.output.LayerNorm", epsilon)
    inner = graph.gelu(graph.linear(x, f"{layer}.intermediate.dense"))
    x = graph.call("Add", x, graph.linear(inner, f"{layer}.output.dense"))
    return graph.normalise(x, f"{layer}.output.LayerNorm", epsilon)


def pooled(graph, x, mask):
    weights = graph.call("Unsqueeze", mask, graph.constant(np.array([2])))
    axis = graph.constant(np.array([1]))
    total = graph.call("ReduceSum", graph.call("Mul", x, weights), axis, keepdims=0)
    mean = graph.call("Div", total, graph.call("ReduceSum", weights, axis, keepdims=0))
    return graph.call("Div", mean, graph.call("ReduceL2", mean, axes=[1], keepdims=1), name="embedding")


def build(folder):
    config = json.load(open(f"{folder}/config.json"))
    stored = load_file(f"{folder}/model.safetensors")
    weights = {name.removeprefix("bert."): value.astype(np.float32) for name, value in stored.items() if value.dtype != np.int64}
    graph = Graph(weights)
    x = embeddings(graph, config["layer_norm_eps"])
    mask = graph.call("Cast", "mask", to=TensorProto.FLOAT)
    hidden = graph.scaled(graph.call("Sub", graph.constant(np.float32(1)), mask), -10000)
    hidden = graph.call("Unsqueeze", hidden, graph.constant(np.array([1, 2])))
    for layer in range(config["num_hidden_layers"]):
        x = encoder_layer(graph, x, hidden, f"encoder.layer.{layer}", config)
    pooled(graph, x, mask)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "S"]) for name in ("ids", "mask")]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["B", config["hidden_size"]])]
    constants = [numpy_helper.from_array(value, name) for name, value in graph.constants.items()]
    model = helper.make_graph(graph.nodes, "minilm", inputs, outputs, constants)
    return helper.make_model(model, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    built = build(sys.argv[1])
    onnx.checker.check_model(built, full_check=True)
    onnx.save(built, sys.argv[2])
