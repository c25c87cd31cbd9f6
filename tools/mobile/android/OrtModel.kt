// A model.ort (or model.onnx) of `oar export --format ort` on Android.
// build.gradle: implementation("com.microsoft.onnxruntime:onnxruntime-android:1.22.0"); model.ort in assets or res/raw.
package io.oar.mobile

import ai.onnxruntime.OnnxJavaType
import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtSession
import android.graphics.Bitmap

/**
 * Runs one `.ort`. Sessions may be called from several threads.
 *
 * @param model the bytes of the file
 * @param width of the image that the program takes, as `inputs` of infer_cfg.yml has it
 */
class OrtModel(
    model: ByteArray,
    private val labels: List<String>,
    private val width: Int,
    private val height: Int,
    threads: Int = 4,
) : AutoCloseable {
    private val environment = OrtEnvironment.getEnvironment()
    private val session: OrtSession =
        OrtSession.SessionOptions().use { options ->
            options.setIntraOpNumThreads(threads)
            environment.createSession(model, options)
        }

    /** The best classes of an image, of a classifier. */
    fun classify(bitmap: Bitmap, top: Int = 5): List<ClassScore> =
        run(ImageInput(bitmap, width, height)) { result ->
            @Suppress("UNCHECKED_CAST")
            bestClasses((result.get("scores").get().value as Array<FloatArray>)[0], labels, top)
        }

    /** The objects of an image, of a detector. */
    @Suppress("UNCHECKED_CAST")
    fun detect(bitmap: Bitmap, threshold: Float = 0.5f): List<DetectedBox> {
        val image = ImageInput(bitmap, width, height)
        return run(image) { result ->
            val boxes = (result.get("boxes").get().value as Array<Array<FloatArray>>)[0]
            val scores = (result.get("scores").get().value as Array<FloatArray>)[0]
            val classes = (result.get("labels").get().value as Array<IntArray>)[0]
            boxesOf(boxes, scores, classes, labels, image, threshold)
        }
    }

    override fun close() = session.close()

    private fun <T> run(image: ImageInput, read: (OrtSession.Result) -> T): T {
        val shape = longArrayOf(1, height.toLong(), width.toLong(), 3)
        return OnnxTensor.createTensor(environment, image.bytes, shape, OnnxJavaType.UINT8).use { tensor ->
            session.run(mapOf("image" to tensor)).use(read)
        }
    }
}
