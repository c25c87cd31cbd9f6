"""Static graphs: programs, feeds, fetches, training by minimize, an inference model."""

import numpy as np
import paddle
from exchange import report

paddle.enable_static()
main, startup = paddle.static.Program(), paddle.static.Program()
rng = np.random.RandomState(0)
constant = paddle.nn.initializer.Assign
with paddle.static.program_guard(main, startup):
    x = paddle.static.data(name="x", shape=[None, 8], dtype="float32")
    y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
    hidden = paddle.static.nn.fc(
        x,
        16,
        activation="relu",
        weight_attr=paddle.ParamAttr(initializer=constant(rng.standard_normal((8, 16)) * 0.3)),
    )
    logits = paddle.static.nn.fc(
        hidden, 3, weight_attr=paddle.ParamAttr(initializer=constant(rng.standard_normal((16, 3)) * 0.3))
    )
    loss = paddle.nn.functional.cross_entropy(logits, y)
    accuracy = paddle.static.accuracy(paddle.nn.functional.softmax(logits), y)
    test = main.clone(for_test=True)
    paddle.optimizer.Adam(learning_rate=0.02).minimize(loss)

executor = paddle.static.Executor(paddle.CPUPlace())
executor.run(startup)
features = rng.standard_normal((40, 8)).astype("float32")
labels = (features @ rng.standard_normal((8, 3))).argmax(1).reshape(-1, 1).astype("int64")
for _step in range(20):
    (value,) = executor.run(main, feed={"x": features, "y": labels}, fetch_list=[loss])
    report("loss", value)
found, right = executor.run(test, feed={"x": features[:5], "y": labels[:5]}, fetch_list=[logits, accuracy])
report("test", found)
paddle.static.save_inference_model("served/model", [x], [logits], executor, program=test)
program, feeds, fetches = paddle.static.load_inference_model("served/model", executor)
(served,) = executor.run(program, feed={feeds[0]: features[:2]}, fetch_list=fetches)
report("served", served)
print(feeds, found.shape, float(np.asarray(right).reshape(-1)[0]))
paddle.disable_static()
report("dynamic", paddle.ones([2]) + 1)
