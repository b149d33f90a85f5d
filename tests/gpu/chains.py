#!/usr/bin/env python3
"""What it would take to compile the chains of element-wise operations at run time, beside the kernels that interpret them: the different
chains of a training step of each example (their launches are noted on the fake plug-ins, tests/cuda_kernels/fake_plugin.c), each
written out as code and compiled by NVRTC. Needs CUDA's toolkit, but no GPU. Prints docs/measurements/gpu_chains.md.

    tests/gpu/chains.py BUILD [EXAMPLE...]"""

import ctypes
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
OPTIONS = ["--gpu-architecture=sm_90", "--std=c++17", "-default-device", "-ftz=true", "-prec-div=true", "-prec-sqrt=true", "--ptxas-options=-v", f"-I{ROOT}",
           f"-I{CUDA}/include"]
# NVRTC has no headers of the system; device.cuh's launches are for the host.
HEADERS = {"stdint.h": "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;"
                       "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;"
                       "typedef unsigned long long uint64_t; typedef unsigned long uintptr_t;",
           "stddef.h": "", "stdbool.h": "", "math.h": "#define INFINITY __int_as_float(0x7f800000)\n",
           "cuda_runtime.h": ""}
UNARY = -128  # in place of the second operand, see fake_plugin.c


def launches(build, example, rewrites):
    """A line of a launch: its kind, elements at once, steps, and for each operand whether it has a column and a row of its own."""
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(f"{root}/lib")
        os.mkdir(f"{root}/bin")
        for folder in (f"{build}/lib", f"{build}/fake_gpu/lib"):
            for name in os.listdir(folder):
                if name.startswith("libtfc_"):
                    if os.path.lexists(f"{root}/lib/{name}"):
                        os.remove(f"{root}/lib/{name}")
                    os.symlink(f"{folder}/{name}", f"{root}/lib/{name}")
        os.symlink(f"{build}/share", f"{root}/share")
        subprocess.run(["cp", f"{build}/bin/tfc-run", f"{root}/bin/"], check=True)
        noted = f"{root}/chains"
        subprocess.run([f"{root}/bin/tfc-run", "-q", "--graph", f"{ROOT}/examples/{example}.pb", "--devices", "gpu:0", "--rewrites", rewrites,
                        "--cuda-graphs", "off", "--steps", "1", "--warmup", "0", "--db", f"{root}/t.db"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, LD_LIBRARY_PATH=f"{root}/lib", FAKE_IDLE="1", FAKE_CHAINS=noted))
        with open(noted) as f:
            return f.read().splitlines()


def code(line):
    """The chain as code: every step is known, and its values have names."""
    _, wide, steps, operands = line.split(" ")
    v, operands, values = int(wide), operands.split(","), {}
    body = []

    def value(at):
        if at < 0:
            return values[at]
        return f"load<V>(c.operands[{at}], row, column)" if operands[at][0] == "1" else f"once<V>(c.operands[{at}], row, column)"
    for k, step in enumerate(steps.split(";")):
        expression, a, b, out = map(int, step.split(","))
        first = value(a)
        second = value(b) if b != UNARY else first
        body.append(f"    const pack<f32, V> s{k} = compute<V>({expression}, {first}, {second});")
        if out < 0:
            values[out] = f"s{k}"
        else:
            body.append(f"    *(pack<f32, V> *)address(c.operands[{out}], row, column) = s{k};")
    return f"""#include "runtime/device/cuda/kernels/chain.cuh"
namespace tfc {{
template <int V> __device__ pack<f32, V> load(const tfc_cuda_chain_operand &o, int64_t row, int64_t column) {{
  return *(const pack<f32, V> *)address(o, row, column);
}}
template <int V> __device__ pack<f32, V> once(const tfc_cuda_chain_operand &o, int64_t row, int64_t column) {{
  pack<f32, V> x;
  for (int i = 0; i < V; i++) x.v[i] = *address(o, row, column);
  return x;
}}
extern "C" __global__ void chain(tfc_cuda_chain c) {{
  const int V = {v};
  const int64_t groups = c.columns / V;
  for (int64_t g = first(); g < c.rows * groups; g += stride()) {{
    int64_t column, row = divide(g, groups, &column);
    column *= V;
""" + "\n".join(body) + "\n  }\n}\n}\n"


