-- Calls of tools that workers execute, and the workers.
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
);
CREATE INDEX call_queued ON call (definition, seq) WHERE state = 'queued';
CREATE INDEX call_open ON call (state, lease_until) WHERE ended = 0;
CREATE INDEX call_ended ON call (ended) WHERE ended > 0;
CREATE INDEX call_run ON call (run_id);

CREATE TABLE worker (
  id    TEXT PRIMARY KEY,
  fleet TEXT NOT NULL,
  tools BLOB NOT NULL, -- JSON of []lathe.WorkerTool
  seq   INTEGER NOT NULL, -- the order in which they came
  since INTEGER NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
