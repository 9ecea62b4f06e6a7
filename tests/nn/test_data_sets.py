"""Tests `gradcli.utils.data`: data sets, samplers and batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.utils import data


class Squares(data.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return {"x": float(index), "label": index**2, "name": f"n{index}"}


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Pair(NamedTuple):
    x: float
    y: int


@pytest.fixture
def rows():
    return data.TensorDataset(gradcli.arange(10.0).reshape(5, 2), gradcli.tensor([0, 1, 2, 3, 4]))


class TestBatches:
    def test_of_tensors_are_stacked(self, rows):
        batches = [*data.DataLoader(rows, batch_size=2)]
        assert [(x.tolist(), y.tolist()) for x, y in batches] == [
            ([[0.0, 1.0], [2.0, 3.0]], [0, 1]),
            ([[4.0, 5.0], [6.0, 7.0]], [2, 3]),
            ([[8.0, 9.0]], [4]),
        ]
        assert batches[0][1].dtype == "int64"

    def test_at_the_end_may_be_left_out(self, rows):
        loader = data.DataLoader(rows, batch_size=2, drop_last=True)
        assert len(loader) == len([*loader]) == 2

    def test_have_the_structure_of_the_items(self):
        (batch,) = data.DataLoader(Squares(), batch_size=5)
        assert batch["x"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert batch["label"].tolist() == [0, 1, 4, 9, 16]
        assert batch["name"] == ["n0", "n1", "n2", "n3", "n4"]
        pair = data.default_collate([Pair(1.0, 2), Pair(3.0, 4)])
        assert isinstance(pair, Pair)
        assert (pair.x.tolist(), pair.y.tolist()) == ([1.0, 3.0], [2, 4])
        assert data.default_collate([np.ones(2), np.zeros(2)]).tolist() == [[1.0, 1.0], [0.0, 0.0]]

    def test_in_a_random_order_have_each_item_once(self, rows):
        gradcli.manual_seed(3)
        loader = data.DataLoader(rows, batch_size=2, shuffle=True)
        orders = [[int(i) for _, y in loader for i in y] for _ in range(4)]
        assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
        assert len(set(map(tuple, orders))) > 1
        gradcli.manual_seed(3)
        assert [int(i) for _, y in loader for i in y] == orders[0]

    def test_may_be_single_items_or_made_by_a_function(self, rows):
        assert [x.shape for x, _ in data.DataLoader(rows, batch_size=None)] == [(2,)] * 5
        sums = data.DataLoader(rows, batch_size=3, collate_fn=lambda items: sum(y.item() for _, y in items))
        assert [*sums] == [3, 7]

    def test_come_from_samplers(self, rows):
        assert [y.tolist() for _, y in data.DataLoader(rows, batch_size=2, sampler=[4, 0, 4])] == [[4, 0], [4]]
        batches = data.DataLoader(rows, batch_sampler=[[4], [1, 2, 3]])
        assert len(batches) == 2
        assert [y.tolist() for _, y in batches] == [[4], [1, 2, 3]]
        assert sorted(data.SubsetRandomSampler([7, 9])) == [7, 9]
        weighted = data.WeightedRandomSampler([0.0, 1.0, 0.0], 6)
        assert [*weighted] == [1] * 6
        assert len([*data.RandomSampler(rows, num_samples=12)]) == 12
        assert set(data.RandomSampler(rows, replacement=True, num_samples=200)) == {0, 1, 2, 3, 4}

    def test_come_from_streams(self):
        assert [batch.tolist() for batch in data.DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
        assert [*data.DataLoader(Stream(), batch_size=None)] == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
            ({"shuffle": True, "sampler": [0]}, "sampler option is mutually exclusive with shuffle"),
            ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler option is mutually exclusive with batch_size"),
            ({"num_workers": -1}, "num_workers option should be non-negative"),
        ],
    )
    def test_that_contradict_are_refused(self, rows, options, message):
        with pytest.raises(ValueError, match=message):
            data.DataLoader(rows, **options)

    def test_of_what_is_no_item_are_refused(self):
        with pytest.raises(
            TypeError, match="batch must contain tensors, numpy arrays, numbers, dicts or lists; found set"
        ):
            data.default_collate([{1}, {2}])
        with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
            data.default_collate([[1, 2], [3]])


class TestDataSets:
    def test_of_tensors_are_of_one_length(self):
        with pytest.raises(ValueError, match="Size mismatch between tensors"):
            data.TensorDataset(gradcli.tensor([1.0]), gradcli.tensor([1.0, 2.0]))

    def test_are_joined(self, rows):
        both = rows + data.Subset(rows, [4, 3])
        assert len(both) == 7
        assert [both[i][1].item() for i in (0, 4, 5, -1)] == [0, 4, 4, 3]
        with pytest.raises(IndexError):
            both[7]
        assert data.StackDataset(a=rows, b=Squares())[1]["b"]["label"] == 1
        assert [*(Stream() + Stream())] == [0, 1, 2, 3, 4] * 2

    def test_are_split_at_random(self, rows):
        parts = data.random_split(rows, [2, 3])
        assert [*map(len, parts)] == [2, 3]
        assert sorted(y.item() for part in parts for _, y in part) == [0, 1, 2, 3, 4]
        assert [*map(len, data.random_split(rows, [0.5, 0.5]))] == [3, 2]
        with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
            data.random_split(rows, [2, 2])
