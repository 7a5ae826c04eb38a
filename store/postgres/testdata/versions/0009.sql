-- A database of schema version 9, as a program of that version wrote it. Approvals and runs in it do not expire.
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
CREATE TABLE ledger_balance (
    kind text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    period text NOT NULL COLLATE pg_catalog."C",
    spent_nanos bigint DEFAULT 0 NOT NULL,
    spent_tokens bigint DEFAULT 0 NOT NULL,
    reserved_nanos bigint DEFAULT 0 NOT NULL,
    reserved_tokens bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE ledger_reservation (
    id text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    expires timestamp with time zone NOT NULL,
    day text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    team text NOT NULL COLLATE pg_catalog."C",
    model text NOT NULL COLLATE pg_catalog."C",
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    nanos bigint NOT NULL
);
CREATE TABLE ledger_usage (
    day text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    team text NOT NULL COLLATE pg_catalog."C",
    model text NOT NULL COLLATE pg_catalog."C",
    calls bigint NOT NULL,
    estimated bigint NOT NULL,
    unpriced bigint NOT NULL,
    input_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    tokens bigint NOT NULL,
    nanos bigint NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE model_call (
    run_id text NOT NULL COLLATE pg_catalog."C",
    event_id bigint NOT NULL,
    "time" bigint NOT NULL,
    summary bytea NOT NULL
);
CREATE TABLE named_value (
    name text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);
CREATE TABLE node (
    name text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL,
    until timestamp with time zone NOT NULL
);
CREATE TABLE request (
    digest bytea NOT NULL,
    run_id text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL,
    delivered timestamp with time zone
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
CREATE TABLE secret (
    name text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);
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
INSERT INTO call OVERRIDING SYSTEM VALUE VALUES ('key_1', 1, 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, convert_to('{"to":"ann"}', 'UTF8'), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', '2126-11-28 07:00:30.717727+00', '-infinity', false, false, NULL, NULL, '', '');
INSERT INTO event VALUES ('run_finished', 1, 1355471168383194835, convert_to('{"event_id":1,"time":"2026-11-28T07:00:30.335569335Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"mail","provider":"sim","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 2, 6570051183762810483, convert_to('{"event_id":2,"time":"2026-11-28T07:00:30.352239459Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 3, 4984000318387684398, convert_to('{"event_id":3,"time":"2026-11-28T07:00:30.366240176Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":14,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 4, 8435165476520569851, convert_to('{"event_id":4,"time":"2026-11-28T07:00:30.378124573Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 5, 3056259071969353778, convert_to('{"event_id":5,"time":"2026-11-28T07:00:30.392926722Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 6, 7173447557115073242, convert_to('{"event_id":6,"time":"2026-11-28T07:00:30.410342761Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 7, 4464987472948803550, convert_to('{"event_id":7,"time":"2026-11-28T07:00:30.421316882Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 8, 1274095044264152939, convert_to('{"event_id":8,"time":"2026-11-28T07:00:30.434149309Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"fe57ef474713708501b14b53af5630f00fb44eb6c9dedec7298e59102e9afacc","prompt_hash_v2":"8552c0fe25b6ef95997dcb52a2d2b4c8875a462f647c771de53b075266325822","messages":3,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 9, 7584533781389985171, convert_to('{"event_id":9,"time":"2026-11-28T07:00:30.454157986Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":19,"first_token_ms":19,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 10, 4093765194615038636, convert_to('{"event_id":10,"time":"2026-11-28T07:00:30.463666258Z","run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":128},"content":{"answer":"The mail is sent."}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 1, 9071579944285353947, convert_to('{"event_id":1,"time":"2026-11-28T07:00:30.471894366Z","run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"mail","provider":"sim","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 2, 570517558517935467, convert_to('{"event_id":2,"time":"2026-11-28T07:00:30.486435396Z","run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 3, 1506281237820680290, convert_to('{"event_id":3,"time":"2026-11-28T07:00:30.496976538Z","run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":10,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 4, 7834578953053865672, convert_to('{"event_id":4,"time":"2026-11-28T07:00:30.502401323Z","run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 5, 4196258553129087637, convert_to('{"event_id":5,"time":"2026-11-28T07:00:30.528364839Z","run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 6, 4459388333402080247, convert_to('{"event_id":6,"time":"2026-11-28T07:00:30.56239737Z","run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-04T07:00:30.562394214Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 7, 5547479884300685245, convert_to('{"event_id":7,"time":"2026-11-28T07:00:30.57227659Z","run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 1, 2566355172292587324, convert_to('{"event_id":1,"time":"2026-11-28T07:00:30.605486199Z","run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"mail","provider":"sim","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 2, 6878186830104896391, convert_to('{"event_id":2,"time":"2026-11-28T07:00:30.614177691Z","run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"sim","model":"mail","prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 3, 4919067750204294437, convert_to('{"event_id":3,"time":"2026-11-28T07:00:30.634514936Z","run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"sim","model":"mail","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":20,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 4, 583074638450039153, convert_to('{"event_id":4,"time":"2026-11-28T07:00:30.674537691Z","run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 5, 5347871047111797055, convert_to('{"event_id":5,"time":"2026-11-28T07:00:30.682284591Z","run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 6, 5698234925616790654, convert_to('{"event_id":6,"time":"2026-11-28T07:00:30.687609606Z","run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-04T07:00:30.687606851Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 7, 7784426439711779459, convert_to('{"event_id":7,"time":"2026-11-28T07:00:30.690007835Z","run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO fact VALUES ('run_signaled', 'cancel', '', 1, 1214088223260503154, convert_to('{"by":"ann"}', 'UTF8'), '2026-11-28 07:00:30.774896+00');
INSERT INTO gone VALUES ('run_gone', 'ann', '2026-11-28 07:00:30.316597+00');
INSERT INTO lathe_schema VALUES (1, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (2, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (3, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (4, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (5, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (6, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (7, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (8, '2026-11-28 07:00:28.57187+00');
INSERT INTO lathe_schema VALUES (9, '2026-11-28 07:00:28.57187+00');
INSERT INTO ledger_balance VALUES ('group', 'team', '2026-11', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('group', 'team', '2026-11-23', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('key', 'ann', '2026-11', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('key', 'ann', '2026-11-23', 500, 100, 700, 150);
INSERT INTO ledger_reservation VALUES ('res_open', 'open', '2126-11-04 07:00:30.840736+00', '2026-11-23', 'ann', 'team', 'mail', 100, 50, 700);
INSERT INTO ledger_usage VALUES ('2026-11-23', 'ann', 'team', 'mail', 1, 0, 0, 80, 0, 0, 20, 100, 500);
INSERT INTO model_call VALUES ('run_signaled', 3, 1795849230634514936, convert_to('{"run_id":"run_signaled","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:30.634514936Z","turn":1,"attempt":1,"prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":20,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 3, 1795849230366240176, convert_to('{"run_id":"run_finished","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:30.366240176Z","turn":1,"attempt":1,"prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":14,"tool_calls":1,"tool_latency_ms":0,"tools":[{"tool":"send_mail","success":true,"latency_ms":0}]}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 9, 1795849230454157986, convert_to('{"run_id":"run_finished","event_id":9,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:30.454157986Z","turn":2,"attempt":1,"prompt_hash":"fe57ef474713708501b14b53af5630f00fb44eb6c9dedec7298e59102e9afacc","prompt_hash_v2":"8552c0fe25b6ef95997dcb52a2d2b4c8875a462f647c771de53b075266325822","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":19,"first_token_ms":19,"tool_calls":0,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795849230496976538, convert_to('{"run_id":"run_waiting","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:30.496976538Z","turn":1,"attempt":1,"prompt_hash":"b8f0fef40b2e9e5e8fbdc8a7b2617f1fc70e8a97ffb740b9f6603e9ef12f86e0","prompt_hash_v2":"ada9bfcb6e115c3e8f12db6432cfe3237a831058f1b5fe5bea34f920a0dfd5de","provider":"sim","model":"mail","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":10,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO named_value VALUES ('tool/act', convert_to('disabled', 'UTF8'));
INSERT INTO request VALUES ('\xca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'run_finished', '2026-11-28 07:00:30.902319+00', NULL);
INSERT INTO run VALUES ('run_finished', 10, 4093765194615038636, 1795849230335569335, 1795849230463666258, 's1', 'ann', 'completed', true, true, NULL, convert_to('{"run_id":"run_finished","request_id":"req_01M8GF95ZZ1B8TXHASXD3HQZH6","session_id":"s1","principal":"ann","target":"mail","provider":"sim","model":"mail","status":"completed","reason":"answered","started":"2026-11-28T07:00:30.335569335Z","updated":"2026-11-28T07:00:30.463666258Z","ended":"2026-11-28T07:00:30.463666258Z","last_event_id":10,"turns":2,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true}', 'UTF8'), 0, 0, 0, 1, 'node_01M8GF95ZZ1B8TXHASXD3HQZH5', '2026-11-28 07:00:40.335893+00', DEFAULT, 4691, NULL, DEFAULT);
INSERT INTO run VALUES ('run_waiting', 7, 5547479884300685245, 1795849230471894366, 1795849230572276590, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:30.562394+00', convert_to('{"run_id":"run_waiting","request_id":"req_01M8GF964703KYJNFWC3K8PWX8","session_id":"s1","principal":"ann","target":"mail","provider":"sim","model":"mail","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:30.471894366Z","updated":"2026-11-28T07:00:30.57227659Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:30.562394214Z"}', 'UTF8'), 0, 7, 0, 1, NULL, '2026-11-28 07:00:30.588306+00', DEFAULT, 3328, NULL, DEFAULT);
INSERT INTO run VALUES ('run_signaled', 7, 7784426439711779459, 1795849230605486199, 1795849230690007835, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:30.687606+00', convert_to('{"run_id":"run_signaled","request_id":"req_01M8GF968DA8AD29QS8XZRCBN0","session_id":"s1","principal":"ann","target":"mail","provider":"sim","model":"mail","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:30.605486199Z","updated":"2026-11-28T07:00:30.690007835Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:30.687606851Z"}', 'UTF8'), 1, 7, 0, 1, NULL, '2026-11-28 07:00:30.694528+00', DEFAULT, 3337, NULL, DEFAULT);
INSERT INTO secret VALUES ('one', convert_to('a shared secret', 'UTF8'));
INSERT INTO worker OVERRIDING SYSTEM VALUE VALUES ('worker_1', 1, 'mail', convert_to('[{"name":"act","allowlist":null}]', 'UTF8'), '2026-11-28 07:00:30.761969+00', '2126-11-28 07:00:30.761969+00');
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
ALTER TABLE ONLY ledger_balance
    ADD CONSTRAINT ledger_balance_pkey PRIMARY KEY (kind, name, period);
ALTER TABLE ONLY ledger_reservation
    ADD CONSTRAINT ledger_reservation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ledger_usage
    ADD CONSTRAINT ledger_usage_pkey PRIMARY KEY (day, key, team, model);
ALTER TABLE ONLY model_call
    ADD CONSTRAINT model_call_pkey PRIMARY KEY (run_id, event_id);
ALTER TABLE ONLY named_value
    ADD CONSTRAINT named_value_pkey PRIMARY KEY (name);
ALTER TABLE ONLY node
    ADD CONSTRAINT node_pkey PRIMARY KEY (name);
ALTER TABLE ONLY request
    ADD CONSTRAINT request_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY run
    ADD CONSTRAINT run_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY secret
    ADD CONSTRAINT secret_pkey PRIMARY KEY (name);
ALTER TABLE ONLY worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);
CREATE INDEX call_deadline ON call USING btree (deadline) WHERE (state = 'queued'::text);
CREATE INDEX call_ended ON call USING btree (ended) WHERE (ended IS NOT NULL);
CREATE INDEX call_lease ON call USING btree (lease_until) WHERE (state = ANY (ARRAY['claimed'::text, 'started'::text]));
CREATE INDEX call_queued ON call USING btree (definition, seq) WHERE (state = 'queued'::text);
CREATE INDEX call_run ON call USING btree (run_id);
CREATE INDEX gone_time ON gone USING btree ("time");
CREATE INDEX lease_node ON lease USING btree (node);
CREATE INDEX ledger_reservation_expires ON ledger_reservation USING btree (state, expires);
CREATE INDEX model_call_time ON model_call USING btree ("time" DESC, run_id DESC, event_id DESC);
CREATE INDEX request_at ON request USING btree (at);
CREATE INDEX request_run ON request USING btree (run_id);
CREATE INDEX run_due ON run USING btree (due_at, lease) WHERE (due_at IS NOT NULL);
CREATE INDEX run_ended ON run USING btree (ended_at, run_id) WHERE (ended_at IS NOT NULL);
CREATE INDEX run_owner ON run USING btree (owner) WHERE ((owner IS NOT NULL) AND (NOT ended));
CREATE INDEX run_principal ON run USING btree (principal, started DESC, run_id DESC);
CREATE INDEX run_session ON run USING btree (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run USING btree (started DESC, run_id DESC);
CREATE INDEX run_status ON run USING btree (status, started DESC, run_id DESC);
