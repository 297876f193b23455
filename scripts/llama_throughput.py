#!/usr/bin/env python3
"""The speed of llama.cpp on a GGUF file, as `language/examples/throughput` prints ours: a prompt, and tokens decoded after it.

    python3 -m pip install --no-binary llama-cpp-python llama-cpp-python
    python3 scripts/llama_throughput.py target/smollm2/model.gguf [THREADS] [TOKENS] [ROUNDS] [PROMPT_TOKENS]

The package llama-cpp-python is built for the machine when it is installed, which takes more than a quarter of an hour on two cores. Where it is missing, the script takes
`xllamacpp`, which is built already, for AVX2; it prints no best token.
"""

import json
import statistics
import sys
import time

try:
    import llama_cpp
except ImportError:
    llama_cpp = None
    import xllamacpp


def spread(rates):
    return f"{statistics.median(rates):.1f} ({min(rates):.1f}–{max(rates):.1f})"


def built_here(path, threads, tokens, rounds, length):
    """Rates of prompts and of tokens after them, and the time of the best token in seconds."""
    model = llama_cpp.Llama(path, n_ctx=1024, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False)
    words = model.tokenize(b"The capital of France is the city of ")
    prompt = (words * (length // len(words) + 1))[:length]
    decoded, prompts, best = [], [], float("inf")
    for _ in range(rounds):
        model.reset()
        start = time.perf_counter()
        model.eval(prompt)
        prompts.append(length / (time.perf_counter() - start))
        begin = time.perf_counter()
        for token in range(tokens):
            start = time.perf_counter()
            model.eval([(token * 7919) % model.n_vocab()])
            best = min(best, time.perf_counter() - start)
        decoded.append(tokens / (time.perf_counter() - begin))
    return prompts, decoded, best


def built_already(path, threads, tokens, rounds, length):
    """As `built_here`, without a best token."""
    options = xllamacpp.CommonParams()
    options.model.path = path
    options.n_ctx, options.n_batch, options.n_parallel = 1024, 512, 1
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(options)
    decoded, prompts = [], []
    for number in range(rounds):
        prompt = [place * 37 % 49000 + 10 + number for place in range(length)]
        request = {"prompt": prompt, "n_predict": tokens, "ignore_eos": True, "cache_prompt": False, "temperature": 0}
        answer = server.handle_completions(request)
        answer = json.loads(answer) if isinstance(answer, str) else answer
        prompts.append(answer["timings"]["prompt_per_second"])
        decoded.append(answer["timings"]["predicted_per_second"])
    return prompts, decoded, None


def main():
    path, *rest = sys.argv[1:]
    defaults = (2, 200, 5, 512)
    threads, tokens, rounds, length = (int(rest[place]) if len(rest) > place else default for place, default in enumerate(defaults))
    measure = built_here if llama_cpp else built_already
    prompts, decoded, best = measure(path, threads, tokens, rounds, length)
    best = f", best token {1e3 * best:.2f} ms" if best else ""
    print(f"llama.cpp, {threads} threads: {spread(decoded)} tokens a second{best}; prompt of {length} {spread(prompts)} tokens a second")


if __name__ == "__main__":
    main()