class Nvrtc:
    def __init__(self):
        found = next(p for p in (f"{CUDA}/lib64/libnvrtc.so", f"{CUDA}/lib/libnvrtc.so") if os.path.exists(p))
        self.library = ctypes.CDLL(found)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def compile(self, source):
        """Milliseconds, the size of the cubin, and what ptxas says."""
        program, n = ctypes.c_void_p(), len(HEADERS)
        names = (ctypes.c_char_p * n)(*[name.encode() for name in HEADERS])
        texts = (ctypes.c_char_p * n)(*[text.encode() for text in HEADERS.values()])
        options = (ctypes.c_char_p * len(OPTIONS))(*[o.encode() for o in OPTIONS])
        begin = time.process_time()
        assert not self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"chain.cu", n, texts, names)
        failed = self.library.nvrtcCompileProgram(program, len(OPTIONS), options)
        took = 1e3 * (time.process_time() - begin)
        size = ctypes.c_size_t()
        self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.library.nvrtcGetProgramLog(program, log)
        if failed:
            sys.exit(f"NVRTC: {log.value.decode()[:3000]}\n{source}")
        self.library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return took, size.value, log.value.decode()


def resources(log):
    """Pairs of registers and bytes of local memory, by ptxas."""
    frames = [int(x) for x in re.findall(r"(\d+) bytes stack frame", log)]
    return list(zip([int(x) for x in re.findall(r"Used (\d+) registers", log)], frames))


def interpreters():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([f"{CUDA}/bin/nvcc", "-cubin", "-arch=sm_90", "-O3", "-std=c++17", "--extended-lambda", "-ftz=true", f"-I{ROOT}",
                               "-Xptxas", "-v", "-o", f"{folder}/chain.cubin", f"{ROOT}/runtime/device/cuda/kernels/chain.cu"],
                              capture_output=True, text=True, check=True)
    return dict(zip(re.findall(r"Compiling entry function '\w*chain_kernelILi(\d)", done.stderr), resources(done.stderr)))


def main():
    build, examples = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["mlp", "rnnlm", "rnnlm_large", "nmt", "transformer", "alexnet", "resnet50"]
    if not os.path.exists(f"{build}/fake_gpu/lib/libtfc_cuda.so") or not os.path.exists(f"{CUDA}/bin/nvcc"):
        print("SKIPPED: no fake plug-ins in this build, or no CUDA toolkit", file=sys.stderr)
        return 0
    nvrtc, kernels = Nvrtc(), interpreters()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    print("# Chains as code of their own\n")
    print("A chain of element-wise operations is one kernel, which reads the chain's steps while it runs. Here each chain of a")
    print("training step (`--rewrites all`; those with sums of rows are counted only) is written out as code and compiled by NVRTC")
    print(f"{nvrtc.version} for sm_90, on a machine without a GPU: nothing was run. Milliseconds are processor time on a machine that was")
    print("busy; registers and local memory of a thread are what ptxas says. What a chain would gain is not known without a GPU:")
    print("`scripts/gpu_check bench` prints what the interpreting kernels take of a step, which no compiled chain can save more than.\n")
    print(f"Made by `tests/gpu/chains.py build/release` at `{commit}`\n")
    print("| example | launches of chains | different | with sums of rows | steps, median and most | to compile all, s | one, median ms |"
          " cubin, median KB | registers, most | local memory, most |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    known, every = {}, []
    for example in examples:
        lines = launches(build, example, "all")
        chains = [line for line in lines if line.startswith("chain ")]
        different = sorted(set(chains))
        for line in different:
            if line not in known:
                known[line] = nvrtc.compile(code(line))
        made = [known[line] for line in different]
        every += made
        steps = [len(line.split(" ")[2].split(";")) for line in different]
        used = [r for m in made for r in resources(m[2])]
        cells = [example, str(len(lines)), str(len(different)), f"{len(lines) - len(chains)} ({len(set(lines)) - len(different)} different)"]
        if made:
            cells += [f"{statistics.median(steps):.0f}, {max(steps)}", f"{sum(m[0] for m in made) / 1e3:.1f}",
                      f"{statistics.median(m[0] for m in made):.0f}", f"{statistics.median(m[1] for m in made) / 1e3:.1f}",
                      str(max(r[0] for r in used)), f"{max(r[1] for r in used)} B"]
        else:
            cells += ["-"] * 6
        print("| " + " | ".join(cells) + " |")
    print(f"\nThe kernels that interpret: {kernels['4'][0]} registers and {kernels['4'][1]} bytes of local memory for four elements at once,"
          f" {kernels['1'][0]} and {kernels['1'][1]}\nfor one. {len(known)} different chains in all examples,"
          f" {sum(m[0] for m in known.values()) / 1e3:.1f} s of one processor for all of them.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
