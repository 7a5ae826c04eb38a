-- Which run answers a request, so that a repetition of the request finds the run.
CREATE TABLE request ( -- which run answers a request
  digest    BLOB PRIMARY KEY,
  run_id    TEXT NOT NULL,
  time      INTEGER NOT NULL,
  delivered INTEGER -- NULL: the client has not received the answer
) WITHOUT ROWID;
CREATE INDEX request_time ON request (time);
CREATE INDEX request_run ON request (run_id);
