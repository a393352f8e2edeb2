-- Custom fields of licenses and customers, the one mark of the first admin token, and indexes for list filters.

-- The first key ever made, whose token an operator may have chosen: only its text may lack the shape of our own tokens.
ALTER TABLE api_keys ADD COLUMN is_bootstrap boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX api_keys_bootstrap ON api_keys (is_bootstrap) WHERE is_bootstrap;
