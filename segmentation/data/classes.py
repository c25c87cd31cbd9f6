"""Names of the classes of well-known data sets, and what their masks hold."""

from __future__ import annotations


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


# Source: the development kit of 2012.
PASCAL_VOC = _names(
    "background, aeroplane, bicycle, bird, boat, bottle, bus, car, cat, chair, cow, diningtable, dog, horse, "
    "motorbike, person, pottedplant, sheep, sofa, train, tvmonitor"
)

# Source: cityscapesScripts, helpers/labels.py: the names of the 19 train ids.
CITYSCAPES = _names(
    "road, sidewalk, building, wall, fence, pole, traffic light, traffic sign, vegetation, terrain, sky, person, "
    "rider, car, truck, bus, train, motorcycle, bicycle"
)

_NO = 255
CITYSCAPES_IDS = (
    *(_NO, _NO, _NO, _NO, _NO, _NO, _NO, 0, 1, _NO, _NO, 2, 3, 4, _NO, _NO, _NO),
    *(5, _NO, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, _NO, _NO, 16, 17, 18),
)
"""By official id, 0 to 33: the class. Source: as above, trainId."""

CAMVID = _names("sky, building, pole, road, pavement, tree, sign, fence, car, pedestrian, bicyclist")

CAMVID_COLORS = (
    ((64, 128, 64), 9),  # Animal
    ((192, 0, 128), 1),  # Archway
    ((0, 128, 192), 10),  # Bicyclist
    ((0, 128, 64), 1),  # Bridge
    ((128, 0, 0), 1),  # Building
    ((64, 0, 128), 8),  # Car
    ((64, 0, 192), 9),  # CartLuggagePram
    ((192, 128, 64), 9),  # Child
    ((192, 192, 128), 2),  # Column_Pole
    ((64, 64, 128), 7),  # Fence
    ((128, 0, 192), 3),  # LaneMkgsDriv
    ((192, 0, 64), 3),  # LaneMkgsNonDriv
    ((128, 128, 64), 6),  # Misc_Text
    ((192, 0, 192), 10),  # MotorcycleScooter
    ((128, 64, 64), 8),  # OtherMoving
    ((64, 192, 128), 4),  # ParkingBlock
    ((64, 64, 0), 9),  # Pedestrian
    ((128, 64, 128), 3),  # Road
    ((128, 128, 192), 4),  # RoadShoulder
    ((0, 0, 192), 4),  # Sidewalk
    ((192, 128, 128), 6),  # SignSymbol
    ((128, 128, 128), 0),  # Sky
    ((64, 128, 192), 8),  # SUVPickupTruck
    ((0, 0, 64), 2),  # TrafficCone
    ((0, 64, 64), 6),  # TrafficLight
    ((192, 64, 128), 8),  # Train
    ((128, 128, 0), 5),  # Tree
    ((192, 128, 192), 8),  # Truck_Bus
    ((64, 0, 64), 1),  # Tunnel
    ((192, 192, 0), 5),  # VegetationMisc
    ((0, 0, 0), _NO),  # Void
    ((64, 192, 0), 1),  # Wall
)
"""The 32 colours of the original annotation and their classes. Source: CamVid's label_colors.txt; taken together as in
SegNet's experiments."""

# Source: https://github.com/CSAILVision/sceneparsing, objectInfo150.txt: the first name of each.
ADE20K = _names(
    "wall, building, sky, floor, tree, ceiling, road, bed, windowpane, grass, cabinet, sidewalk, person, "
    "earth, door, table, mountain, plant, curtain, chair, car, water, painting, sofa, shelf, house, sea, "
    "mirror, rug, field, armchair, seat, fence, desk, rock, wardrobe, lamp, bathtub, railing, cushion, base, "
    "box, column, signboard, chest of drawers, counter, sand, sink, skyscraper, fireplace, refrigerator, "
    "grandstand, path, stairs, runway, case, pool table, pillow, screen door, stairway, river, bridge, "
    "bookcase, blind, coffee table, toilet, flower, book, hill, bench, countertop, stove, palm, kitchen "
    "island, computer, swivel chair, boat, bar, arcade machine, hovel, bus, towel, light, truck, tower, "
    "chandelier, awning, streetlight, booth, television, airplane, dirt track, apparel, pole, land, "
    "bannister, escalator, ottoman, bottle, buffet, poster, stage, van, ship, fountain, conveyer belt, "
    "canopy, washer, plaything, swimming pool, stool, barrel, basket, waterfall, tent, bag, minibike, cradle, "
    "oven, ball, food, step, tank, trade name, microwave, pot, animal, bicycle, lake, dishwasher, screen, "
    "blanket, sculpture, hood, sconce, vase, traffic light, tray, ashcan, fan, pier, crt screen, plate, "
    "monitor, bulletin board, shower, radiator, glass, clock, flag"
)
