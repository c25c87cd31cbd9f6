"""paddle.vision.models: classification networks, channels first, with the names of Paddle's weights.

The zoo has the same networks for training and export. These are layers on Tensors, and no faces of the zoo's, because
programs reach into them: they exchange sublayers (`model.fc = nn.Linear(...)`), call some alone, look for
`nn.BatchNorm2D` among them, hook them, as `paddle.summary` and `paddle.flops` do, and derive classes from them. What is
the same stands once: sizes are the zoo's tables (`parts.zoo_table`), weights are rows of the hub's index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.vision.models.alexnet import AlexNet as AlexNet
from framework.paddle.vision.models.alexnet import alexnet as alexnet
from framework.paddle.vision.models.densenet import DenseNet as DenseNet
from framework.paddle.vision.models.densenet import densenet121 as densenet121
from framework.paddle.vision.models.densenet import densenet161 as densenet161
from framework.paddle.vision.models.densenet import densenet169 as densenet169
from framework.paddle.vision.models.densenet import densenet201 as densenet201
from framework.paddle.vision.models.densenet import densenet264 as densenet264
from framework.paddle.vision.models.googlenet import GoogLeNet as GoogLeNet
from framework.paddle.vision.models.googlenet import googlenet as googlenet
from framework.paddle.vision.models.inceptionv3 import InceptionV3 as InceptionV3
from framework.paddle.vision.models.inceptionv3 import inception_v3 as inception_v3
from framework.paddle.vision.models.lenet import LeNet as LeNet
from framework.paddle.vision.models.mobilenetv1 import MobileNetV1 as MobileNetV1
from framework.paddle.vision.models.mobilenetv1 import mobilenet_v1 as mobilenet_v1
from framework.paddle.vision.models.mobilenetv2 import MobileNetV2 as MobileNetV2
from framework.paddle.vision.models.mobilenetv2 import mobilenet_v2 as mobilenet_v2
from framework.paddle.vision.models.mobilenetv3 import MobileNetV3Large as MobileNetV3Large
from framework.paddle.vision.models.mobilenetv3 import MobileNetV3Small as MobileNetV3Small
from framework.paddle.vision.models.mobilenetv3 import mobilenet_v3_large as mobilenet_v3_large
from framework.paddle.vision.models.mobilenetv3 import mobilenet_v3_small as mobilenet_v3_small
from framework.paddle.vision.models.resnet import ResNet as ResNet
from framework.paddle.vision.models.resnet import resnet18 as resnet18
from framework.paddle.vision.models.resnet import resnet34 as resnet34
from framework.paddle.vision.models.resnet import resnet50 as resnet50
from framework.paddle.vision.models.resnet import resnet101 as resnet101
from framework.paddle.vision.models.resnet import resnet152 as resnet152
from framework.paddle.vision.models.resnet import resnext50_32x4d as resnext50_32x4d
from framework.paddle.vision.models.resnet import resnext50_64x4d as resnext50_64x4d
from framework.paddle.vision.models.resnet import resnext101_32x4d as resnext101_32x4d
from framework.paddle.vision.models.resnet import resnext101_64x4d as resnext101_64x4d
from framework.paddle.vision.models.resnet import resnext152_32x4d as resnext152_32x4d
from framework.paddle.vision.models.resnet import resnext152_64x4d as resnext152_64x4d
from framework.paddle.vision.models.resnet import wide_resnet50_2 as wide_resnet50_2
from framework.paddle.vision.models.resnet import wide_resnet101_2 as wide_resnet101_2
from framework.paddle.vision.models.shufflenetv2 import ShuffleNetV2 as ShuffleNetV2
from framework.paddle.vision.models.shufflenetv2 import shufflenet_v2_swish as shufflenet_v2_swish
from framework.paddle.vision.models.shufflenetv2 import shufflenet_v2_x0_5 as shufflenet_v2_x0_5
from framework.paddle.vision.models.shufflenetv2 import shufflenet_v2_x0_25 as shufflenet_v2_x0_25
from framework.paddle.vision.models.shufflenetv2 import shufflenet_v2_x0_33 as shufflenet_v2_x0_33
from framework.paddle.vision.models.shufflenetv2 import shufflenet_v2_x1_0 as shufflenet_v2_x1_0
from framework.paddle.vision.models.shufflenetv2 import shufflenet_v2_x1_5 as shufflenet_v2_x1_5
from framework.paddle.vision.models.shufflenetv2 import shufflenet_v2_x2_0 as shufflenet_v2_x2_0
from framework.paddle.vision.models.squeezenet import SqueezeNet as SqueezeNet
from framework.paddle.vision.models.squeezenet import squeezenet1_0 as squeezenet1_0
from framework.paddle.vision.models.squeezenet import squeezenet1_1 as squeezenet1_1
from framework.paddle.vision.models.vgg import VGG as VGG
from framework.paddle.vision.models.vgg import vgg11 as vgg11
from framework.paddle.vision.models.vgg import vgg13 as vgg13
from framework.paddle.vision.models.vgg import vgg16 as vgg16
from framework.paddle.vision.models.vgg import vgg19 as vgg19

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
