#!/usr/bin/env python3
"""Stores what ONNX Runtime computes for the fetched models, for tests to compare with.

For each model, target/models/expected/MODEL/test_data_set_N gets input_K.pb and output_K.pb, as ONNX's own tests have
them. Pictures are made of scikit-image's page.png; sound is a vowel-like sum of harmonics between pauses. Needs onnx,
onnxruntime, numpy and Pillow; run it after fetch-models.sh.
"""

import pathlib
import sys

import numpy as np
import onnxruntime
from onnx import numpy_helper
from PIL import Image

MODELS = pathlib.Path(__file__).resolve().parent.parent / "target" / "models"


def page(height, width, rows=None, grey=False):
    """The page, or some of its rows, in a given size, with values from 0 to 255: [channels, height, width]."""
    picture = Image.open(MODELS / "page.png").convert("L" if grey else "RGB")
    if rows:
        picture = picture.crop((0, rows[0], picture.width, rows[1]))
    values = np.asarray(picture.resize((width, height), Image.BILINEAR), dtype=np.float32)
    return values[None] if grey else values.transpose(2, 0, 1)


def centred(values):
    return ((values / 255 - 0.5) / 0.5)[None].astype(np.float32)


def normalised(values):
    mean = np.array([0.485, 0.456, 0.406], dtype=np.float32)[:, None, None]
    deviation = np.array([0.229, 0.224, 0.225], dtype=np.float32)[:, None, None]
    return ((values / 255 - mean) / deviation)[None].astype(np.float32)


def sound(samples, rate=16000):
    """A vowel with changing pitch, silent every second half of a second."""
    time = np.arange(samples) / rate
    phase = 2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 2 * time)) / rate
    tone = sum(np.sin(k * phase) / k for k in range(1, 12))
    return (0.2 * tone * ((time * 2).astype(int) % 2 == 0)).astype(np.float32)


def chunks(session):
    """Three chunks of sound one after the other, with the state that the one before leaves."""
    state, signal = np.zeros((2, 1, 128), np.float32), sound(64 + 3 * 512)
    for start in range(0, 3 * 512, 512):
        inputs = {"input": signal[None, start:start + 576], "state": state, "sr": np.array(16000, np.int64)}
        yield inputs
        state = session.run(None, inputs)[1]


def once(name, value):
    return lambda _: iter([{name: value}])


def waveform(_):
    yield {"waveforms": sound(8000)[None], "waveforms_lens": np.array([8000], np.int64)}


INPUTS = {
    "ppocr-rec": once("x", centred(page(48, 320, rows=(8, 30)))),
    "ppocr-cls": once("x", centred(page(48, 192, rows=(8, 30)))),
    "ppocr-det": once("x", normalised(page(96, 192))),
    "orientation": once("x", normalised(page(224, 224))),
    "slanet": once("x", normalised(page(96, 96))),
    "dddd-common": once("input1", centred(page(64, 160, rows=(8, 30), grey=True))),
    "dddd-old": once("input1", centred(page(64, 160, rows=(8, 30), grey=True))),
    "dddd-det": once("images", page(416, 416)[None]),
    "silero": chunks,
    "silero-ifless": chunks,
    "fbank-nemo128": waveform,
    "fbank-nemo128-conv": waveform,
    "fbank-kaldi": waveform,
    "fbank-whisper80": waveform,
    "smart-turn": once("input_features", np.sin(np.arange(80 * 800, dtype=np.float32).reshape(1, 80, 800) / 7)),
}


def store(folder, kind, place, value):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kind}_{place}.pb").write_bytes(numpy_helper.from_array(np.array(value, order="C")).SerializeToString())


def main():
    onnxruntime.set_default_logger_severity(3)
    for name, make in INPUTS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        path = MODELS / f"{name}.onnx"
        if not path.exists():
            sys.exit(f"{path} is missing: run scripts/fetch-models.sh first")
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        order = [value.name for value in session.get_inputs()]
        for number, inputs in enumerate(make(session)):
            folder = MODELS / "expected" / name / f"test_data_set_{number}"
            for place, key in enumerate(order):
                store(folder, "input", place, inputs[key])
            for place, value in enumerate(session.run(None, inputs)):
                store(folder, "output", place, value)
        print(name, "stored")


if __name__ == "__main__":
    main()
