"""Datasets, transforms, samplers and loaders."""

import numpy as np
import paddle
from exchange import report
from paddle.io import (
    BatchSampler,
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    Subset,
    TensorDataset,
    random_split,
)
from paddle.vision import transforms as T


class Squares(Dataset):
    """Images [H, W, 3], uint8, and a label."""

    def __init__(self, count, transform=None):
        super().__init__()
        rng = np.random.RandomState(0)
        self.images = rng.randint(0, 255, (count, 40, 48, 3)).astype("uint8")
        self.transform = transform

    def __getitem__(self, index):
        image = self.images[index]
        if self.transform is not None:
            image = self.transform(image)
        return image, np.array([index % 3], dtype="int64")

    def __len__(self):
        return len(self.images)


class Numbers(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        for i in range(self.count):
            yield np.array([i, i * i], dtype="float32")


class EveryOther(Sampler):
    def __iter__(self):
        yield from range(0, len(self.data_source), 2)
        yield from range(1, len(self.data_source), 2)

    def __len__(self):
        return len(self.data_source)


class MeanOfRows(T.BaseTransform):
    def _apply_image(self, image):
        return image.astype("float32").mean(axis=0)


transform = T.Compose(
    [
        T.Resize(size=(32, 36)),
        T.CenterCrop(28),
        T.RandomHorizontalFlip(prob=1.0),
        T.ToTensor(),
        T.Normalize(mean=[0.5, 0.5, 0.5], std=[0.25, 0.25, 0.25]),
    ]
)
squares = Squares(21, transform)
image, label = squares[0]
print(image.shape, image.dtype, label)
loader = DataLoader(squares, batch_size=4, shuffle=False, drop_last=True)
assert len(loader) == 5
for images, labels in loader:
    assert images.shape == [4, 3, 28, 28] and labels.shape == [4, 1] and labels.dtype == paddle.int64
    report("batch", images.mean(axis=[0, 2, 3]))
report("batch", images[1, :, ::9, ::9])
for images, labels in DataLoader(Squares(9, MeanOfRows()), batch_size=4, num_workers=2):
    report("workers", images.mean(axis=[1, 2]))
    report("workers", labels)

order = BatchSampler(sampler=EveryOther(squares), batch_size=5, drop_last=False)
for _, labels in DataLoader(squares, batch_sampler=order):
    report("sampled", labels)
for rows in DataLoader(Numbers(7), batch_size=3):
    rows = rows[0] if isinstance(rows, (list, tuple)) else rows
    report("streamed", rows)
for rows in DataLoader(ChainDataset([Numbers(2), Numbers(3)]), batch_size=2):
    report("chained", rows[0] if isinstance(rows, (list, tuple)) else rows)

seen = sorted(int(i) for batch in BatchSampler(squares, shuffle=True, batch_size=4) for i in batch)
assert seen == list(range(21))
left, right = random_split(squares, [15, 6])
assert len(left) == 15 and len(right) == 6 and sorted(left.indices + right.indices) == seen
pairs = TensorDataset([paddle.arange(6, dtype="float32").reshape([3, 2]), paddle.to_tensor([1, 2, 3])])
report("tensors", pairs[1][0])
report(
    "tensors",
    len(ConcatDataset([pairs, pairs])) + len(Subset(pairs, [0, 2])) + len(ComposeDataset([pairs, pairs])),
)


def pad(samples):
    longest = max(len(sample) for sample in samples)
    return np.stack([np.pad(sample, (0, longest - len(sample))) for sample in samples])


words = [np.arange(i + 1, dtype="int64") for i in range(5)]
for batch in DataLoader(words, batch_size=2, collate_fn=pad):
    batch = batch[0] if isinstance(batch, (list, tuple)) else batch
    report("padded", batch)
report("rows", DataLoader(Squares(2, MeanOfRows()), batch_size=2).__iter__().__next__()[0][1, :3])
gray = T.Compose([T.Grayscale(), T.Pad(2), T.Transpose()])
report("gray", gray(squares.images[0])[0, :4, :4])
