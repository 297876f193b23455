#!/usr/bin/env python3
"""Writes logits of SmolLM2-135M, computed by NumPy on dequantised weights, for the test of `language`.

    scripts/fetch-smollm2.sh && python3 scripts/reference_logits.py > language/tests/smollm2.json

Needs numpy and gguf, whose reader and dequantisation share nothing with ours. Splitting is right for ASCII texts.
"""

import json
import re

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

TEXTS = [
    "The capital of France is",
    "fn main() {\n    let x = 42;\n    println!(\"{}\", x * 2);\n}\n\n// It's 2026, and we'll see:",
]

reader = GGUFReader("target/smollm2/model.gguf")
field = {name: entry.contents() for name, entry in reader.fields.items() if not name.startswith("GGUF")}
weights = {}
for tensor in reader.tensors:
    numbers = dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
    weights[tensor.name] = numbers.reshape([int(extent) for extent in tensor.shape[::-1]])
heads, groups = field["llama.attention.head_count"], field["llama.attention.head_count_kv"]
head = field["llama.embedding_length"] // heads
epsilon, base = field["llama.attention.layer_norm_rms_epsilon"], field["llama.rope.freq_base"]

printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
letters = {byte: chr(byte) for byte in printable}
for place, byte in enumerate(byte for byte in range(256) if byte not in printable):
    letters[byte] = chr(256 + place)
numbers = {token: number for number, token in enumerate(field["tokenizer.ggml.tokens"])}
ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(field["tokenizer.ggml.merges"])}


def encode(text):
    tokens = []
    # Digits are taken apart first, so that white space before one is white space at the end of a text.
    for part in re.split(r"([0-9])", text):
        for word in re.findall(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", part):
            symbols = [letters[byte] for byte in word.encode()]
            while len(symbols) > 1:
                pairs = [(ranks.get(pair, len(ranks)), place) for place, pair in enumerate(zip(symbols, symbols[1:]))]
                rank, place = min(pairs)
                if rank == len(ranks):
                    break
                symbols[place : place + 2] = ["".join(symbols[place : place + 2])]
            tokens += [numbers[symbol] for symbol in symbols]
    return tokens


def normal(x, weight):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * weight


def turn(x):
    angles = np.arange(x.shape[0])[:, None] * base ** (-np.arange(0, head, 2) / head)
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1).reshape(x.shape)


def logits(tokens):
    x = weights["token_embd.weight"][tokens]
    count = len(tokens)
    for layer in range(field["llama.block_count"]):
        get = lambda part: weights[f"blk.{layer}.{part}.weight"]
        inner = normal(x, get("attn_norm"))
        q = turn((inner @ get("attn_q").T).reshape(count, heads, head))
        k = turn((inner @ get("attn_k").T).reshape(count, groups, head)).repeat(heads // groups, axis=1)
        v = (inner @ get("attn_v").T).reshape(count, groups, head).repeat(heads // groups, axis=1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(head)
        scores[:, np.triu(np.ones((count, count), bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", scores, v).reshape(count, -1) @ get("attn_output").T
        inner = normal(x, get("ffn_norm"))
        gate = inner @ get("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (inner @ get("ffn_up").T)) @ get("ffn_down").T
    return normal(x[-1], weights["output_norm.weight"]) @ weights["token_embd.weight"].T


cases = []
for text in TEXTS:
    tokens = encode(text)
    after = logits(tokens)
    kept = sorted({*map(int, np.argsort(after)[-20:]), *range(0, len(after), 397)})
    cases.append(
        {
            "text": text,
            "tokens": tokens,
            "next": int(after.argmax()),
            "logits": [[place, round(float(after[place]), 6)] for place in kept],
        }
    )
print(json.dumps({"cases": cases}))
