"""Tracking: objects keep their numbers from frame to frame, and how well that works is measured."""

from detection.tracking.bytetrack import ByteTrack as ByteTrack
from detection.tracking.bytetrack import ByteTrackOptions as ByteTrackOptions
from detection.tracking.hota import evaluate_hota as evaluate_hota
from detection.tracking.hota import total_hota as total_hota
from detection.tracking.mot import evaluate as evaluate
from detection.tracking.mot import read_mot as read_mot
from detection.tracking.mot import write_mot as write_mot
