-- Calls of tools that workers elsewhere execute, and the workers.

CREATE TABLE call (
  key         text COLLATE "C" PRIMARY KEY,
  seq         bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- the order in which they were queued
  run_id      text COLLATE "C" NOT NULL,
  call_id     text NOT NULL,
  request_id  text NOT NULL,
  session_id  text NOT NULL,
  depth       integer NOT NULL,
  tool        text NOT NULL,
  definition  text COLLATE "C" NOT NULL,
  effect      integer NOT NULL,  -- lathe.Effect
  args        bytea,             -- JSON, content; NULL once the call has ended
  args_hash   text NOT NULL,
  state       text COLLATE "C" NOT NULL DEFAULT 'queued',
  attempt     integer NOT NULL DEFAULT 0,
  starts      integer NOT NULL DEFAULT 0,
  worker      text COLLATE "C" NOT NULL DEFAULT '',
  deadline    timestamptz NOT NULL,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  cancelled   boolean NOT NULL DEFAULT false,
  decided     boolean NOT NULL DEFAULT false,
  ended       timestamptz,       -- NULL: it goes on
  result      bytea              -- JSON of lathe.CallResult, content
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX call_queued ON call (definition, seq) WHERE state = 'queued';
CREATE INDEX call_deadline ON call (deadline) WHERE state = 'queued';
CREATE INDEX call_lease ON call (lease_until) WHERE state IN ('claimed', 'started');
CREATE INDEX call_ended ON call (ended) WHERE ended IS NOT NULL;
CREATE INDEX call_run ON call (run_id);

CREATE TABLE worker (
  id    text COLLATE "C" PRIMARY KEY,
  seq   bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  fleet text NOT NULL,
  tools bytea NOT NULL,          -- JSON of []lathe.WorkerTool
  since timestamptz NOT NULL DEFAULT now(),
  until timestamptz NOT NULL
);
