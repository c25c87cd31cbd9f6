"""paddle.vision.ops: pure functions of arrays, with channels-last maps, and the layers that hold them.

Where the length of Paddle's result depends on values (nms, matrix_nms, distribute_fpn_proposals, generate_proposals),
it does here too outside of jit; `padded=True` gives fixed shapes that can be compiled. All others have fixed shapes.
"""

from framework.vision.ops.boxes import box_coder as box_coder
from framework.vision.ops.boxes import distribute_fpn_proposals as distribute_fpn_proposals
from framework.vision.ops.boxes import generate_proposals as generate_proposals
from framework.vision.ops.boxes import prior_box as prior_box
from framework.vision.ops.deform import deform_conv2d as deform_conv2d
from framework.vision.ops.files import decode_jpeg as decode_jpeg
from framework.vision.ops.files import read_file as read_file
from framework.vision.ops.layers import ConvNormActivation as ConvNormActivation
from framework.vision.ops.layers import DeformConv2D as DeformConv2D
from framework.vision.ops.layers import PSRoIPool as PSRoIPool
from framework.vision.ops.layers import RoIAlign as RoIAlign
from framework.vision.ops.layers import RoIPool as RoIPool
from framework.vision.ops.roi import psroi_pool as psroi_pool
from framework.vision.ops.roi import roi_align as roi_align
from framework.vision.ops.roi import roi_pool as roi_pool
from framework.vision.ops.suppression import matrix_nms as matrix_nms
from framework.vision.ops.suppression import nms as nms
from framework.vision.ops.yolo import yolo_box as yolo_box
from framework.vision.ops.yolo import yolo_loss as yolo_loss
