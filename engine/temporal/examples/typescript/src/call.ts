// The contract of a tool on a task queue: the input and the output of its activity, as JSON.

export interface CallInput<Arguments> {
  run_id: string;
  session_id?: string;
  call_id: string;
  tool: string;
  /** Checked against the schema of the tool before the activity is dispatched. */
  arguments: Arguments;
  principal?: string;
  /** The same for every attempt of the call: store it with an effect that must not be repeated. */
  idempotency_key: string;
}

export interface CallResult {
  /** What the model may see of it is decided by the tool's allowlist. */
  data: unknown;
  is_error?: boolean;
  /** Of an error: "" is execution_failed. */
  code?: string;
}
