#!/usr/bin/env python3
"""Quantises PP-OCR's models and MiniLM with our quantiser and with ONNX Runtime's, and compares both with floats: text, boxes, cosine, time.

    cargo build --release -p tilewright-cli && cargo build --release --example read_page
    scripts/fetch-models.sh && scripts/fetch-minilm.sh
    python3 scripts/build_minilm.py target/minilm target/models/minilm.onnx
    python3 scripts/compare_quantised.py [--times] [MODEL…]

Models are `ppocr-rec`, `ppocr-det` and `minilm`. Lines for recognition are calibrated with every second line of the page, detection with the page
mirrored along each side and both, MiniLM with every second of 32 sentences of the guides; quality is that of the rest. Times are those of
alternating rounds: ours in floats and quantised, ONNX Runtime and OpenVINO on floats and on the model of ONNX Runtime's quantiser. Needs numpy,
onnx, onnxruntime, openvino and tokenizers; OpenVINO is left out where it is not installed. TILEWRIGHT and READ_PAGE name other
programs, METHOD the method of both quantisers (`min-max`, `percentile`, `entropy`).
"""

import difflib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnxruntime import quantization

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "target" / "models"
FOLDER = pathlib.Path(os.environ.get("FOLDER", ROOT / "target" / "quantised"))
PROGRAM = os.environ.get("TILEWRIGHT", str(ROOT / "target" / "release" / "tilewright"))
READ_PAGE = os.environ.get("READ_PAGE", str(ROOT / "target" / "release" / "examples" / "read_page"))
METHOD = os.environ.get("METHOD", "min-max")
METHODS = {
    "min-max": quantization.CalibrationMethod.MinMax,
    "percentile": quantization.CalibrationMethod.Percentile,
    "entropy": quantization.CalibrationMethod.Entropy,
}
THREADS = int(os.environ.get("THREADS", "2"))
ROUNDS = int(os.environ.get("ROUNDS", "9"))
# By itself, OpenVINO computes floats in bf16 where the machine has instructions for that.
PRECISION = os.environ.get("OPENVINO_PRECISION", "f32")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stderr.strip()}")
    return done.stdout


