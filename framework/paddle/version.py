"""paddle.version: the release of Paddle whose programs run here. CUDA and the rest are "False": XLA computes."""

from __future__ import annotations

full_version = "2.6.2"
major, minor, patch = full_version.split(".")
rc = "0"
cuda_version = cudnn_version = xpu_version = xpu_xccl_version = cinn_version = "False"
istaged = True
commit = ""
with_mkl = "OFF"


def show() -> None:
    """Print all of it."""
    print("full_version:", full_version)
    print("major:", major)
    print("minor:", minor)
    print("patch:", patch)
    print("rc:", rc)
    for name in ("cuda", "cudnn", "xpu", "xpu_xccl", "cinn"):
        print(f"{name}:", "False")


def mkl() -> str:
    """Whether oneMKL is used: "OFF"."""
    return with_mkl


def cuda() -> str:
    """The version of CUDA: "False", XLA brings its own."""
    return cuda_version


def cudnn() -> str:
    """The version of cuDNN: "False", XLA brings its own."""
    return cudnn_version


def xpu() -> str:
    """The version of XPU support: "False"."""
    return xpu_version


def xpu_xccl() -> str:
    """The version of XCCL: "False"."""
    return xpu_xccl_version


def cinn() -> str:
    """The version of CINN: "False", XLA compiles here."""
    return cinn_version
