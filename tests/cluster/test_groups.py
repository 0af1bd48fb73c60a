"""What a group of jobs asks for."""

from shapelaw.cluster.groups import in_turn


def test_members_that_run_in_turn_ask_for_the_largest_and_for_their_time_together() -> None:
    record = {"_cores": 1, "_nodes": 1, "mem_mb": 1000, "runtime": 2, "slurm_partition": "gpu"}
    encode = {"_cores": 8, "_nodes": 1, "mem_mb": 3000, "runtime": 60, "slurm_partition": "gpu"}
    reckoned = {"_cores": 208, "_nodes": 1, "mem_mb": 203_000, "runtime": 62, "slurm_partition": "gpu"}
    assert in_turn(reckoned, [record] * 200 + [encode]) == {
        "_cores": 8,
        "_nodes": 1,
        "mem_mb": 3000,
        "runtime": 460,
        "slurm_partition": "gpu",
    }


def test_a_resource_of_one_member_is_that_of_the_group() -> None:
    """Memory that follows from files of the group is no number yet."""
    members = [{"_cores": 1, "gpu": 2, "mem_mb": "<TBD>"}, {"_cores": 2, "mem_mb": "<TBD>"}]
    assert in_turn({"_cores": 3, "gpu": 2, "disk_mb": 5}, members) == {"_cores": 2, "gpu": 2, "disk_mb": 5}
