"""Small models with random weights, in the spellings of exporters; `exported_models.py` runs them.

Each function gives a graph, and inputs of a few sizes.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I64, I32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32


class Graph:
    """A graph under construction; each method that adds a node gives the name of its first output."""

    def __init__(self, opset=17, microsoft=False):
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.random, self.count = np.random.default_rng(7), 0
        self.opset, self.opsets = opset, [helper.make_opsetid("", opset)]
        if microsoft:
            self.opsets.append(helper.make_opsetid("com.microsoft", 1))

    def name(self, kind):
        self.count += 1
        return f"{kind}_{self.count}"

    def input(self, name, element, shape):
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def output(self, name, element=F32):
        self.outputs.append(helper.make_tensor_value_info(name, element, None))

    def const(self, value, dtype=np.float32):
        name = self.name("const")
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def weight(self, *shape, scale=None):
        scale = scale or 1 / np.sqrt(np.prod(shape[1:]) or 1)
        return self.const(self.random.normal(size=shape) * scale)

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [self.name(op) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def model(self):
        graph = helper.make_graph(self.nodes, "main", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=self.opsets, ir_version=9)

    # Parts that many models have.

    def conv(self, x, into, out, kernel, stride=1, groups=1, pad=None, bias=True):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        strides = [stride] * len(kernel) if isinstance(stride, int) else list(stride)
        pads = [k // 2 for k in kernel] * 2 if pad is None else pad
        weights = [self.weight(out, into // groups, *kernel)] + ([self.weight(out, scale=0.1)] if bias else [])
        return self.node("Conv", x, *weights, kernel_shape=list(kernel), strides=strides, pads=pads, group=groups, dilations=[1] * len(kernel))

    def silu(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def linear(self, x, into, out):
        return self.node("Add", self.weight(out, scale=0.1), self.node("MatMul", x, self.weight(into, out, scale=1 / np.sqrt(into))))

    def dim(self, x, axis):
        """An extent as a scalar, as torch's first exporter asks for it."""
        return self.node("Gather", self.node("Shape", x), self.const(axis, np.int64), axis=0)

    def shape(self, *parts):
        """A shape of scalars and numbers."""
        spread = lambda part: self.node("Unsqueeze", part, axes=[0]) if self.opset < 13 else self.node("Unsqueeze", part, self.ints(0))
        return self.node("Concat", *(self.ints(part) if isinstance(part, int) else spread(part) for part in parts), axis=0)

    def gelu(self, x):
        half = self.node("Add", self.node("Erf", self.node("Div", x, self.const(np.sqrt(2)))), self.const(1))
        return self.node("Mul", self.node("Mul", x, half), self.const(0.5))

    def norm(self, x, width):
        """Layer normalisation written out."""
        mean = self.node("ReduceMean", x, axes=[-1])
        centred = self.node("Sub", x, mean)
        variance = self.node("ReduceMean", self.node("Pow", centred, self.const(2)), axes=[-1])
        deviation = self.node("Sqrt", self.node("Add", variance, self.const(1e-5)))
        scaled = self.node("Mul", self.node("Div", centred, deviation), self.const(1 + 0.1 * self.random.normal(size=width)))
        return self.node("Add", scaled, self.weight(width, scale=0.1))

    def rms(self, x, width):
        squares = self.node("ReduceMean", self.node("Pow", x, self.const(2)), axes=[-1])
        inverse = self.node("Div", self.const(1), self.node("Sqrt", self.node("Add", squares, self.const(1e-6))))
        return self.node("Mul", self.const(1 + 0.1 * self.random.normal(size=width)), self.node("Mul", x, inverse))

    def skip(self, x, y, width):
        """The normalised sum of two values, and the sum."""
        names = [self.name("skip"), "", "", self.name("sum")]
        inputs = [x, y, self.weight(width, scale=1)]
        self.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", inputs, names, domain="com.microsoft", epsilon=1e-6))
        return names[0], names[3]

    def heads(self, x, heads, size, keys=False):
        shape = self.shape(self.dim(x, 0), self.dim(x, 1), heads, size)
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 3, 1] if keys else [0, 2, 1, 3])

    def joined(self, x, width):
        turned = self.node("Transpose", x, perm=[0, 2, 1, 3])
        return self.node("Reshape", turned, self.shape(self.dim(turned, 0), self.dim(turned, 1), width))

    def attention(self, x, width, heads, mask=None):
        q, k, v = (self.linear(x, width, width) for _ in range(3))
        scores = self.node("MatMul", self.heads(q, heads, width // heads), self.heads(k, heads, width // heads, True))
        scores = self.node("Div", scores, self.const(np.sqrt(width // heads)))
        if mask:
            scores = self.node("Add", scores, mask)
        means = self.node("MatMul", self.node("Softmax", scores, axis=-1), self.heads(v, heads, width // heads))
        return self.linear(self.joined(means, width), width, width)


def floats(*shape):
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def detector():
    """A detector with dynamic sizes: SiLU, split and joined channels, pooled pyramids, distances by softmax, suppression."""
    g = Graph(12)
    x = g.input("images", F32, ["batch", 3, "height", "width"])
    x = g.silu(g.conv(x, 3, 16, 3, 2))
    x = g.silu(g.conv(x, 16, 32, 3, 2))

    def cross(x, width, blocks):
        x = g.silu(g.conv(x, width, width, 1))
        parts = list(g.node("Split", x, outputs=2, axis=1))
        for _ in range(blocks):
            inner = g.silu(g.conv(g.silu(g.conv(parts[-1], width // 2, width // 2, 3)), width // 2, width // 2, 3))
            parts.append(g.node("Add", parts[-1], inner))
        return g.silu(g.conv(g.node("Concat", *parts, axis=1), width // 2 * len(parts), width, 1))

    fine = cross(x, 32, 1)
    middle = cross(g.silu(g.conv(fine, 32, 64, 3, 2)), 64, 2)
    coarse = cross(g.silu(g.conv(middle, 64, 96, 3, 2)), 96, 1)
    first = g.silu(g.conv(coarse, 96, 48, 1))
    pooled = [first]
    for _ in range(3):
        pooled.append(g.node("MaxPool", pooled[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    coarse = g.silu(g.conv(g.node("Concat", *pooled, axis=1), 192, 96, 1))
    # Sizes of an upsampled map are computed from its shape.
    shape = g.node("Shape", coarse)
    sizes = g.node("Slice", shape, g.ints(2), g.ints(4), g.ints(0))
    doubled = g.node("Cast", g.node("Floor", g.node("Mul", g.node("Cast", sizes, to=F32), g.const([2, 2]))), to=I64)
    target = g.node("Concat", g.node("Slice", shape, g.ints(0), g.ints(2), g.ints(0)), doubled, axis=0)
    upper = g.node("Resize", coarse, g.const([]), g.const([]), target, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    middle = cross(g.silu(g.conv(g.node("Concat", upper, middle, axis=1), 160, 64, 1)), 64, 1)
    boxes, scores = [], []
    for level, width, stride in ((middle, 64, 8), (coarse, 96, 16)):
        distances = g.conv(g.silu(g.conv(level, width, 32, 3)), 32, 32, 1)
        classes = g.conv(g.silu(g.conv(level, width, 32, 3)), 32, 4, 1)
        count = g.node("Mul", g.dim(level, 2), g.dim(level, 3))
        distances = g.node("Reshape", distances, g.shape(g.dim(level, 0), 4, 8, count))
        weights = g.node("Softmax", g.node("Transpose", distances, perm=[0, 3, 1, 2]), axis=3)
        sides = g.node("MatMul", weights, g.const(np.arange(8)[:, None]))
        sides = g.node("Squeeze", sides, axes=[3])
        rows = g.node("Range", g.const(0, np.int64), g.dim(level, 2), g.const(1, np.int64))
        columns = g.node("Range", g.const(0, np.int64), g.dim(level, 3), g.const(1, np.int64))
        grid = [g.node("Expand", g.node("Unsqueeze", axis, axes=[place]), g.shape(g.dim(level, 2), g.dim(level, 3))) for axis, place in ((columns, 0), (rows, 1))]
        grid = [g.node("Unsqueeze", g.node("Reshape", axis, g.ints(-1)), axes=[1]) for axis in grid]
        centre = g.node("Add", g.node("Cast", g.node("Concat", *grid, axis=1), to=F32), g.const(0.5))
        left, right = g.node("Split", sides, outputs=2, axis=2)
        corners = g.node("Concat", g.node("Sub", centre, left), g.node("Add", centre, right), axis=2)
        boxes.append(g.node("Mul", corners, g.const(stride)))
        scores.append(g.node("Sigmoid", g.node("Reshape", classes, g.shape(g.dim(level, 0), 4, count))))
    boxes, scores = g.node("Concat", *boxes, axis=1), g.node("Concat", *scores, axis=2)
    chosen = g.node("NonMaxSuppression", boxes, scores, g.const([20], np.int64), g.const([0.5]), g.const([0.3]))
    g.output(boxes), g.output(scores), g.output(chosen, I64)
    return g, [{"images": floats(1, 3, 160, 224)}, {"images": floats(2, 3, 96, 128)}]


def tagger():
    """A bidirectional GRU over sequences of different lengths, as torch packs them."""
    g = Graph(14)
    tokens, lengths = g.input("tokens", I64, ["batch", "time"]), g.input("lengths", I64, ["batch"])
    x = g.node("Transpose", g.node("Gather", g.weight(100, 48, scale=1), tokens), perm=[1, 0, 2])
    counts = g.node("Cast", lengths, to=I32)
    width = 48
    for _ in range(2):
        batch = g.dim(x, 1)
        state = g.node("Expand", g.const(np.zeros((2, 1, 64))), g.shape(2, batch, 64))
        weights = [g.weight(2, 192, width, scale=0.1), g.weight(2, 192, 64, scale=0.1), g.weight(2, 384, scale=0.1)]
        y, last = g.node("GRU", x, *weights, counts, state, outputs=2, hidden_size=64, direction="bidirectional", linear_before_reset=1)
        x, width = g.node("Reshape", g.node("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, -1)), 128
    g.output(g.node("LogSoftmax", g.linear(g.node("Transpose", x, perm=[1, 0, 2]), 128, 9), axis=-1))
    g.output(last)
    big = {"tokens": np.random.default_rng(1).integers(0, 100, (4, 60)), "lengths": np.array([60, 41, 12, 3])}
    return g, [big, {"tokens": big["tokens"][:1, :17], "lengths": np.array([17])}]


def reader():
    """Convolutions and bidirectional LSTMs, as for text in pictures."""
    g = Graph(11)
    x = g.input("picture", F32, ["batch", 1, 32, "width"])
    for into, out, pool in ((1, 32, (2, 2)), (32, 64, (2, 2)), (64, 96, (2, 1)), (96, 96, (2, 1))):
        x = g.node("Relu", g.conv(x, into, out, 3))
        x = g.node("MaxPool", x, kernel_shape=list(pool), strides=list(pool))
    x = g.node("Relu", g.conv(x, 96, 128, (2, 2), pad=[0, 0, 0, 0]))
    x = g.node("Transpose", g.node("Squeeze", x, axes=[2]), perm=[2, 0, 1])
    for _ in range(2):
        zeros = g.node("ConstantOfShape", g.node("Concat", g.ints(2), g.node("Slice", g.node("Shape", x), g.ints(1), g.ints(2), g.ints(0)), g.ints(64), axis=0), value=helper.make_tensor("z", F32, [1], [0]))
        weights = [g.weight(2, 256, 128, scale=0.1), g.weight(2, 256, 64, scale=0.1), g.weight(2, 512, scale=0.1)]
        y = g.node("LSTM", x, *weights, "", zeros, zeros, outputs=3, hidden_size=64, direction="bidirectional")[0]
        x = g.node("Reshape", g.node("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    g.output(g.node("LogSoftmax", g.linear(x, 128, 80), axis=2))
    return g, [{"picture": floats(1, 1, 32, 200)}, {"picture": floats(3, 1, 32, 96)}]


def sound():
    """Log-mel features by a convolution with windows, and convolution blocks with gates, as in speech recognition."""
    g = Graph(17)
    wave = g.input("waveform", F32, ["batch", "samples"])
    x = g.node("Unsqueeze", wave, g.ints(1))
    x = g.node("Pad", x, g.ints(0, 0, 200, 0, 0, 200), mode="reflect")
    times, bins = np.arange(400), np.arange(201)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * times / 400)
    angles = 2 * np.pi * bins[:, None] * times / 400
    table = np.concatenate([np.cos(angles) * window, -np.sin(angles) * window])[:, None]
    parts = g.node("Conv", x, g.const(table), kernel_shape=[400], strides=[160])
    real, imaginary = g.node("Slice", parts, g.ints(0), g.ints(201), g.ints(1)), g.node("Slice", parts, g.ints(201), g.ints(2**62), g.ints(1))
    power = g.node("Add", g.node("Mul", real, real), g.node("Mul", imaginary, imaginary))
    mel = g.node("MatMul", g.const(np.abs(g.random.normal(size=(40, 201))) * 0.01), power)
    mel = g.node("Div", g.node("Log", g.node("Clip", mel, g.const(1e-10), "")), g.const(np.log(10)))
    mel = g.node("Max", mel, g.node("Sub", g.node("ReduceMax", mel, axes=[1, 2], keepdims=1), g.const(8)))
    x = g.node("Div", g.node("Add", mel, g.const(4)), g.const(4))
    x = g.gelu(g.conv(x, 40, 96, (3,)))
    for _ in range(2):
        y = g.norm(g.node("Transpose", x, perm=[0, 2, 1]), 96)
        y = g.conv(g.node("Transpose", y, perm=[0, 2, 1]), 96, 192, (1,))
        a, b = g.node("Split", y, g.ints(96, 96), outputs=2, axis=1)
        y = g.node("Mul", a, g.node("Sigmoid", b))
        y = g.conv(y, 96, 96, (15,), groups=96)
        scale, shift, mean, spread = g.weight(96, scale=1), g.weight(96, scale=1), g.weight(96, scale=1), g.const(np.abs(g.random.normal(size=96)) + 0.5)
        y = g.silu(g.node("BatchNormalization", y, scale, shift, mean, spread))
        x = g.node("Add", x, g.conv(y, 96, 96, (1,)))
    mean = g.node("ReduceMean", x, axes=[2], keepdims=0)
    spread = g.node("Sqrt", g.node("ReduceMean", g.node("Pow", g.node("Sub", x, g.node("Unsqueeze", mean, g.ints(2))), g.const(2)), axes=[2], keepdims=0))
    g.output(g.node("Gemm", g.node("Concat", mean, spread, axis=1), g.weight(20, 192), g.weight(20, scale=0.1), transB=1))
    return g, [{"waveform": floats(1, 16000)}, {"waveform": floats(2, 7777)}]


def bytes_classifier():
    """Bytes to classes: embeddings, convolutions along the text, largest values."""
    g = Graph(13)
    x = g.input("bytes", TensorProto.INT32, ["batch", "length"])
    x = g.node("Gather", g.weight(257, 32, scale=1), x, axis=0)
    x = g.node("Dropout", x, outputs=2)[0]
    x = g.node("Transpose", x, perm=[0, 2, 1])
    parts = []
    for kernel in (3, 5, 7):
        y = g.gelu(g.conv(x, 32, 64, (kernel,)))
        parts.append(g.node("ReduceMax", y, axes=[-1], keepdims=0))
    x = g.node("Concat", *parts, axis=-1)
    mean = g.node("ReduceMean", x, axes=[-1], keepdims=1)
    x = g.node("Relu", g.node("Gemm", g.node("Sub", x, mean), g.weight(64, 192), g.weight(64), transB=1))
    x = g.node("Softmax", g.node("Gemm", x, g.weight(30, 64), g.weight(30), transB=1), axis=-1)
    g.output(x), g.output(g.node("ArgMax", x, axis=1, keepdims=0), I64)
    data = lambda *shape: np.random.default_rng(5).integers(0, 257, shape).astype(np.int32)
    return g, [{"bytes": data(1, 2048)}, {"bytes": data(5, 333)}]


def encoder():
    """A speech encoder: convolutions with GELU, positions, attention as torch writes it."""
    g = Graph(17)
    x = g.input("features", F32, ["batch", 80, "frames"])
    x = g.gelu(g.conv(x, 80, 128, (3,)))
    x = g.node("Transpose", g.gelu(g.conv(x, 128, 128, (3,), 2)), perm=[0, 2, 1])
    x = g.node("Add", x, g.node("Slice", g.weight(500, 128, scale=1), g.ints(0), g.node("Unsqueeze", g.dim(x, 1), g.ints(0)), g.ints(0)))
    for _ in range(2):
        x = g.node("Add", x, g.attention(g.norm(x, 128), 128, 4))
        x = g.node("Add", x, g.linear(g.gelu(g.linear(g.norm(x, 128), 128, 256)), 256, 128))
    g.output(g.norm(x, 128))
    return g, [{"features": floats(1, 80, 300)}, {"features": floats(2, 80, 121)}]


def decoder():
    """A decoder with keys and values of earlier calls, as torch writes it: rotated halves, repeated heads, a causal mask by comparison."""
    g, width, heads, shared, size = Graph(17), 96, 6, 2, 16
    ids = g.input("input_ids", I64, ["batch", "tokens"])
    mask = g.input("attention_mask", I64, ["batch", "all"])
    past = [[g.input(f"past_key_values.{layer}.{name}", F32, ["batch", shared, "past", size]) for name in ("key", "value")] for layer in range(2)]
    x = g.node("Gather", g.weight(200, width, scale=1), ids)
    tokens, before = g.dim(ids, 1), g.dim(past[0][0], 2)
    all_tokens = g.node("Add", tokens, before)
    zero, one = g.const(0, np.int64), g.const(1, np.int64)
    rows, columns = g.node("Range", before, all_tokens, one), g.node("Range", zero, all_tokens, one)
    later = g.node("Greater", columns, g.node("Reshape", rows, g.ints(-1, 1)))
    causal = g.node("Where", later, g.const(-3.4028235e38), g.const(0))
    hidden = g.node("Equal", g.node("Unsqueeze", mask, g.ints(1, 2)), zero)
    bias = g.node("Where", hidden, g.const(-3.4028235e38), g.node("Unsqueeze", causal, g.ints(0, 1)))
    turns = g.node("MatMul", g.node("Cast", g.node("Unsqueeze", rows, g.ints(1)), to=F32), g.const(1 / 100 ** (np.arange(size // 2)[None] / (size // 2))))
    turns = g.node("Concat", turns, turns, axis=-1)
    cosines, sines = g.node("Cos", turns), g.node("Sin", turns)

    def rotated(x):
        first = g.node("Slice", x, g.ints(0), g.ints(size // 2), g.ints(3), g.ints(1))
        second = g.node("Slice", x, g.ints(size // 2), g.ints(2**63 - 1), g.ints(3), g.ints(1))
        return g.node("Add", g.node("Mul", x, cosines), g.node("Mul", g.node("Concat", g.node("Neg", second), first, axis=-1), sines))

    def repeated(x):
        length = g.dim(x, 2)
        spread = g.node("Expand", g.node("Unsqueeze", x, g.ints(2)), g.shape(g.dim(x, 0), shared, heads // shared, length, size))
        return g.node("Reshape", spread, g.shape(g.dim(x, 0), heads, length, size))

    for layer in range(2):
        y = g.rms(x, width)
        q, k, v = (g.node("MatMul", y, g.weight(width, out, scale=0.1)) for out in (heads * size, shared * size, shared * size))
        q, k = rotated(g.heads(q, heads, size)), rotated(g.heads(k, shared, size))
        k, v = g.node("Concat", past[layer][0], k, axis=2), g.node("Concat", past[layer][1], g.heads(v, shared, size), axis=2)
        scores = g.node("MatMul", q, g.node("Transpose", repeated(k), perm=[0, 1, 3, 2]))
        scores = g.node("Add", g.node("Mul", scores, g.const(size**-0.5)), bias)
        means = g.node("MatMul", g.node("Softmax", scores, axis=-1), repeated(v))
        x = g.node("Add", x, g.node("MatMul", g.joined(means, heads * size), g.weight(heads * size, width, scale=0.1)))
        y = g.rms(x, width)
        gate = g.silu(g.node("MatMul", y, g.weight(width, 192, scale=0.1)))
        x = g.node("Add", x, g.node("MatMul", g.node("Mul", gate, g.node("MatMul", y, g.weight(width, 192, scale=0.1))), g.weight(192, width, scale=0.1)))
        g.output(k), g.output(v)
    g.output(g.node("MatMul", g.rms(x, width), g.weight(width, 200, scale=0.1)))

    def feeds(batch, tokens, earlier):
        inputs = {f"past_key_values.{layer}.{name}": floats(batch, shared, earlier, size) for layer in range(2) for name in ("key", "value")}
        mask = np.ones((batch, tokens + earlier), np.int64)
        mask[-1, :1] = 0
        return {"input_ids": np.random.default_rng(2).integers(0, 200, (batch, tokens)), "attention_mask": mask, **inputs}

    return g, [feeds(1, 1, 64), feeds(2, 12, 0), feeds(1, 1, 65)]


def grouped_decoder():
    """The same in the operators of ONNX Runtime."""
    g, width, heads, shared, size = Graph(21, True), 96, 6, 2, 16
    ids = g.input("input_ids", I64, ["batch_size", "sequence_length"])
    mask = g.input("attention_mask", I64, ["batch_size", "total_sequence_length"])
    past = [[g.input(f"past_key_values.{layer}.{name}", F32, ["batch_size", shared, "past_sequence_length", size]) for name in ("key", "value")] for layer in range(2)]
    x = g.node("Gather", g.weight(200, width, scale=1), ids)
    lengths = g.node("Cast", g.node("Sub", g.node("ReduceSum", mask, g.ints(1)), g.ints(1)), to=I32)
    total = g.node("Cast", g.node("Gather", g.node("Shape", mask), g.const(1, np.int64), axis=0), to=I32)
    turns = np.arange(128)[:, None] / 100 ** (np.arange(size // 2)[None] / (size // 2))
    tables = [g.const(np.cos(turns)), g.const(np.sin(turns))]
    y = g.node("SimplifiedLayerNormalization", x, g.weight(width, scale=1), axis=-1, epsilon=1e-6, stash_type=1)
    for layer in range(2):
        q, k, v = (g.node("MatMul", y, g.weight(width, out, scale=0.1)) for out in (heads * size, shared * size, shared * size))
        means, key, value = g.node(
            "GroupQueryAttention", q, k, v, *past[layer], lengths, total, *tables, outputs=3, domain="com.microsoft",
            num_heads=heads, kv_num_heads=shared, do_rotary=1, rotary_interleaved=0, local_window_size=-1, softcap=0.0, scale=size**-0.5)
        means = g.node("MatMul", means, g.weight(heads * size, width, scale=0.1))
        y, x = g.skip(x, means, width)
        gate = g.silu(g.node("MatMul", y, g.weight(width, 192, scale=0.1)))
        inner = g.node("MatMul", g.node("Mul", gate, g.node("MatMul", y, g.weight(width, 192, scale=0.1))), g.weight(192, width, scale=0.1))
        y, x = g.skip(x, inner, width)
        g.output(key), g.output(value)
    g.output(g.node("MatMul", y, g.weight(width, 200, scale=0.1)))
    _, feeds = decoder()
    feeds[1]["attention_mask"][:] = 1
    feeds[0]["attention_mask"][:] = feeds[2]["attention_mask"][:] = 1
    return g, feeds


def mobile():
    """An image classifier as tf2onnx writes it: pictures with channels last, padding by mode, six as the largest value, gates."""
    g = Graph(13)
    x = g.node("Transpose", g.input("input_1", F32, ["unk", 224, 224, 3]), perm=[0, 3, 1, 2])
    x = g.node("Sub", g.node("Div", x, g.const(127.5)), g.const(1))

    def block(x, into, out, kernel, stride, groups=1):
        weights = [g.weight(out, into // groups, kernel, kernel), g.weight(out, scale=0.1)]
        x = g.node("Conv", x, *weights, auto_pad="SAME_UPPER", kernel_shape=[kernel] * 2, strides=[stride] * 2, group=groups, dilations=[1, 1])
        return g.node("Clip", x, g.const(0), g.const(6))

    x = block(x, 3, 16, 3, 2)
    for into, out, stride in ((16, 24, 2), (24, 40, 2), (40, 40, 1), (40, 80, 2)):
        y = block(block(x, into, 4 * into, 1, 1), 4 * into, 4 * into, 5, stride, 4 * into)
        gate = g.node("ReduceMean", y, axes=[2, 3], keepdims=1)
        gate = g.node("Relu", g.conv(gate, 4 * into, into, 1))
        gate = g.node("HardSigmoid", g.conv(gate, into, 4 * into, 1), alpha=1 / 6, beta=0.5)
        y = g.conv(g.node("Mul", y, gate), 4 * into, out, 1)
        x = g.node("Add", x, y) if stride == 1 else y
    x = g.node("AveragePool", x, auto_pad="SAME_UPPER", kernel_shape=[3, 3], strides=[2, 2])
    x = g.node("Squeeze", g.node("GlobalAveragePool", x), g.ints(2, 3))
    x = g.node("Add", g.node("MatMul", x, g.weight(80, 100, scale=0.1)), g.weight(100, scale=0.1))
    g.output(g.node("Softmax", x, axis=1))
    return g, [{"input_1": np.abs(floats(1, 224, 224, 3)) * 100}, {"input_1": np.abs(floats(3, 224, 224, 3)) * 100}]


def segmenter():
    """Down and up again, with joined maps: average pools, transposed convolutions, linear resizing, normalisation by instance and group."""
    g = Graph(18)
    x = g.input("x", F32, ["n", 3, "h", "w"])
    levels, width = [], 3
    for out in (16, 32, 64):
        x = g.conv(x, width, out, 3)
        x = g.node("LeakyRelu", g.node("InstanceNormalization", x, g.weight(out, scale=1), g.weight(out, scale=0.1), epsilon=1e-5), alpha=0.01)
        levels.append(x)
        x, width = g.node("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1), out
    for place, out in ((2, 32), (1, 16)):
        if place == 2:
            x = g.node("ConvTranspose", x, g.weight(width, out, 4, 4, scale=0.05), g.weight(out), kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1])
        else:
            target = g.node("Concat", g.node("Slice", g.node("Shape", x), g.ints(0), g.ints(2)), g.node("Slice", g.node("Shape", levels[place]), g.ints(2), g.ints(4)), axis=0)
            x = g.conv(g.node("Resize", x, "", "", target, mode="linear", coordinate_transformation_mode="half_pixel"), width, out, 1)
        x = g.node("Concat", x, levels[place], axis=1)
        x = g.conv(x, out + (64 if place == 2 else 32), out, 3)
        # Normalisation by groups, written as one by instances.
        grouped = g.node("Reshape", x, g.ints(0, 4, -1))
        grouped = g.node("InstanceNormalization", grouped, g.const(np.ones(4)), g.const(np.zeros(4)), epsilon=1e-5)
        x = g.node("Reshape", grouped, g.node("Shape", x))
        x, width = g.node("Relu", g.node("Add", g.node("Mul", x, g.weight(out, 1, 1, scale=1)), g.weight(out, 1, 1, scale=0.1))), out
    x = g.node("Resize", x, "", g.const([1, 1, 2, 2]), mode="linear", coordinate_transformation_mode="align_corners")
    x = g.conv(x, 16, 5, 1)
    g.output(x), g.output(g.node("ArgMax", x, axis=1, keepdims=0), I64)
    return g, [{"x": floats(1, 3, 96, 128)}, {"x": floats(2, 3, 64, 64)}]


def windows():
    """A vision transformer with shifted windows: partitions by six dimensions, parts that wrap around, a table of positions, a mask."""
    g, width, heads, side = Graph(17), 64, 4, 4
    x = g.conv(g.input("picture", F32, ["batch", 3, 64, 64]), 3, width, (4, 4), 4, pad=[0] * 4)
    x = g.node("Transpose", g.node("Reshape", x, g.ints(0, width, 256)), perm=[0, 2, 1])
    weights, shift_ = g.weight(width, scale=1), g.weight(width, scale=0.1)
    for shift in (0, 2):
        y = g.node("LayerNormalization", x, weights, shift_, axis=-1, epsilon=1e-5)
        y = g.node("Reshape", y, g.ints(-1, 16, 16, width))
        if shift:
            for axis in (1, 2):
                y = g.node("Concat", g.node("Slice", y, g.ints(shift), g.ints(2**63 - 1), g.ints(axis)), g.node("Slice", y, g.ints(0), g.ints(shift), g.ints(axis)), axis=axis)
        y = g.node("Transpose", g.node("Reshape", y, g.ints(-1, 16 // side, side, 16 // side, side, width)), perm=[0, 1, 3, 2, 4, 5])
        y = g.node("Reshape", y, g.ints(-1, side * side, width))
        q = g.node("Reshape", g.linear(y, width, 3 * width), g.ints(-1, side * side, 3, heads, width // heads))
        q, k, v = g.node("Split", g.node("Transpose", q, perm=[2, 0, 3, 1, 4]), g.ints(1, 1, 1), outputs=3, axis=0)
        q, k, v = (g.node("Squeeze", part, g.ints(0)) for part in (q, k, v))
        scores = g.node("MatMul", g.node("Mul", q, g.const((width // heads) ** -0.5)), g.node("Transpose", k, perm=[0, 1, 3, 2]))
        table = g.node("Gather", g.weight((2 * side - 1) ** 2, heads, scale=1), g.const(g.random.integers(0, 49, side**4), np.int64))
        table = g.node("Transpose", g.node("Reshape", table, g.ints(side * side, side * side, heads)), perm=[2, 0, 1])
        scores = g.node("Add", scores, g.node("Unsqueeze", table, g.ints(0)))
        if shift:
            mask = g.const(np.where(g.random.random((16, side * side, side * side)) < 0.2, -100, 0))
            scores = g.node("Reshape", scores, g.ints(-1, 16, heads, side * side, side * side))
            scores = g.node("Add", scores, g.node("Unsqueeze", mask, g.ints(0, 2)))
            scores = g.node("Reshape", scores, g.ints(-1, heads, side * side, side * side))
        y = g.node("Transpose", g.node("MatMul", g.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = g.linear(g.node("Reshape", y, g.ints(-1, side * side, width)), width, width)
        y = g.node("Transpose", g.node("Reshape", y, g.ints(-1, 16 // side, 16 // side, side, side, width)), perm=[0, 1, 3, 2, 4, 5])
        y = g.node("Reshape", y, g.ints(-1, 16, 16, width))
        if shift:
            for axis in (1, 2):
                y = g.node("Concat", g.node("Slice", y, g.ints(-shift), g.ints(2**63 - 1), g.ints(axis)), g.node("Slice", y, g.ints(0), g.ints(-shift), g.ints(axis)), axis=axis)
        x = g.node("Add", x, g.node("Reshape", y, g.ints(-1, 256, width)))
        x = g.node("Add", x, g.linear(g.gelu(g.linear(g.node("LayerNormalization", x, weights, shift_, axis=-1), width, 128)), 128, width))
    g.output(g.linear(g.node("ReduceMean", x, axes=[1], keepdims=0), width, 10))
    return g, [{"picture": floats(1, 3, 64, 64)}, {"picture": floats(3, 3, 64, 64)}]


def regions():
    """The second stage of a detector: the best boxes, their regions of a map, classes and refined boxes."""
    g = Graph(16)
    x = g.node("Relu", g.conv(g.input("picture", F32, [1, 3, "height", "width"]), 3, 64, 3, 4))
    scores = g.node("Reshape", g.node("Sigmoid", g.conv(x, 64, 3, 1)), g.ints(-1))
    deltas = g.node("Reshape", g.node("Transpose", g.conv(x, 64, 12, 1), perm=[0, 2, 3, 1]), g.ints(-1, 4))
    count = g.node("ReduceMin", g.node("Concat", g.ints(100), g.node("Shape", scores), axis=0), axes=[0], keepdims=1)
    best, places = g.node("TopK", scores, count, outputs=2, axis=0, largest=1, sorted=1)
    chosen = g.node("GatherND", deltas, g.node("Unsqueeze", places, g.ints(1)))
    corner, size = g.node("Split", g.node("Abs", chosen), outputs=2, axis=1)
    boxes = g.node("Concat", corner, g.node("Add", corner, g.node("Exp", size)), axis=1)
    boxes = g.node("Clip", g.node("Mul", boxes, g.const(20)), g.const(0), g.const(100))
    kept = g.node("NonMaxSuppression", g.node("Unsqueeze", boxes, g.ints(0)), g.node("Unsqueeze", best, g.ints(0, 1)), g.const([50], np.int64), g.const([0.7]), g.const([0.0]))
    kept = g.node("Squeeze", g.node("Slice", kept, g.ints(2), g.ints(3), g.ints(1)), g.ints(1))
    boxes = g.node("Gather", boxes, kept, axis=0)
    pictures = g.node("Expand", g.const(0, np.int64), g.node("Slice", g.node("Shape", boxes), g.ints(0), g.ints(1)))
    pooled = g.node("RoiAlign", x, boxes, pictures, output_height=7, output_width=7, sampling_ratio=2, spatial_scale=0.25, mode="avg", coordinate_transformation_mode="output_half_pixel")
    flat = g.node("Relu", g.node("Gemm", g.node("Flatten", pooled), g.weight(128, 3136), g.weight(128), transB=1))
    g.output(g.node("Softmax", g.node("Gemm", flat, g.weight(5, 128), g.weight(5), transB=1), axis=-1))
    g.output(boxes)
    return g, [{"picture": floats(1, 3, 256, 320)}, {"picture": floats(1, 3, 128, 128)}]


def voice():
    """A vocoder with durations: masks by lengths, places by sums, transposed convolutions. Its noise has the factor 0."""
    g = Graph(15)
    ids, lengths = g.input("phonemes", I64, ["batch", "length"]), g.input("lengths", I64, ["batch"])
    x = g.node("Transpose", g.node("Mul", g.node("Gather", g.weight(60, 32, scale=1), ids), g.const(32**0.5)), perm=[0, 2, 1])
    end = g.node("Gather", g.node("Shape", x), g.const(2, np.int64), axis=0)
    places = g.node("Range", g.const(0, np.int64), end, g.const(1, np.int64))
    mask = g.node("Less", g.node("Unsqueeze", places, g.ints(0)), g.node("Unsqueeze", lengths, g.ints(1)))
    mask = g.node("Cast", g.node("Unsqueeze", mask, g.ints(1)), to=F32)
    x = g.node("Mul", g.node("Relu", g.conv(x, 32, 32, (5,))), mask)
    duration = g.node("Mul", g.node("Ceil", g.node("Exp", g.node("Mul", g.conv(x, 32, 1, (1,)), g.const(0.5)))), mask)
    ends = g.node("CumSum", g.node("Squeeze", duration, g.ints(1)), g.const(1, np.int64))
    total = g.node("Cast", g.node("ReduceMax", ends, keepdims=0), to=I64)
    frames = g.node("Range", g.const(0, np.int64), total, g.const(1, np.int64))
    frames = g.node("Unsqueeze", g.node("Cast", frames, to=F32), g.ints(0, 2))
    is_before = g.node("Cast", g.node("Less", frames, g.node("Unsqueeze", ends, g.ints(1))), to=F32)
    path = g.node("Sub", is_before, g.node("Pad", g.node("Slice", is_before, g.ints(0), g.ints(-1), g.ints(2)), g.ints(0, 0, 1, 0, 0, 0)))
    x = g.node("Transpose", g.node("MatMul", path, g.node("Transpose", x, perm=[0, 2, 1])), perm=[0, 2, 1])
    x = g.node("Add", x, g.node("Mul", g.node("RandomNormalLike", x), g.const(0)))
    width = 32
    for rate, kernel in ((8, 16), (4, 8)):
        x = g.node("LeakyRelu", x, alpha=0.1)
        x = g.node("ConvTranspose", x, g.weight(width, width // 2, kernel, scale=0.1), g.weight(width // 2), kernel_shape=[kernel], strides=[rate], pads=[(kernel - rate) // 2] * 2)
        width //= 2
        parts = []
        for dilation in (1, 3):
            y = g.node("Conv", g.node("LeakyRelu", x, alpha=0.1), g.weight(width, width, 3), g.weight(width), kernel_shape=[3], dilations=[dilation], pads=[dilation, dilation])
            parts.append(g.node("Add", x, y))
        x = g.node("Div", g.node("Add", *parts), g.const(2))
    g.output(g.node("Tanh", g.conv(g.node("LeakyRelu", x, alpha=0.01), width, 1, (7,))))
    ids = np.random.default_rng(4).integers(0, 60, (2, 40))
    return g, [{"phonemes": ids[:1], "lengths": np.array([40])}, {"phonemes": ids[:, :25], "lengths": np.array([25, 9])}]


def larger():
    """A picture enlarged: pixels from channels, slopes for negative values, padding by reflection and repetition."""
    g = Graph(11)
    x = g.input("low", F32, [1, 3, "h", "w"])
    start = g.conv(g.node("Pad", x, g.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect"), 3, 32, 3, pad=[0] * 4)
    y = start
    for _ in range(2):
        z = g.node("PRelu", g.conv(y, 32, 32, 3), g.weight(32, 1, 1, scale=0.2))
        y = g.node("Add", y, g.conv(z, 32, 32, 3))
    y = g.node("DepthToSpace", g.conv(g.node("Add", y, start), 32, 128, 3), blocksize=2, mode="CRD")
    y = g.conv(g.node("Pad", y, g.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="edge"), 32, 3, 3, pad=[0] * 4)
    base = g.node("Resize", x, g.const([]), g.const([1, 1, 2, 2]), mode="cubic", coordinate_transformation_mode="pytorch_half_pixel", cubic_coeff_a=-0.75)
    g.output(g.node("Clip", g.node("Add", y, base), g.const(0), g.const(1)))
    return g, [{"low": floats(1, 3, 64, 80)}, {"low": floats(1, 3, 33, 47)}]


def functions():
    """A transformer as torch's newer exporter writes it: functions of the model, newer operators, extents as tensors."""
    g = Graph(18)
    x = g.input("x", F32, ["s0", "s1", 64])
    for _ in range(2):
        y = g.node("LayerNormalization", x, g.weight(64, scale=1), g.weight(64, scale=0.1), axis=-1, epsilon=1e-5, stash_type=1)
        batch, tokens = (g.node("Shape", y, start=place, end=place + 1) for place in (0, 1))
        parts = g.linear(y, 64, 192)
        q, k, v = g.node("Split", parts, axis=2, outputs=3, num_outputs=3)
        shape = g.node("Concat", batch, tokens, g.ints(4), g.ints(16), axis=0)
        q, k, v = (g.node("Transpose", g.node("Reshape", part, shape, allowzero=0), perm=[0, 2, 1, 3]) for part in (q, k, v))
        scale = g.node("Sqrt", g.node("Sqrt", g.const(1 / 16)))
        k = g.node("Mul", g.node("Transpose", k, perm=[0, 1, 3, 2]), scale)
        y = g.node("MatMul", g.node("Softmax", g.node("MatMul", g.node("Mul", q, scale), k), axis=-1), v)
        y = g.node("Reshape", g.node("Transpose", y, perm=[0, 2, 1, 3]), g.node("Concat", batch, tokens, g.ints(64), axis=0))
        x = g.node("Add", x, g.linear(y, 64, 64))
        y = g.node("Gelu_tanh", g.linear(x, 64, 128), domain="pkg.torch")
        x = g.node("Add", x, g.linear(y, 128, 64))
    g.output(g.node("ReduceMean", x, g.ints(1), keepdims=0, noop_with_empty_axes=0))
    body = [
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Constant", [], ["c"], value_float=0.044715),
        helper.make_node("Constant", [], ["r"], value_float=float(np.sqrt(2 / np.pi))),
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Mul", ["x", "x"], ["xx"]), helper.make_node("Mul", ["xx", "x"], ["xxx"]),
        helper.make_node("Mul", ["xxx", "c"], ["cx"]), helper.make_node("Add", ["x", "cx"], ["inner"]),
        helper.make_node("Mul", ["inner", "r"], ["angle"]), helper.make_node("Tanh", ["angle"], ["t"]),
        helper.make_node("Add", ["t", "one"], ["plus"]), helper.make_node("Mul", ["x", "half"], ["hx"]), helper.make_node("Mul", ["hx", "plus"], ["y"]),
    ]
    g.opsets.append(helper.make_opsetid("pkg.torch", 1))
    g.functions = [helper.make_function("pkg.torch", "Gelu_tanh", ["x"], ["y"], body, [helper.make_opsetid("", 18)])]
    return g, [{"x": floats(1, 50, 64)}, {"x": floats(3, 17, 64)}]


MODELS = [
    detector, tagger, reader, sound, bytes_classifier, encoder, decoder, grouped_decoder, mobile, segmenter, windows, regions, voice, larger, functions,
]
