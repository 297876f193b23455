#!/usr/bin/env python3
"""Compares the quantised model smart-turn with ONNX Runtime on recorded speech: the probability that a speaker has finished.

    cargo build --release -p tilewright-cli && scripts/fetch-models.sh
    python3 scripts/compare_speech.py FOLDER

FOLDER holds recordings at 16 kHz (`.wav`, 16 bits, one channel), for instance those of Debian's package pocketsphinx-testdata. Each one is cut at
several places; the model sees the last eight seconds before the cut, as the log-mel features of fbank-whisper80. ONNX Runtime runs with all
optimisations and with none, which tells how far rounding alone moves a result. Needs numpy and onnxruntime. TILEWRIGHT names another program.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import wave

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "target" / "models"
PROGRAM = os.environ.get("TILEWRIGHT", str(ROOT / "target" / "release" / "tilewright"))
RATE, SECONDS, FRAMES = 16000, 8, 800


def session(path, optimised=True):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def recordings(folder):
    for path in sorted(pathlib.Path(folder).rglob("*.wav")):
        with wave.open(str(path)) as file:
            if (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2):
                samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
                yield path.name, samples.astype(np.float32) / 32768


def features(front, samples):
    """Log-mel features of the last seconds, with silence before them and samples of mean 0 and variance 1, as the model was trained."""
    window = np.zeros(RATE * SECONDS, np.float32)
    last = samples[-len(window):]
    window[len(window) - len(last):] = last
    window = (window - window.mean()) / np.sqrt(window.var() + 1e-7)
    found = front.run(None, {"waveforms": window[None].astype(np.float32), "waveforms_lens": np.array([len(window)], np.int64)})
    return np.ascontiguousarray(found[0][:, :, :FRAMES])


def own(path, value, folder):
    np.save(f"{folder}/x.npy", value)
    command = [PROGRAM, "model", "run", str(path), "--threads", "2", "--input", f"input_features={folder}/x.npy", "--output", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return np.load(next(pathlib.Path(folder).glob("0-*.npy")))


def main():
    path = MODELS / "smart-turn.onnx"
    front, optimised, plain = session(MODELS / "fbank-whisper80.onnx"), session(path), session(path, False)
    furthest = [0.0, 0.0, 0.0]
    print("| recording | seconds | ours | ONNX Runtime | without optimisations |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, samples in recordings(sys.argv[1]):
            for share in (0.4, 0.7, 1.0):
                heard = samples[:int(len(samples) * share)]
                value = features(front, heard)
                a = float(own(path, value, folder).ravel()[0])
                b, c = (float(peer.run(None, {"input_features": value})[0].ravel()[0]) for peer in (optimised, plain))
                furthest = [max(x) for x in zip(furthest, (abs(a - b), abs(a - c), abs(b - c)))]
                print(f"| {name} | {len(heard) / RATE:.1f} | {a:.5f} | {b:.5f} | {c:.5f} |", flush=True)
    print("largest differences: ours and ONNX Runtime {:.5f}, ours and it without optimisations {:.5f}, it and itself {:.5f}".format(*furthest))


if __name__ == "__main__":
    main()
