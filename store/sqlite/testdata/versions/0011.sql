-- A store of schema version 11, as a program of that version wrote it. Approvals and runs in it do not expire.
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
INSERT INTO call VALUES (1, 'key_1', 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, CAST('{"to":"ann"}' AS BLOB), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', 4949555724237074970, 0, 0, 0, 0, NULL, '', '');
CREATE TABLE conversation ( -- the events whose messages are not in their body
  run_id   TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  last     BLOB NOT NULL, -- digest of the last message
  PRIMARY KEY (run_id, event_id)
) WITHOUT ROWID;
INSERT INTO conversation VALUES ('run_short', 1, X'1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8');
INSERT INTO conversation VALUES ('run_long', 1, X'70b063d4d3c71190f5fd7a3662b99f13fd570036e894924debf0e948695b7fd1');
CREATE TABLE event (
  run_id TEXT NOT NULL,
  id     INTEGER NOT NULL,
  body   BLOB NOT NULL, -- JSON of lathe.Event, content included
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;
INSERT INTO event VALUES ('run_finished', 1, CAST('{"event_id":1,"time":"2026-11-29T12:35:24.169115811Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"lathetest","provider":"lathetest","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 2, CAST('{"event_id":2,"time":"2026-11-29T12:35:24.17041052Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 3, CAST('{"event_id":3,"time":"2026-11-29T12:35:24.172738602Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":2,"first_token_ms":2,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 4, CAST('{"event_id":4,"time":"2026-11-29T12:35:24.174081272Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 5, CAST('{"event_id":5,"time":"2026-11-29T12:35:24.178406268Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 6, CAST('{"event_id":6,"time":"2026-11-29T12:35:24.18806208Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 7, CAST('{"event_id":7,"time":"2026-11-29T12:35:24.191946688Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 8, CAST('{"event_id":8,"time":"2026-11-29T12:35:24.193383277Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"c62ac69f238e646c83e7645ab7191d6a708f5031a5f5d1cb8fbc4572b89d56e1","prompt_hash_v2":"4335fec2b1552f774256c97d92a8bd5ef8104a0d40801070f96b333096c8400b","messages":3,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 9, CAST('{"event_id":9,"time":"2026-11-29T12:35:24.197970731Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"stop","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7},"latency_ms":4,"first_token_ms":4,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_finished', 10, CAST('{"event_id":10,"time":"2026-11-29T12:35:24.201292932Z","run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":4,"output_tokens":8,"total_tokens":12},"latency_ms":32},"content":{"answer":"The mail is sent."}}' AS BLOB));
INSERT INTO event VALUES ('run_long', 1, CAST('{"event_id":1,"time":"0001-01-01T00:00:00Z","run_id":"run_long","request_id":"","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"","tool_use_mode":"","tool_failure_policy":"","tools":{"count":0,"hash":""},"limits":{"max_iterations":0,"max_total_tool_calls":0,"max_tool_args_bytes":0,"max_tool_output_bytes":0,"run_timeout_ms":0}},"content":{"messages":"70b063d4d3c71190f5fd7a3662b99f13fd570036e894924debf0e948695b7fd1","principal":"bob"}}' AS BLOB));
INSERT INTO event VALUES ('run_short', 1, CAST('{"event_id":1,"time":"0001-01-01T00:00:00Z","run_id":"run_short","request_id":"","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"","tool_use_mode":"","tool_failure_policy":"","tools":{"count":0,"hash":""},"limits":{"max_iterations":0,"max_total_tool_calls":0,"max_tool_args_bytes":0,"max_tool_output_bytes":0,"run_timeout_ms":0}},"content":{"messages":"1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8","principal":"bob"}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 1, CAST('{"event_id":1,"time":"2026-11-29T12:35:24.226259566Z","run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"lathetest","provider":"lathetest","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 2, CAST('{"event_id":2,"time":"2026-11-29T12:35:24.228290815Z","run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 3, CAST('{"event_id":3,"time":"2026-11-29T12:35:24.23000457Z","run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":1,"first_token_ms":1,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 4, CAST('{"event_id":4,"time":"2026-11-29T12:35:24.230986636Z","run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 5, CAST('{"event_id":5,"time":"2026-11-29T12:35:24.231782357Z","run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 6, CAST('{"event_id":6,"time":"2026-11-29T12:35:24.233287476Z","run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-05T12:35:24.233286124Z"},"content":{"arguments":{}}}' AS BLOB));
INSERT INTO event VALUES ('run_signaled', 7, CAST('{"event_id":7,"time":"2026-11-29T12:35:24.234665123Z","run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 1, CAST('{"event_id":1,"time":"2026-11-29T12:35:24.202344329Z","run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"lathetest","provider":"lathetest","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 2, CAST('{"event_id":2,"time":"2026-11-29T12:35:24.20590896Z","run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","messages":1,"tools":1}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 3, CAST('{"event_id":3,"time":"2026-11-29T12:35:24.208675244Z","run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":2,"first_token_ms":2,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 4, CAST('{"event_id":4,"time":"2026-11-29T12:35:24.211248112Z","run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 5, CAST('{"event_id":5,"time":"2026-11-29T12:35:24.212423855Z","run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 6, CAST('{"event_id":6,"time":"2026-11-29T12:35:24.221998823Z","run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-05T12:35:24.221995076Z"},"content":{"arguments":{}}}' AS BLOB));
INSERT INTO event VALUES ('run_waiting', 7, CAST('{"event_id":7,"time":"2026-11-29T12:35:24.224363134Z","run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}' AS BLOB));
CREATE TABLE fact (
  run_id TEXT NOT NULL,
  seq    INTEGER NOT NULL, -- from 1, in the order in which they came
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  body   BLOB, -- JSON, content
  time   INTEGER NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
INSERT INTO fact VALUES ('run_signaled', 1, 'cancel', '', CAST('{"by":"ann"}' AS BLOB), 1795955724262049741);
CREATE TABLE gone ( -- runs that were removed by their age or for their room
  run_id    TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  time      INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO gone VALUES ('run_gone', 'ann', 1795955724142016976);
CREATE TABLE ledger_balance ( -- what was booked on an account of a budget
  kind            TEXT NOT NULL,
  name            TEXT NOT NULL,
  period          TEXT NOT NULL,
  spent_nanos     INTEGER NOT NULL DEFAULT 0,
  spent_tokens    INTEGER NOT NULL DEFAULT 0,
  reserved_nanos  INTEGER NOT NULL DEFAULT 0,
  reserved_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, name, period)
) WITHOUT ROWID;
INSERT INTO ledger_balance VALUES ('group', 'team', '2026-11', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('group', 'team', '2026-11-23', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('key', 'ann', '2026-11', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('key', 'ann', '2026-11-23', 500, 100, 700, 150);
CREATE TABLE ledger_reservation (
  id            TEXT PRIMARY KEY,
  state         TEXT NOT NULL, -- open, charged, recorded
  expires       INTEGER NOT NULL,
  day           TEXT NOT NULL,
  key           TEXT NOT NULL,
  team          TEXT NOT NULL, -- the group
  model         TEXT NOT NULL,
  input_tokens  INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  nanos         INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO ledger_reservation VALUES ('res_open', 'open', 4949555724247919220, '2026-11-23', 'ann', 'team', 'mail', 100, 50, 700);
CREATE TABLE ledger_usage (
  day                TEXT NOT NULL,
  key                TEXT NOT NULL,
  team               TEXT NOT NULL,
  model              TEXT NOT NULL,
  calls              INTEGER NOT NULL,
  estimated          INTEGER NOT NULL,
  unpriced           INTEGER NOT NULL,
  input_tokens       INTEGER NOT NULL,
  cached_tokens      INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  tokens             INTEGER NOT NULL,
  nanos              INTEGER NOT NULL,
  PRIMARY KEY (day, key, team, model)
) WITHOUT ROWID;
INSERT INTO ledger_usage VALUES ('2026-11-23', 'ann', 'team', 'mail', 1, 0, 0, 80, 0, 0, 20, 100, 500);
CREATE TABLE message (
  digest   BLOB PRIMARY KEY, -- as package conversation computes it
  previous BLOB,             -- digest of the message before it; NULL: it is the first
  body     BLOB NOT NULL     -- JSON of lathe.Message
) WITHOUT ROWID;
INSERT INTO message VALUES (X'1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8', NULL, CAST('{"role":"user","parts":[{"type":"text","text":"A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. "}]}' AS BLOB));
INSERT INTO message VALUES (X'70b063d4d3c71190f5fd7a3662b99f13fd570036e894924debf0e948695b7fd1', X'1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8', CAST('{"role":"user","parts":[{"type":"text","text":"And a short one."}]}' AS BLOB));
CREATE TABLE model_call (
  run_id   TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  summary  BLOB NOT NULL, -- JSON of lathe.CallSummary
  PRIMARY KEY (run_id, event_id)
) WITHOUT ROWID;
INSERT INTO model_call VALUES ('run_finished', 3, 1795955724172738602, CAST('{"run_id":"run_finished","event_id":3,"request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","principal":"ann","time":"2026-11-29T12:35:24.172738602Z","turn":1,"attempt":1,"prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":2,"first_token_ms":2,"tool_calls":1,"tool_latency_ms":0,"tools":[{"tool":"send_mail","success":true,"latency_ms":0}]}' AS BLOB));
INSERT INTO model_call VALUES ('run_finished', 9, 1795955724197970731, CAST('{"run_id":"run_finished","event_id":9,"request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","principal":"ann","time":"2026-11-29T12:35:24.197970731Z","turn":2,"attempt":1,"prompt_hash":"c62ac69f238e646c83e7645ab7191d6a708f5031a5f5d1cb8fbc4572b89d56e1","prompt_hash_v2":"4335fec2b1552f774256c97d92a8bd5ef8104a0d40801070f96b333096c8400b","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7},"latency_ms":4,"first_token_ms":4,"tool_calls":0,"tool_latency_ms":0}' AS BLOB));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795955724230004570, CAST('{"run_id":"run_signaled","event_id":3,"request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","principal":"ann","time":"2026-11-29T12:35:24.23000457Z","turn":1,"attempt":1,"prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":1,"first_token_ms":1,"tool_calls":1,"tool_latency_ms":0}' AS BLOB));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795955724208675244, CAST('{"run_id":"run_waiting","event_id":3,"request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","principal":"ann","time":"2026-11-29T12:35:24.208675244Z","turn":1,"attempt":1,"prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":2,"first_token_ms":2,"tool_calls":1,"tool_latency_ms":0}' AS BLOB));
CREATE TABLE request ( -- which run answers a request
  digest    BLOB PRIMARY KEY,
  run_id    TEXT NOT NULL,
  time      INTEGER NOT NULL,
  delivered INTEGER -- NULL: the client has not received the answer
) WITHOUT ROWID;
INSERT INTO request VALUES (X'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'run_finished', 1795955724242184987, NULL);
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
INSERT INTO run VALUES ('run_finished', 10, 1795955724169115811, 1795955724201292932, 's1', 'ann', 'completed', CAST('{"run_id":"run_finished","request_id":"req_01M8KMV3W6DVK5BMDBAAMXFHZD","session_id":"s1","principal":"ann","target":"mail","provider":"lathetest","model":"lathetest","status":"completed","reason":"answered","started":"2026-11-29T12:35:24.169115811Z","updated":"2026-11-29T12:35:24.201292932Z","ended":"2026-11-29T12:35:24.201292932Z","last_event_id":10,"turns":2,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":4,"output_tokens":8,"total_tokens":12},"resumable":true}' AS BLOB));
INSERT INTO run VALUES ('run_long', 1, -6795364578871345152, -6795364578871345152, '', 'bob', 'running', CAST('{"run_id":"run_long","request_id":"","principal":"bob","provider":"","model":"","status":"running","started":"0001-01-01T00:00:00Z","updated":"0001-01-01T00:00:00Z","last_event_id":1,"turns":0,"tool_calls":0,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}' AS BLOB));
INSERT INTO run VALUES ('run_short', 1, -6795364578871345152, -6795364578871345152, '', 'bob', 'running', CAST('{"run_id":"run_short","request_id":"","principal":"bob","provider":"","model":"","status":"running","started":"0001-01-01T00:00:00Z","updated":"0001-01-01T00:00:00Z","last_event_id":1,"turns":0,"tool_calls":0,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}' AS BLOB));
INSERT INTO run VALUES ('run_signaled', 7, 1795955724226259566, 1795955724234665123, 's1', 'ann', 'parked', CAST('{"run_id":"run_signaled","request_id":"req_01M8KMV3Y2BBPMBGEX83J7VM27","session_id":"s1","principal":"ann","target":"mail","provider":"lathetest","model":"lathetest","status":"parked","reason":"awaiting_approval","started":"2026-11-29T12:35:24.226259566Z","updated":"2026-11-29T12:35:24.234665123Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-05T12:35:24.233286124Z"}' AS BLOB));
INSERT INTO run VALUES ('run_waiting', 7, 1795955724202344329, 1795955724224363134, 's1', 'ann', 'parked', CAST('{"run_id":"run_waiting","request_id":"req_01M8KMV3XAB9AJZG65WX8FVPZT","session_id":"s1","principal":"ann","target":"mail","provider":"lathetest","model":"lathetest","status":"parked","reason":"awaiting_approval","started":"2026-11-29T12:35:24.202344329Z","updated":"2026-11-29T12:35:24.224363134Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-05T12:35:24.221995076Z"}' AS BLOB));
CREATE TABLE secret ( -- random values that all processes share
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO secret VALUES ('one', CAST('a shared secret' AS BLOB));
INSERT INTO secret VALUES ('value:tool/act', CAST('disabled' AS BLOB));
CREATE TABLE worker (
  id    TEXT PRIMARY KEY,
  fleet TEXT NOT NULL,
  tools BLOB NOT NULL, -- JSON of []lathe.WorkerTool
  seq   INTEGER NOT NULL, -- the order in which they came
  since INTEGER NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO worker VALUES ('worker_1', 'mail', CAST('[{"name":"act","allowlist":null}]' AS BLOB), 1, 1795955724239152757, 4949555724239152757);
CREATE INDEX call_ended ON call (ended) WHERE ended > 0;
CREATE INDEX call_open ON call (state, lease_until) WHERE ended = 0;
CREATE INDEX call_queued ON call (definition, seq) WHERE state = 'queued';
CREATE INDEX call_run ON call (run_id);
CREATE INDEX conversation_last ON conversation (last);
CREATE UNIQUE INDEX fact_once ON fact (run_id, kind, key);
CREATE INDEX gone_time ON gone (time);
CREATE INDEX ledger_reservation_expires ON ledger_reservation (state, expires);
CREATE INDEX message_previous ON message (previous) WHERE previous IS NOT NULL;
CREATE INDEX model_call_time ON model_call (time DESC, run_id DESC, event_id DESC);
CREATE INDEX request_run ON request (run_id);
CREATE INDEX request_time ON request (time);
CREATE INDEX run_ended ON run (updated) WHERE status NOT IN ('running', 'parked');
CREATE INDEX run_principal ON run (principal, started DESC, run_id DESC);
CREATE INDEX run_principal_status ON run (principal, status, started DESC, run_id DESC);
CREATE INDEX run_session ON run (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run (started DESC, run_id DESC);
CREATE INDEX run_status ON run (status, started DESC, run_id DESC);
PRAGMA user_version = 11;
COMMIT;
