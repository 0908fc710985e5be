import pytest
from tools.simulate_cluster import Plan, simulate

CALM = {"speed_spread": 0.0, "straggles": 0.0, "mean_life_hours": 1e12}


def test_without_trouble_it_takes_what_it_takes():
    plan = Plan(n_images=8192, n_workers=1, images_per_second=100, **CALM)
    assert simulate(plan).hours == pytest.approx(8192 / 100 / 3600)
    two = Plan(n_images=3 * 4096, n_workers=2, images_per_second=100, **CALM)  # three shards on two: two rounds
    assert simulate(two).hours == pytest.approx(2 * 4096 / 100 / 3600)
    assert two.n_shards == 3 and simulate(two).n_stored == 3


@pytest.mark.parametrize("seed", range(5))
def test_every_shard_is_stored_however_many_workers_die(seed):
    plan = Plan(n_images=200_000, n_workers=6, images_per_second=50, mean_life_hours=0.05)
    found = simulate(plan, seed=seed)
    assert found.n_stored == plan.n_shards
    assert found.n_redone == found.n_deaths > 0


def test_trouble_costs_time_and_the_same_seed_gives_the_same_run():
    calm = Plan(n_images=500_000, n_workers=8, **CALM)
    slow = Plan(n_images=500_000, n_workers=8, speed_spread=0.0, straggles=0.1, mean_life_hours=1e12)
    assert simulate(slow).hours > simulate(calm).hours >= calm.ideal_hours
    assert simulate(slow, seed=3) == simulate(slow, seed=3)


def test_more_workers_than_shards():
    assert simulate(Plan(n_images=10, n_workers=64, images_per_second=10, **CALM)).hours == pytest.approx(1 / 3600)
