"""Where Paddle publishes weights of paddle.vision.models: name -> (address, MD5 sum)."""

from __future__ import annotations

_HAPI = "https://paddle-hapi.bj.bcebos.com/models/"
_IMAGENET = "https://paddle-imagenet-models-name.bj.bcebos.com/dygraph/"
_FILES = {
    "alexnet": (_IMAGENET, "AlexNet_pretrained", "7f0f9f737132e02732d75a1459d98a43"),
    "densenet121": (_IMAGENET, "DenseNet121_pretrained", "db1b239ed80a905290fd8b01d3af08e4"),
    "densenet161": (_IMAGENET, "DenseNet161_pretrained", "62158869cb315098bd25ddbfd308a853"),
    "densenet169": (_IMAGENET, "DenseNet169_pretrained", "82cc7c635c3f19098c748850efb2d796"),
    "densenet201": (_IMAGENET, "DenseNet201_pretrained", "16ca29565a7712329cf9e36e02caaf58"),
    "densenet264": (_IMAGENET, "DenseNet264_pretrained", "3270ce516b85370bba88cfdd9f60bff4"),
    "googlenet": (_IMAGENET, "GoogLeNet_pretrained", "80c06f038e905c53ab32c40eca6e26ae"),
    "inception_v3": (_HAPI, "inception_v3", "649a4547c3243e8b59c656f41fe330b8"),
    "mobilenetv1_1.0": (_HAPI, "mobilenetv1_1.0", "3033ab1975b1670bef51545feb65fc45"),
    "mobilenetv2_1.0": (_HAPI, "mobilenet_v2_x1.0", "0340af0a901346c8d46f4529882fb63d"),
    "mobilenet_v3_small_x1.0": (_HAPI, "mobilenet_v3_small_x1.0", "34fe0e7c1f8b00b2b056ad6788d0590c"),
    "mobilenet_v3_large_x1.0": (_HAPI, "mobilenet_v3_large_x1.0", "118db5792b4e183b925d8e8e334db3df"),
    "resnet18": (_HAPI, "resnet18", "cf548f46534aa3560945be4b95cd11c4"),
    "resnet34": (_HAPI, "resnet34", "8d2275cf8706028345f78ac0e1d31969"),
    "resnet50": (_HAPI, "resnet50", "ca6f485ee1ab0492d38f323885b0ad80"),
    "resnet101": (_HAPI, "resnet101", "02f35f034ca3858e1e54d4036443c92d"),
    "resnet152": (_HAPI, "resnet152", "7ad16a2f1e7333859ff986138630fd7a"),
    "resnext50_32x4d": (_HAPI, "resnext50_32x4d", "dc47483169be7d6f018fcbb7baf8775d"),
    "resnext50_64x4d": (_HAPI, "resnext50_64x4d", "063d4b483e12b06388529450ad7576db"),
    "resnext101_32x4d": (_HAPI, "resnext101_32x4d", "967b090039f9de2c8d06fe994fb9095f"),
    "resnext101_64x4d": (_HAPI, "resnext101_64x4d", "98e04e7ca616a066699230d769d03008"),
    "resnext152_32x4d": (_HAPI, "resnext152_32x4d", "18ff0beee21f2efc99c4b31786107121"),
    "resnext152_64x4d": (_HAPI, "resnext152_64x4d", "77c4af00ca42c405fa7f841841959379"),
    "wide_resnet50_2": (_HAPI, "wide_resnet50_2", "0282f804d73debdab289bd9fea3fa6dc"),
    "wide_resnet101_2": (_HAPI, "wide_resnet101_2", "d4360a2d23657f059216f5d5a1a9ac93"),
    "shufflenet_v2_x0_25": (_HAPI, "shufflenet_v2_x0_25", "1e509b4c140eeb096bb16e214796d03b"),
    "shufflenet_v2_x0_33": (_HAPI, "shufflenet_v2_x0_33", "3d7b3ab0eaa5c0927ff1026d31b729bd"),
    "shufflenet_v2_x0_5": (_HAPI, "shufflenet_v2_x0_5", "5e5cee182a7793c4e4c73949b1a71bd4"),
    "shufflenet_v2_x1_0": (_HAPI, "shufflenet_v2_x1_0", "122d42478b9e81eb49f8a9ede327b1a4"),
    "shufflenet_v2_x1_5": (_HAPI, "shufflenet_v2_x1_5", "faced5827380d73531d0ee027c67826d"),
    "shufflenet_v2_x2_0": (_HAPI, "shufflenet_v2_x2_0", "cd3dddcd8305e7bcd8ad14d1c69a5784"),
    "shufflenet_v2_swish": (_HAPI, "shufflenet_v2_swish", "adde0aa3b023e5b0c94a68be1c394b84"),
    "squeezenet1_0": (_IMAGENET, "SqueezeNet1_0_pretrained", "30b95af60a2178f03cf9b66cd77e1db1"),
    "squeezenet1_1": (_IMAGENET, "SqueezeNet1_1_pretrained", "a11250d3a1f91d7131fd095ebbf09eee"),
    "vgg16": (_HAPI, "vgg16", "89bbffc0f87d260be9b8cdc169c991c4"),
    "vgg19": (_HAPI, "vgg19", "23b18bb13d8894f60f54e642be79a0dd"),
}
WEIGHTS = {name: (f"{base}{file}.pdparams", md5) for name, (base, file, md5) in _FILES.items()}
