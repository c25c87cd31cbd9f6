// A model.tflite of `oar export --format tflite` on Android.
// build.gradle: implementation("com.google.ai.edge.litert:litert:1.4.0"); model.tflite and labels.txt in assets,
// androidResources { noCompress += "tflite" }.
package io.oar.mobile

import android.graphics.Bitmap
import java.nio.ByteBuffer
import org.tensorflow.lite.Interpreter

/**
 * Runs one `.tflite`. An interpreter runs one call at a time: use a model in one thread, or one a thread.
 *
 * @param model the file, memory-mapped or in a direct buffer
 * @param labels of labels.txt, a label a line
 */
class LiteRtModel(model: ByteBuffer, private val labels: List<String>, threads: Int = 4) : AutoCloseable {
    private val interpreter = Interpreter(model, Interpreter.Options().setNumThreads(threads))

    /** (width, height) of the image that the file takes. */
    val inputSize: Pair<Int, Int> =
        interpreter.getInputTensorFromSignature(IMAGE, SIGNATURE).shape().let { Pair(it[2], it[1]) }

    /** The best classes of an image, of a classifier. */
    fun classify(bitmap: Bitmap, top: Int = 5): List<ClassScore> {
        val scores = arrayOf(FloatArray(sizeOf("scores", 1)))
        run(input(bitmap), mapOf("scores" to scores))
        return bestClasses(scores[0], labels, top)
    }

    /** The objects of an image, of a detector. */
    fun detect(bitmap: Bitmap, threshold: Float = 0.5f): List<DetectedBox> {
        val count = sizeOf("scores", 1)
        val boxes = arrayOf(Array(count) { FloatArray(4) })
        val scores = arrayOf(FloatArray(count))
        val classes = arrayOf(IntArray(count))
        val image = input(bitmap)
        run(image, mapOf("boxes" to boxes, "scores" to scores, "labels" to classes))
        return boxesOf(boxes[0], scores[0], classes[0], labels, image, threshold)
    }

    /** The class of each pixel of the input, rows of columns, of a segmentation model whose output is `labels`. */
    fun segment(bitmap: Bitmap): Array<IntArray> {
        val pixels = arrayOf(Array(sizeOf("labels", 1)) { IntArray(sizeOf("labels", 2)) })
        run(input(bitmap), mapOf("labels" to pixels))
        return pixels[0]
    }

    override fun close() = interpreter.close()

    private fun input(bitmap: Bitmap) = ImageInput(bitmap, inputSize.first, inputSize.second)

    private fun sizeOf(output: String, axis: Int): Int =
        interpreter.getOutputTensorFromSignature(output, SIGNATURE).shape()[axis]

    private fun run(image: ImageInput, outputs: Map<String, Any>) =
        interpreter.runSignature(mapOf<String, Any>(IMAGE to image.bytes), outputs, SIGNATURE)

    private companion object {
        const val IMAGE = "image"
        const val SIGNATURE = "serving_default"
    }
}
