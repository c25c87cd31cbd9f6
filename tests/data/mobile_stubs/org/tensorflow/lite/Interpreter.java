package org.tensorflow.lite;

import java.nio.ByteBuffer;
import java.util.Map;

/** The signatures of LiteRT's class (com.google.ai.edge.litert:litert) that the samples call. */
public final class Interpreter implements AutoCloseable {
    public static class Options {
        public Options setNumThreads(int numThreads) { return this; }
    }

    public Interpreter(ByteBuffer byteBuffer, Options options) {}
    public void runSignature(Map<String, Object> inputs, Map<String, Object> outputs, String signatureKey) {}
    public Tensor getInputTensorFromSignature(String inputName, String signatureKey) { return null; }
    public Tensor getOutputTensorFromSignature(String outputName, String signatureKey) { return null; }
    @Override public void close() {}
}
