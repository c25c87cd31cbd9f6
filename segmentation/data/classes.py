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

# Name, colour and class
_CAMVID = (
    "Animal 408040 9, Archway c00080 1, Bicyclist 0080c0 10, Bridge 008040 1, Building 800000 1, "
    "Car 400080 8, CartLuggagePram 4000c0 9, Child c08040 9, Column_Pole c0c080 2, Fence 404080 7, "
    "LaneMkgsDriv 8000c0 3, LaneMkgsNonDriv c00040 3, Misc_Text 808040 6, MotorcycleScooter c000c0 10, "
    "OtherMoving 804040 8, ParkingBlock 40c080 4, Pedestrian 404000 9, Road 804080 3, "
    "RoadShoulder 8080c0 4, Sidewalk 0000c0 4, SignSymbol c08080 6, Sky 808080 0, "
    "SUVPickupTruck 4080c0 8, TrafficCone 000040 2, TrafficLight 004040 6, Train c04080 8, "
    "Tree 808000 5, Truck_Bus c080c0 8, Tunnel 400040 1, VegetationMisc c0c000 5, Void 000000 255, "
    "Wall 40c000 1"
)
CAMVID_NAMES = frozenset(entry.split()[0] for entry in _CAMVID.split(", "))
"""The 32 names of the original annotation."""
CAMVID_COLORS = tuple(
    ((red, green, blue), int(index))
    for _, color, index in map(str.split, _CAMVID.split(", "))
    for red, green, blue in [bytes.fromhex(color)]
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
