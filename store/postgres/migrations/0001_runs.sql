-- Runs, their events, what came to them from outside, and the nodes that carry them.
-- Times that lathe wrote into events are nanoseconds since 1970; those that decide are the server's own.

CREATE TABLE run (
  run_id      text COLLATE "C" PRIMARY KEY,
  last_id     bigint NOT NULL,   -- of the log's last event
  mark        bigint NOT NULL,   -- of the append that wrote it
  started     bigint NOT NULL,
  updated     bigint NOT NULL,
  session_id  text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,
  status      text COLLATE "C" NOT NULL,
  resumable   boolean NOT NULL,
  ended       boolean NOT NULL,
  wake_at     timestamptz,       -- of a parked run that goes on by itself
  summary     bytea NOT NULL,    -- JSON of lathe.RunSummary
  facts       integer NOT NULL DEFAULT 0,
  seen_id     bigint NOT NULL DEFAULT 0,   -- what the last release had looked at
  seen_facts  integer NOT NULL DEFAULT 0,
  epoch       bigint NOT NULL DEFAULT 0,
  owner       text COLLATE "C",  -- NULL: the last claim was given back
  lease_until timestamptz NOT NULL DEFAULT now(),
  -- From when on a node may claim the run; NULL: there is nothing to do.
  due_at      timestamptz GENERATED ALWAYS AS (CASE
    WHEN ended OR NOT resumable THEN NULL
    WHEN status <> 'parked' OR last_id > seen_id OR facts > seen_facts THEN lease_until
    WHEN wake_at IS NOT NULL THEN greatest(lease_until, wake_at)
  END) STORED
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX run_due ON run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX run_owner ON run (owner) WHERE owner IS NOT NULL AND NOT ended;
CREATE INDEX run_started ON run (started DESC, run_id DESC);
CREATE INDEX run_status ON run (status, started DESC, run_id DESC);
CREATE INDEX run_session ON run (session_id, started DESC, run_id DESC);
CREATE INDEX run_principal ON run (principal, started DESC, run_id DESC);

-- Only ever inserted into, until the run is deleted.
CREATE TABLE event (
  run_id text COLLATE "C" NOT NULL,
  id     bigint NOT NULL,
  mark   bigint NOT NULL,        -- of the append that wrote it
  body   bytea NOT NULL,         -- JSON of lathe.Event, content included
  PRIMARY KEY (run_id, id)
);

CREATE TABLE model_call (
  run_id   text COLLATE "C" NOT NULL,
  event_id bigint NOT NULL,
  time     bigint NOT NULL,
  summary  bytea NOT NULL,       -- JSON of lathe.CallSummary
  PRIMARY KEY (run_id, event_id)
);
CREATE INDEX model_call_time ON model_call (time DESC, run_id DESC, event_id DESC);

CREATE TABLE fact (
  run_id text COLLATE "C" NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,
  seq    integer NOT NULL,       -- the order in which they came
  mark   bigint NOT NULL,
  body   bytea,                  -- JSON; content
  time   timestamptz NOT NULL,
  PRIMARY KEY (run_id, kind, key)
);

-- Where nodes are reached. Hints: nothing is decided by them.
CREATE TABLE node (
  name    text COLLATE "C" PRIMARY KEY,
  address text NOT NULL,
  until   timestamptz NOT NULL
);
