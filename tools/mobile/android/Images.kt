// Images as the exported programs take them: [1, height, width, 3] uint8 RGB, 0 to 255, normalised in the program.
package io.oar.mobile

import android.graphics.Bitmap
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** The pixels of an image scaled to `width` x `height`, and how to bring coordinates back. */
class ImageInput(bitmap: Bitmap, val width: Int, val height: Int) {
    /** Of the image for one of the input. */
    val scaleX = bitmap.width.toFloat() / width
    val scaleY = bitmap.height.toFloat() / height

    /** NHWC bytes in a direct buffer, which LiteRT and ONNX Runtime read without a copy. */
    val bytes: ByteBuffer = ByteBuffer.allocateDirect(height * width * 3).order(ByteOrder.nativeOrder())

    init {
        val scaled = Bitmap.createScaledBitmap(bitmap, width, height, true)
        val pixels = IntArray(width * height)
        scaled.getPixels(pixels, 0, width, 0, 0, width, height)
        for (pixel in pixels) {
            bytes.put((pixel shr 16).toByte()) // red; ARGB is in one Int
            bytes.put((pixel shr 8).toByte())
            bytes.put(pixel.toByte())
        }
        bytes.rewind()
    }
}

/** One object: pixels of the bitmap, right and bottom exclusive. */
data class DetectedBox(
    val label: String,
    val score: Float,
    val left: Float,
    val top: Float,
    val right: Float,
    val bottom: Float,
)

/** A class with its probability. */
data class ClassScore(val label: String, val score: Float)

/** The rows of a detector's outputs with a score from `threshold` on; a score of 0 is padding. */
internal fun boxesOf(
    boxes: Array<FloatArray>,
    scores: FloatArray,
    classes: IntArray,
    labels: List<String>,
    image: ImageInput,
    threshold: Float,
): List<DetectedBox> =
    scores.indices.filter { scores[it] >= threshold && scores[it] > 0f }.map {
        val (left, top, right, bottom) = boxes[it]
        DetectedBox(
            labels.getOrElse(classes[it]) { number -> number.toString() },
            scores[it],
            left * image.scaleX,
            top * image.scaleY,
            right * image.scaleX,
            bottom * image.scaleY,
        )
    }

/** The best `top` classes of probabilities. */
internal fun bestClasses(scores: FloatArray, labels: List<String>, top: Int): List<ClassScore> =
    scores.indices.sortedByDescending { scores[it] }.take(top).map {
        ClassScore(labels.getOrElse(it) { number -> number.toString() }, scores[it])
    }
