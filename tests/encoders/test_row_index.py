"""Keys, and where their rows are, against a dictionary."""

import numpy as np

from igcd.encoders.row_index import Index, row_keys


def test_keys_differ_by_part_and_suffix():
    assert len(np.unique(row_keys(["a", "b", "ab"], ["", "b", "plain"]))) == 9


def test_the_earliest_shard_wins_as_in_a_dictionary_also_after_removal():
    rng, index, shards = np.random.default_rng(0), Index(), {}
    every = row_keys([str(number) for number in range(60)], [""])[:, 0]
    for shard in range(20):  # more than are searched one by one
        shards[shard] = rng.choice(every, 9, replace=False)
        index.add(shard, shards[shard])
    for removed in ((), (0, 7), (19,)):
        index.remove(np.array(removed, dtype=np.int64))
        shards = {shard: keys for shard, keys in shards.items() if shard not in removed}
        expected = {}
        for shard, keys in shards.items():
            for row, key in enumerate(keys.tolist()):
                expected.setdefault(key, (shard, row))
        found = list(zip(*(part.tolist() for part in index.find(every)), strict=True))
        assert found == [expected.get(key, (-1, -1)) for key in every.tolist()]
    assert (-1, -1) in found
