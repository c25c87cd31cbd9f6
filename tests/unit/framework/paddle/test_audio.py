"""paddle.audio: features against formulas and values of Paddle 2.6.2, sound files, and data sets."""

from __future__ import annotations

import hashlib
import io
import math
import struct
import wave
import zipfile
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ConfigError, FormatError
from framework.paddle.audio import functional as F


def tone(seconds: float = 0.25, rate: int = 16000) -> np.ndarray:
    time = np.arange(int(seconds * rate)) / rate
    return np.stack([np.sin(2 * math.pi * 440 * time), 0.3 * np.sin(2 * math.pi * 2000 * time)]).astype(
        np.float32
    )


@pytest.mark.parametrize("htk", [False, True])
def test_the_mel_scale_goes_both_ways(htk: bool) -> None:
    hertz = np.array([0, 60, 999, 1000, 1001, 8000], np.float32)
    mels = F.hz_to_mel(paddle.to_tensor(hertz), htk)
    np.testing.assert_allclose(F.mel_to_hz(mels, htk).numpy(), hertz, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(mels.numpy(), [F.hz_to_mel(float(one), htk) for one in hertz], rtol=1e-5)
    assert F.hz_to_mel(4000.0, htk) == pytest.approx(2146.0645 if htk else 35.163757, rel=1e-6)  # Paddle's


def test_the_mel_scale_has_a_gradient() -> None:
    hertz = paddle.to_tensor([500.0, 4000.0], stop_gradient=False)
    F.hz_to_mel(hertz).sum().backward()
    assert hertz.grad is not None
    np.testing.assert_allclose(hertz.grad.numpy(), [3 / 200, 27 / math.log(6.4) / 4000], rtol=1e-5)


def test_filter_banks_are_triangles() -> None:
    bank = F.compute_fbank_matrix(16000, 512, 40, norm=None).numpy()  # type: ignore[arg-type]
    assert bank.shape == (40, 257) and bank.min() == 0 and bank.max() <= 1
    centres = F.mel_frequencies(42, 0.0, 8000.0).numpy()[1:-1]
    assert np.abs(F.fft_frequencies(16000, 512).numpy()[bank.argmax(1)] - centres)[10:].max() <= 8000 / 256
    slaney = F.compute_fbank_matrix(16000, 512, 40).numpy()
    assert slaney.sum(1)[20:] * (8000 / 256) == pytest.approx(1, rel=0.02)  # the area of each over Hz
    for norm in (1, 2):
        ones = np.linalg.norm(F.compute_fbank_matrix(16000, 512, 20, norm=float(norm)).numpy(), norm, 1)
        np.testing.assert_allclose(ones, 1, rtol=1e-5)


def test_the_cosine_transform_is_orthogonal() -> None:
    matrix = F.create_dct(40, 40, dtype="float64").numpy()
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(40), atol=1e-12)
    np.testing.assert_allclose(F.create_dct(3, 8, None).numpy()[:, 0], 2)


