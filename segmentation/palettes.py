"""The colours in which the classes of well-known data sets are drawn: [K, 3] uint8 RGB."""

from __future__ import annotations

import numpy as np

from framework.core.errors import ConfigError


def voc(count: int) -> np.ndarray:
    """The colours of Pascal VOC, up to 256: the bits of the index dealt to red, green and blue, from the highest down.

    Source: VOCdevkit, VOClabelcolormap.m.

    Raises:
        ConfigError: `count` is out of range.
    """
    if not 0 <= count <= 256:
        raise ConfigError(
            "there are not so many colours", where="palettes.voc", received=count, allowed="0 to 256"
        )
    index = np.arange(count)
    channels = [sum(((index >> (3 * i + c)) & 1) << (7 - i) for i in range(3)) for c in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8).reshape(-1, 3)


def of_classes(count: int) -> np.ndarray:
    """Colours for any number of classes: those of VOC, over again from the 257th class on."""
    return voc(256)[np.arange(count) % 256]


def _colours(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, 3)


PASCAL_VOC = voc(21)

# The 19 classes that are evaluated. Source: cityscapesScripts, helpers/labels.py.
CITYSCAPES = _colours(
    "804080 f423e8 464646 66669c be9999 999999 faaa1e dcdc00 6b8e23 98fb98 4682b4 dc143c ff0000 00008e "
    "000046 003c64 005064 0000e6 770b20"
)

# Sky, building, pole, road, pavement, tree, sign, fence, car, pedestrian, bicyclist. Source: SegNet-Tutorial.
CAMVID = _colours("808080 800000 c0c080 804080 3c28de 808000 c08080 404080 400080 404000 0080c0")

# Source: the ADE20K benchmark's color150.
ADE20K = _colours(
    "787878 b47878 06e6e6 503232 04c803 787850 8c8c8c cc05ff e6e6e6 04fa07 e005ff ebff07 96053d 787846 "
    "08ff33 ff0652 8fff8c ccff04 ff3307 cc4603 0066c8 3de6fa ff0633 0b66ff ff0747 ff09e0 0907e6 dcdcdc "
    "ff095c 7009ff 08ffd6 07ffe0 ffb806 0aff47 ff290a 07ffff e0ff08 6608ff ff3d06 ffc207 ff7a08 00ff14 "
    "ff0829 ff0599 0633ff eb0cff a09614 00a3ff 8c8c8c fa0a0f 14ff00 1fff00 ff1f00 ffe000 99ff00 0000ff "
    "ff4700 00ebff 00adff 1f00ff 0bc8c8 ff5200 00fff5 003dff 00ff70 00ff85 ff0000 ffa300 ff6600 c2ff00 "
    "008fff 33ff00 0052ff 00ff29 00ffad 0a00ff adff00 00ff99 ff5c00 ff00ff ff00f5 ff0066 ffad00 ff0014 "
    "ffb8b8 001fff 00ff3d 0047ff ff00cc 00ffc2 00ff52 000aff 0070ff 3300ff 00c2ff 007aff 00ffa3 ff9900 "
    "00ff0a ff7000 8fff00 5200ff a3ff00 ffeb00 08b8aa 8500ff 00ff5c b800ff ff001f 00b8ff 00d6ff ff0070 "
    "5cff00 00e0ff 70e0ff 46b8a0 a300ff 9900ff 47ff00 ff00a3 ffcc00 ff008f 00ffeb 85ff00 ff00eb f500ff "
    "ff007a fff500 0abed4 d6ff00 00ccff 1400ff ffff00 0099ff 0029ff 00ffcc 2900ff 29ff00 ad00ff 00f5ff "
    "4700ff 7a00ff 00ffb8 005cff b8ff00 0085ff ffd600 19c2c2 66ff00 5c00ff"
)
