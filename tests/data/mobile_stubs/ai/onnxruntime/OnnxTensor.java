package ai.onnxruntime;

import java.nio.ByteBuffer;

/** The signatures of ONNX Runtime's class (com.microsoft.onnxruntime:onnxruntime-android) that the samples call. */
public class OnnxTensor extends OnnxTensorLike {
    @Override public Object getValue() throws OrtException { return null; }
    public static OnnxTensor createTensor(OrtEnvironment env, ByteBuffer data, long[] shape, OnnxJavaType type)
            throws OrtException { return null; }
}
