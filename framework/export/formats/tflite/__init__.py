"""`.tflite` files, which LiteRT (TensorFlow Lite) runs on phones and small boards; packages of the extra `mobile`."""