def test_decibels() -> None:
    power = paddle.to_tensor([0.0, 1e-4, 1.0, 100.0])
    assert F.power_to_db(power, top_db=None).numpy().tolist() == [-100, -40, 0, 20]
    assert F.power_to_db(power, ref_value=100.0, top_db=30.0).numpy().tolist() == [-30, -30, -20, 0]
    for wrong in ({"amin": 0.0}, {"ref_value": -1.0}, {"top_db": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            F.power_to_db(power, **wrong)


def test_windows() -> None:
    half = F.get_window("hann", 4).numpy()
    np.testing.assert_allclose(half, [0, 0.5, 1, 0.5])
    np.testing.assert_allclose(
        F.get_window("hann", 5, fftbins=False).numpy(), [0, 0.5, 1, 0.5, 0], atol=1e-15
    )
    bell = F.get_window(("gaussian", 2), 7, False, "float32").numpy()
    np.testing.assert_allclose(bell, np.exp(-(np.arange(-3, 4) ** 2) / 8), rtol=1e-6)
    raised = F.get_window(("general_hamming", 0.6), 6).numpy()
    np.testing.assert_allclose(raised, [0.2, 0.4, 0.8, 1.0, 0.8, 0.4])
    cosines = F.get_window(("general_cosine", [0.5, 0.3]), 6).numpy()
    np.testing.assert_allclose(cosines, [0.2, 0.35, 0.65, 0.8, 0.65, 0.35])
    for wrong in ("boxes", "gaussian", "general_hamming", 7):
        with pytest.raises(ValueError, match="get_window"):
            F.get_window(wrong, 8)  # type: ignore[arg-type]


def test_spectrograms_find_the_tones() -> None:
    waves = paddle.to_tensor(tone())
    spectrum = paddle.audio.features.Spectrogram(512, 160, power=2.0)(waves).numpy()
    assert spectrum.shape == (2, 257, 26)
    assert spectrum[:, :, 10].argmax(1).tolist() == [round(440 * 512 / 16000), 2000 * 512 // 16000]
    layer = paddle.audio.features.MFCC(16000, 13, 512, 160, top_db=80.0)
    values = layer(waves)
    log_mel = layer._log_melspectrogram(waves).numpy()
    expected = np.einsum("mk,nmt->nkt", F.create_dct(13, 64).numpy(), log_mel)
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-4, atol=1e-3)
    assert log_mel.max() - log_mel.min() <= 80.001
    names = {name.rpartition(".")[2] for name in layer.state_dict()}
    assert names == {"fft_window", "fbank_matrix", "dct_matrix"}
    with pytest.raises(ValueError, match="n_mfcc"):
        paddle.audio.features.MFCC(n_mfcc=80)
    assert paddle.audio.features.LogMelSpectrogram()(paddle.zeros([1, 4000])).numpy().max() == -100


def test_sound_files_come_back(tmp_path: Path) -> None:
    path, samples = tmp_path / "a.wav", tone()
    samples[0, 0] = 1.5  # louder than the file can say
    paddle.audio.save(path, paddle.to_tensor(samples), 16000)
    told = paddle.audio.info(path)
    assert (told.sample_rate, told.num_samples, told.num_channels, told.bits_per_sample) == (
        16000,
        4000,
        2,
        16,
    )
    read, rate = paddle.audio.load(path)
    assert rate == 16000 and read.shape == [2, 4000]
    np.testing.assert_allclose(read.numpy(), samples.clip(-1, 1), atol=2**-15)
    middle, _ = paddle.audio.load(path, 100, 50, normalize=False, channels_first=False)
    np.testing.assert_array_equal(middle.numpy(), (read.numpy().T * 2**15)[100:150])
    with path.open("rb") as file:
        assert paddle.audio.load(file)[0].shape == [2, 4000]
    with pytest.raises(ValueError, match="2D"):
        paddle.audio.save(path, paddle.zeros([4]), 8000)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_width_of_samples_is_read(tmp_path: Path, width: int) -> None:
    values = np.array([-1, -0.5, 0, 0.5])
    units = (values * 2.0 ** (8 * width - 1)).astype(np.int64)
    if width == 1:
        units += 128
    data = b"".join(int(one).to_bytes(width, "little", signed=width > 1) for one in units)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, width, 8000, 0, "NONE", "not compressed"))
        file.writeframes(data)
    np.testing.assert_allclose(paddle.audio.load(tmp_path / "a.wav")[0].numpy()[0], values)
    assert paddle.audio.info(tmp_path / "a.wav").bits_per_sample == 8 * width


@pytest.mark.parametrize("data", [b"", b"RIFF", b"OggS" + bytes(100), b"RIFF\x04\0\0\0WAVE"])
def test_what_is_no_wav_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(data)
    with pytest.raises(FormatError, match="no whole WAV"):
        paddle.audio.load(tmp_path / "a.wav")


def riff(tag: int, width: int, data: bytes, channels: int = 1, size: int | None = None) -> bytes:
    """A WAV file with chunks of odd sizes before and after its samples; of an extensible header where tag is 0xFFFE."""
    layout = struct.pack("<HHIIHH", tag, channels, 8000, 8000 * width * channels, width * channels, 8 * width)
    if tag == 0xFFFE:
        layout += struct.pack("<HHIH", 22, 8 * width, 0, 3) + bytes.fromhex("000000001000800000aa00389b71")
    chunks = b"".join(
        name
        + struct.pack("<I", len(body) if size is None or name != b"data" else size)
        + body
        + bytes(len(body) % 2)
        for name, body in ((b"bext", b"abc"), (b"fmt ", layout), (b"data", data), (b"LIST", b"INFO."))
        if size is None or name != b"LIST"
    )
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


