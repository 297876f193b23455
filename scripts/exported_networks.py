#!/usr/bin/env python3
"""Exports networks of torchvision, timm and transformers with random weights, runs them with `tilewright` and ONNX Runtime, and compares both.

    python3 -m pip install torch torchvision timm transformers onnx onnxscript onnxruntime
    python3 scripts/exported_networks.py [--exporter script|dynamo] [NAME...]

Each network of `scripts/networks` is exported by PyTorch's tracing exporter (`script`) and by its newer one (`dynamo`), with dynamic sizes, to `target/networks`, and run on inputs of
two sizes. A line has the largest difference of each output, relative to the output's largest number, and the median times of a call. Needs
`cargo build --release -p tilewright-cli`, or TILEWRIGHT with the path of the program. THREADS is 1 unless it is set.
"""

import argparse
import logging
import os
import pathlib
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from exported_models import compare_file
from networks import NETWORKS, Flat

# The tracing exporter does not know the fused form of attention.
torch.backends.mha.set_fastpath_enabled(False)

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "networks"


def export(name, exporter):
    path = FOLDER / f"{name}-{exporter}.onnx"
    torch.manual_seed(1)
    module, names, inputs, axes = NETWORKS[name]()
    module = module.eval()
    for part in module.modules():
        # Statistics of a trained network: random weights with those of an untrained one give numbers that vanish or explode.
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_var is not None:
            part.running_var.uniform_(0.5, 1.5)
            part.running_mean.uniform_(-0.3, 0.3)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with torch.no_grad():
            if exporter == "script":
                torch.onnx.export(module, inputs[-1], path, input_names=names, dynamic_axes=axes, opset_version=17, dynamo=False)
            else:
                sizes = [{axis: torch.export.Dim.DYNAMIC for axis in axes.get(name, {})} for name in names]
                shapes = {"inputs": tuple(sizes)} if isinstance(module, Flat) else tuple(sizes)
                torch.onnx.export(module, inputs[-1], path, input_names=names, dynamic_shapes=shapes, dynamo=True, external_data=False, verbose=False)
    return path, [dict(zip(names, (value.numpy() for value in values))) for values in inputs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exporter", choices=["script", "dynamo"])
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    for name in arguments.names or NETWORKS:
        for exporter in [arguments.exporter] if arguments.exporter else ["script", "dynamo"]:
            try:
                path, inputs = export(name, exporter)
            except Exception as error:
                print(f"{name:24} {exporter:7} not exported: {' '.join(str(error).split())[:120]}", flush=True)
                continue
            compare_file(f"{name:24} {exporter:7}", path, inputs)


if __name__ == "__main__":
    main()
