"""Launches emitted kernels on a GPU as their manifests say, compares results with definitions in float64, and measures them.

Nothing of the project is needed on the machine but the files of `cargo bench --bench operators -- --target GPU --emit FOLDER`; PyTorch
and CuPy launch them. A line of JSON for each file.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import cupy
import torch

import peers

# Inputs are rotated, so that together they do not fit the second-level cache.
ROTATED_BYTES = 256 << 20
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
          "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
functional = torch.nn.functional


def convolution(rank):
    convolve = [functional.conv1d, functional.conv2d, functional.conv3d][rank - 1]

    def run(p, x, w, *_):
        stride, pad, dilation, groups = (list(p[3 + rank + 1:]) + [1, 1])[:4]
        filters = w.permute(rank + 1, rank, *range(rank))
        return convolve(x.movedim(-1, 1), filters, None, stride, pad, dilation, groups).movedim(1, -1)

    return run


def depthwise(p, x, w):
    filters = w.reshape(p[4], p[4], p[3]).permute(2, 0, 1)[:, None]
    return functional.conv2d(x.movedim(-1, 1), filters, None, p[5], p[6], 1, p[3]).movedim(1, -1)


def transposed(p, x, w):
    return functional.conv_transpose2d(x.movedim(-1, 1), w.permute(2, 3, 0, 1), None, p[6], p[7]).movedim(1, -1)


def bias_norm_relu(p, x, w, bias, offset, scale):
    return torch.relu((convolution(2)(p, x, w) + bias) * scale + offset)


def requantised_convolution(p, x, w, bias, scale):
    scaled = (convolution(2)(p, x, w) + bias).float() * scale.float()
    return (scaled.round() + 7).clamp(0, 255)


def product(p, a, b):
    return a @ b


# The operators of the set, from the numbers of the name and the tensors by name, all in float64.
DEFINITIONS = {
    "C1D": convolution(1), "C2D": convolution(2), "DIL": convolution(2), "GRP": convolution(2), "C3D": convolution(3),
    "QCV": convolution(2), "QCW": convolution(2), "SCW": convolution(2), "QCR": requantised_convolution, "DEP": depthwise, "T2D": transposed, "CBR": bias_norm_relu,
    **{name: product for name in "GMM GMM3 GMM6 GMM9 QMM SMM UMM XMM QMW SMW HMM HMW HMR".split()},
    "TBG": lambda p, q, v: torch.einsum("bihk,bjhk->bhij", q, v),
    "NRM": lambda p, a: a.square().sum((1, 2)).sqrt(),
    "SFM": lambda p, x: torch.softmax(x, -1),
    "CPY": lambda p, x: x,
    "TRN": lambda p, x: x.t(),
    "ADD": lambda p, a, b: a + b,
    "GBE": lambda p, x, bias: functional.gelu(x + bias),
    "LNM": lambda p, x, scale, shift: functional.layer_norm(x, (x.shape[1],), scale, shift),
    "DOT": lambda p, a, b: (a * b).sum().reshape(1),
    "ATT": lambda p, q, k, v: torch.softmax(q @ k.mT, -1) @ v,
}
# Families whose results are sums of products: an error is relative to the sum of the products' magnitudes. Others: to the largest result.
SUMS = set("C1D C2D DIL GRP C3D QCV QCW SCW DEP T2D GMM GMM3 GMM6 GMM9 HMM HMW HMR TBG DOT".split())
# How far results may be off: results in bfloat16, products of bfloat16 pieces, and sums in float32.
TOLERANCES = {"HMR": 1e-2, "GMM3": 1e-4}
TOLERANCE = 1e-5


def random(dtype, shape):
    kind = DTYPES[dtype]
    if kind.is_floating_point:
        return torch.rand(*shape, device="cuda").mul_(2).sub_(1).to(kind)
    low, high = {"u8": (0, 256), "bool": (0, 2)}.get(dtype, (-128, 128))
    return torch.randint(low, high, shape, dtype=kind, device="cuda")


class Kernels:
    """The launches of a file with tensors of one set of inputs."""

    def __init__(self, file):
        self.manifest = json.loads(file.read_text())
        # Where the text was assembled before, the driver need not do it.
        assembled = file.with_suffix(".cubin")
        module = cupy.RawModule(path=str(assembled if assembled.exists() else file.with_suffix(".ptx")))
        self.kernels = []
        for launch in self.manifest["launches"]:
            kernel = module.get_function(launch["entry"])
            if launch["dynamic_shared_bytes"]:
                kernel.max_dynamic_shared_size_bytes = launch["dynamic_shared_bytes"]
            self.kernels.append(kernel)

    def tensors(self, inputs=None):
        """Tensors and workspaces by name; results hold NaN or −1 before they are written."""
        made = dict(inputs or {})
        for launch in self.manifest["launches"]:
            for argument in launch["arguments"]:
                name = argument.get("name", argument["kind"])
                if name in made:
                    continue
                if argument["kind"] == "tensor":
                    kind = DTYPES[argument["dtype"]]
                    is_input = argument["access"] in ("in", "constant")
                    poison = float("nan") if kind.is_floating_point else 1 if kind is torch.bool else -1 % (1 << 7)
                    made[name] = random(argument["dtype"], argument["shape"]) if is_input else \
                        torch.full(argument["shape"], poison, dtype=kind, device="cuda")
                elif argument["kind"] in ("workspace", "failure_record"):
                    made[name] = torch.zeros(max(argument["bytes"], 1), dtype=torch.uint8, device="cuda")
                    if argument["kind"] == "workspace":
                        made[name].fill_(0xff)
        return made

    def inputs(self):
        """The names of input tensors, in the order of the launches' arguments."""
        named = {argument["name"]: None for launch in self.manifest["launches"] for argument in launch["arguments"]
                 if argument["kind"] == "tensor" and argument["access"] in ("in", "constant")}
        return list(named)

    def results(self):
        return list({argument["name"]: None for launch in self.manifest["launches"] for argument in launch["arguments"]
                     if argument["kind"] == "tensor" and argument["access"] not in ("in", "constant")})

    def launch(self, tensors):
        for launch, kernel in zip(self.manifest["launches"], self.kernels):
            arguments = [cupy.int64(argument["value"]) if argument["kind"] == "dimension"
                         else cupy.uint64(tensors[argument.get("name", argument["kind"])].data_ptr())
                         for argument in launch["arguments"]]
            if all(launch["grid"]):
                kernel(tuple(launch["grid"]), tuple(launch["block"]), tuple(arguments), shared_mem=launch["dynamic_shared_bytes"])

    def registers(self):
        return [kernel.num_regs for kernel in self.kernels], sum(kernel.local_size_bytes for kernel in self.kernels)


