"""paddle.base.proto: the protobuf messages of Paddle's programs."""
