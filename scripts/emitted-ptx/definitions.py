"""The operators of the set in numpy, from their names and tensors: what emitted kernels have to compute.

Each takes the numbers of the operator's name and its tensors by name, as float64 (integers as int64), and gives the results by name.
"""
import math

import numpy as np


def padded(x, axes, pad):
    return np.pad(x, [(pad, pad) if axis in axes else (0, 0) for axis in range(x.ndim)])


def convolution(x, w, stride, pad, dilation=1, groups=1):
    """Channels last, any number of spatial dimensions; filters are spatial × in × out."""
    rank = x.ndim - 2
    x = padded(x, range(1, rank + 1), pad)
    kernel = w.shape[:rank]
    out = [(x.shape[1 + axis] - dilation * (kernel[axis] - 1) - 1) // stride + 1 for axis in range(rank)]
    inner, outer = w.shape[-2], w.shape[-1] // groups
    y = np.zeros([x.shape[0], *out, w.shape[-1]], x.dtype)
    for tap in np.ndindex(*kernel):
        window = x[(slice(None), *[
            slice(tap[axis] * dilation, tap[axis] * dilation + (out[axis] - 1) * stride + 1, stride) for axis in range(rank)
        ])]
        for group in range(groups):
            to = slice(group * outer, (group + 1) * outer)
            y[..., to] += window[..., group * inner:(group + 1) * inner] @ w[tap][:, to]
    return y


def conv1d(p, x, w):
    return {"y": convolution(x, w, p[5], p[6])}


def conv2d(p, x, w):
    dilation, groups = (list(p[8:]) + [1, 1])[:2]
    return {"y": convolution(x, w, p[6], p[7], dilation, groups)}


def conv3d(p, x, w):
    return {"y": convolution(x, w, p[7], p[8])}


def depthwise(p, x, w):
    channels = [convolution(x[..., c:c + 1], w[0, :, :, c:c + 1, None], p[5], p[6]) for c in range(p[3])]
    return {"y": np.concatenate(channels, -1)}


def transposed(p, x, w):
    n, h, width, _, _, k, stride, pad = p
    full = np.zeros([n, (h - 1) * stride + k, (width - 1) * stride + k, w.shape[-1]])
    for i in range(h):
        for j in range(width):
            full[:, i * stride:i * stride + k, j * stride:j * stride + k] += np.einsum("nc,klco->nklo", x[:, i, j], w)
    return {"y": full[:, pad:full.shape[1] - pad, pad:full.shape[2] - pad]}


def bias_norm_relu(p, x, w, bias, offset, scale):
    return {"y": np.maximum((convolution(x, w, p[6], p[7]) + bias) * scale + offset, 0)}


def product(p, a, b):
    return {"c": a @ b}


def attention_scores(p, q, v):
    return {"y": np.einsum("bihk,bjhk->bhij", q, v)}


def norm(p, a):
    return {"y": np.sqrt((a * a).sum((1, 2)))}


def exponentials(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax(p, x):
    return {"y": exponentials(x)}


def byte_convolution(p, x, w):
    return {"y": convolution(x, w, p[6], p[7])}


def requantised_convolution(p, x, w, bias, scale):
    scaled = (convolution(x, w, p[6], p[7]) + bias).astype(np.float32) * scale.astype(np.float32)
    return {"y": np.clip(np.rint(scaled) + 7, 0, 255)}


def bias_gelu(p, x, bias):
    v = x + bias
    return {"y": 0.5 * v * (1 + np.vectorize(math.erf)(v * math.sqrt(0.5)))}


def layer_norm(p, x, scale, shift):
    centred = x - x.mean(1, keepdims=True)
    return {"y": centred / np.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * scale + shift}


def attention(p, q, k, v):
    return {"y": exponentials(np.einsum("hid,hjd->hij", q, k)) @ v}


DEFINITIONS = {
    "C1D": conv1d, "C2D": conv2d, "DIL": conv2d, "GRP": conv2d, "C3D": conv3d, "DEP": depthwise, "T2D": transposed,
    "CBR": bias_norm_relu, "GMM": product, "GMM3": product, "GMM6": product, "GMM9": product, "TBG": attention_scores, "NRM": norm,
    "SFM": softmax, "QMM": product, "SMM": product, "UMM": product, "XMM": product, "QMW": product, "SMW": product, "HMM": product,
    "HMW": product, "HMR": product, "QCV": byte_convolution, "QCW": byte_convolution, "SCW": byte_convolution,
    "QCR": requantised_convolution, "CPY": lambda p, x: {"y": x}, "TRN": lambda p, x: {"y": x.T},
    "ADD": lambda p, a, b: {"y": a + b}, "GBE": bias_gelu, "LNM": layer_norm, "DOT": lambda p, a, b: {"y": np.array([a @ b])},
    "ATT": attention,
}

# How far results may be off, relative to the largest: of sums of f32, of products that may be formed from bf16 pieces, and of results
# that are rounded to bf16. Integers have to be equal.
TOLERANCES = {"GMM3": 1e-4, "GMM6": 1e-5, "HMR": 1e-2}
TOLERANCE = 1e-5
