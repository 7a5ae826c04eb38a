-- A database of schema version 5, as a program of that version wrote it. Approvals and runs in it do not expire.
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
    result bytea,
    traceparent text DEFAULT ''::text NOT NULL,
    tracestate text DEFAULT ''::text NOT NULL
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
CREATE TABLE gone (
    run_id text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL COLLATE pg_catalog."C",
    "time" timestamp with time zone NOT NULL
);
CREATE TABLE lathe_schema (
    version integer NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE lease (
    id bigint NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    until timestamp with time zone NOT NULL
);
ALTER TABLE lease ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lease_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
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
END) STORED,
    bytes bigint DEFAULT 0 NOT NULL,
    lease bigint,
    ended_at bigint GENERATED ALWAYS AS (
CASE
    WHEN ended THEN updated
    ELSE NULL::bigint
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
INSERT INTO call OVERRIDING SYSTEM VALUE VALUES ('key_1', 1, 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, convert_to('{"to":"ann"}', 'UTF8'), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', '2126-11-28 07:00:15.279995+00', '-infinity', false, false, NULL, NULL, '', '');
INSERT INTO event VALUES ('run_finished', 1, 7136959851551380582, convert_to('{"event_id":1,"time":"2026-11-28T07:00:14.754490574Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 2, 4193405411728332595, convert_to('{"event_id":2,"time":"2026-11-28T07:00:14.774576679Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 3, 409189448164624683, convert_to('{"event_id":3,"time":"2026-11-28T07:00:14.874265299Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":99,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 4, 692554563548114039, convert_to('{"event_id":4,"time":"2026-11-28T07:00:14.88154668Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 5, 4260923625948066970, convert_to('{"event_id":5,"time":"2026-11-28T07:00:14.898332896Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 8, 4584523475885939230, convert_to('{"event_id":8,"time":"2026-11-28T07:00:14.967378307Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","messages":3,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 9, 4372952228992587702, convert_to('{"event_id":9,"time":"2026-11-28T07:00:14.984672492Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":17,"first_token_ms":17,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 10, 4492225669490612669, convert_to('{"event_id":10,"time":"2026-11-28T07:00:15.020583678Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":266},"content":{"answer":"The mail is sent."}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 1, 5386627138751652185, convert_to('{"event_id":1,"time":"2026-11-28T07:00:15.034730084Z","run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 2, 7186048802155799051, convert_to('{"event_id":2,"time":"2026-11-28T07:00:15.059024874Z","run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 3, 1509075077793392828, convert_to('{"event_id":3,"time":"2026-11-28T07:00:15.068384201Z","run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":9,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 4, 9216804728343358863, convert_to('{"event_id":4,"time":"2026-11-28T07:00:15.086184894Z","run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 5, 6002166197211618127, convert_to('{"event_id":5,"time":"2026-11-28T07:00:15.101935973Z","run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 6, 6192734153843442266, convert_to('{"event_id":6,"time":"2026-11-28T07:00:15.117855625Z","run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-04T07:00:15.117849744Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 7, 1155172919324326170, convert_to('{"event_id":7,"time":"2026-11-28T07:00:15.134146615Z","run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 1, 6087502752357603105, convert_to('{"event_id":1,"time":"2026-11-28T07:00:15.154532152Z","run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 5, 6225817765930274780, convert_to('{"event_id":5,"time":"2026-11-28T07:00:15.22152798Z","run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 6, 9105990923552545178, convert_to('{"event_id":6,"time":"2026-11-28T07:00:14.922149062Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 7, 1754797442967459418, convert_to('{"event_id":7,"time":"2026-11-28T07:00:14.936691253Z","run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 2, 6091723410060844642, convert_to('{"event_id":2,"time":"2026-11-28T07:00:15.198668591Z","run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 3, 9143187282965082247, convert_to('{"event_id":3,"time":"2026-11-28T07:00:15.207042537Z","run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":8,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 4, 2223862339080274745, convert_to('{"event_id":4,"time":"2026-11-28T07:00:15.214689335Z","run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 6, 3180237938554908803, convert_to('{"event_id":6,"time":"2026-11-28T07:00:15.232525666Z","run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-04T07:00:15.232522409Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 7, 2642126495273513089, convert_to('{"event_id":7,"time":"2026-11-28T07:00:15.249142768Z","run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO fact VALUES ('run_signaled', 'cancel', '', 1, 8260748197678854088, convert_to('{"by":"ann"}', 'UTF8'), '2026-11-28 07:00:15.31289+00');
INSERT INTO gone VALUES ('run_gone', 'ann', '2026-11-28 07:00:14.731193+00');
INSERT INTO lathe_schema VALUES (1, '2026-11-28 07:00:13.510369+00');
INSERT INTO lathe_schema VALUES (2, '2026-11-28 07:00:13.510369+00');
INSERT INTO lathe_schema VALUES (3, '2026-11-28 07:00:13.510369+00');
INSERT INTO lathe_schema VALUES (4, '2026-11-28 07:00:13.510369+00');
INSERT INTO lathe_schema VALUES (5, '2026-11-28 07:00:13.510369+00');
INSERT INTO model_call VALUES ('run_finished', 3, 1795849214874265299, convert_to('{"run_id":"run_finished","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:14.874265299Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":99,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 9, 1795849214984672492, convert_to('{"run_id":"run_finished","event_id":9,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:14.984672492Z","turn":2,"attempt":1,"prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":17,"tool_calls":0,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795849215068384201, convert_to('{"run_id":"run_waiting","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:15.068384201Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":9,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795849215207042537, convert_to('{"run_id":"run_signaled","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:15.207042537Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":8,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO run VALUES ('run_finished', 10, 4492225669490612669, 1795849214754490574, 1795849215020583678, 's1', 'ann', 'completed', true, true, NULL, convert_to('{"run_id":"run_finished","request_id":"req_01M8GF8PS25ZBVRE10MCVR34YK","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"completed","reason":"answered","started":"2026-11-28T07:00:14.754490574Z","updated":"2026-11-28T07:00:15.020583678Z","last_event_id":10,"turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true}', 'UTF8'), 0, 0, 0, 1, 'node_01M8GF8PS25ZBVRE10MCVR34YJ', '2026-11-28 07:00:24.755116+00', DEFAULT, 4655, NULL, DEFAULT);
INSERT INTO run VALUES ('run_waiting', 7, 1155172919324326170, 1795849215034730084, 1795849215134146615, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:15.117849+00', convert_to('{"run_id":"run_waiting","request_id":"req_01M8GF8Q1T4N0GPQQ3JZ4RP9MY","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:15.034730084Z","updated":"2026-11-28T07:00:15.134146615Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:15.117849744Z"}', 'UTF8'), 0, 7, 0, 1, NULL, '2026-11-28 07:00:15.151333+00', DEFAULT, 3308, NULL, DEFAULT);
INSERT INTO run VALUES ('run_signaled', 7, 2642126495273513089, 1795849215154532152, 1795849215249142768, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:15.232522+00', convert_to('{"run_id":"run_signaled","request_id":"req_01M8GF8Q5J77VJEWJ4ZTENG209","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:15.154532152Z","updated":"2026-11-28T07:00:15.249142768Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:15.232522409Z"}', 'UTF8'), 1, 7, 0, 1, NULL, '2026-11-28 07:00:15.25871+00', DEFAULT, 3314, NULL, DEFAULT);
INSERT INTO worker OVERRIDING SYSTEM VALUE VALUES ('worker_1', 1, 'mail', convert_to('[{"name":"act","allowlist":null}]', 'UTF8'), '2026-11-28 07:00:15.297797+00', '2126-11-28 07:00:15.297797+00');
SELECT pg_catalog.setval('call_seq_seq', 1, true);
SELECT pg_catalog.setval('lease_id_seq', 1, false);
SELECT pg_catalog.setval('worker_seq_seq', 1, true);
ALTER TABLE ONLY call
    ADD CONSTRAINT call_pkey PRIMARY KEY (key);
ALTER TABLE ONLY event
    ADD CONSTRAINT event_pkey PRIMARY KEY (run_id, id);
ALTER TABLE ONLY fact
    ADD CONSTRAINT fact_pkey PRIMARY KEY (run_id, kind, key);
ALTER TABLE ONLY gone
    ADD CONSTRAINT gone_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY lathe_schema
    ADD CONSTRAINT lathe_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (id);
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
CREATE INDEX gone_time ON gone USING btree ("time");
CREATE INDEX lease_node ON lease USING btree (node);
CREATE INDEX model_call_time ON model_call USING btree ("time" DESC, run_id DESC, event_id DESC);
CREATE INDEX run_due ON run USING btree (due_at, lease) WHERE (due_at IS NOT NULL);
CREATE INDEX run_ended ON run USING btree (ended_at, run_id) WHERE (ended_at IS NOT NULL);
CREATE INDEX run_owner ON run USING btree (owner) WHERE ((owner IS NOT NULL) AND (NOT ended));
CREATE INDEX run_principal ON run USING btree (principal, started DESC, run_id DESC);
CREATE INDEX run_session ON run USING btree (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run USING btree (started DESC, run_id DESC);
CREATE INDEX run_status ON run USING btree (status, started DESC, run_id DESC);
