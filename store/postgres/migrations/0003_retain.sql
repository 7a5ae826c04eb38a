-- What runs take, and which of them were removed by their age or for their room.

ALTER TABLE run ADD COLUMN bytes bigint NOT NULL DEFAULT 0; -- of the events
CREATE INDEX run_ended ON run (updated, run_id) WHERE ended;

CREATE TABLE gone (
  run_id    text COLLATE "C" PRIMARY KEY,
  principal text COLLATE "C" NOT NULL,
  time      timestamptz NOT NULL
);
CREATE INDEX gone_time ON gone (time);
