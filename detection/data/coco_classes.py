"""The 80 classes of COCO's detection task, with the numbers that its files and results use (1 to 90, with gaps)."""

from __future__ import annotations

COCO_CLASSES = tuple(
    """person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop sign,
    parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella,
    handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard,
    surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
    broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv, laptop,
    mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors,
    teddy bear, hair drier, toothbrush""".replace("\n    ", " ").split(", ")
)
"""Names by class index."""

# Numbers of classes that COCO dropped before it was published
_LEFT_OUT = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
COCO_CATEGORY_IDS = tuple(number for number in range(1, 91) if number not in _LEFT_OUT)
"""COCO's own numbers by class index."""
