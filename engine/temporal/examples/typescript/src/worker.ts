import { NativeConnection, Worker } from "@temporalio/worker";
import * as activities from "./activities";

async function main(): Promise<void> {
  const connection = await NativeConnection.connect({ address: process.env["TEMPORAL_ADDRESS"] ?? "127.0.0.1:7233" });
  try {
    const worker = await Worker.create({
      connection,
      namespace: process.env["TEMPORAL_NAMESPACE"] ?? "default",
      taskQueue: "weather",
      activities,
    });
    await worker.run();
  } finally {
    await connection.close();
  }
}

main().catch((err: unknown) => {
  console.error(err);
  process.exitCode = 1;
});
