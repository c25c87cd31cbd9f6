"""The layers of paddle.incubate.nn, by the files in which Paddle keeps them."""
