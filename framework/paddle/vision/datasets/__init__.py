"""paddle.vision.datasets: samples (image, label) of the classic sets in their published files, and of folders.

Published files are kept in OAR_HOME/datasets and verified by their hashes. Images are PIL images, or arrays with
`backend="cv2"`; labels are int64 of numpy. They are read by `framework.io.DataLoader` as every data set is.
"""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.vision.datasets.cifar import Cifar10 as Cifar10
from framework.paddle.vision.datasets.cifar import Cifar100 as Cifar100
from framework.paddle.vision.datasets.flowers import Flowers as Flowers
from framework.paddle.vision.datasets.folder import DatasetFolder as DatasetFolder
from framework.paddle.vision.datasets.folder import ImageFolder as ImageFolder
from framework.paddle.vision.datasets.mnist import MNIST as MNIST
from framework.paddle.vision.datasets.mnist import FashionMNIST as FashionMNIST
from framework.paddle.vision.datasets.voc2012 import VOC2012 as VOC2012

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
