-- Which run answers a request, so that a repetition of the request finds the run.

CREATE TABLE request (
  digest    bytea PRIMARY KEY,
  run_id    text COLLATE "C" NOT NULL,
  at        timestamptz NOT NULL,
  delivered timestamptz          -- NULL: the client has not received the answer
);
CREATE INDEX request_at ON request (at);
CREATE INDEX request_run ON request (run_id);

-- Roles that may change runs may record requests, without a further step of the operator.
DO $$
DECLARE grantee text;
BEGIN
  FOR grantee IN
    SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'run'::regclass AND a.privilege_type = 'DELETE' AND a.grantee <> c.relowner
  LOOP
    EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON request TO ' || grantee;
  END LOOP;
END $$;
