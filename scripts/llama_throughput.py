#!/usr/bin/env python3
"""The speed of llama.cpp on a GGUF file, as `language/examples/throughput` prints ours: a prompt of 512 tokens, and tokens decoded after it.

    python3 -m pip install --no-binary llama-cpp-python llama-cpp-python
    python3 scripts/llama_throughput.py target/smollm2/model.gguf [THREADS] [TOKENS] [ROUNDS]
"""

import statistics
import sys
import time

import llama_cpp

path, *rest = sys.argv[1:]
threads, tokens, rounds = (int(rest[place]) if len(rest) > place else default for place, default in enumerate((2, 200, 5)))
model = llama_cpp.Llama(path, n_ctx=1024, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False)
words = model.tokenize(b"The capital of France is the city of ")
prompt = (words * (512 // len(words) + 1))[:512]
decoded, prompts, best = [], [], float("inf")
for _ in range(rounds):
    model.reset()
    start = time.perf_counter()
    model.eval(prompt)
    prompts.append(512 / (time.perf_counter() - start))
    begin = time.perf_counter()
    for token in range(tokens):
        start = time.perf_counter()
        model.eval([(token * 7919) % model.n_vocab()])
        best = min(best, time.perf_counter() - start)
    decoded.append(tokens / (time.perf_counter() - begin))
print(f"{threads} threads: {statistics.median(decoded):.1f} tokens a second ({min(decoded):.1f}–{max(decoded):.1f}), best token {1e3 * best:.2f} ms; "
      f"prompt of 512 {statistics.median(prompts):.0f} tokens a second ({min(prompts):.0f}–{max(prompts):.0f})")
