"""`paddle.audio.datasets`: ESC-50 and TESS, sounds with their classes.

Archives are those that Paddle publishes; they are kept, and unpacked, in OAR_HOME/datasets.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.audio import features
from framework.paddle.audio.backends import load
from framework.paddle.io.dataset import Dataset
from framework.paddle.nn.layer import Layer
from framework.paddle.utils.download import unpacked
from framework.paddle.vision.datasets.files import RemoteFile, find_file

__all__ = ["ESC50", "TESS"]

_FEATURES: Mapping[str, Callable[..., Layer] | None] = {
    "raw": None,
    "melspectrogram": features.MelSpectrogram,
    "mfcc": features.MFCC,
    "logmelspectrogram": features.LogMelSpectrogram,
    "spectrogram": features.Spectrogram,
}


class AudioClassificationDataset(Dataset):
    """Sound files of one channel with a class each, as (waveform [T] or features, label).

    Args:
        files, labels: One label a file.
        feat_type: "raw", "spectrogram", "melspectrogram", "logmelspectrogram" or "mfcc".
        kwargs: Arguments of the layer of `paddle.audio.features`; the rate is the file's.
    """

    def __init__(
        self,
        files: list[str],
        labels: list[int],
        feat_type: str = "raw",
        sample_rate: int | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__()
        if feat_type not in _FEATURES:
            raise RuntimeError(f"Unknown feat_type: {feat_type}, it must be one in {list(_FEATURES)}")
        self.files, self.labels = files, labels
        self.feat_type, self.sample_rate, self.feat_config = feat_type, sample_rate, kwargs

    def __getitem__(self, idx: int) -> tuple[Tensor, int]:
        waveform, self.sample_rate = load(self.files[idx])
        kind = _FEATURES[self.feat_type]
        if kind is None:
            return waveform.squeeze(0), self.labels[idx]
        rate = {} if self.feat_type == "spectrogram" else {"sr": self.sample_rate}
        return kind(**rate, **self.feat_config)(waveform).squeeze(0), self.labels[idx]

    def __len__(self) -> int:
        return len(self.files)


class ESC50(AudioClassificationDataset):
    """2,000 recordings of 5 s of 50 kinds of sounds (Piczak, 2015).

    Args:
        mode: "train": all but one fold; else that fold.
        split: The fold, 1 to 5.
        feat_type, kwargs: See AudioClassificationDataset.
        archive: {"url": …, "md5": …} of another copy.

    Raises: HubError: the archive is not here and cannot be had. FormatError: it is damaged.
    """

    archive: Mapping[str, str] = {
        "url": "https://paddleaudio.bj.bcebos.com/datasets/ESC-50-master.zip",
        "md5": "7771e4b9d86d0945acce719c7a59305a",
    }
    label_list: Sequence[str] = (
        *("Dog", "Rooster", "Pig", "Cow", "Frog", "Cat", "Hen", "Insects (flying)", "Sheep", "Crow"),
        *("Rain", "Sea waves", "Crackling fire", "Crickets", "Chirping birds", "Water drops", "Wind"),
        *("Pouring water", "Toilet flush", "Thunderstorm", "Crying baby", "Sneezing", "Clapping"),
        *("Breathing", "Coughing", "Footsteps", "Laughing", "Brushing teeth", "Snoring"),
        *("Drinking, sipping", "Door knock", "Mouse click", "Keyboard typing", "Door, wood creaks"),
        *("Can opening", "Washing machine", "Vacuum cleaner", "Clock alarm", "Clock tick"),
        *("Glass breaking", "Helicopter", "Chainsaw", "Siren", "Car horn", "Engine", "Train"),
        *("Church bells", "Airplane", "Fireworks", "Hand saw"),
    )

    def __init__(
        self,
        mode: str = "train",
        split: int = 1,
        feat_type: str = "raw",
        archive: Mapping[str, str] | None = None,
        sample_rate: int | None = None,
        **kwargs: object,
    ) -> None:
        if split not in range(1, 6):
            raise ValueError(
                f"ESC50: The selected split should be integer, and 1 <= split <= 5, but got {split}"
            )
        root = _folder("ESC50", archive or self.archive)
        with (root / "meta" / "esc50.csv").open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if (int(row["fold"]) == split) != (mode == "train")]
        self.label_list = _names(root / "meta" / "esc50.csv")
        files = [str(root / "audio" / row["filename"]) for row in rows]
        super().__init__(files, [int(row["target"]) for row in rows], feat_type, sample_rate, **kwargs)


class TESS(AudioClassificationDataset):
    """2,800 words spoken by two actresses with one of seven emotions (Pichora-Fuller and Dupuis, 2020).

    Args:
        mode: "train": all but one fold; else that fold.
        n_folds, split: File number i, in the order of their paths, is of fold i % n_folds + 1.
        feat_type, archive, kwargs: See ESC50.

    Raises: HubError: the archive is not here and cannot be had. FormatError: it is damaged.
    """

    archive: Mapping[str, str] = {
        "url": "https://bj.bcebos.com/paddleaudio/datasets/TESS_Toronto_emotional_speech_set.zip",
        "md5": "1465311b24d1de704c4c63e4ccc470c7",
    }
    label_list = ("angry", "disgust", "fear", "happy", "neutral", "ps", "sad")  # ps: pleasant surprise

    def __init__(
        self,
        mode: str = "train",
        n_folds: int = 5,
        split: int = 1,
        feat_type: str = "raw",
        archive: Mapping[str, str] | None = None,
        sample_rate: int | None = None,
        **kwargs: object,
    ) -> None:
        if n_folds < 1 or split not in range(1, n_folds + 1):
            raise ValueError(
                f"TESS: The selected split should be integer and 1 <= split <= {n_folds}, but got {split}"
            )
        root = _folder("TESS", archive or self.archive)
        paths = sorted(root.rglob("*.wav"))
        fold = np.arange(len(paths)) % n_folds + 1
        selection = [path for path, number in zip(paths, fold) if (number == split) != (mode == "train")]
        labels = [self.label_list.index(path.stem.split("_")[-1].lower()) for path in selection]
        super().__init__([str(path) for path in selection], labels, feat_type, sample_rate, **kwargs)


def _names(table: Path) -> list[str]:
    """The category of each target, in their order."""
    with table.open(encoding="utf-8", newline="") as file:
        names = {int(row["target"]): row["category"] for row in csv.DictReader(file)}
    return [names[target] for target in sorted(names)]


def _folder(name: str, archive: Mapping[str, str]) -> Path:
    """The one folder of the archive."""
    path = find_file(None, RemoteFile(name.lower(), archive["url"], archive["md5"]), True, f"{name}.archive")
    return unpacked(path, path.parent)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
