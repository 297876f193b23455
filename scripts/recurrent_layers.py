#!/usr/bin/env python3
"""Exports recurrent layers of PyTorch with random weights, runs them with `tilewright` and ONNX Runtime, and compares both.

    python3 -m pip install torch onnx onnxruntime
    python3 scripts/recurrent_layers.py [STEPS]

Layers have as many inputs as units, one direction or two, and batches of several sizes, each of 50 steps unless STEPS says otherwise. A line has the
largest difference, relative to the output's largest number, and the median times of a call. Needs `cargo build --release -p tilewright-cli`, or TILEWRIGHT
with the path of the program. THREADS is 1 unless it is set.
"""

import logging
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

import torch
from exported_models import compare_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "target" / "recurrent"

# Directions, units, sequences.
CASES = [
    (1, 256, 1), (1, 256, 8), (1, 512, 1), (1, 512, 8), (1, 1024, 1), (1, 1024, 8),
    (2, 128, 1), (2, 128, 4), (2, 128, 16), (2, 128, 64), (2, 256, 1), (2, 256, 4), (2, 256, 16), (2, 256, 64), (2, 512, 1),
]


class States(torch.nn.Module):
    """The states of all steps of a layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind in ["LSTM", "GRU"]:
        for directions, units, batch in CASES:
            torch.manual_seed(1)
            layer = getattr(torch.nn, kind)(units, units, bidirectional=directions == 2)
            x = torch.randn(steps, batch, units)
            path = FOLDER / f"{kind}-{directions}-{units}-{batch}-{steps}.onnx"
            with torch.no_grad():
                torch.onnx.export(States(layer).eval(), (x,), path, input_names=["x"], opset_version=17, dynamo=False)
            compare_file(f"{kind:4} {directions} × {units:4} units, batch {batch:2}", path, [{"x": x.numpy()}])


if __name__ == "__main__":
    main()
