"""Files of annotated objects as other tools write them, in one form: YOLO, CVAT, COCO, VOC."""
