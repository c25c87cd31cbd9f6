"""Programs for parameter servers: datasets, generators, entries, and what is told to servers."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ForeignNameError, FormatError, InputError
from framework.paddle.distributed import fleet

GENERATOR = """
import paddle.distributed.fleet as fleet
class Clicks(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            label, *ids = line.split()
            yield [("ids", [int(one) for one in ids]), ("dense", [len(ids) / 2.0]), ("label", [int(label)])]
        return samples
Clicks().run_from_stdin()
"""


@pytest.fixture
def static() -> Any:
    paddle.enable_static()
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        yield main
    paddle.disable_static()


def network(sparse: bool = True, name: str | None = None) -> tuple[list[Any], Any]:
    """A table of 20 ids; the loss of a click."""
    ids = paddle.static.data("ids", [None, 2], "int64")
    dense = paddle.static.data("dense", [None, 1], "float32")
    label = paddle.static.data("label", [None, 1], "int64")
    half = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.5), name=name)
    make: Any = paddle.static.nn.sparse_embedding if sparse else paddle.static.nn.embedding
    flat = paddle.concat([paddle.reshape(make(ids, [20, 3], param_attr=half), [-1, 6]), dense], 1)
    out = paddle.static.nn.fc(
        flat, 1, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.1))
    )
    loss = paddle.mean(
        paddle.nn.functional.binary_cross_entropy_with_logits(out, paddle.cast(label, "float32"))
    )
    return [ids, dense, label], loss


def files(folder: Path) -> list[str]:
    """Two files of MultiSlot text, five and four samples."""
    draw = np.random.default_rng(0)
    for name, count in (("a", 5), ("b", 4)):
        lines = [
            f"2 {a} {b} 1 {0.5:g} 1 {c}\n"
            for a, b, c in zip(*(draw.integers(0, n, count) for n in (20, 20, 2)))
        ]
        (folder / name).write_text("".join(lines), encoding="utf-8")
    return [str(folder / name) for name in "ab"]


def test_a_program_trains_from_a_dataset_as_from_arrays(static: Any, tmp_path: Path, capsys: Any) -> None:
    fleet.init(is_collective=False)
    inputs, loss = network(name="table")
    strategy = fleet.DistributedStrategy()
    assert strategy.a_sync and strategy.a_sync_configs["k_steps"] == -1
    strategy.a_sync = True
    assert strategy.a_sync_configs["k_steps"] == 0 and strategy.a_sync_configs["send_queue_size"] == 16
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
    executor = paddle.static.Executor()
    executor.run(paddle.static.default_startup_program())
    assert fleet.is_worker() and not fleet.is_server()
    fleet.init_worker()
    dataset = paddle.distributed.QueueDataset()
    dataset.init(batch_size=4, thread_num=2, use_var=inputs)
    dataset.set_filelist(files(tmp_path))
    sizes = [len(batch["ids"]) for batch in dataset.batches()]
    assert sizes == [4, 4, 1]
    executor.train_from_dataset(static, dataset, fetch_list=[loss], fetch_info=["loss"], print_period=2)
    assert "batch: [2], loss[1]:0." in capsys.readouterr().out
    table = np.array(static.state_dict()["table"].numpy())
    fleet.save_persistables(executor, str(tmp_path / "saved"), static)
    executor.train_from_dataset(static, dataset)
    assert not np.array_equal(static.state_dict()["table"].numpy(), table)
    fleet.init_server(str(tmp_path / "saved"))
    np.testing.assert_array_equal(static.state_dict()["table"].numpy(), table)
    fleet.stop_worker()

    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        _, other = network(sparse=False, name="plain_table")
        paddle.optimizer.SGD(0.1).minimize(other)
        for batch in dataset.batches():
            executor.run(feed=batch, fetch_list=[other])
        state = paddle.static.default_main_program().state_dict()
        np.testing.assert_array_equal(state["plain_table"].numpy(), table)
    with pytest.raises(InputError, match="save_persistables"):
        fleet.load_model(str(tmp_path / "nothing"))


def test_any_id_has_a_row_and_entries_are_told(static: Any, caplog: Any) -> None:
    ids = paddle.static.data("ids", [None, 1], "int64")
    with caplog.at_level("WARNING", "oar"):
        entry = paddle.distributed.CountFilterEntry(3)
        rows = paddle.static.nn.sparse_embedding(ids, [10, 2], padding_idx=0, entry=entry)
    assert "count_filter_entry:3" in caplog.text
    found = paddle.static.Executor().run(feed={"ids": np.array([[3], [13], [-7], [10]])}, fetch_list=[rows])[
        0
    ]
    assert found.shape == (4, 2) and rows.shape == (-1, 2)  # Paddle drops the last dimension of the ids
    assert found[0].any() and not found[3].any()
    np.testing.assert_array_equal(found[[1, 2]], found[[0, 0]])
    with pytest.raises(ValueError, match="MemorySparseTable"):
        paddle.static.nn.sparse_embedding(ids, [10, 2], table_class="Dense")


def test_a_dataset_reads_what_a_command_writes(static: Any, tmp_path: Path) -> None:
    (tmp_path / "generator.py").write_text(GENERATOR, encoding="utf-8")
    (tmp_path / "data").write_text("1 3 4\n0 5 18446744073709551615\n", encoding="utf-8")
    inputs, _ = network()
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(batch_size=2, use_var=inputs, pipe_command=f"{sys.executable} {tmp_path / 'generator.py'}")
    dataset.set_filelist([str(tmp_path / "data")])
    dataset.preload_into_memory()
    dataset.wait_preload_done()
    (batch,) = dataset.batches()
    assert batch["ids"].tolist() == [[3, 4], [5, -1]] and batch["dense"].tolist() == [[1.0], [1.0]]
    for command, message in (
        (f"{sys.executable} -c 'raise SystemExit(3)'", "exit status 3"),
        ("no_such_program | cat", "cannot be run"),
    ):
        dataset.init(pipe_command=command)
        with pytest.raises(InputError, match=message):
            dataset.load_into_memory()


def test_a_dataset_in_memory(static: Any, tmp_path: Path) -> None:
    inputs, _ = network()
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(batch_size=9, use_var=inputs, fea_eval=True)
    dataset.set_filelist(files(tmp_path))
    with pytest.raises(InputError, match="load_into_memory"):
        next(dataset.batches())
    dataset.load_into_memory()
    assert (dataset.get_memory_data_size(), dataset.get_shuffle_data_size()) == (9, 0)
    (before,) = dataset.batches()
    paddle.seed(1)
    dataset.slots_shuffle(["label"])
    (after,) = dataset.batches()
    np.testing.assert_array_equal(after["ids"], before["ids"])
    assert sorted(after["label"].tolist()) == sorted(before["label"].tolist())
    dataset.global_shuffle(fleet)
    (shuffled,) = dataset.batches()
    assert shuffled["ids"].tolist() != before["ids"].tolist()
    assert sorted(shuffled["ids"].tolist()) == sorted(before["ids"].tolist())
    assert dataset.get_shuffle_data_size(fleet) == 9
    dataset.release_memory()
    assert dataset.get_memory_data_size() == 0


@pytest.mark.parametrize(
    "line, message",
    [
        ("2 1 2 1 0.5", "no MultiSlot"),
        ("2 1 2 1 0.5 1 1 7", "1 values are left over"),
        ("0 1 0.5 1 1", "0 values"),
    ],
)
def test_lines_that_are_no_multislot_text(static: Any, tmp_path: Path, line: str, message: str) -> None:
    inputs, _ = network()
    (tmp_path / "data").write_text(f"2 1 2 1 0.5 1 1\n{line}\n", encoding="utf-8")
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=inputs)
    dataset.set_filelist([str(tmp_path / "data")])
    with pytest.raises(FormatError, match=message) as caught:
        list(dataset.batches())
    assert "line 2" in str(caught.value)
    with pytest.raises(InputError, match="no such setting"):
        dataset.init(threads=3)
    for shuffle in (dataset.local_shuffle, dataset.global_shuffle):
        with pytest.raises(ForeignNameError, match="InMemoryDataset"):
            shuffle()


def test_generators(monkeypatch: Any, capsys: Any) -> None:
    class Words(fleet.MultiSlotDataGenerator):
        samples: Any = ()

        def generate_sample(self, line: str | None) -> Any:
            return lambda: iter(self.samples)

    class Texts(fleet.MultiSlotStringDataGenerator):
        def generate_sample(self, line: str | None) -> Any:
            assert line is not None
            return lambda: iter([[("words", line.split()), ("label", ["0"])], None])

        def generate_batch(self, samples: list[Any]) -> Any:
            return lambda: reversed(samples)

    monkeypatch.setattr(sys, "stdin", io.StringIO("1 2\n3\n"))
    Texts().run_from_stdin()
    assert capsys.readouterr().out == "1 3 1 0\n2 1 2 1 0\n"
    with pytest.raises(InputError, match="defines generate_sample"):
        fleet.MultiSlotDataGenerator().run_from_memory()
    words = Words()
    words.samples = [[("a", [1, 2]), ("b", [3])], zip("ab", ([4], [0.5]))]
    words.run_from_memory()
    assert capsys.readouterr().out == "2 1 2 1 3\n1 4 1 0.5\n"
    assert words._proto_info == [("a", "uint64"), ("b", "float")]
    for sample, message in (
        ("a 1", "list or tuple"),
        ([("a", [1])], "1 slots"),
        ([("b", [1]), ("a", [1])], "was a in the first line"),
        ([("a", []), ("b", [1])], "has no values"),
        ([("a", (1,)), ("b", [1])], "are a list"),
        ([("a", ["1"]), ("b", [1])], "an int or a float"),
    ):
        words.samples = [sample]
        with pytest.raises(ValueError, match=message):
            words.run_from_memory()


def test_entries() -> None:
    distributed = paddle.distributed
    entries = (
        distributed.CountFilterEntry(3),
        distributed.ProbabilityEntry(0.5),
        distributed.ShowClickEntry("a", "b"),
    )
    attributes = [entry._to_attr() for entry in entries]
    assert attributes == ["count_filter_entry:3", "probability_entry:0.5", "show_click_entry:a:b"]
    with pytest.raises(ValueError, match="0 or more"):
        distributed.CountFilterEntry(-1)


def test_a_process_that_is_started_as_a_server_has_nothing_to_do(monkeypatch: Any) -> None:
    monkeypatch.setenv("TRAINING_ROLE", "PSERVER")
    fleet.init(fleet.PaddleCloudRoleMaker())
    assert fleet.is_server() and not fleet.is_worker()
    fleet.init_server()
    fleet.run_server()
