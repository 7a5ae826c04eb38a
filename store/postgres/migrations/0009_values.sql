-- Small values that all processes share and that change, such as which tools are disabled.

CREATE TABLE named_value (
  name  text COLLATE "C" PRIMARY KEY,
  value bytea NOT NULL
);

-- Roles that may change runs may change values, without a further step of the operator.
DO $$
DECLARE grantee text;
BEGIN
  FOR grantee IN
    SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'run'::regclass AND a.privilege_type = 'DELETE' AND a.grantee <> c.relowner
  LOOP
    EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON named_value TO ' || grantee;
  END LOOP;
END $$;
