-- A database of schema version 2, as a program of that version wrote it. Approvals and runs in it do not expire.
CREATE TABLE call (
    key text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    run_id text NOT NULL COLLATE pg_catalog."C",
    call_id text NOT NULL,
    request_id text NOT NULL,
    session_id text NOT NULL,
    depth integer NOT NULL,
    tool text NOT NULL,
    definition text NOT NULL COLLATE pg_catalog."C",
    effect integer NOT NULL,
    args bytea,
    args_hash text NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL COLLATE pg_catalog."C",
    attempt integer DEFAULT 0 NOT NULL,
    starts integer DEFAULT 0 NOT NULL,
    worker text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    deadline timestamp with time zone NOT NULL,
    lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    cancelled boolean DEFAULT false NOT NULL,
    decided boolean DEFAULT false NOT NULL,
    ended timestamp with time zone,
    result bytea
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');
ALTER TABLE call ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME call_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE event (
    run_id text NOT NULL COLLATE pg_catalog."C",
    id bigint NOT NULL,
    mark bigint NOT NULL,
    body bytea NOT NULL
);
CREATE TABLE fact (
    run_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    seq integer NOT NULL,
    mark bigint NOT NULL,
    body bytea,
    "time" timestamp with time zone NOT NULL
);
CREATE TABLE lathe_schema (
    version integer NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE model_call (
    run_id text NOT NULL COLLATE pg_catalog."C",
    event_id bigint NOT NULL,
    "time" bigint NOT NULL,
    summary bytea NOT NULL
);
CREATE TABLE node (
    name text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL,
    until timestamp with time zone NOT NULL
);
CREATE TABLE run (
    run_id text NOT NULL COLLATE pg_catalog."C",
    last_id bigint NOT NULL,
    mark bigint NOT NULL,
    started bigint NOT NULL,
    updated bigint NOT NULL,
    session_id text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    resumable boolean NOT NULL,
    ended boolean NOT NULL,
    wake_at timestamp with time zone,
    summary bytea NOT NULL,
    facts integer DEFAULT 0 NOT NULL,
    seen_id bigint DEFAULT 0 NOT NULL,
    seen_facts integer DEFAULT 0 NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    owner text COLLATE pg_catalog."C",
    lease_until timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN (ended OR (NOT resumable)) THEN NULL::timestamp with time zone
    WHEN ((status <> 'parked'::text) OR (last_id > seen_id) OR (facts > seen_facts)) THEN lease_until
    WHEN (wake_at IS NOT NULL) THEN GREATEST(lease_until, wake_at)
    ELSE NULL::timestamp with time zone
END) STORED
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');
CREATE TABLE worker (
    id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    fleet text NOT NULL,
    tools bytea NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    until timestamp with time zone NOT NULL
);
ALTER TABLE worker ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME worker_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO call OVERRIDING SYSTEM VALUE VALUES ('key_1', 1, 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, convert_to('{"to":"ann"}', 'UTF8'), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', '2126-11-28 07:00:03.89221+00', '-infinity', false, false, NULL, NULL);
INSERT INTO event VALUES ('run_finished', 1, 8279444519631982072, convert_to('{"event_id":1,"time":"2026-11-28T07:00:03.642401677Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 2, 6724427155841307818, convert_to('{"event_id":2,"time":"2026-11-28T07:00:03.666693422Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 3, 8078784581029180219, convert_to('{"event_id":3,"time":"2026-11-28T07:00:03.679133049Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":12,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 4, 5067379955308052646, convert_to('{"event_id":4,"time":"2026-11-28T07:00:03.686565388Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 5, 7223515162536862476, convert_to('{"event_id":5,"time":"2026-11-28T07:00:03.692640986Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 8, 931077799623945420, convert_to('{"event_id":8,"time":"2026-11-28T07:00:03.714573166Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","messages":3,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 9, 4287661045751659421, convert_to('{"event_id":9,"time":"2026-11-28T07:00:03.721831723Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":7,"first_token_ms":7,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 10, 5092128959680834249, convert_to('{"event_id":10,"time":"2026-11-28T07:00:03.737433488Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":95},"content":{"answer":"The mail is sent."}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 1, 830861331741390487, convert_to('{"event_id":1,"time":"2026-11-28T07:00:03.742925742Z","run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 2, 5747253982027084202, convert_to('{"event_id":2,"time":"2026-11-28T07:00:03.753859596Z","run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 3, 3965666655213328315, convert_to('{"event_id":3,"time":"2026-11-28T07:00:03.765905823Z","run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":12,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 4, 4872259734681641828, convert_to('{"event_id":4,"time":"2026-11-28T07:00:03.769043202Z","run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 5, 6083960853609680417, convert_to('{"event_id":5,"time":"2026-11-28T07:00:03.782888072Z","run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 2, 2445915513813374865, convert_to('{"event_id":2,"time":"2026-11-28T07:00:03.824641732Z","run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 3, 2328715923006143645, convert_to('{"event_id":3,"time":"2026-11-28T07:00:03.82991052Z","run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":5,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 4, 4960804100683381439, convert_to('{"event_id":4,"time":"2026-11-28T07:00:03.849965978Z","run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 5, 5902158326939425140, convert_to('{"event_id":5,"time":"2026-11-28T07:00:03.855968426Z","run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 6, 3891401960677765407, convert_to('{"event_id":6,"time":"2026-11-28T07:00:03.85884577Z","run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-04T07:00:03.858801895Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 7, 1295022671110640735, convert_to('{"event_id":7,"time":"2026-11-28T07:00:03.873798615Z","run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 6, 2073718805558964302, convert_to('{"event_id":6,"time":"2026-11-28T07:00:03.70366391Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 7, 455865736507204406, convert_to('{"event_id":7,"time":"2026-11-28T07:00:03.708542784Z","run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 6, 4130827780216549190, convert_to('{"event_id":6,"time":"2026-11-28T07:00:03.788467594Z","run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-04T07:00:03.788465631Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 7, 6373640094285190957, convert_to('{"event_id":7,"time":"2026-11-28T07:00:03.802023453Z","run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 1, 612597177862913544, convert_to('{"event_id":1,"time":"2026-11-28T07:00:03.818126244Z","run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO fact VALUES ('run_signaled', 'cancel', '', 1, 2312553867069672787, convert_to('{"by":"ann"}', 'UTF8'), '2026-11-28 07:00:03.915505+00');
INSERT INTO lathe_schema VALUES (1, '2026-11-28 07:00:02.761194+00');
INSERT INTO lathe_schema VALUES (2, '2026-11-28 07:00:02.761194+00');
INSERT INTO model_call VALUES ('run_finished', 3, 1795849203679133049, convert_to('{"run_id":"run_finished","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:03.679133049Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":12,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 9, 1795849203721831723, convert_to('{"run_id":"run_finished","event_id":9,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:03.721831723Z","turn":2,"attempt":1,"prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":7,"tool_calls":0,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795849203765905823, convert_to('{"run_id":"run_waiting","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:03.765905823Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":12,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795849203829910520, convert_to('{"run_id":"run_signaled","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:03.82991052Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":5,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO run VALUES ('run_finished', 10, 5092128959680834249, 1795849203642401677, 1795849203737433488, 's1', 'ann', 'completed', true, true, NULL, convert_to('{"run_id":"run_finished","request_id":"req_01M8GF8BXT0YVFQCZDMY908W3Q","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"completed","reason":"answered","started":"2026-11-28T07:00:03.642401677Z","updated":"2026-11-28T07:00:03.737433488Z","last_event_id":10,"turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true}', 'UTF8'), 0, 0, 0, 1, 'node_01M8GF8BXT0YVFQCZDMY908W3P', '2026-11-28 07:00:13.646303+00', DEFAULT);
INSERT INTO run VALUES ('run_waiting', 7, 6373640094285190957, 1795849203742925742, 1795849203802023453, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:03.788465+00', convert_to('{"run_id":"run_waiting","request_id":"req_01M8GF8C0Y32244HEZAH136BK5","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:03.742925742Z","updated":"2026-11-28T07:00:03.802023453Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:03.788465631Z"}', 'UTF8'), 0, 7, 0, 1, NULL, '2026-11-28 07:00:03.810615+00', DEFAULT);
INSERT INTO run VALUES ('run_signaled', 7, 1295022671110640735, 1795849203818126244, 1795849203873798615, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:03.858801+00', convert_to('{"run_id":"run_signaled","request_id":"req_01M8GF8C3A304296K5QBMKHQC7","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:03.818126244Z","updated":"2026-11-28T07:00:03.873798615Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:03.858801895Z"}', 'UTF8'), 1, 7, 0, 1, NULL, '2026-11-28 07:00:03.883044+00', DEFAULT);
INSERT INTO worker OVERRIDING SYSTEM VALUE VALUES ('worker_1', 1, 'mail', convert_to('[{"name":"act","allowlist":null}]', 'UTF8'), '2026-11-28 07:00:03.903249+00', '2126-11-28 07:00:03.903249+00');
SELECT pg_catalog.setval('call_seq_seq', 1, true);
SELECT pg_catalog.setval('worker_seq_seq', 1, true);
ALTER TABLE ONLY call
    ADD CONSTRAINT call_pkey PRIMARY KEY (key);
ALTER TABLE ONLY event
    ADD CONSTRAINT event_pkey PRIMARY KEY (run_id, id);
ALTER TABLE ONLY fact
    ADD CONSTRAINT fact_pkey PRIMARY KEY (run_id, kind, key);
ALTER TABLE ONLY lathe_schema
    ADD CONSTRAINT lathe_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY model_call
    ADD CONSTRAINT model_call_pkey PRIMARY KEY (run_id, event_id);
ALTER TABLE ONLY node
    ADD CONSTRAINT node_pkey PRIMARY KEY (name);
ALTER TABLE ONLY run
    ADD CONSTRAINT run_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);
CREATE INDEX call_deadline ON call USING btree (deadline) WHERE (state = 'queued'::text);
CREATE INDEX call_ended ON call USING btree (ended) WHERE (ended IS NOT NULL);
CREATE INDEX call_lease ON call USING btree (lease_until) WHERE (state = ANY (ARRAY['claimed'::text, 'started'::text]));
CREATE INDEX call_queued ON call USING btree (definition, seq) WHERE (state = 'queued'::text);
CREATE INDEX call_run ON call USING btree (run_id);
CREATE INDEX model_call_time ON model_call USING btree ("time" DESC, run_id DESC, event_id DESC);
CREATE INDEX run_due ON run USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX run_owner ON run USING btree (owner) WHERE ((owner IS NOT NULL) AND (NOT ended));
CREATE INDEX run_principal ON run USING btree (principal, started DESC, run_id DESC);
CREATE INDEX run_session ON run USING btree (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run USING btree (started DESC, run_id DESC);
CREATE INDEX run_status ON run USING btree (status, started DESC, run_id DESC);
