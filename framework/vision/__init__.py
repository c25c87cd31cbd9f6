"""Images, videos and documents as NumPy arrays: reading, geometry, drawing, writing. The only place that imports cv2.

Import the modules by name: `from framework.vision import image, boxes, draw`. Images are `[H, W, 3]` uint8 RGB;
coordinates are continuous xy, pixel i covers [i, i+1) (see `warp`).
"""
