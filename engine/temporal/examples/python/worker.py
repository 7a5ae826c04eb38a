"""A worker that serves the tool `weather` on a task queue of Temporal, with the package temporalio.

Tests call the activity, without the package temporalio and without a Temporal server.
"""

import asyncio
import os
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

DEGREES = {"Oslo": 4, "Rome": 17}


@activity.defn(name="weather")  # the type of the activity is the name of the tool
async def weather(call: dict[str, Any]) -> dict[str, Any]:
    # call["idempotency_key"] is the same for every attempt: store it with an effect that must not be repeated.
    activity.heartbeat()
    city = call["arguments"]["city"]
    if city not in DEGREES:
        return {"data": {"error": "no such city"}, "is_error": True, "code": "invalid_arguments"}
    return {"data": {"degrees": DEGREES[city]}}


async def main() -> None:
    client = await Client.connect(
        os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"),
        namespace=os.environ.get("TEMPORAL_NAMESPACE", "default"),
    )
    await Worker(client, task_queue="weather", activities=[weather]).run()


if __name__ == "__main__":
    asyncio.run(main())
