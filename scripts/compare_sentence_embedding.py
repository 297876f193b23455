#!/usr/bin/env python3
"""Lets PyTorch, ONNX Runtime and OpenVINO run the sentence encoder in turns with `cargo bench --bench sentence_embedding`.

    scripts/fetch-minilm.sh
    pip install torch transformers onnx onnxscript onnxruntime openvino
    scripts/compare_sentence_embedding.py [--threads 2] [--rounds 3] [--records examples/sentence_embedding/tuned]

All run the same 128 tokens of one sentence, and of 32, on as many threads, without the tokenizer. Each round runs every
system for about three seconds, in a process of its own; the table has the medians of the rounds' medians, in milliseconds,
and their spread (largest by smallest).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SENTENCE = "The quick brown fox jumps over the lazy dog while the compiler searches for a faster loop nest. "
BATCHES = (1, 32)
SECONDS = 3.0
SYSTEMS = ("tilewright", "torch", "torch.compile", "onnxruntime", "openvino")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", default="examples/sentence_embedding/tuned")
    parser.add_argument("--model", default=os.path.join(ROOT, "target", "minilm"))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--binary", help="the compiled benchmark; cargo runs it when this is not given")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    return parser.parse_args()


def encoder(model):
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            config = BertConfig.from_json_file(os.path.join(model, "config.json"))
            self.bert = BertModel(config, add_pooling_layer=False)
            self.bert.load_state_dict(load_file(os.path.join(model, "model.safetensors")), strict=False)
            self.eval()

        def forward(self, ids, mask):
            states = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask.unsqueeze(-1).to(states.dtype)
            return torch.nn.functional.normalize((states * weights).sum(1), dim=1)

    return Encoder()


def inputs(model, batch):
    import torch
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
    tokenizer.enable_truncation(128)
    tokenizer.no_padding()
    ids = tokenizer.encode(SENTENCE * 10).ids
    assert len(ids) == 128, len(ids)
    return torch.tensor([ids] * batch), torch.ones(batch, 128, dtype=torch.long)


def of_torch(options, compiled):
    import torch

    network = encoder(options.model)
    if compiled:
        import torch._inductor.config

        torch._inductor.config.freezing = True
        network = torch.compile(network, dynamic=False)
    return lambda ids, mask: lambda: network(ids, mask).numpy()


def exported(options):
    """The path of the encoder as ONNX."""
    import torch

    path = os.path.join(ROOT, "target", "minilm.onnx")
    if not os.path.exists(path):
        axes = {name: {0: "batch"} for name in ("ids", "mask", "embeddings")}
        network = encoder(options.model)
        torch.onnx.export(
            network, inputs(options.model, 2), path, input_names=["ids", "mask"], output_names=["embeddings"],
            dynamic_axes=axes, dynamo=False, opset_version=17,
        )
    return path


def of_onnxruntime(options):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(exported(options), settings, providers=["CPUExecutionProvider"])
    return lambda ids, mask: lambda: session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0]


def of_openvino(options):
    import openvino

    # Without a hint, OpenVINO may compute in fewer bits than the others.
    settings = {"INFERENCE_NUM_THREADS": options.threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    network = openvino.Core().read_model(exported(options))

    def prepare(ids, mask):
        network.reshape({"ids": ids.shape, "mask": mask.shape})
        request = openvino.compile_model(network, "CPU", settings).create_infer_request()
        return lambda: request.infer({"ids": ids.numpy(), "mask": mask.numpy()})[0]

    return prepare


def of(options):
    """A function from inputs to a call of the system that `options` name."""
    systems = {"onnxruntime": of_onnxruntime, "openvino": of_openvino}
    if options.run in systems:
        return systems[options.run](options)
    return of_torch(options, compiled=options.run != "torch")


def measure(options):
    import torch

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    prepare = of(options)
    for batch in BATCHES:
        call = prepare(*inputs(options.model, batch))
        call(), call()
        times, begin = [], time.perf_counter()
        while time.perf_counter() - begin < SECONDS:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        print(json.dumps({"batch": batch, "ns_median": statistics.median(times) * 1e9}))


def one_round(options, system):
    if system == "tilewright":
        program = [options.binary, "--bench"] if options.binary else "cargo bench --bench sentence_embedding --".split()
        command = program + ["--json", "--no-tune", "--threads", str(options.threads), "--records", options.records]
    else:
        command = [sys.executable, __file__, "--run", system, "--threads", str(options.threads), "--model", options.model]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), MKL_NUM_THREADS=str(options.threads))
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{system} failed:\n{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["batch"]: line["ns_median"] / 1e6 for line in lines}


def main():
    options = arguments()
    if options.run:
        return measure(options)
    systems = options.systems.split(",")
    found = {(system, batch): [] for system in systems for batch in BATCHES}
    for number in range(options.rounds):
        for system in systems:
            print(f"round {number + 1}: {system}", file=sys.stderr)
            for batch, milliseconds in one_round(options, system).items():
                found[system, batch].append(milliseconds)
    for batch in BATCHES:
        ours = statistics.median(found[systems[0], batch])
        for system in systems:
            times = found[system, batch]
            median = statistics.median(times)
            print(f"batch {batch:2}  {system:14} {median:9.2f} ms  x{max(times) / min(times):.2f}  {median / ours:5.2f} of {systems[0]}")


if __name__ == "__main__":
    main()
