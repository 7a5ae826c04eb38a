-- A database of schema version 1, as a program of that version wrote it. Approvals and runs in it do not expire.
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
INSERT INTO event VALUES ('run_finished', 1, 741482102565135082, convert_to('{"event_id":1,"time":"2026-11-28T07:00:00.338606515Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 2, 992989989634305688, convert_to('{"event_id":2,"time":"2026-11-28T07:00:00.347180764Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 3, 8358499088771560959, convert_to('{"event_id":3,"time":"2026-11-28T07:00:00.423699501Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":76,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 4, 7811126051075616182, convert_to('{"event_id":4,"time":"2026-11-28T07:00:00.436159909Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 5, 4030056855970585064, convert_to('{"event_id":5,"time":"2026-11-28T07:00:00.453887963Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 6, 1310688278852210217, convert_to('{"event_id":6,"time":"2026-11-28T07:00:00.462527737Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":1,"type":"ToolCallExecuted","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"success":true,"latency_ms":0,"output_truncated":false,"output_size_bytes":11,"cached":false,"attempts":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 7, 5786343033043418841, convert_to('{"event_id":7,"time":"2026-11-28T07:00:00.467898079Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":1,"type":"ToolCallResult","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"status":"ok","latency_ms":0,"policy_decision":"allow","policy_rule":"allow_all"},"content":{"result":"{\"ok\":true}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 8, 3684935559205954885, convert_to('{"event_id":8,"time":"2026-11-28T07:00:00.484544127Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":2,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","messages":3,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 1, 5650364885160858469, convert_to('{"event_id":1,"time":"2026-11-28T07:00:00.533815529Z","run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 2, 2950309270161116932, convert_to('{"event_id":2,"time":"2026-11-28T07:00:00.540707766Z","run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 3, 7753725099556455075, convert_to('{"event_id":3,"time":"2026-11-28T07:00:00.558698922Z","run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":18,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 4, 5892808161735156030, convert_to('{"event_id":4,"time":"2026-11-28T07:00:00.562835839Z","run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 5, 5359955686651306269, convert_to('{"event_id":5,"time":"2026-11-28T07:00:00.57031088Z","run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 6, 37407322700182855, convert_to('{"event_id":6,"time":"2026-11-28T07:00:00.578766923Z","run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"2237c256805d70534f32ca83cdc86a342c0fc000632cabd9289da24018b96fac","rule":"tools.ask","expires_at":"2126-11-04T07:00:00.578696649Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_waiting', 7, 5908947905072563839, convert_to('{"event_id":7,"time":"2026-11-28T07:00:00.585446715Z","run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 1, 8324320594781054011, convert_to('{"event_id":1,"time":"2026-11-28T07:00:00.602693109Z","run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","turn":0,"type":"RunStarted","data":{"model":"","provider":"","dialect":"native","tool_use_mode":"relaxed","tool_failure_policy":"fatal","tools":{"count":1,"hash":"6d0c5dd52a43cc47f40446b635006a5ba07f8e6c1e71ba645e061ac986872a42"},"limits":{"max_iterations":8,"max_total_tool_calls":32,"max_tool_args_bytes":200000,"max_tool_output_bytes":65536,"run_timeout_ms":3153600000000}},"content":{"messages":[{"role":"user","parts":[{"type":"text","text":"Send Ann a mail."}]}],"principal":"ann","target":"mail","input":{"version":1,"limits":{"MaxIterations":0,"MaxToolCalls":0,"MaxDepth":0,"MaxRepeatedCalls":0,"MaxUnknownTools":0,"MaxToolArgsBytes":0,"MaxPayloadBytes":0,"MaxOutputBytes":0,"MaxJSONDepth":0,"MaxJSONKeys":0,"MaxTools":0,"MaxToolsBytes":0,"ToolTimeout":0,"RunTimeout":3153600000000000000,"ApprovalTTL":3153600000000000000,"MaxTokensTotal":0,"MaxCost":0}}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 2, 7575908769640930524, convert_to('{"event_id":2,"time":"2026-11-28T07:00:00.616815709Z","run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","turn":1,"type":"ModelCallStarted","data":{"attempt":1,"provider":"","model":"","prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","messages":1,"tools":1}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 3, 1324467821035606294, convert_to('{"event_id":3,"time":"2026-11-28T07:00:00.627041662Z","run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","turn":1,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"tool_calls","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":10,"first_token_ms":0,"tool_calls":1,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"send_mail","arguments":"{}"}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 4, 851962855968172996, convert_to('{"event_id":4,"time":"2026-11-28T07:00:00.634125795Z","run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","turn":1,"type":"ToolCallProposed","data":{"tool_call_id":"call_1","tool_name":"send_mail","seq":0,"dialect":"native","deprecated_syntax":false,"args_bytes":2,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e"},"content":{"tool_name":"send_mail","raw_args":"{}"}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 9, 198016037740217449, convert_to('{"event_id":9,"time":"2026-11-28T07:00:00.500624114Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":2,"type":"ModelCallFinished","data":{"attempt":1,"provider":"","model":"","status":"success","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":16,"first_token_ms":16,"tool_calls":0,"upstream_request_id":""},"content":{"message":{"role":"assistant","parts":[{"type":"text","text":"The mail is sent."}]}}}', 'UTF8'));
INSERT INTO event VALUES ('run_finished', 10, 738720937913094764, convert_to('{"event_id":10,"time":"2026-11-28T07:00:00.518039701Z","run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","turn":2,"type":"RunFinished","data":{"reason":"answered","status":"completed","turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":179},"content":{"answer":"The mail is sent."}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 6, 8046166269709920050, convert_to('{"event_id":6,"time":"2026-11-28T07:00:00.655612064Z","run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","turn":1,"type":"ApprovalRequested","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_digest":"60e58f616ec830350b5caaeba8abcd80592965d5481d649bedb7f1f621b2eea6","rule":"tools.ask","expires_at":"2126-11-04T07:00:00.655543894Z"},"content":{"arguments":{}}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 7, 2850944535686632580, convert_to('{"event_id":7,"time":"2026-11-28T07:00:00.659539611Z","run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["call_1"]}}', 'UTF8'));
INSERT INTO event VALUES ('run_signaled', 5, 5350558807607629885, convert_to('{"event_id":5,"time":"2026-11-28T07:00:00.650164244Z","run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","turn":1,"type":"ToolCallPlanned","data":{"tool_call_id":"call_1","tool":"send_mail","seq":0,"args_preview_hash":"44136fa355b3678a1146ad16f7e8649e","args_schema_version":""}}', 'UTF8'));
INSERT INTO fact VALUES ('run_signaled', 'cancel', '', 1, 2272785145108837955, convert_to('{"by":"ann"}', 'UTF8'), '2026-11-28 07:00:00.687912+00');
INSERT INTO lathe_schema VALUES (1, '2026-11-28 06:59:59.797984+00');
INSERT INTO model_call VALUES ('run_finished', 3, 1795849200423699501, convert_to('{"run_id":"run_finished","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:00.423699501Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":76,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_waiting', 3, 1795849200558698922, convert_to('{"run_id":"run_waiting","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:00.558698922Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":18,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_signaled', 3, 1795849200627041662, convert_to('{"run_id":"run_signaled","event_id":3,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:00.627041662Z","turn":1,"attempt":1,"prompt_hash":"3277e62d3df7d20dcd8ddc1d8b3d5a1f5627a6b0a9a2a375f22d5eb47b541218","prompt_hash_v2":"a1d86fe5ceeaa92cf7478aab6cd47031c58e48207dbe9df6e812a6ed8f6221b6","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":10,"tool_calls":1,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO model_call VALUES ('run_finished', 9, 1795849200500624114, convert_to('{"run_id":"run_finished","event_id":9,"session_id":"s1","principal":"ann","time":"2026-11-28T07:00:00.500624114Z","turn":2,"attempt":1,"prompt_hash":"2155d51e2ea5a4e9d9eb4b1efc36d05e9153204cd3ba50fc6ea0a5f97f69eb0a","prompt_hash_v2":"442a0b2652e232ae7c41066ace434a04e3f040a166355733a9c6272fe7c5791a","provider":"","model":"","status":"success","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"latency_ms":16,"tool_calls":0,"tool_latency_ms":0}', 'UTF8'));
INSERT INTO run VALUES ('run_finished', 10, 738720937913094764, 1795849200338606515, 1795849200518039701, 's1', 'ann', 'completed', true, true, NULL, convert_to('{"run_id":"run_finished","request_id":"req_01M8GF88PJ64BASANE29GRYBZR","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"completed","reason":"answered","started":"2026-11-28T07:00:00.338606515Z","updated":"2026-11-28T07:00:00.518039701Z","last_event_id":10,"turns":2,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true}', 'UTF8'), 0, 0, 0, 1, 'node_01M8GF88PJ64BASANE29GRYBZQ', '2026-11-28 07:00:10.338985+00', DEFAULT);
INSERT INTO run VALUES ('run_waiting', 7, 5908947905072563839, 1795849200533815529, 1795849200585446715, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:00.578696+00', convert_to('{"run_id":"run_waiting","request_id":"req_01M8GF88WN8M2MAV0RZYQ2YEJG","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:00.533815529Z","updated":"2026-11-28T07:00:00.585446715Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:00.578696649Z"}', 'UTF8'), 0, 7, 0, 1, NULL, '2026-11-28 07:00:00.596258+00', DEFAULT);
INSERT INTO run VALUES ('run_signaled', 7, 2850944535686632580, 1795849200602693109, 1795849200659539611, 's1', 'ann', 'parked', true, false, '2126-11-04 07:00:00.655543+00', convert_to('{"run_id":"run_signaled","request_id":"req_01M8GF88YT824KDPWNPDF30XZF","session_id":"s1","principal":"ann","target":"mail","provider":"","model":"","status":"parked","reason":"awaiting_approval","started":"2026-11-28T07:00:00.602693109Z","updated":"2026-11-28T07:00:00.659539611Z","last_event_id":7,"turns":1,"tool_calls":1,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0},"resumable":true,"pending":["call_1"],"wake_at":"2126-11-04T07:00:00.655543894Z"}', 'UTF8'), 1, 7, 0, 1, NULL, '2026-11-28 07:00:00.66923+00', DEFAULT);
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
CREATE INDEX model_call_time ON model_call USING btree ("time" DESC, run_id DESC, event_id DESC);
CREATE INDEX run_due ON run USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX run_owner ON run USING btree (owner) WHERE ((owner IS NOT NULL) AND (NOT ended));
CREATE INDEX run_principal ON run USING btree (principal, started DESC, run_id DESC);
CREATE INDEX run_session ON run USING btree (session_id, started DESC, run_id DESC);
CREATE INDEX run_started ON run USING btree (started DESC, run_id DESC);
CREATE INDEX run_status ON run USING btree (status, started DESC, run_id DESC);
