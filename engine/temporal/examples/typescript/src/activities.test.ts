import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MockActivityEnvironment } from "@temporalio/testing";
import { weather } from "./activities";
import type { CallInput } from "./call";

// The same files are read by the tests of the Go module: they are what the workflow sends and reads.
const contract = (name: string) => JSON.parse(readFileSync(join(__dirname, "..", "..", "..", "testdata", "contract", name), "utf8"));

test("the activity takes the input of the workflow and returns its output", async () => {
  let beats = 0;
  const env = new MockActivityEnvironment();
  env.on("heartbeat", () => beats++);
  const input: CallInput<{ city: string }> = contract("input.json");
  assert.deepEqual(await env.run(weather, input), contract("output.json"));
  assert.equal(beats, 1);
});

test("an error of the tool is an output", async () => {
  const input: CallInput<{ city: string }> = { ...contract("input.json"), arguments: { city: "Atlantis" } };
  assert.deepEqual(await new MockActivityEnvironment().run(weather, input), contract("error.json"));
});
