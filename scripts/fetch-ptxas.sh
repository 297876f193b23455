#!/bin/sh
# Fetches NVIDIA's PTX assembler from PyPI into target/ptxas, for the tests that assemble PTX. Nothing of it may be
# distributed: its licence allows internal use only, so that it is never vendored.
#
# usage: scripts/fetch-ptxas.sh [directory]
# Prints the path of the assembler. With REQUIRE_PTXAS=1 the tests fail where it is missing.
set -eu
version=13.0.88
root=$(cd "$(dirname "$0")/.." && pwd)
into=${1:-$root/target/ptxas}/$version
if [ ! -x "$into/ptxas" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$work" "nvidia-cuda-nvcc==$version" >&2
    python3 - "$work" <<'PYTHON'
import glob, sys, zipfile

work = sys.argv[1]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel:
    name = next(name for name in wheel.namelist() if name.endswith("/bin/ptxas"))
    with open(work + "/ptxas", "wb") as out:
        out.write(wheel.read(name))
PYTHON
    mkdir -p "$into"
    chmod 755 "$work/ptxas"
    mv "$work/ptxas" "$into/ptxas"
fi
echo "$into/ptxas"
