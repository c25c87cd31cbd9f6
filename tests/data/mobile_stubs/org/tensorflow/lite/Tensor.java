package org.tensorflow.lite;

/** The signature of LiteRT's interface that the samples call. */
public interface Tensor {
    int[] shape();
}