def microseconds(kernels, tensors, samples=9):
    """The median time of a run by the clock of the GPU, from launches of a graph of several runs with different tensors."""
    size = sum(tensors[name].numel() * tensors[name].element_size() for name in kernels.inputs() + kernels.results())
    count = max(1, min(24, ROTATED_BYTES // max(size, 1)))
    sets = [tensors] + [kernels.tensors() for _ in range(count - 1)]
    torch.cuda.synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    with stream:
        start.record(), kernels.launch(sets[0]), end.record()
        end.synchronize()
        once = cupy.cuda.get_elapsed_time(start, end) * 1e3
        runs = max(1, min(count if count > 1 else 10, int(20_000 / max(once, 1))))
        stream.begin_capture()
        for number in range(runs):
            kernels.launch(sets[number % count])
        graph = stream.end_capture()
        times = []
        for _ in range(samples if once < 20_000 else 3):
            start.record(), graph.launch(), end.record()
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(start, end) * 1e3 / runs)
    return statistics.median(times)


def compare(operator, found):
    """The error of results, and how large it may be; of integers, the number of wrong ones."""
    wanted = operator.wanted
    if found.shape != wanted.shape:
        raise ValueError(f"the shape is {tuple(found.shape)}, not {tuple(wanted.shape)}")
    if not found.is_floating_point():
        return float((found.to(torch.float64) != wanted).sum()), 0
    error = ((found.to(torch.float64) - wanted).abs() / operator.magnitude).max() if wanted.numel() else 0
    return float(error), TOLERANCES.get(operator.family, TOLERANCE)


class Operator:
    """The tensors of an operator and its results by the definition, shared by its schedules."""

    def __init__(self, name, kernels):
        self.name, (self.family, numbers) = name, name.split(":")
        self.tensors = {key: tensor for key, tensor in kernels.tensors().items() if key in kernels.inputs()}
        exact = {key: tensor.to(torch.float64) for key, tensor in self.tensors.items()}
        define = lambda given: DEFINITIONS[self.family]([int(number) for number in numbers.split("x")], **given)
        self.wanted = define(exact)
        magnitude = define({key: tensor.abs() for key, tensor in exact.items()}) if self.family in SUMS else self.wanted.abs().max()
        self.magnitude = magnitude.clamp(min=1e-30)


def check(operator, file):
    kernels = Kernels(file)
    tensors = kernels.tensors(operator.tensors)
    kernels.launch(tensors)
    torch.cuda.synchronize()
    error, bound = compare(operator, tensors[kernels.results()[0]])
    registers, local = kernels.registers()
    line = {"error": error, "is_right": error <= bound, "registers": registers, "local_bytes": local}
    # NaN is wrong.
    if line["is_right"]:
        line["us"] = microseconds(kernels, tensors)
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ops", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--peers", action="store_true", help="measure PyTorch, too")
    settings = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    known = peers.operators(torch)
    wrong = 0
    with open(settings.out, "w") as out:
        def note(line):
            out.write(json.dumps(line) + "\n")
            out.flush()

        for name in filter(None, settings.ops.split(",")):
            stem = "".join(letter if letter.isalnum() else "_" for letter in name)
            files = sorted(settings.folder.glob(f"{stem}.json")) + sorted(settings.folder.glob(f"{stem}-*.json"))
            best, default, operator, began, bad = None, None, None, time.time(), 0
            for file in files:
                try:
                    operator = operator or Operator(name, Kernels(file))
                    line = check(operator, file)
                except Exception as error:  # One schedule that fails costs only itself, unless the context is lost.
                    line = {"is_right": False, "problem": str(error)[:400]}
                note({"op": name, "file": file.stem, **line})
                bad += not line["is_right"]
                if not line["is_right"]:
                    print(f"WRONG {file.stem}: {line}", flush=True)
                elif best is None or line["us"] < best[0]:
                    best = (line["us"], file.stem)
                if file.stem == stem:
                    default = line.get("us")
            wrong += bad
            ours = f"default {default and round(default, 2)}, best {best and (round(best[0], 2), best[1])}"
            torch_time = None
            if settings.peers and operator and operator.family in known:
                numbers = [int(number) for number in name.split(":")[1].split("x")]
                make = lambda: known[operator.family](*numbers)
                try:
                    torch_time = peers.microseconds(torch, make, make()[1])
                    note({"op": name, "peer": "torch", "us": torch_time})
                except Exception as error:
                    print(f"{name}, torch: {str(error).splitlines()[0]}")
            peer = f", torch {torch_time:.2f}, ratio {torch_time / best[0]:.2f}" if torch_time and best else ""
            print(f"{name}: {len(files)} files, {bad} wrong, {ours}{peer}; {time.time() - began:.1f} s", flush=True)
            operator = None
            torch.cuda.empty_cache()
    print(f"{wrong} files are wrong")
    return wrong > 0


sys.exit(main())
