package ai.onnxruntime;

public final class OrtEnvironment implements AutoCloseable {
    public static OrtEnvironment getEnvironment() { return new OrtEnvironment(); }
    public OrtSession createSession(byte[] modelArray, OrtSession.SessionOptions options) throws OrtException { return null; }
    @Override public void close() {}
}
