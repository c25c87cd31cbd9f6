"""paddle.distributed.fleet.utils: recompute, and files of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NoReturn

from framework.paddle.autograd import recompute as recompute
from framework.paddle.distributed.env import refuse


class LocalFS:
    """Files and folders of this machine."""

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """(folders, files) of a folder."""
        if not self.is_exist(fs_path):
            return [], []
        inside = sorted(Path(fs_path).iterdir())
        return [p.name for p in inside if p.is_dir()], [p.name for p in inside if not p.is_dir()]

    def list_dirs(self, fs_path: str) -> list[str]:
        return self.ls_dir(fs_path)[0]

    def mkdirs(self, fs_path: str) -> None:
        Path(fs_path).mkdir(parents=True, exist_ok=True)

    def is_file(self, fs_path: str) -> bool:
        return Path(fs_path).is_file()

    def is_dir(self, fs_path: str) -> bool:
        return Path(fs_path).is_dir()

    def is_exist(self, fs_path: str) -> bool:
        return Path(fs_path).exists()

    def touch(self, fs_path: str, exist_ok: bool = True) -> None:
        Path(fs_path).touch(exist_ok=exist_ok)

    def delete(self, fs_path: str) -> None:
        """Remove a file or a folder with what is in it; nothing where there is none."""
        if self.is_dir(fs_path):
            shutil.rmtree(fs_path)
        elif self.is_file(fs_path):
            Path(fs_path).unlink()

    def rename(self, fs_src_path: str, fs_dst_path: str) -> None:
        Path(fs_src_path).rename(fs_dst_path)

    def mv(self, src_path: str, dst_path: str, overwrite: bool = False, test_exists: bool = False) -> None:
        """Move; an existing target is an error unless `overwrite`."""
        if not self.is_exist(src_path):
            raise FileNotFoundError(src_path)
        if self.is_exist(dst_path):
            if not overwrite:
                raise FileExistsError(dst_path)
            self.delete(dst_path)
        self.rename(src_path, dst_path)

    def need_upload_download(self) -> bool:
        return False


def HDFSClient(
    hadoop_home: str, configs: object, time_out: int = 300000, sleep_inter: int = 1000
) -> NoReturn:
    """Files of Hadoop: not here. Raises: ForeignNameError."""
    refuse("fleet.utils.HDFSClient", "mount the file system, and use its paths")


def DistributedInfer(main_program: object = None, startup_program: object = None) -> NoReturn:
    """Inference with parameter servers: not here. Raises: ForeignNameError."""
    refuse("fleet.utils.DistributedInfer", "paddle.jit.save and the engines of framework.inference")
