"""Runs models on a GPU, compares results with stored ones, and measures calls.

usage: models.py PROGRAM FOLDER [--device gpu:0] [--rounds 5] [--profile FOLDER] [--torch] [NAME ...]

FOLDER holds `NAME.onnx` and `expected/NAME`, as scripts/fetch-models.sh and scripts/model_outputs.py make them. PROGRAM is `tilewright`.
The exit status is 1 if a model fails or a result is off by more than TOLERANCE. Needs onnx and numpy; with `--torch`, also PyTorch and onnx2torch, which run the same file on the GPU where they can.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
from onnx import numpy_helper


# The largest difference of a result that passes, relative to its largest number.
TOLERANCE = 1e-2


def load(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def stored(folder, prefix):
    return [load(folder / f"{prefix}_{place}.pb") for place in range(len(list(folder.glob(f"{prefix}_*.pb"))))]


def difference(expected, found):
    """The largest difference, relative to the largest expected number; infinite where shapes differ."""
    if expected.shape != found.shape:
        return float("inf")
    expected, found = expected.astype(numpy.float64), found.astype(numpy.float64)
    return numpy.max(numpy.abs(expected - found), initial=0) / max(numpy.max(numpy.abs(expected), initial=0), 1e-30)


def ours(settings, path, inputs, expected, scratch):
    arguments = ["--device", settings.device]
    for name, tensor in inputs.items():
        # A name may hold a slash.
        file = f"{scratch}/{len(arguments)}.npy"
        numpy.save(file, numpy.array(tensor, order="C"))
        arguments += ["--input", f"{name}={file}"]
    program = [settings.program, "model"]
    own = {**os.environ, "TILEWRIGHT_CACHE": f"{scratch}/cache"}
    firsts = []
    for _ in range(2):
        start = time.perf_counter()
        run = subprocess.run([*program, "run", path, "--json", "--output", scratch, *arguments], capture_output=True, text=True, env=own)
        firsts.append(time.perf_counter() - start)
        if run.returncode:
            return run.stderr.strip()[:600], False
    paths = json.loads(run.stdout.splitlines()[-1])["outputs"].values()
    differences = [difference(one, numpy.load(path)) for one, path in zip(expected, paths)]
    timed = subprocess.run([*program, "time", path, "--rounds", str(settings.rounds), *arguments], capture_output=True, text=True, env=own)
    times = [float(line) for line in timed.stdout.split()][1:]
    if settings.profile:
        profile = subprocess.run([*program, "profile", path, *arguments], capture_output=True, text=True, env=own)
        pathlib.Path(settings.profile).mkdir(exist_ok=True)
        (pathlib.Path(settings.profile) / f"{path.stem}.txt").write_text(profile.stdout + profile.stderr)
    shown = ", ".join(f"{one:.0e}" for one in differences)
    # A difference that is NaN is no less than the bound.
    is_right = all(one < TOLERANCE for one in differences)
    return f"{shown} | {firsts[0]:.2f} s | {firsts[1]:.2f} s | {statistics.median(times):.3f} ms", is_right


def pytorch(path, inputs, rounds):
    """The time of a call with PyTorch, with copies of inputs and results as in ours, and that of a recorded graph without them."""
    import onnx2torch
    import torch
    torch.backends.cudnn.benchmark = True
    module = onnx2torch.convert(str(path)).eval().cuda()
    host = [torch.from_numpy(numpy.array(tensor)) for tensor in inputs.values()]

    def call():
        results = module(*[tensor.cuda() for tensor in host])
        return [result.cpu() for result in (results if isinstance(results, (tuple, list)) else [results])]

    with torch.no_grad():
        for _ in range(5):
            call()
        times = []
        for _ in range(max(rounds, 3) * 5):
            start = time.perf_counter()
            call()
            times.append(1e3 * (time.perf_counter() - start))
        eager = statistics.median(times)
        try:
            device = [tensor.cuda() for tensor in host]
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                module(*device)
            side.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                module(*device)
            times = []
            for _ in range(max(rounds, 3) * 5):
                start = time.perf_counter()
                graph.replay()
                torch.cuda.synchronize()
                times.append(1e3 * (time.perf_counter() - start))
            recorded = f"{statistics.median(times):.3f} ms"
        except Exception as error:
            recorded = f"not recorded: {str(error).splitlines()[0][:60]}"
    return f"{eager:.3f} ms | {recorded}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="gpu:0")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", help="a folder for the profiles of models")
    parser.add_argument("--torch", action="store_true")
    settings = parser.parse_args()
    names = settings.names or sorted(path.stem for path in settings.folder.glob("*.onnx"))
    print("| model | difference | first start | second start | call | PyTorch | PyTorch, a recorded graph |")
    print("|---|---|---|---|---|---|---|")
    all_right = True
    for name in names:
        path, case = settings.folder / f"{name}.onnx", settings.folder / "expected" / name / "test_data_set_0"
        graph = onnx.load(str(path)).graph
        constants = {tensor.name for tensor in graph.initializer}
        ports = [port.name for port in graph.input if port.name not in constants]
        inputs = dict(zip(ports, stored(case, "input")))
        with tempfile.TemporaryDirectory() as scratch:
            line, is_right = ours(settings, path, inputs, stored(case, "output"), scratch)
        all_right &= is_right
        peer = ""
        if settings.torch:
            try:
                peer = pytorch(path, inputs, settings.rounds)
            except Exception as error:
                peer = f"refused: {type(error).__name__} {str(error).splitlines()[0][:60] if str(error) else ''} | –"
        print(f"| {name} | {line} | {peer} |", flush=True)
    return not all_right


sys.exit(main())
