-- A database of schema version 11, as a program of that version wrote it. Approvals and runs in it do not expire.
CREATE FUNCTION drop_messages() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  next bytea;
BEGIN
  PERFORM pg_advisory_xact_lock(1835365232, hashtext(current_schema()));
  LOOP
    BEGIN
      next := OLD.last;
      WHILE next IS NOT NULL LOOP
        DELETE FROM message m WHERE m.digest = next
          AND NOT EXISTS (SELECT FROM conversation c WHERE c.last = m.digest)
          AND NOT EXISTS (SELECT FROM message n WHERE n.previous = m.digest)
          RETURNING m.previous INTO next;
      END LOOP;
      RETURN NULL;
    EXCEPTION WHEN foreign_key_violation THEN -- again: now the reference is visible
    END;
  END LOOP;
END $$;
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
CREATE TABLE conversation (
    run_id text NOT NULL COLLATE pg_catalog."C",
    event_id bigint NOT NULL,
    last bytea NOT NULL
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
CREATE TABLE message (
    digest bytea NOT NULL,
    previous bytea,
    body bytea NOT NULL
);
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
INSERT INTO call OVERRIDING SYSTEM VALUE VALUES ('key_1', 1, 'run_waiting', 'call_9', 'req_1', 's1', 0, 'act', 'd1', 3, convert_to('{"to":"ann"}', 'UTF8'), 'cde2c6fc07f7380c47e27c6f917486034f932ed371607356d319827ad14a3a82', 'queued', 0, 0, '', '2126-11-29 12:38:46.399734+00', '-infinity', false, false, NULL, NULL, '', '');
INSERT INTO conversation VALUES ('run_short', 1, '\x1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8');
INSERT INTO conversation VALUES ('run_long', 1, '\x70b063d4d3c71190f5fd7a3662b99f13fd570036e894924debf0e948695b7fd1');
INSERT INTO event VALUES ('run_finished', 1, 2972677416969202322, convert_to('{"event_id":1,"time":"2026-11-29T12:38:45.468358127Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"lathetest","provider":"lathetest","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 2, 6499273632483613276, convert_to('{"event_id":2,"time":"2026-11-29T12:38:45.525562979Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 3, 2647067147768869184, convert_to('{"event_id":3,"time":"2026-11-29T12:38:45.555087431Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":29,"first_token_ms":29,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 4, 3757779537106156421, convert_to('{"event_id":4,"time":"2026-11-29T12:38:45.570336958Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 5, 9110094740514854444, convert_to('{"event_id":5,"time":"2026-11-29T12:38:45.578123248Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 3, 273411781399242145, convert_to('{"event_id":3,"time":"2026-11-29T12:38:45.799328624Z","run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":28,"first_token_ms":28,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 4, 1414320946138200663, convert_to('{"event_id":4,"time":"2026-11-29T12:38:45.844783095Z","run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 5, 2142884510689987876, convert_to('{"event_id":5,"time":"2026-11-29T12:38:45.852446342Z","run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 6, 2561420986328637825, convert_to('{"event_id":6,"time":"2026-11-29T12:38:45.85473008Z","run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-05T12:38:45.854727344Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 7, 224595233366752212, convert_to('{"event_id":7,"time":"2026-11-29T12:38:45.858007626Z","run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 1, 1568590122959257708, convert_to('{"event_id":1,"time":"2026-11-29T12:38:45.870348728Z","run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"lathetest","provider":"lathetest","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 2, 4674400832896545915, convert_to('{"event_id":2,"time":"2026-11-29T12:38:45.885736838Z","run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 3, 3240532518578905129, convert_to('{"event_id":3,"time":"2026-11-29T12:38:45.889427077Z","run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":3,"first_token_ms":3,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 4, 7955506186559321786, convert_to('{"event_id":4,"time":"2026-11-29T12:38:45.891806116Z","run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 5, 2548162841639888055, convert_to('{"event_id":5,"time":"2026-11-29T12:38:45.893608951Z","run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 6, 7635750661988915006, convert_to('{"event_id":6,"time":"2026-11-29T12:38:45.608905951Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 7, 3635534317662627421, convert_to('{"event_id":7,"time":"2026-11-29T12:38:45.642147775Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 8, 6313860755218574621, convert_to('{"event_id":8,"time":"2026-11-29T12:38:45.673955644Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"c62ac69f238e646c83e7645ab7191d6a708f5031a5f5d1cb8fbc4572b89d56e1","prompt_hash_v2":"4335fec2b1552f774256c97d92a8bd5ef8104a0d40801070f96b333096c8400b","messages":3,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 9, 6503209776703071972, convert_to('{"event_id":9,"time":"2026-11-29T12:38:45.690456178Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"lathetest","model":"lathetest","status":"success","finish_reason":"stop","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7},"latency_ms":16,"first_token_ms":16,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 10, 8192911454724546288, convert_to('{"event_id":10,"time":"2026-11-29T12:38:45.707653995Z","run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":4,"output_tokens":8,"total_tokens":12},"latency_ms":239},"content":{"answer":"The mail is sent."}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 1, 7567788946646160888, convert_to('{"event_id":1,"time":"2026-11-29T12:38:45.728907196Z","run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"lathetest","provider":"lathetest","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 2, 7199087176626045542, convert_to('{"event_id":2,"time":"2026-11-29T12:38:45.770374634Z","run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"lathetest","model":"lathetest","prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 6, 3339303982528808631, convert_to('{"event_id":6,"time":"2026-11-29T12:38:46.026737902Z","run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-05T12:38:46.026735408Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 7, 8170155540167228545, convert_to('{"event_id":7,"time":"2026-11-29T12:38:46.038914963Z","run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_short', 1, 1996364249018772838, convert_to('{"event_id":1,"time":"0001-01-01T00:00:00Z","run_id":"run_short","request_id":"","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"","tool_use_mode":"","tool_failure_policy":"","tools":{"count":0,"hash":""},"limits":{"max_iterations":0,"max_total_tool_calls":0,"max_tool_args_bytes":0,"max_tool_output_bytes":0,"run_timeout_ms":0}},"content":{"messages":"1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8","principal":"bob"}}', 'UTF8'));
INSERT INTO event VALUES ('run_long', 1, 43297930908527905, convert_to('{"event_id":1,"time":"0001-01-01T00:00:00Z","run_id":"run_long","request_id":"","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"","tool_use_mode":"","tool_failure_policy":"","tools":{"count":0,"hash":""},"limits":{"max_iterations":0,"max_total_tool_calls":0,"max_tool_args_bytes":0,"max_tool_output_bytes":0,"run_timeout_ms":0}},"content":{"messages":"70b063d4d3c71190f5fd7a3662b99f13fd570036e894924debf0e948695b7fd1","principal":"bob"}}', 'UTF8'));
INSERT INTO fact VALUES ('run_signaled', 'cancel', '', 1, 8888390292075462638, convert_to('{"by":"ann"}', 'UTF8'), '2026-11-29 12:38:46.379375+00');
INSERT INTO gone VALUES ('run_gone', 'ann', '2026-11-29 12:38:45.35399+00');
INSERT INTO lathe_schema VALUES (1, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (2, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (3, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (4, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (5, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (6, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (7, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (8, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (9, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (10, '2026-11-29 12:38:42.0266+00');
INSERT INTO lathe_schema VALUES (11, '2026-11-29 12:38:42.0266+00');
INSERT INTO ledger_balance VALUES ('group', 'team', '2026-11', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('group', 'team', '2026-11-23', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('key', 'ann', '2026-11', 500, 100, 700, 150);
INSERT INTO ledger_balance VALUES ('key', 'ann', '2026-11-23', 500, 100, 700, 150);
INSERT INTO ledger_reservation VALUES ('res_open', 'open', '2126-11-05 12:38:46.10661+00', '2026-11-23', 'ann', 'team', 'mail', 100, 50, 700);
INSERT INTO ledger_usage VALUES ('2026-11-23', 'ann', 'team', 'mail', 1, 0, 0, 80, 0, 0, 20, 100, 500);
INSERT INTO message VALUES ('\x1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8', NULL, convert_to('{"role":"user","parts":[{"type":"text","text":"A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. A long question. "}]}', 'UTF8'));
INSERT INTO message VALUES ('\x70b063d4d3c71190f5fd7a3662b99f13fd570036e894924debf0e948695b7fd1', '\x1bd618f6dd6f32c268b920dc98c15f3dca469b7b7271b2c4ed2cae0ba21ff2a8', convert_to('{"role":"user","parts":[{"type":"text","text":"And a short one."}]}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 3, 1795955925555087431, convert_to('{"run_id":"run_finished","event_id":3,"request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","principal":"ann","time":"2026-11-29T12:38:45.555087431Z","turn":1,"attempt":1,"prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":29,"first_token_ms":29,"tool_calls":1,"tool_latency_ms":0,"tools":[{"tool":"send_mail","success":true,"latency_ms":0}]}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 9, 1795955925690456178, convert_to('{"run_id":"run_finished","event_id":9,"request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","principal":"ann","time":"2026-11-29T12:38:45.690456178Z","turn":2,"attempt":1,"prompt_hash":"c62ac69f238e646c83e7645ab7191d6a708f5031a5f5d1cb8fbc4572b89d56e1","prompt_hash_v2":"4335fec2b1552f774256c97d92a8bd5ef8104a0d40801070f96b333096c8400b","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7},"latency_ms":16,"first_token_ms":16,"tool_calls":0,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795955925799328624, convert_to('{"run_id":"run_waiting","event_id":3,"request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","principal":"ann","time":"2026-11-29T12:38:45.799328624Z","turn":1,"attempt":1,"prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":28,"first_token_ms":28,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795955925889427077, convert_to('{"run_id":"run_signaled","event_id":3,"request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","principal":"ann","time":"2026-11-29T12:38:45.889427077Z","turn":1,"attempt":1,"prompt_hash":"f1b1dab79b5f5a7a3db33b56771406a84b72b6e49f26275268361fe69f9a31e5","prompt_hash_v2":"8c032defd9968ec3e5a49cf81b9cee8e6135dc4a2d03e1de963c7bbd25150515","provider":"lathetest","model":"lathetest","status":"success","usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"latency_ms":3,"first_token_ms":3,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO named_value VALUES ('tool/act', convert_to('disabled', 'UTF8'));
INSERT INTO request VALUES ('\xca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'run_finished', '2026-11-29 12:38:46.443327+00', NULL);
INSERT INTO run VALUES ('run_finished', 10, 8192911454724546288, 1795955925468358127, 1795955925707653995, 's1', 'ann', 'completed', true, true, NULL, convert_to('{"run_id":"run_finished","request_id":"req_01M8KN18EWBSDVCSDP63MJSB0C","session_id":"s1","principal":"ann","target":"mail","provider":"lathetest","model":"lathetest","status":"completed","reason":"answered","started":"2026-11-29T12:38:45.468358127Z","updated":"2026-11-29T12:38:45.707653995Z","ended":"2026-11-29T12:38:45.707653995Z","last_event_id":10,"turns":2,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":4,"output_tokens":8,"total_tokens":12},"resumable":true}', 'UTF8'), 0, 0, 0, 1, 'node_01M8KN18EWBSDVCSDP63MJSB0B', '2026-11-29 12:38:55.486852+00', DEFAULT, 4748, NULL, DEFAULT);
INSERT INTO run VALUES ('run_waiting', 7, 224595233366752212, 1795955925728907196, 1795955925858007626, 's1', 'ann', 'parked', true, false, '2126-11-05 12:38:45.854727+00', convert_to('{"run_id":"run_waiting","request_id":"req_01M8KN18Q06KW95CVSMJ3V0P01","session_id":"s1","principal":"ann","target":"mail","provider":"lathetest","model":"lathetest","status":"parked","reason":"awaiting_approval","started":"2026-11-29T12:38:45.728907196Z","updated":"2026-11-29T12:38:45.858007626Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-05T12:38:45.854727344Z"}', 'UTF8'), 0, 7, 0, 1, NULL, '2026-11-29 12:38:45.864979+00', DEFAULT, 3363, NULL, DEFAULT);
INSERT INTO run VALUES ('run_short', 1, 1996364249018772838, -6795364578871345152, -6795364578871345152, '', 'bob', 'running', false, false, NULL, convert_to('{"run_id":"run_short","request_id":"","principal":"bob","provider":"","model":"","status":"running","started":"0001-01-01T00:00:00Z","updated":"0001-01-01T00:00:00Z","last_event_id":1,"turns":0,"tool_calls":0,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}', 'UTF8'), 0, 0, 0, 0, NULL, '2026-11-29 12:38:46.142845+00', DEFAULT, 5614, NULL, DEFAULT);
INSERT INTO run VALUES ('run_signaled', 7, 8170155540167228545, 1795955925870348728, 1795955926038914963, 's1', 'ann', 'parked', true, false, '2126-11-05 12:38:46.026735+00', convert_to('{"run_id":"run_signaled","request_id":"req_01M8KN18VE24WKY1ZBFYN5QPWB","session_id":"s1","principal":"ann","target":"mail","provider":"lathetest","model":"lathetest","status":"parked","reason":"awaiting_approval","started":"2026-11-29T12:38:45.870348728Z","updated":"2026-11-29T12:38:46.038914963Z","last_event_id":7,"turns":1,"tool_calls":1,"tools":["send_mail"],"usage":{"input_tokens":1,"output_tokens":4,"total_tokens":5},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-05T12:38:46.026735408Z"}', 'UTF8'), 1, 7, 0, 1, NULL, '2026-11-29 12:38:46.055058+00', DEFAULT, 3369, NULL, DEFAULT);
INSERT INTO run VALUES ('run_long', 1, 43297930908527905, -6795364578871345152, -6795364578871345152, '', 'bob', 'running', false, false, NULL, convert_to('{"run_id":"run_long","request_id":"","principal":"bob","provider":"","model":"","status":"running","started":"0001-01-01T00:00:00Z","updated":"0001-01-01T00:00:00Z","last_event_id":1,"turns":0,"tool_calls":0,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}', 'UTF8'), 0, 0, 0, 0, NULL, '2026-11-29 12:38:46.225965+00', DEFAULT, 529, NULL, DEFAULT);
INSERT INTO secret VALUES ('one', convert_to('a shared secret', 'UTF8'));
INSERT INTO worker OVERRIDING SYSTEM VALUE VALUES ('worker_1', 1, 'mail', convert_to('[{"name":"act","allowlist":null}]', 'UTF8'), '2026-11-29 12:38:46.420726+00', '2126-11-29 12:38:46.420726+00');
SELECT pg_catalog.setval('call_seq_seq', 1, true);
SELECT pg_catalog.setval('lease_id_seq', 1, false);
SELECT pg_catalog.setval('worker_seq_seq', 1, true);
ALTER TABLE ONLY call
    ADD CONSTRAINT call_pkey PRIMARY KEY (key);
ALTER TABLE ONLY conversation
    ADD CONSTRAINT conversation_pkey PRIMARY KEY (run_id, event_id);
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
ALTER TABLE ONLY message
    ADD CONSTRAINT message_pkey PRIMARY KEY (digest);
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
CREATE INDEX conversation_last ON conversation USING btree (last);
CREATE INDEX gone_time ON gone USING btree ("time");
CREATE INDEX lease_node ON lease USING btree (node);
CREATE INDEX ledger_reservation_expires ON ledger_reservation USING btree (state, expires);
CREATE INDEX message_previous ON message USING btree (previous) WHERE (previous IS NOT NULL);
CREATE INDEX model_call_time ON model_call USING btree ("time" DESC, run_id DESC, event_id DESC);
CREATE INDEX request_at ON request USING btree (at);
CREATE INDEX request_run ON request USING btree (run_id);
CREATE INDEX run_due ON run USING btree (due_at, lease) WHERE (due_at IS NOT NULL);
CREATE INDEX run_ended ON run USING btree (ended_at, run_id) WHERE (ended_at IS NOT NULL);
CREATE INDEX run_owner ON run USING btree (owner) WHERE ((owner IS NOT NULL) AND (NOT ended));
CREATE INDEX run_principal ON run USING btree (principal, started DESC, run_id DESC);
CREATE INDEX run_principal_status ON run USING btree (principal, status, started DESC, run_id DESC);
CREATE INDEX run_session ON run USING btree (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run USING btree (started DESC, run_id DESC);
CREATE INDEX run_status ON run USING btree (status, started DESC, run_id DESC);
CREATE TRIGGER conversation_dropped AFTER DELETE OR UPDATE ON conversation FOR EACH ROW EXECUTE FUNCTION drop_messages();
ALTER TABLE ONLY conversation
    ADD CONSTRAINT conversation_last_fkey FOREIGN KEY (last) REFERENCES message(digest);
ALTER TABLE ONLY conversation
    ADD CONSTRAINT conversation_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(run_id) ON DELETE CASCADE;
ALTER TABLE ONLY message
    ADD CONSTRAINT message_previous_fkey FOREIGN KEY (previous) REFERENCES message(digest);
