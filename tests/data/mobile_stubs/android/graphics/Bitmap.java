package android.graphics;

/** The signatures of Android's class that the samples call. */
public final class Bitmap {
    public int getWidth() { throw new UnsupportedOperationException(); }
    public int getHeight() { throw new UnsupportedOperationException(); }
    public void getPixels(int[] pixels, int offset, int stride, int x, int y, int width, int height) {}
    public static Bitmap createScaledBitmap(Bitmap src, int dstWidth, int dstHeight, boolean filter) { return src; }
}
