"""Times of operators by PyTorch (cuBLAS, cuDNN) and by Triton through torch.compile, a line of JSON for each."""
import argparse
import json
import statistics
import sys

# Inputs are rotated, so that together they do not fit the second-level cache.
ROTATED_BYTES = 256 << 20
SAMPLES = 30


def operators(torch):
    """Families of the operator set: from the numbers of a name to the inputs and the computation."""
    functional = torch.nn.functional

    def tensor(*shape, dtype=torch.float32):
        if dtype in (torch.int8, torch.uint8):
            return torch.randint(0 if dtype == torch.uint8 else -128, 127, shape, dtype=dtype, device="cuda")
        return torch.rand(*shape, device="cuda").mul_(2).sub_(1).to(dtype)

    def product(dtype):
        return lambda m, n, k: ([tensor(m, k, dtype=dtype), tensor(k, n, dtype=dtype)], lambda a, b: a @ b)

    def convolution(n, h, w, ci, co, k, stride, pad, dilation=1, groups=1):
        # Channels last in memory, as in the operator set.
        x = tensor(n, h, w, ci).permute(0, 3, 1, 2)
        weights = tensor(co, k, k, ci // groups).permute(0, 3, 1, 2)
        return [x, weights], lambda x, w: functional.conv2d(x, w, None, stride, pad, dilation, groups)

    def convolution1d(n, l, ci, co, k, stride, pad):
        return [tensor(n, ci, l), tensor(co, ci, k)], lambda x, w: functional.conv1d(x, w, None, stride, pad)

    def convolution3d(n, d, h, w, ci, co, k, stride, pad):
        x = tensor(n, d, h, w, ci).permute(0, 4, 1, 2, 3)
        return [x, tensor(co, ci, k, k, k)], lambda x, w: functional.conv3d(x, w, None, stride, pad)

    def depthwise(n, h, w, c, k, stride, pad):
        return convolution(n, h, w, c, c, k, stride, pad, 1, c)

    def transposed(n, h, w, ci, co, k, stride, pad):
        x = tensor(n, h, w, ci).permute(0, 3, 1, 2)
        return [x, tensor(ci, co, k, k)], lambda x, w: functional.conv_transpose2d(x, w, None, stride, pad)

    def bias_norm_relu(*p):
        [x, w], convolve = convolution(*p)
        extra = [tensor(p[4], 1, 1) for _ in range(3)]
        return [x, w, *extra], lambda x, w, b, o, s: torch.relu((convolve(x, w) + b) * s + o)

    def scores(b, s, h, d):
        return [tensor(b, s, h, d), tensor(b, s, h, d)], lambda q, v: q.permute(0, 2, 1, 3) @ v.permute(0, 2, 3, 1)

    def attention(h, s, t, d):
        # The operator set does not scale the scores.
        run = lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, scale=1.0)
        return [tensor(1, h, s, d), tensor(1, h, t, d), tensor(1, h, t, d)], run

    def signed(m, n, k):
        return [tensor(m, k, dtype=torch.int8), tensor(k, n, dtype=torch.int8)], torch._int_mm

    batched = lambda b, n, m, k: ([tensor(b, n, k), tensor(b, k, m)], torch.bmm)
    return {
        "C1D": convolution1d, "C2D": convolution, "DIL": convolution, "GRP": convolution, "C3D": convolution3d,
        "DEP": depthwise, "T2D": transposed, "CBR": bias_norm_relu, "TBG": scores, "ATT": attention, "SMM": signed,
        "SMW": signed, "GMM": batched, "GMM3": batched, "GMM6": batched, "GMM9": batched, "HMM": product(torch.bfloat16),
        "HMW": product(torch.bfloat16), "HMR": product(torch.bfloat16),
        "NRM": lambda b, m, n: ([tensor(b, m, n)], lambda x: x.square().sum((1, 2)).sqrt()),
        "SFM": lambda m, n: ([tensor(m, n)], lambda x: torch.softmax(x, -1)),
        "CPY": lambda m, n: ([tensor(m, n)], lambda x: x.clone()),
        "TRN": lambda m, n: ([tensor(m, n)], lambda x: x.t().contiguous()),
        "ADD": lambda m, n: ([tensor(m, n), tensor(m, n)], torch.add),
        "GBE": lambda m, n: ([tensor(m, n), tensor(n)], lambda x, b: functional.gelu(x + b)),
        "LNM": lambda m, n: ([tensor(m, n), tensor(n), tensor(n)], lambda x, s, b: functional.layer_norm(x, (n,), s, b)),
        "DOT": lambda n: ([tensor(n), tensor(n)], torch.dot),
    }


# The numbers behind names with an index, as the operator set has them.
SHAPES = {
    "C1D.0": "1x256x64x128x3x2x1", "C2D.0": "1x224x224x3x64x7x2x3", "C3D.0": "1x16x224x224x3x64x7x2x3",
    "DEP.0": "1x112x112x32x3x1x1", "DIL.0": "1x224x224x3x64x7x2x3x2", "GMM.0": "1x128x128x128", "GMM.3": "1x1024x1024x1024",
    "GRP.0": "1x56x56x64x128x3x2x1x1x4", "T2D.0": "1x4x4x512x256x4x2x1", "CBR.0": "1x224x224x3x64x7x2x3", "TBG.0": "1x128x12x64",
    "NRM.0": "1x256x256", "SFM.0": "256x256",
}


def microseconds(torch, make, run):
    """The median time of a run, by the clock of the GPU, from launches of a recorded graph where that is possible."""
    inputs, _ = make()
    size = sum(x.numel() * x.element_size() for x in inputs)
    sets = [inputs] + [make()[0] for _ in range(max(1, min(64, ROTATED_BYTES // max(size, 1))) - 1)]
    for given in sets[:3]:
        run(*given)
    torch.cuda.synchronize()
    times = []
    for sample in range(SAMPLES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        runs = 10
        start.record()
        for number in range(runs):
            run(*sets[(sample * runs + number) % len(sets)])
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / runs)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--ops", required=True)
    parser.add_argument("--out", required=True)
    settings = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("there is no PyTorch")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    torch.cuda.set_device(settings.device)
    # Products of f32 are products of f32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    known = operators(torch)
    with open(settings.out, "w") as out:
        for name in filter(None, settings.ops.split(",")):
            family, _, place = name.replace(".", ":").partition(":")
            numbers = SHAPES.get(name, place)
            if family not in known:
                continue
            make = lambda: known[family](*map(int, numbers.split("x")))
            _, run = make()
            for peer, variant in [("torch", run), ("triton", None)]:
                try:
                    variant = variant or torch.compile(run, mode="max-autotune-no-cudagraphs", dynamic=False)
                    time = microseconds(torch, make, variant)
                except Exception as error:  # One peer that cannot do one operator costs only that.
                    print(f"{name}, {peer}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
                    continue
                out.write(json.dumps({"op": name, "peer": peer, "ns_median": time * 1e3}) + "\n")
                out.flush()
                print(f"{name}, {peer}: {time:.1f} µs", flush=True)


if __name__ == "__main__":
    main()
