"""Executes kernels of real compilers in the simulator and compares with numpy; see `run`."""
import ctypes
import pathlib
import sys
import tempfile

import case
import cuda_cases
import library_cases
import nvidia

HERE = pathlib.Path(__file__).parent


def nvrtc(source, arch):
    """Compiles CUDA C to PTX by NVIDIA's run-time compiler."""
    root = pathlib.Path(list(nvidia.__path__)[0])
    library = ctypes.CDLL(str(root / "cuda_nvrtc/lib/libnvrtc.so.12"))
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    includes = [f"-I{root / part / 'include'}" for part in ("cuda_runtime", "cuda_nvcc", "cuda_cccl")]
    options = [f"--gpu-architecture={arch}", "-std=c++17", "-default-device", "--device-int128", *includes]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), array)
    what = "ProgramLog" if failed else "PTX"
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    if failed:
        raise SystemExit(text.value.decode())
    return text.value.decode()


def main():
    simulator, *wanted = sys.argv[1:]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="foreign-ptx-"))
    source = (HERE / "kernels.cu").read_text()
    failures = 0
    total = 0

    def check(label, one, file):
        nonlocal failures, total
        if wanted and not any(word in label for word in wanted):
            return
        total += 1
        complaints, report = case.run(simulator, one, file)
        failures += bool(complaints)
        count = f"{report['instructions']} instructions" if report else "not executed"
        print(f"{'wrong' if complaints else 'right'}  {label}: {count}", *complaints[:8], sep="\n    ", flush=True)

    for arch in ("compute_80", "compute_90"):
        file = folder / f"{arch}.ptx"
        file.write_text(nvrtc(source, arch))
        cuda_cases.random.bit_generator.state = cuda_cases.np.random.default_rng(7).bit_generator.state
        for one in cuda_cases.cases():
            check(f"nvrtc {arch} {one.entry}", one, file)
        file = folder / f"library_{arch}.ptx"
        file.write_text(nvrtc((HERE / "library.cu").read_text(), arch))
        for one in library_cases.cases():
            check(f"nvrtc {arch} {one.entry}", one, file)
    try:
        import triton_cases
    except ImportError:
        print("Triton is not installed: its kernels are left out")
    else:
        for number, one in enumerate(triton_cases.cases()):
            file = folder / f"triton{number}.ptx"
            file.write_text(one.ptx)
            check(f"triton {one.entry}", one, file)
    print(f"{total} kernels, {failures} wrong; their texts are in {folder}")
    sys.exit(failures > 0)


main()
