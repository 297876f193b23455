#!/usr/bin/env python3
"""Quantises exported networks by ONNX Runtime's tools in each of their forms, and runs them with `tilewright` and ONNX Runtime.

    python3 scripts/exported_networks.py --exporter script
    python3 scripts/quantised_networks.py [--forms FORM,…] [NAME…]

The forms are `u8s8` and `s8s8` (QuantizeLinear and DequantizeLinear around operators, weights per channel), `operators` (QLinearConv and its like) and
`dynamic` (activations quantised in each call). Networks and inputs are those of `exported_networks.py`, in `target/networks`; their weights and inputs
are random, which calibrates as well as others do. A line has the largest difference of each output relative to the output's largest number, and the median times of
a call: ONNX Runtime and ours on the quantised network, ours in floats. Needs numpy, onnx and onnxruntime, and
`cargo build --release -p tilewright-cli`, or TILEWRIGHT with the path of the program. THREADS is 1 unless it is set.
"""

import argparse
import logging
import pathlib

import numpy as np
import onnx
from exported_models import compare_file, time_of_calls
from onnxruntime import quantization

logging.disable(logging.WARNING)
ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "quantised-networks"
NETWORKS = ROOT / "target" / "networks"
QDQ, OPERATORS = quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator
U8, S8 = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
FORMS = {"u8s8": (QDQ, U8), "s8s8": (QDQ, S8), "operators": (OPERATORS, U8), "dynamic": None}
NAMES = """resnet18 mobilenet_v2 mobilenet_v3_small squeezenet1_1 shufflenet_v2_x0_5 mnasnet0_5 efficientnet_b0 densenet121 googlenet regnet_y_400mf
 ghostnet_100 repvgg_a0 vit_b_16 swin_t convnext_tiny deeplab yolo bert gpt2 t5 distilbert albert whisper wav2vec2""".split()


class Inputs(quantization.CalibrationDataReader):
    """The inputs of a network, each once."""

    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def inputs(path):
    model = onnx.load(path, load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [port.name for port in model.graph.input if port.name not in weights]
    folder = path.with_suffix("") / "0"
    return {name: np.load(folder / f"{place}.npy") for place, name in enumerate(names)}


def quantise(path, form, feed):
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / f"{path.stem}-{form}.onnx"
    if target.exists():
        return target
    if FORMS[form] is None:
        quantization.quantize_dynamic(path, target, weight_type=S8, per_channel=True)
    else:
        layout, kind = FORMS[form]
        options = {"quant_format": layout, "activation_type": kind, "weight_type": S8, "per_channel": True}
        quantization.quantize_static(path, target, Inputs([feed]), **options)
    return target


def time_of_floats(path, feed):
    arguments = []
    for place, name in enumerate(feed):
        arguments += ["--input", f"{name}={path.with_suffix('') / '0' / str(place)}.npy"]
    return time_of_calls(path, arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("names", nargs="*", default=NAMES)
    options = parser.parse_args()
    for name in options.names:
        path = NETWORKS / f"{name}-script.onnx"
        if not path.exists():
            print(f"{name}  was not exported")
            continue
        feed = inputs(path)
        print(f"{name:20} floats {time_of_floats(path, feed)}", flush=True)
        for form in options.forms.split(","):
            title = f"{name:20} {form:9}"
            try:
                compare_file(title, quantise(path, form, feed), [feed])
            except Exception as error:
                print(f"{title} {' '.join(str(error).split())[:200]}", flush=True)


if __name__ == "__main__":
    main()
