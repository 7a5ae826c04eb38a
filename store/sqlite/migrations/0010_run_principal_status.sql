-- The runs of a principal with a status, in the order in which runs are listed.
CREATE INDEX run_principal_status ON run (principal, status, started DESC, run_id DESC);
