# Configuration of Fovea's lit tests. FOVEA_ROUNDTRIP=1 in the environment turns
# every fovea-opt run into a round-trip test as well.
import os
import platform
import shutil
import subprocess

import lit.formats

config.name = "Fovea"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt", "lit.cfg.py"]
config.test_source_root = os.path.dirname(__file__)

path = [
    os.path.join(config.fovea_binary_dir, "bin"),
    config.llvm_tools_dir,
    config.environment.get("PATH", ""),
]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
# Not the user's.
config.environment["FOVEA_CACHE_DIR"] = os.path.join(
    config.fovea_binary_dir, "test", "cache"
)
config.environment["FOVEA_LIBRARY"] = os.path.join(
    config.fovea_binary_dir, "lib", "libfovea.so"
)
# MLIR's own globals are never freed. LLVM's allocators, inlined into our code,
# poison their free memory, which the packaged libraries would never unpoison.
# Running out of memory is our own error.
config.environment["ASAN_OPTIONS"] = (
    "detect_leaks=0:allow_user_poisoning=0:allocator_may_return_null=1"
)

# Where pip finds packages, and how it reaches them, is the machine's affair.
for name in os.environ:
    if name.startswith(("PIP_", "SSL_")) or name in (
            "REQUESTS_CA_BUNDLE", "https_proxy", "HTTPS_PROXY", "no_proxy",
            "NO_PROXY", "HOME"):
        config.environment[name] = os.environ[name]

if os.environ.get("FOVEA_ROUNDTRIP") == "1":
    config.substitutions.append(
        (r"\bfovea-opt\b", "fovea-opt --verify-roundtrip")
    )
for name, folder in {
    "%examples": os.path.join(config.fovea_source_dir, "examples"),
    "%docs": os.path.join(config.fovea_source_dir, "docs"),
    "%source": config.fovea_source_dir,
    "%build": config.fovea_binary_dir,
}.items():
    config.substitutions.append((name, folder))
# What wheels get; a build with sanitizers makes no library for them.
library = ("lib" if config.fovea_sanitize == "ON" else "standalone")
config.substitutions.append(("%wheel-library", os.path.join(
    config.fovea_binary_dir, library, "libfovea.so")))
python = shutil.which("python3") or "python3"
config.substitutions.append(("%python", python))

# Features are probed, never assumed.
#
# The tools look for a ptxas by themselves; this is the one that they find first
# where scripts/test has made the environment.
ptxas = os.environ.get("FOVEA_PTXAS") or shutil.which("ptxas")
if not ptxas:
    code = "from importlib.metadata import files\n" \
           "print(*[file.locate() for file in files('nvidia-cuda-nvcc')" \
           " if file.name == 'ptxas'])"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True)
    ptxas = found.stdout.strip()
if ptxas:
    config.available_features.add("ptxas")
    config.environment["FOVEA_PTXAS"] = ptxas
if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
    config.available_features.add("numpy")
if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
    config.available_features.add("torch")
# A CUDA driver without a GPU, for FOVEA_CUDA_DRIVER; built with the unit tests.
fake_cuda = os.path.join(config.fovea_binary_dir, "lib", "libfovea-fake-cuda.so")
if os.path.exists(fake_cuda):
    config.available_features.add("fake-cuda")
config.substitutions.append(("%fake-cuda", fake_cuda))
flags = set()
if os.path.exists("/proc/cpuinfo"):
    with open("/proc/cpuinfo") as info:
        flags = set(info.read().split())
if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
    config.available_features.add("avx512")
if "avx512_bf16" in flags:
    config.available_features.add("avx512-bf16")
# AMX tiles on a processor without them, to be preloaded.
fake_amx = os.path.join(config.fovea_binary_dir, "lib", "libfovea-fake-amx.so")
if os.path.exists(fake_amx) and config.fovea_sanitize != "ON":
    config.available_features.add("fake-amx")
config.substitutions.append(("%fake-amx", fake_amx))
if config.fovea_sanitize == "ON":
    # What Python must preload to load our library.
    name = "libclang_rt.asan-{}.so".format(platform.machine())
    config.environment["FOVEA_PRELOAD"] = subprocess.run(
        ["clang-22", "-print-file-name=" + name],
        capture_output=True, text=True, check=True,
    ).stdout.strip()
else:
    config.available_features.add("no-sanitizer")
