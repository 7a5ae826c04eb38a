-- A store of schema version 5, as a program of that version wrote it. Approvals and runs in it do not expire.
BEGIN;
CREATE TABLE call (
  seq         INTEGER PRIMARY KEY, -- the order in which they were queued
  key         TEXT NOT NULL UNIQUE,
  run_id      TEXT NOT NULL,
  call_id     TEXT NOT NULL,
  request_id  TEXT NOT NULL,
  session_id  TEXT NOT NULL,
  depth       INTEGER NOT NULL,
  tool        TEXT NOT NULL,
  definition  TEXT NOT NULL,
  effect      INTEGER NOT NULL, -- lathe.Effect
  args        BLOB,             -- JSON, content; NULL once the call has ended
  args_hash   TEXT NOT NULL,
  state       TEXT NOT NULL,
  attempt     INTEGER NOT NULL DEFAULT 0,
  starts      INTEGER NOT NULL DEFAULT 0,
  worker      TEXT NOT NULL DEFAULT '',
  deadline    INTEGER NOT NULL,
  lease_until INTEGER NOT NULL DEFAULT 0,
  cancelled   INTEGER NOT NULL DEFAULT 0,
  decided     INTEGER NOT NULL DEFAULT 0,
  ended       INTEGER NOT NULL DEFAULT 0, -- when; 0: it goes on
  result      BLOB              -- JSON of lathe.CallResult, content
, traceparent TEXT NOT NULL DEFAULT '', tracestate TEXT NOT NULL DEFAULT '');
INSERT INTO call VALUES (1, 'key_1', 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, CAST('{"to":"ann"}' AS BLOB), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', 4949448508765991970, 0, 0, 0, 0, NULL, '', '');
CREATE TABLE event (
  run_id TEXT NOT NULL,
  id     INTEGER NOT NULL,
  body   BLOB NOT NULL, -- JSON of lathe.Event, content included
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;
INSERT INTO event VALUES ('run_finished', 1, CAST('{"event_id":1,"time":"2026-11-28T06:48:28.627797842Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 2, CAST('{"event_id":2,"time":"2026-11-28T06:48:28.64734619Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 3, CAST('{"event_id":3,"time":"2026-11-28T06:48:28.649108093Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":1,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 4, CAST('{"event_id":4,"time":"2026-11-28T06:48:28.659073228Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 5, CAST('{"event_id":5,"time":"2026-11-28T06:48:28.674066551Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 6, CAST('{"event_id":6,"time":"2026-11-28T06:48:28.676626057Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 7, CAST('{"event_id":7,"time":"2026-11-28T06:48:28.680252059Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 8, CAST('{"event_id":8,"time":"2026-11-28T06:48:28.686203Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","messages":3,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 9, CAST('{"event_id":9,"time":"2026-11-28T06:48:28.693760577Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":7,"first_token_ms":7,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 10, CAST('{"event_id":10,"time":"2026-11-28T06:48:28.695992718Z","run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":68},"content":{"answer":"The mail is sent."}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 1, CAST('{"event_id":1,"time":"2026-11-28T06:48:28.732093036Z","run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 2, CAST('{"event_id":2,"time":"2026-11-28T06:48:28.738231164Z","run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 3, CAST('{"event_id":3,"time":"2026-11-28T06:48:28.741814274Z","run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":3,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 4, CAST('{"event_id":4,"time":"2026-11-28T06:48:28.7464273Z","run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 5, CAST('{"event_id":5,"time":"2026-11-28T06:48:28.749221976Z","run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 6, CAST('{"event_id":6,"time":"2026-11-28T06:48:28.756940611Z","run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-04T06:48:28.75682492Z"},"content":{"arguments":{}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 7, CAST('{"event_id":7,"time":"2026-11-28T06:48:28.761488123Z","run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 1, CAST('{"event_id":1,"time":"2026-11-28T06:48:28.699849Z","run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 2, CAST('{"event_id":2,"time":"2026-11-28T06:48:28.706280469Z","run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 3, CAST('{"event_id":3,"time":"2026-11-28T06:48:28.710079561Z","run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":3,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 4, CAST('{"event_id":4,"time":"2026-11-28T06:48:28.714703328Z","run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 5, CAST('{"event_id":5,"time":"2026-11-28T06:48:28.722019364Z","run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 6, CAST('{"event_id":6,"time":"2026-11-28T06:48:28.725908068Z","run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-04T06:48:28.725903931Z"},"content":{"arguments":{}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 7, CAST('{"event_id":7,"time":"2026-11-28T06:48:28.728398402Z","run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}' AS BLOB));
CREATE TABLE fact (
  run_id TEXT NOT NULL,
  seq    INTEGER NOT NULL, -- from 1, in the order in which they came
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  body   BLOB, -- JSON, content
  time   INTEGER NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
INSERT INTO fact VALUES ('run_signaled', 1, 'cancel', '', CAST('{"by":"ann"}' AS BLOB), 1795848508772511737);
CREATE TABLE gone ( -- runs that were removed by their age or for their room
  run_id    TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  time      INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO gone VALUES ('run_gone', 'ann', 1795848508588557951);
CREATE TABLE model_call (
  run_id   TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  summary  BLOB NOT NULL, -- JSON of lathe.CallSummary
  PRIMARY KEY (run_id, event_id)
) WITHOUT ROWID;
INSERT INTO model_call VALUES ('run_finished', 3, 1795848508649108093, CAST('{"run_id":"run_finished","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T06:48:28.649108093Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":1,"tool_calls":1,"tool_latency_ms":0}' AS BLOB));
INSERT INTO model_call VALUES ('run_finished', 9, 1795848508693760577, CAST('{"run_id":"run_finished","event_id":9,"session_id":"s1","principal":"ann","time":"2026-11-28T06:48:28.693760577Z","turn":2,"attempt":1,"prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":7,"tool_calls":0,"tool_latency_ms":0}' AS BLOB));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795848508741814274, CAST('{"run_id":"run_signaled","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T06:48:28.741814274Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":3,"tool_calls":1,"tool_latency_ms":0}' AS BLOB));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795848508710079561, CAST('{"run_id":"run_waiting","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T06:48:28.710079561Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":3,"tool_calls":1,"tool_latency_ms":0}' AS BLOB));
CREATE TABLE run (
  run_id     TEXT PRIMARY KEY,
  last_id    INTEGER NOT NULL,
  started    INTEGER NOT NULL,
  updated    INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  principal  TEXT NOT NULL,
  status     TEXT NOT NULL,
  summary    BLOB NOT NULL -- JSON of lathe.RunSummary
) WITHOUT ROWID;
INSERT INTO run VALUES ('run_finished', 10, 1795848508627797842, 1795848508695992718, 's1', 'ann', 'completed', CAST('{"run_id":"run_finished","request_id":"req_01M8GEK56K98VW9XEJPX5ZA70P","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"completed","reason":"answered","started":"2026-11-28T06:48:28.627797842Z","updated":"2026-11-28T06:48:28.695992718Z","last_event_id":10,"turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true}' AS BLOB));
INSERT INTO run VALUES ('run_signaled', 7, 1795848508732093036, 1795848508761488123, 's1', 'ann', 'parked', CAST('{"run_id":"run_signaled","request_id":"req_01M8GEK59V35C62FDNREHG1Y5C","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T06:48:28.732093036Z","updated":"2026-11-28T06:48:28.761488123Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T06:48:28.75682492Z"}' AS BLOB));
INSERT INTO run VALUES ('run_waiting', 7, 1795848508699849000, 1795848508728398402, 's1', 'ann', 'parked', CAST('{"run_id":"run_waiting","request_id":"req_01M8GEK58VD1P9C84VAXJPAYD2","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T06:48:28.699849Z","updated":"2026-11-28T06:48:28.728398402Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T06:48:28.725903931Z"}' AS BLOB));
CREATE TABLE worker (
  id    TEXT PRIMARY KEY,
  fleet TEXT NOT NULL,
  tools BLOB NOT NULL, -- JSON of []lathe.WorkerTool
  seq   INTEGER NOT NULL, -- the order in which they came
  since INTEGER NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO worker VALUES ('worker_1', 'mail', CAST('[{"name":"act","allowlist":null}]' AS BLOB), 1, 1795848508769262814, 4949448508769262814);
CREATE INDEX call_ended ON call (ended) WHERE ended > 0;
CREATE INDEX call_open ON call (state, lease_until) WHERE ended = 0;
CREATE INDEX call_queued ON call (definition, seq) WHERE state = 'queued';
CREATE INDEX call_run ON call (run_id);
CREATE UNIQUE INDEX fact_once ON fact (run_id, kind, key);
CREATE INDEX gone_time ON gone (time);
CREATE INDEX model_call_time ON model_call (time DESC, run_id DESC, event_id DESC);
CREATE INDEX run_principal ON run (principal, started DESC, run_id DESC);
CREATE INDEX run_session ON run (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run (started DESC, run_id DESC);
CREATE INDEX run_status ON run (status, started DESC, run_id DESC);
CREATE INDEX run_updated ON run (updated);
PRAGMA user_version = 5;
COMMIT;
