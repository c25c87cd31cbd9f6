package ai.onnxruntime;

import java.util.Map;
import java.util.Optional;

public class OrtSession implements AutoCloseable {
    public Result run(Map<String, ? extends OnnxTensorLike> inputs) throws OrtException { return null; }
    @Override public void close() throws OrtException {}

    public static class SessionOptions implements AutoCloseable {
        public void setIntraOpNumThreads(int numThreads) throws OrtException {}
        @Override public void close() {}
    }

    public static class Result implements AutoCloseable {
        public Optional<OnnxValue> get(String key) { return Optional.empty(); }
        @Override public void close() {}
    }
}
