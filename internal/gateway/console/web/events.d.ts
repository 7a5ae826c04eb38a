// Events as the API has them. `make gen` writes this file: change the types of the Go package event.

import type { Message, Part } from "./src/run/types";

export interface WithheldTool {
  tool: string;
  reason: string;
  rule?: string;
}

export interface ToolsDigest {
  count: number;
  hash: string;
  withheld?: WithheldTool[];
  withheld_count?: number;
  deferred?: number;
}

export interface LimitsView {
  max_iterations: number;
  max_total_tool_calls: number;
  max_tool_args_bytes: number;
  max_tool_output_bytes: number;
  run_timeout_ms: number;
}

export interface RunRetention {
  mode: string;
  store_raw_tool_output: boolean;
  max_output_bytes: number;
  applied: boolean;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
}

export interface Fault {
  kind: string;
  count: number;
}

export interface RunStarted {
  model: string;
  provider: string;
  dialect: string;
  tool_use_mode: string;
  tool_failure_policy: string;
  tools: ToolsDigest;
  limits: LimitsView;
  parent_run_id?: string;
  parent_tool_call_id?: string;
  continues?: string;
  taken_over?: number;
  replays?: string;
  executor?: string;
  retention?: RunRetention;
}

export interface ModelCallStarted {
  attempt: number;
  provider: string;
  model: string;
  agent?: string;
  prompt_hash: string;
  prompt_hash_v2: string;
  messages: number;
  tools: number;
}

export interface TextDelta {
  bytes: number;
}

export interface ReasoningDelta {
  bytes: number;
}

export interface CommentaryDelta {
  bytes: number;
}

export interface ToolCallDelta {
  index: number;
  tool_call_id?: string;
  tool?: string;
  bytes: number;
}

export interface ToolCallProgress {
  tool_call_id: string;
  tool: string;
  done: number;
  total?: number;
}

export interface ModelCallFinished {
  attempt: number;
  provider: string;
  model: string;
  status: string;
  error_code?: string;
  finish_reason: string;
  usage: Usage;
  latency_ms: number;
  first_token_ms: number;
  tool_calls: number;
  ignored_tool_calls?: number;
  upstream_request_id: string;
  response_id?: string;
  provider_cost?: number;
  cost?: number;
  faults?: Fault[];
  dropped?: string[];
  upstream_status?: number;
  provider_code?: string;
}

export interface ToolCallProposed {
  tool_call_id: string;
  tool_name: string;
  seq: number;
  dialect: string;
  deprecated_syntax: boolean;
  recovered?: boolean;
  client?: boolean;
  args_bytes: number;
  args_preview_hash: string;
}

export interface ToolCallParseError {
  dialect: string;
  error: string;
  excerpt_bytes: number;
}

export interface ToolCallPlanned {
  tool_call_id: string;
  tool: string;
  seq: number;
  args_preview_hash: string;
  args_schema_version: string;
}

export interface ApprovalRequested {
  tool_call_id: string;
  tool: string;
  seq: number;
  args_digest: string;
  rule?: string;
  expires_at: string;
}

export interface ApprovalResolved {
  tool_call_id: string;
  tool: string;
  seq: number;
  decision: string;
  by: string;
  reason_code: string;
  in_request?: boolean;
}

export interface ToolCallExecuted {
  tool_call_id: string;
  tool_name: string;
  seq: number;
  success: boolean;
  latency_ms: number;
  output_truncated: boolean;
  output_size_bytes: number;
  cached: boolean;
  attempts: number;
  rc?: number;
  child_run_id?: string;
  child_usage?: Usage;
  child_cost?: number;
}

export interface ToolsLoaded {
  tool_call_id: string;
  seq: number;
  tools: string[];
  hash: string;
}

export interface ToolCallResult {
  tool_call_id: string;
  tool: string;
  seq: number;
  status: string;
  error_type?: string;
  message?: string;
  cause?: string;
  latency_ms: number;
  client?: boolean;
  repaired?: boolean;
  repair?: string;
  policy_decision?: string;
  policy_rule?: string;
  limit?: string;
}

export interface RunPaused {
  reason: string;
  pending: string[];
}

export interface RunResumed {
  reason: string;
  pending: string[];
}

export interface RunFinished {
  reason: string;
  status: string;
  turns: number;
  tool_calls: number;
  usage: Usage;
  latency_ms: number;
  error_code?: string;
  limit?: string;
  blank?: string;
}

// Events has the data and the content of each type of events.
export interface Events {
  RunStarted: { data: RunStarted; content: { messages: Message[]; principal?: string; profile?: string; labels?: Record<string, string>; target?: string; input?: unknown } };
  ModelCallStarted: { data: ModelCallStarted; content: { asked?: string } };
  TextDelta: { data: TextDelta; content: { text: string } };
  ReasoningDelta: { data: ReasoningDelta; content: { text: string } };
  CommentaryDelta: { data: CommentaryDelta; content: { text: string } };
  ToolCallDelta: { data: ToolCallDelta; content: { text: string } };
  ToolCallProgress: { data: ToolCallProgress; content: { text?: string } };
  ModelCallFinished: { data: ModelCallFinished; content: { message: Message | null; error_message?: string } };
  ToolCallProposed: { data: ToolCallProposed; content: { tool_name: string; raw_args: string } };
  ToolCallParseError: { data: ToolCallParseError; content: { raw_excerpt: string } };
  ToolCallPlanned: { data: ToolCallPlanned; content: Record<never, never> };
  ApprovalRequested: { data: ApprovalRequested; content: { arguments: unknown } };
  ApprovalResolved: { data: ApprovalResolved; content: { arguments: unknown } };
  ToolCallExecuted: { data: ToolCallExecuted; content: Record<never, never> };
  ToolsLoaded: { data: ToolsLoaded; content: Record<never, never> };
  ToolCallResult: { data: ToolCallResult; content: { result: string; blobs?: Part[] } };
  RunPaused: { data: RunPaused; content: Record<never, never> };
  RunResumed: { data: RunResumed; content: Record<never, never> };
  RunFinished: { data: RunFinished; content: { answer: string } };
}
