-- What lets a whole group commit travel in one write, with nobody between its statements to look at their answers.

-- Lets the statement, and with it the transaction, fail where something that the writer relied on does not hold.
CREATE FUNCTION demand(holds boolean, state text, message text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF holds THEN RETURN true; END IF;
  RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
END $$;

-- The number of the last group that each journal has committed, written with the group. Should the connection be lost while a
-- group is being committed, this tells whether it was.
CREATE TABLE journals (
  id text PRIMARY KEY,
  last_group bigint NOT NULL,
  written_at timestamptz NOT NULL
) WITH (fillfactor = 10);
