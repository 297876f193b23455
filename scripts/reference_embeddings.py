#!/usr/bin/env python3
"""Computes tests/data/minilm_embeddings.json: sentence embeddings of all-MiniLM-L6-v2 by NumPy in double precision.

An implementation independent of Tilewright, to compare with. Needs numpy, tokenizers and safetensors, and the model folder
that scripts/fetch-minilm.sh fetches. Run once; the result is checked in.
"""
import json
import math
import sys

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

SENTENCES = [
    "A tilewright makes tiles.",
    "Someone is cutting ceramic tiles to size.",
    "The stock market fell sharply on Tuesday.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich; 12,5 % fehlen noch!",
]

folder = sys.argv[1] if len(sys.argv) > 1 else "target/minilm"
config = json.load(open(f"{folder}/config.json"))
weights = {name: value.astype(np.float64) for name, value in load_file(f"{folder}/model.safetensors").items()
           if value.dtype.kind == "f"}
tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.no_padding()
HEADS = config["num_attention_heads"]
EPSILON = config["layer_norm_eps"]
erf = np.vectorize(math.erf)


def linear(x, name):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def layer_norm(x, name):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPSILON) * weights[name + ".weight"] + weights[name + ".bias"]


def embed(sentence):
    ids = tokenizer.encode(sentence).ids
    x = (weights["embeddings.word_embeddings.weight"][ids]
         + weights["embeddings.position_embeddings.weight"][: len(ids)]
         + weights["embeddings.token_type_embeddings.weight"][0])
    x = layer_norm(x, "embeddings.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}."
        q, k, v = (linear(x, layer + "attention.self." + part).reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
                   for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        context = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = layer_norm(x + linear(context, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        inner = linear(x, layer + "intermediate.dense")
        inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
        x = layer_norm(x + linear(inner, layer + "output.dense"), layer + "output.LayerNorm")
    pooled = x.mean(0)
    return pooled / np.linalg.norm(pooled)


result = [{"sentence": sentence, "embedding": [round(float(value), 7) for value in embed(sentence)]}
          for sentence in SENTENCES]
with open("tests/data/minilm_embeddings.json", "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in result) + "\n]\n")
