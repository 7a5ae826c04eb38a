import { Context } from "@temporalio/activity";
import type { CallInput, CallResult } from "./call";

const degrees: Record<string, number> = { Oslo: 4, Rome: 17 };

/** The type of the activity is the name of the tool. */
export async function weather(input: CallInput<{ city: string }>): Promise<CallResult> {
  const context = Context.current();
  context.heartbeat(); // a worker that is lost is found after QueueOptions.Heartbeat
  const found = degrees[input.arguments.city];
  if (found === undefined) {
    return { data: { error: "no such city" }, is_error: true, code: "invalid_arguments" };
  }
  return { data: { degrees: found } };
}
