"""Regions as annotation tools write them: COCO, YOLO, PASCAL VOC, Label Studio, CVAT, CSV."""
