package ai.onnxruntime;

public enum OnnxJavaType { FLOAT, UINT8, INT32 }
