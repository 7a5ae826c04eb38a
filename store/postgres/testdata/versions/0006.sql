-- A database of schema version 6, as a program of that version wrote it. Approvals and runs in it do not expire.
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
INSERT INTO call OVERRIDING SYSTEM VALUE VALUES ('key_1', 1, 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, convert_to('{"to":"ann"}', 'UTF8'), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', '2126-11-28 07:00:19.546031+00', '-infinity', false, false, NULL, NULL, '', '');
INSERT INTO event VALUES ('run_finished', 1, 5528661583144276449, convert_to('{"event_id":1,"time":"2026-11-28T07:00:18.969161992Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 2, 7130828829953309267, convert_to('{"event_id":2,"time":"2026-11-28T07:00:18.998077403Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 3, 2460112348664761506, convert_to('{"event_id":3,"time":"2026-11-28T07:00:19.014493973Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":16,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 4, 4168005112867530321, convert_to('{"event_id":4,"time":"2026-11-28T07:00:19.120189761Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 5, 1310952250362382193, convert_to('{"event_id":5,"time":"2026-11-28T07:00:19.133893171Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 9, 5418678301810584986, convert_to('{"event_id":9,"time":"2026-11-28T07:00:19.212211776Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":23,"first_token_ms":23,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 1, 7655997596070534520, convert_to('{"event_id":1,"time":"2026-11-28T07:00:19.264128527Z","run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 3, 8669487596290836878, convert_to('{"event_id":3,"time":"2026-11-28T07:00:19.304988751Z","run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":18,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 4, 1110531993387482037, convert_to('{"event_id":4,"time":"2026-11-28T07:00:19.31538053Z","run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 7, 2099880667319632476, convert_to('{"event_id":7,"time":"2026-11-28T07:00:19.368378045Z","run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 1, 20797189515156641, convert_to('{"event_id":1,"time":"2026-11-28T07:00:19.392731557Z","run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 2, 4362773604750007103, convert_to('{"event_id":2,"time":"2026-11-28T07:00:19.416276114Z","run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 6, 1425530444150402112, convert_to('{"event_id":6,"time":"2026-11-28T07:00:19.486212566Z","run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-04T07:00:19.486208959Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 7, 8934317688578002424, convert_to('{"event_id":7,"time":"2026-11-28T07:00:19.502171252Z","run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 6, 3299673125386513624, convert_to('{"event_id":6,"time":"2026-11-28T07:00:19.153730722Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 7, 2769267360241735010, convert_to('{"event_id":7,"time":"2026-11-28T07:00:19.182019678Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 8, 6089068862895303447, convert_to('{"event_id":8,"time":"2026-11-28T07:00:19.18861078Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","messages":3,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 10, 6138249456580035161, convert_to('{"event_id":10,"time":"2026-11-28T07:00:19.233897865Z","run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":264},"content":{"answer":"The mail is sent."}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 2, 7368997988439884714, convert_to('{"event_id":2,"time":"2026-11-28T07:00:19.286130069Z","run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 5, 4845892664110388284, convert_to('{"event_id":5,"time":"2026-11-28T07:00:19.330131991Z","run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 6, 3508285800229677186, convert_to('{"event_id":6,"time":"2026-11-28T07:00:19.349970704Z","run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-04T07:00:19.349964292Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 3, 59109889949213400, convert_to('{"event_id":3,"time":"2026-11-28T07:00:19.428123551Z","run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":11,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 4, 8534698798502353506, convert_to('{"event_id":4,"time":"2026-11-28T07:00:19.450051864Z","run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 5, 4469195676285263241, convert_to('{"event_id":5,"time":"2026-11-28T07:00:19.466012503Z","run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO fact VALUES ('run_signaled', 'cancel', '', 1, 55489440353227963, convert_to('{"by":"ann"}', 'UTF8'), '2026-11-28 07:00:19.589954+00');
INSERT INTO gone VALUES ('run_gone', 'ann', '2026-11-28 07:00:18.880018+00');
INSERT INTO lathe_schema VALUES (1, '2026-11-28 07:00:17.745835+00');
INSERT INTO lathe_schema VALUES (2, '2026-11-28 07:00:17.745835+00');
INSERT INTO lathe_schema VALUES (3, '2026-11-28 07:00:17.745835+00');
INSERT INTO lathe_schema VALUES (4, '2026-11-28 07:00:17.745835+00');
INSERT INTO lathe_schema VALUES (5, '2026-11-28 07:00:17.745835+00');
INSERT INTO lathe_schema VALUES (6, '2026-11-28 07:00:17.745835+00');
INSERT INTO model_call VALUES ('run_finished', 3, 1795849219014493973, convert_to('{"run_id":"run_finished","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:19.014493973Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":16,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795849219428123551, convert_to('{"run_id":"run_signaled","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:19.428123551Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":11,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 9, 1795849219212211776, convert_to('{"run_id":"run_finished","event_id":9,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:19.212211776Z","turn":2,"attempt":1,"prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":23,"tool_calls":0,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795849219304988751, convert_to('{"run_id":"run_waiting","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:19.304988751Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":18,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO request VALUES ('\xca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'run_finished', '2026-11-28 07:00:19.608135+00', NULL);
INSERT INTO run VALUES ('run_finished', 10, 6138249456580035161, 1795849218969161992, 1795849219233897865, 's1', 'ann', 'completed', true, true, NULL, convert_to('{"run_id":"run_finished","request_id":"req_01M8GF8TWSB4REX8RFQA3SGJSD","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"completed","reason":"answered","started":"2026-11-28T07:00:18.969161992Z","updated":"2026-11-28T07:00:19.233897865Z","last_event_id":10,"turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true}', 'UTF8'), 0, 0, 0, 1, 'node_01M8GF8TWSB4REX8RFQA3SGJSC', '2026-11-28 07:00:28.981734+00', DEFAULT, 4655, NULL, DEFAULT);
INSERT INTO run VALUES ('run_waiting', 7, 2099880667319632476, 1795849219264128527, 1795849219368378045, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:19.349964+00', convert_to('{"run_id":"run_waiting","request_id":"req_01M8GF8V609T08YTDZ962NPHAW","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:19.264128527Z","updated":"2026-11-28T07:00:19.368378045Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:19.349964292Z"}', 'UTF8'), 0, 7, 0, 1, NULL, '2026-11-28 07:00:19.38661+00', DEFAULT, 3308, NULL, DEFAULT);
INSERT INTO run VALUES ('run_signaled', 7, 8934317688578002424, 1795849219392731557, 1795849219502171252, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:19.486208+00', convert_to('{"run_id":"run_signaled","request_id":"req_01M8GF8VA0BH9MB84HRHG557YQ","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:19.392731557Z","updated":"2026-11-28T07:00:19.502171252Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:19.486208959Z"}', 'UTF8'), 1, 7, 0, 1, NULL, '2026-11-28 07:00:19.52321+00', DEFAULT, 3316, NULL, DEFAULT);
INSERT INTO worker OVERRIDING SYSTEM VALUE VALUES ('worker_1', 1, 'mail', convert_to('[{"name":"act","allowlist":null}]', 'UTF8'), '2026-11-28 07:00:19.568153+00', '2126-11-28 07:00:19.568153+00');
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
ALTER TABLE ONLY request
    ADD CONSTRAINT request_pkey PRIMARY KEY (digest);
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
CREATE INDEX request_at ON request USING btree (at);
CREATE INDEX request_run ON request USING btree (run_id);
CREATE INDEX run_due ON run USING btree (due_at, lease) WHERE (due_at IS NOT NULL);
CREATE INDEX run_ended ON run USING btree (ended_at, run_id) WHERE (ended_at IS NOT NULL);
CREATE INDEX run_owner ON run USING btree (owner) WHERE ((owner IS NOT NULL) AND (NOT ended));
CREATE INDEX run_principal ON run USING btree (principal, started DESC, run_id DESC);
CREATE INDEX run_session ON run USING btree (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run USING btree (started DESC, run_id DESC);
CREATE INDEX run_status ON run USING btree (status, started DESC, run_id DESC);