def sentences():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(ROOT / "target" / "minilm" / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(64)
    text = "".join(path.read_text() for path in sorted((ROOT / "docs" / "guide").glob("*.md")))
    found = [part for part in re.split(r"[.:]\s", re.sub(r"[`*|\n]+", " ", text)) if 40 < len(part) < 200]
    chosen = found[:: max(1, len(found) // 32)][:32]
    for sentence in chosen:
        ids = np.array([tokenizer.encode(sentence).ids], np.int64)
        yield {"ids": ids, "mask": np.ones_like(ids)}


def samples(name):
    """Inputs for calibration, and others."""
    if name == "minilm":
        all_samples = list(sentences())
        return all_samples[::2], all_samples[1::2]
    inputs = FOLDER / "inputs"
    if not inputs.is_dir():
        run(READ_PAGE, MODELS / "page.png", FOLDER / "page.png", "--models", MODELS, "--inputs", inputs)
    arrays = [{"x": np.load(path)} for path in sorted((inputs / name[-3:]).glob("*.npy"))]
    if name == "ppocr-rec":
        return arrays[::2], arrays[1::2]
    page = arrays[0]["x"]
    turned = [page[:, :, :, ::-1], page[:, :, ::-1], page[:, :, ::-1, ::-1]]
    return [{"x": np.ascontiguousarray(x)} for x in turned], arrays


def quantise_with_runtime(model, output, calibration):
    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = iter(calibration)

        def get_next(self):
            return next(self.left, None)

    ready = output.with_suffix(".ready.onnx")
    converted = onnx.version_converter.convert_version(onnx.load(model), 13) if onnx.load(model).opset_import[0].version < 13 else onnx.load(model)
    onnx.save(converted, ready)
    quantization.shape_inference.quant_pre_process(str(ready), str(ready), skip_symbolic_shape=True)
    quantization.quantize_static(
        str(ready), str(output), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        calibrate_method=METHODS[METHOD], op_types_to_quantize=["Conv", "MatMul", "Gemm"],
    )
    ready.unlink()


def prepare(name, calibration):
    """The model in floats, by our quantiser, and by ONNX Runtime's: each in a folder of its own."""
    for kind in ("float", "ours", "runtime"):
        (FOLDER / kind).mkdir(parents=True, exist_ok=True)
    paths = {kind: FOLDER / kind / f"{name}.onnx" for kind in ("float", "ours", "runtime")}
    paths["float"].write_bytes((MODELS / f"{name}.onnx").read_bytes())
    data = FOLDER / "calibration" / name
    data.mkdir(parents=True, exist_ok=True)
    for place, sample in enumerate(calibration):
        np.savez(data / f"{place:03}.npz", **sample)
    start = time.perf_counter()
    report = run(PROGRAM, "model", "quantise", paths["float"], "--calibrate", data, "--method", METHOD, "--output", paths["ours"])
    print(f"{name}: our quantiser took {time.perf_counter() - start:.1f} s; {report.splitlines()[0]}; {report.splitlines()[-1]}")
    (FOLDER / f"{name}.report.txt").write_text(report)
    onnx.checker.check_model(str(paths["ours"]), full_check=True)
    start = time.perf_counter()
    quantise_with_runtime(paths["float"], paths["runtime"], calibration)
    print(f"{name}: ONNX Runtime's took {time.perf_counter() - start:.1f} s")
    return paths


def peer(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def own_outputs(path, sample):
    # A folder of its own: another model's first output may have another name, and would be left beside this one's.
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        arguments = []
        for key, value in sample.items():
            np.save(folder / f"{key}.npy", value)
            arguments += ["--input", f"{key}={folder / key}.npy"]
        run(PROGRAM, "model", "run", path, "--output", folder, *arguments)
        return np.load(next(folder.glob("0-*.npy")))


def cosine(x, y):
    x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    return float(x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-30))


def read_page(kind, others):
    """Boxes and texts of the page with one model of a kind; the other model is in floats."""
    folder = FOLDER / f"page-{kind}"
    folder.mkdir(exist_ok=True)
    for name in ("ppocr-det", "ppocr-rec"):
        source = FOLDER / (kind if name not in others else "float") / f"{name}.onnx"
        (folder / f"{name}.onnx").write_bytes((source if source.exists() else MODELS / f"{name}.onnx").read_bytes())
    lines = run(READ_PAGE, MODELS / "page.png", folder / "drawn.png", "--models", folder, "--boxes").splitlines()
    split = [line.split(" ", 4) for line in lines]
    return [tuple(map(int, words[:4])) for words in split], [words[4] if len(words) > 4 else "" for words in split]


def overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    return shared / (area(a) + area(b) - shared)


def quality(name, paths, tests):
    exact = [peer(paths["float"]).run(None, sample)[0] for sample in tests]
    for kind in ("ours", "runtime"):
        found = [own_outputs(paths[kind], sample) for sample in tests]
        cosines = [cosine(x, y) for x, y in zip(exact, found)]
        text = f"{name} {kind}: cosine of outputs {min(cosines):.5f} to {max(cosines):.5f}"
        if name == "ppocr-rec":
            best = lambda outputs: [tuple(output.argmax(-1).ravel()) for output in outputs]
            equal = sum(x == y for x, y in zip(best(exact), best(found)))
            text += f"; {equal} of {len(tests)} lines have the same classes in each step"
            (_, texts), (_, reference) = read_page(kind, ["ppocr-det"]), read_page("float", ["ppocr-det"])
            changed = sum(1 - difflib.SequenceMatcher(None, a, b, False).ratio() for a, b in zip(reference[1::2], texts[1::2]))
            same = sum(a == b for a, b in zip(reference[1::2], texts[1::2]))
            text += f"; {same} of {len(texts[1::2])} lines are read alike, {100 * changed / len(texts[1::2]):.2f} % of characters differ"
        if name == "ppocr-det":
            (boxes, _), (reference, _) = read_page(kind, ["ppocr-rec"]), read_page("float", ["ppocr-rec"])
            shared = [max((overlap(a, b) for b in boxes), default=0) for a in reference]
            text += f"; {len(boxes)} boxes, {len(reference)} in floats, which they overlap by {min(shared):.3f} to 1, {statistics.mean(shared):.4f} on average"
        other = peer(paths[kind])
        also = [cosine(x, other.run(None, sample)[0]) for x, sample in zip(exact, tests)]
        print(f"{text}; run by ONNX Runtime {min(also):.5f}", flush=True)


class Own:
    """Our program, a round for each line that it gets."""

    def __init__(self, path, sample, folder):
        arguments = []
        for key, value in sample.items():
            np.save(folder / f"{key}.npy", value)
            arguments += ["--input", f"{key}={folder / key}.npy"]
        command = [PROGRAM, "model", "time", str(path), "--paced", "--threads", str(THREADS), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Called:
    """A peer in this process."""

    def __init__(self, call):
        self.call = call
        call()

    def round(self):
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < 0.1:
            start = time.perf_counter()
            self.call()
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)


def vino(path, sample):
    import openvino

    compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": PRECISION})
    request = compiled.create_infer_request()
    inputs = {compiled.input(key): value for key, value in sample.items()}
    return Called(lambda: request.infer(inputs))


def times(name, paths, tests):
    sample = max(tests, key=lambda sample: next(iter(sample.values())).size)
    folder = FOLDER / "time"
    folder.mkdir(exist_ok=True)
    sessions = {kind: peer(paths[kind]) for kind in ("float", "runtime")}
    contenders = {
        "ours, floats": Own(paths["float"], sample, folder),
        "ours, quantised": Own(paths["ours"], sample, folder),
        "ONNX Runtime, floats": Called(lambda: sessions["float"].run(None, sample)),
        "ONNX Runtime, quantised by it": Called(lambda: sessions["runtime"].run(None, sample)),
    }
    others = [("floats", "float"), ("quantised by ONNX Runtime", "runtime"), ("quantised by us", "ours")]
    for label, kind in others:
        try:
            contenders[f"OpenVINO, {label}"] = vino(paths[kind], sample)
        except ImportError:
            break
        except RuntimeError as error:
            print(f"{name}: OpenVINO refuses the model ({label}): {str(error).strip().splitlines()[-1]}")
    found = {label: [] for label in contenders}
    for _ in range(ROUNDS):
        for label, contender in contenders.items():
            found[label].append(contender.round())
    own = statistics.median(found["ours, quantised"])
    shape = " ".join(str(list(value.shape)) for value in sample.values())
    print(f"{name}, {shape}, {THREADS} threads, {ROUNDS} rounds:")
    for label, rounds in found.items():
        median = statistics.median(rounds)
        print(f"| {name} | {label} | {median:.2f} ms ({min(rounds):.2f}–{max(rounds):.2f}) | {median / own:.2f} |", flush=True)


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("--")] or ["ppocr-rec", "ppocr-det", "minilm"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        calibration, tests = samples(name)
        paths = prepare(name, calibration)
        quality(name, paths, tests)
        if "--times" in sys.argv:
            times(name, paths, tests)


if __name__ == "__main__":
    main()