@pytest.mark.parametrize(
    ("tag", "width", "data", "encoding", "values"),
    [
        (3, 4, np.array([0.25, -1.5], "<f4").tobytes(), "PCM_F", [0.25, -1.5]),
        (3, 8, np.array([0.25, -1.5], "<f8").tobytes(), "PCM_F", [0.25, -1.5]),
        (0xFFFE, 4, np.array([0.25, -1.5], "<f4").tobytes(), "PCM_F", [0.25, -1.5]),
        (6, 1, bytes([0xD5, 0x55, 0x2A, 0xAA]), "ALAW", [2**-12, -(2**-12), -0.984375, 0.984375]),
        (7, 1, bytes([0xFF, 0x00, 0x80, 0xFE]), "ULAW", [0.0, -32124 / 2**15, 32124 / 2**15, 8 / 2**15]),
    ],
)
def test_floats_and_laws(
    tmp_path: Path, tag: int, width: int, data: bytes, encoding: str, values: list[float]
) -> None:
    """As soundfile reads them."""
    path = tmp_path / "a.wav"
    path.write_bytes(riff(tag, width, data))
    loaded, rate = paddle.audio.load(path)
    np.testing.assert_array_equal(loaded.numpy(), np.array([values], np.float32))
    found = paddle.audio.info(path)
    assert (rate, found.encoding, found.num_samples) == (8000, encoding, len(values))


def test_a_part_of_a_file_that_a_pipe_has_written() -> None:
    """The size of its samples is not known when the header is written."""
    samples = np.arange(12, dtype="<i2").reshape(6, 2)
    file = io.BytesIO(riff(1, 2, samples.tobytes(), channels=2, size=0xFFFFFFFF))
    loaded, _ = paddle.audio.load(file, frame_offset=4, num_frames=9, normalize=False)
    np.testing.assert_array_equal(loaded.numpy(), samples[4:].T)


def test_a_compressed_wav_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(riff(0x11, 1, bytes(8)))
    with pytest.raises(FormatError, match=r"received: the encoding 0x11\n.*more by soundfile"):
        paddle.audio.load(tmp_path / "a.wav")


@pytest.mark.parametrize("lost", [1, 3, 4])
def test_a_file_that_was_cut_has_its_whole_samples(tmp_path: Path, lost: int) -> None:
    """As soundfile reads it."""
    samples = np.arange(12, dtype="<i2").reshape(6, 2)
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 8000, 6, "NONE", ""))
        file.writeframes(samples.tobytes())
    path.write_bytes(path.read_bytes()[:-lost])
    loaded, _ = paddle.audio.backends.load(path, normalize=False, channels_first=False)
    np.testing.assert_array_equal(loaded.numpy(), samples[:5])


def test_backends() -> None:
    assert paddle.audio.backends.get_current_backend() == "wave_backend"
    assert "wave_backend" in paddle.audio.backends.list_available_backends()
    paddle.audio.backends.set_backend("wave_backend")
    with pytest.raises(ConfigError, match="sox"):
        paddle.audio.backends.set_backend("sox")


def test_data_sets_are_read_from_their_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    paddle.audio.save(tmp_path / "one.wav", paddle.to_tensor(tone()[:1]), 16000)
    rows = [
        "filename,fold,target,category",
        *(f"{i}.wav,{i % 5 + 1},{i % 2},{'dog' if i % 2 else 'cat'}" for i in range(10)),
    ]
    files = {f"ESC-50-master/audio/{i}.wav": (tmp_path / "one.wav").read_bytes() for i in range(10)}
    sounds = made(tmp_path, "esc.zip", {"ESC-50-master/meta/esc50.csv": "\n".join(rows).encode(), **files})
    train = paddle.audio.datasets.ESC50(archive=sounds)
    assert len(train) == 8 and len(paddle.audio.datasets.ESC50("dev", 2, archive=sounds)) == 2
    assert (
        train.label_list == ["cat", "dog"]
        and train[0][0].shape == [4000]
        and train.labels == [1, 0, 1, 0, 0, 1, 0, 1]
    )
    features = paddle.audio.datasets.ESC50("dev", feat_type="mfcc", archive=sounds, n_mfcc=13)
    assert features[0][0].shape[0] == 13 and features.sample_rate == 16000
    names = ("OAF_back_sad", "YAF_back_ps", "OAF_dog_Fear")
    words = {
        f"TESS_Toronto_emotional_speech_set/x/{name}.wav": (tmp_path / "one.wav").read_bytes()
        for name in names
    }
    emotions = paddle.audio.datasets.TESS(n_folds=3, split=3, archive=made(tmp_path, "tess.zip", words))
    assert emotions.labels == [6, 2]
    with pytest.raises(RuntimeError, match="feat_type"):
        paddle.audio.datasets.ESC50(feat_type="notes", archive=sounds)


def made(folder: Path, name: str, files: dict[str, bytes]) -> dict[str, str]:
    """An archive where a download would have put it."""
    path = folder / "home" / "datasets" / ("esc50" if "esc" in name else "tess") / name
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in files.items():
            archive.writestr(inner, data)
    return {"url": f"https://example.org/{name}", "md5": hashlib.md5(path.read_bytes()).hexdigest()}
