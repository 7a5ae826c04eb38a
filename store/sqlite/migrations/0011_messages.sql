-- Each message of a conversation is stored once: a run refers to the last of its messages, and a message to the one before it.
CREATE TABLE message (
  digest   BLOB PRIMARY KEY, -- as package conversation computes it
  previous BLOB,             -- digest of the message before it; NULL: it is the first
  body     BLOB NOT NULL     -- JSON of lathe.Message
) WITHOUT ROWID;
CREATE INDEX message_previous ON message (previous) WHERE previous IS NOT NULL;
CREATE TABLE conversation ( -- the events whose messages are not in their body
  run_id   TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  last     BLOB NOT NULL, -- digest of the last message
  PRIMARY KEY (run_id, event_id)
) WITHOUT ROWID;
CREATE INDEX conversation_last ON conversation (last);
