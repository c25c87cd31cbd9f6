"""paddle.vision.datasets: the core's. Published files are kept in OAR_HOME/datasets and verified by their hashes."""

from __future__ import annotations

from framework.vision.datasets import MNIST as MNIST
from framework.vision.datasets import VOC2012 as VOC2012
from framework.vision.datasets import Cifar10 as Cifar10
from framework.vision.datasets import Cifar100 as Cifar100
from framework.vision.datasets import DatasetFolder as DatasetFolder
from framework.vision.datasets import FashionMNIST as FashionMNIST
from framework.vision.datasets import Flowers as Flowers
from framework.vision.datasets import ImageFolder as ImageFolder
