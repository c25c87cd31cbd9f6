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
    return with_mkl


def cuda() -> str:
    return cuda_version


def cudnn() -> str:
    return cudnn_version


def xpu() -> str:
    return xpu_version


def xpu_xccl() -> str:
    return xpu_xccl_version


def cinn() -> str:
    return cinn_version
