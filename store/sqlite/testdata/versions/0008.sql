-- A store of schema version 8, as a program of that version wrote it. Approvals and runs in it do not expire.
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
INSERT INTO call VALUES (1, 'key_1', 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, CAST('{"to":"ann"}' AS BLOB), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', 4949448839359575040, 0, 0, 0, 0, NULL, '', '');
CREATE TABLE event (
  run_id TEXT NOT NULL,
  id     INTEGER NOT NULL,
  body   BLOB NOT NULL, -- JSON of lathe.Event, content included
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;
INSERT INTO event VALUES ('run_finished', 1, CAST('{"event_id":1,"time":"2026-11-28T06:53:59.202237404Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"mail","provider":"sim","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 2, CAST('{"event_id":2,"time":"2026-11-28T06:53:59.220191951Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 3, CAST('{"event_id":3,"time":"2026-11-28T06:53:59.227057057Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":6,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 4, CAST('{"event_id":4,"time":"2026-11-28T06:53:59.230929098Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 5, CAST('{"event_id":5,"time":"2026-11-28T06:53:59.237387398Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 6, CAST('{"event_id":6,"time":"2026-11-28T06:53:59.244080255Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 7, CAST('{"event_id":7,"time":"2026-11-28T06:53:59.252084605Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 8, CAST('{"event_id":8,"time":"2026-11-28T06:53:59.25660774Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"fe57ef474713708501b14b53af5630f00fb44eb6c9dedec7298e59102e9afacc","prompt_hash_v2":"8552c0fe25b6ef95997dcb52a2d2b4c8875a462f647c771de53b075266325822","messages":3,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 9, CAST('{"event_id":9,"time":"2026-11-28T06:53:59.261978613Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":5,"first_token_ms":5,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 10, CAST('{"event_id":10,"time":"2026-11-28T06:53:59.269552652Z","run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":67},"content":{"answer":"The mail is sent."}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 1, CAST('{"event_id":1,"time":"2026-11-28T06:53:59.315462867Z","run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"mail","provider":"sim","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 2, CAST('{"event_id":2,"time":"2026-11-28T06:53:59.323999264Z","run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 3, CAST('{"event_id":3,"time":"2026-11-28T06:53:59.331073629Z","run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":7,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 4, CAST('{"event_id":4,"time":"2026-11-28T06:53:59.339600477Z","run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 5, CAST('{"event_id":5,"time":"2026-11-28T06:53:59.342686098Z","run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 6, CAST('{"event_id":6,"time":"2026-11-28T06:53:59.347819277Z","run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-04T06:53:59.347702965Z"},"content":{"arguments":{}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 7, CAST('{"event_id":7,"time":"2026-11-28T06:53:59.351921298Z","run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 1, CAST('{"event_id":1,"time":"2026-11-28T06:53:59.276649291Z","run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"mail","provider":"sim","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 2, CAST('{"event_id":2,"time":"2026-11-28T06:53:59.280745961Z","run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 3, CAST('{"event_id":3,"time":"2026-11-28T06:53:59.283840148Z","run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":3,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 4, CAST('{"event_id":4,"time":"2026-11-28T06:53:59.288001583Z","run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 5, CAST('{"event_id":5,"time":"2026-11-28T06:53:59.293835119Z","run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 6, CAST('{"event_id":6,"time":"2026-11-28T06:53:59.29749736Z","run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-04T06:53:59.297493243Z"},"content":{"arguments":{}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 7, CAST('{"event_id":7,"time":"2026-11-28T06:53:59.309679687Z","run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}' AS BLOB));
CREATE TABLE fact (
  run_id TEXT NOT NULL,
  seq    INTEGER NOT NULL, -- from 1, in the order in which they came
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  body   BLOB, -- JSON, content
  time   INTEGER NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
INSERT INTO fact VALUES ('run_signaled', 1, 'cancel', '', CAST('{"by":"ann"}' AS BLOB), 1795848839377269299);
CREATE TABLE gone ( -- runs that were removed by their age or for their room
  run_id    TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  time      INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO gone VALUES ('run_gone', 'ann', 1795848839156755467);
CREATE TABLE model_call (
  run_id   TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  summary  BLOB NOT NULL, -- JSON of lathe.CallSummary
  PRIMARY KEY (run_id, event_id)
) WITHOUT ROWID;
INSERT INTO model_call VALUES ('run_finished', 3, 1795848839227057057, CAST('{"run_id":"run_finished","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T06:53:59.227057057Z","turn":1,"attempt":1,"prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":6,"tool_calls":1,"tool_latency_ms":0,"tools":[{"tool":"send_mail","success":true,"latency_ms":0}]}' AS BLOB));
INSERT INTO model_call VALUES ('run_finished', 9, 1795848839261978613, CAST('{"run_id":"run_finished","event_id":9,"session_id":"s1","principal":"ann","time":"2026-11-28T06:53:59.261978613Z","turn":2,"attempt":1,"prompt_hash":"fe57ef474713708501b14b53af5630f00fb44eb6c9dedec7298e59102e9afacc","prompt_hash_v2":"8552c0fe25b6ef95997dcb52a2d2b4c8875a462f647c771de53b075266325822","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":5,"first_token_ms":5,"tool_calls":0,"tool_latency_ms":0}' AS BLOB));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795848839331073629, CAST('{"run_id":"run_signaled","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T06:53:59.331073629Z","turn":1,"attempt":1,"prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":7,"tool_calls":1,"tool_latency_ms":0}' AS BLOB));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795848839283840148, CAST('{"run_id":"run_waiting","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T06:53:59.283840148Z","turn":1,"attempt":1,"prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":3,"tool_calls":1,"tool_latency_ms":0}' AS BLOB));
CREATE TABLE request ( -- which run answers a request
  digest    BLOB PRIMARY KEY,
  run_id    TEXT NOT NULL,
  time      INTEGER NOT NULL,
  delivered INTEGER -- NULL: the client has not received the answer
) WITHOUT ROWID;
INSERT INTO request VALUES (X'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'run_finished', 1795848839384912981, NULL);
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
INSERT INTO run VALUES ('run_finished', 10, 1795848839202237404, 1795848839269552652, 's1', 'ann', 'completed', CAST('{"run_id":"run_finished","request_id":"req_01M8GEX8120BC5J8JH94N7FVZ0","session_id":"s1","principal":"ann","target":"mail","provider":"sim","model":"mail","status":"completed","reason":"answered","started":"2026-11-28T06:53:59.202237404Z","updated":"2026-11-28T06:53:59.269552652Z","ended":"2026-11-28T06:53:59.269552652Z","last_event_id":10,"turns":2,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true}' AS BLOB));
INSERT INTO run VALUES ('run_signaled', 7, 1795848839315462867, 1795848839351921298, 's1', 'ann', 'parked', CAST('{"run_id":"run_signaled","request_id":"req_01M8GEX84K020S9PZCY4XJ7YKN","session_id":"s1","principal":"ann","target":"mail","provider":"sim","model":"mail","status":"parked","reason":"awaiting_approval","started":"2026-11-28T06:53:59.315462867Z","updated":"2026-11-28T06:53:59.351921298Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T06:53:59.347702965Z"}' AS BLOB));
INSERT INTO run VALUES ('run_waiting', 7, 1795848839276649291, 1795848839309679687, 's1', 'ann', 'parked', CAST('{"run_id":"run_waiting","request_id":"req_01M8GEX83C4WGBK15CN6602F04","session_id":"s1","principal":"ann","target":"mail","provider":"sim","model":"mail","status":"parked","reason":"awaiting_approval","started":"2026-11-28T06:53:59.276649291Z","updated":"2026-11-28T06:53:59.309679687Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T06:53:59.297493243Z"}' AS BLOB));
CREATE TABLE secret ( -- random values that all processes share
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO secret VALUES ('one', CAST('a shared secret' AS BLOB));
CREATE TABLE worker (
  id    TEXT PRIMARY KEY,
  fleet TEXT NOT NULL,
  tools BLOB NOT NULL, -- JSON of []lathe.WorkerTool
  seq   INTEGER NOT NULL, -- the order in which they came
  since INTEGER NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO worker VALUES ('worker_1', 'mail', CAST('[{"name":"act","allowlist":null}]' AS BLOB), 1, 1795848839375097422, 4949448839375097422);
CREATE INDEX call_ended ON call (ended) WHERE ended > 0;
CREATE INDEX call_open ON call (state, lease_until) WHERE ended = 0;
CREATE INDEX call_queued ON call (definition, seq) WHERE state = 'queued';
CREATE INDEX call_run ON call (run_id);
CREATE UNIQUE INDEX fact_once ON fact (run_id, kind, key);
CREATE INDEX gone_time ON gone (time);
CREATE INDEX model_call_time ON model_call (time DESC, run_id DESC, event_id DESC);
CREATE INDEX request_run ON request (run_id);
CREATE INDEX request_time ON request (time);
CREATE INDEX run_ended ON run (updated) WHERE status NOT IN ('running', 'parked');
CREATE INDEX run_principal ON run (principal, started DESC, run_id DESC);
CREATE INDEX run_session ON run (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run (started DESC, run_id DESC);
CREATE INDEX run_status ON run (status, started DESC, run_id DESC);
PRAGMA user_version = 8;
COMMIT;
