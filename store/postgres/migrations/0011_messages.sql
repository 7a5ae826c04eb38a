-- Each message of a conversation is stored once: a run refers to the last of its messages, and a message to the one before it.

CREATE TABLE message (
  digest   bytea PRIMARY KEY, -- as package conversation computes it
  previous bytea REFERENCES message, -- NULL: it is the first
  body     bytea NOT NULL     -- JSON of lathe.Message
);
CREATE INDEX message_previous ON message (previous) WHERE previous IS NOT NULL;

CREATE TABLE conversation ( -- the events whose messages are not in their body
  run_id   text COLLATE "C" NOT NULL REFERENCES run ON DELETE CASCADE,
  event_id bigint NOT NULL,
  last     bytea NOT NULL REFERENCES message,
  PRIMARY KEY (run_id, event_id)
);
CREATE INDEX conversation_last ON conversation (last);

-- Deletes the messages of a conversation to which nothing refers any more. One transaction at a time does so: two that did not see each
-- other's deletions would leave the messages that both conversations have. A message to which another transaction refers at the same time
-- stays.
CREATE FUNCTION drop_messages() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER conversation_dropped AFTER DELETE OR UPDATE ON conversation FOR EACH ROW EXECUTE FUNCTION drop_messages();
