-- Which runs were removed by their age or for their room.
CREATE TABLE gone ( -- runs that were removed by their age or for their room
  run_id    TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  time      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX gone_time ON gone (time);
CREATE INDEX run_updated ON run (updated);
-- In the order in which runs are listed, so that a page reads no more than it shows.
DROP INDEX run_status;
DROP INDEX run_session;
CREATE INDEX run_status ON run (status, started DESC, run_id DESC);
CREATE INDEX run_session ON run (session_id, started DESC, run_id DESC);
CREATE INDEX run_principal ON run (principal, started DESC, run_id DESC);
