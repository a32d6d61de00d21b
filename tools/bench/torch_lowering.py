#!/usr/bin/env python3
"""Times PyTorch's own schedule code, to compare counterflow's with.

Prints one JSON line:
  generate_s   the order of compute of all ranks
  lower_s      its lowering, as the constructor of a schedule does it: FSDP actions, gradient
               reductions, then sends and receives
  send_recv_s  the sends and receives alone, on the order of compute
  simulate_s   PyTorch's dry run of the order with sends and receives
  actions      how many actions that order holds

Every rank of a PyTorch job does the first two for all ranks.
"""

import argparse
import json
import time
from types import SimpleNamespace


def stages_of_rank_0(ranks, chunks):
    """As much of a pipeline stage as the constructors of the schedules look at."""
    return [
        SimpleNamespace(
            stage_index=chunk * ranks,
            num_stages=chunks * ranks,
            group_size=ranks,
            group_rank=0,
            submod=None,
            is_first=chunk == 0,
            is_last=False,
        )
        for chunk in range(chunks)
    ]


def timed(function, *arguments):
    begin = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - begin, result


def measure(name, ranks, microbatches, chunks):
    from torch.distributed.pipelining import schedules

    schedule_class = schedules.get_schedule_class(name)
    lower = schedule_class._prepare_schedule_with_comms
    schedule_class._prepare_schedule_with_comms = lambda self, actions: None
    generate_s, schedule = timed(schedule_class, stages_of_rank_0(ranks, chunks), microbatches)
    schedule_class._prepare_schedule_with_comms = lower
    lower_s, _ = timed(schedule._prepare_schedule_with_comms, schedule.pipeline_order)

    # The dry run knows neither FSDP actions nor reductions: it gets compute and transfers alone.
    compute = {
        rank: [action for action in order if action is not None]
        for rank, order in schedule.pipeline_order.items()
    }

    def rank_of(stage):
        return schedule.stage_index_to_group_rank[stage]

    send_recv_s, order = timed(schedules._add_send_recv, compute, rank_of, ranks * chunks)
    simulate_s, _ = timed(schedules._simulate_comms_compute, order, rank_of, ranks * chunks)
    return {
        "generate_s": round(generate_s, 4),
        "lower_s": round(lower_s, 4),
        "send_recv_s": round(send_recv_s, 4),
        "simulate_s": round(simulate_s, 4),
        "actions": sum(len(actions) for actions in order.values()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedule", default="InterleavedZeroBubble")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--microbatches", type=int, default=256)
    parser.add_argument("--chunks", type=int, default=2)
    arguments = parser.parse_args()
    print(
        json.dumps(
            measure(
                arguments.schedule, arguments.ranks, arguments.microbatches, arguments.chunks
            )
        )
    )


if __name__ == "__main__":
    main()
